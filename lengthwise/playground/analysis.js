// The answers of the net, of the machine read off it, and of the task to every prefix of a string. This file does not
// use the page.

const NETS = {
  tree: TreeNet,
  transformer: TransformerNet,
  stacked: StackedNet,
  wrapped: WrappedNet,
  elman: ElmanNet,
  "block-linear": BlockLinearNet,
};

// Prepare a run: its net and its machine.
function opened(run) {
  const net = new NETS[run.net.kind](run.net);
  const isTree = run.net.kind === "tree";
  const isTransformer = run.net.kind === "transformer";
  const machine = run.machine && run.machine.leaves ? new TreeMachine(run.machine) : null;
  return { run, net, isTree, isTransformer, machine, nearest: run.prototypes ? nearestPrototypes(run, net) : null };
}

// Return a function from a state to the class of the nearest prototype with the same answer, or -1 if there is none.
function nearestPrototypes(run, net) {
  const { shape, classes } = run.prototypes;
  const points = { shape, data: floatsOf(run.prototypes.points) };
  const answers = classes.map((_, index) => answerOf(net.logits(rowOf(points, index))));
  return (state, answer) => {
    let [best, least] = [-1, Infinity];
    classes.forEach((number, index) => {
      if (answers[index] !== answer) return;
      const point = rowOf(points, index);
      let distance = 0;
      for (let i = 0; i < point.length && distance < least; i++) distance += (point[i] - state[i]) ** 2;
      if (distance < least) [best, least] = [number, distance];
    });
    return best;
  };
}

// Return for every prefix: state, logits, answer, probabilities, class of the state, class and answer of the machine,
// state and answer of the task. Answers and classes are numbers, or null if missing. A transformer's pass is also
// returned, because its attention is computed from it for the selected prefix only.
function analyzed(player, symbols) {
  const { run, net, isTree, isTransformer } = player;
  const levels = isTree ? net.levels(symbols) : null;
  const pass = isTransformer ? net.read(symbols) : null;
  const states = pass ? pass.states : isTree ? treeStates(net, symbols, levels) : recurrentStates(net, symbols);
  const byMachine = machineSteps(player, symbols);
  const ofTask = run.task ? statesOf(run.task, symbols).slice(1) : null;
  const prefixes = states.map((state, position) => {
    const logits = net.logits(state);
    const answer = answerOf(logits);
    const taskAnswer = ofTask ? answerOrNull(run.task.outputs[ofTask[position]]) : null;
    return {
      state,
      logits,
      answer: answer < 0 ? null : answer,
      probabilities: answer < 0 ? null : softmax(logits),
      stateClass: player.nearest ? player.nearest(state, answer) : null,
      machineClass: byMachine ? byMachine[position] : null,
      machineAnswer: byMachine ? answerOrNull(run.machine.outputs[byMachine[position]]) : null,
      taskState: ofTask ? ofTask[position] : null,
      taskAnswer,
      isWrong: taskAnswer !== null && taskAnswer !== answer,
    };
  });
  const machineLevels = player.machine ? player.machine.levels(symbols) : null;
  return { symbols, prefixes, levels, machineLevels, pass };
}

function answerOrNull(output) {
  return output === undefined || output < 0 ? null : output;
}

function treeStates(net, symbols, levels) {
  return symbols.map((_, position) => net.states[levels[net.depth(position + 1)].states[position]]);
}

function recurrentStates(net, symbols) {
  let state = net.initial();
  return symbols.map((symbol) => (state = net.step(symbol, state)));
}

// Return the machine's class of every prefix.
function machineSteps({ run, machine, net }, symbols) {
  if (!run.machine) return null;
  if (!machine) return statesOf(run.machine, symbols).slice(1);
  const levels = machine.levels(symbols);
  return symbols.map((_, position) => levels[net.depth(position + 1)].classes[position]);
}

// Return the tree over a prefix: nodes with parts, begin and end of the window, level, class by state and by machine.
function treeOf(player, analysis, length) {
  const { net, nearest } = player;
  const { levels, machineLevels, symbols } = analysis;
  function node(level, position) {
    const isPad = position < 0;
    const { states, pad } = levels[level];
    const number = isPad ? pad : states[position];
    const logits = net.logits(net.states[number]);
    const answer = answerOf(logits);
    const named = machineLevels ? machineLevels[level] : null;
    const machineClass = named ? (isPad ? named.pad : named.classes[position]) : null;
    const reach = level === 0 ? 1 : levels[level].stride * levels[level].chunk;
    const parts = [];
    if (level > 0 && !isPad) {
      const { stride, chunk } = levels[level];
      for (let j = chunk - 1; j >= 0; j--) parts.push(node(level - 1, position - j * stride));
    }
    return {
      level,
      isPad,
      begin: Math.max(0, position - reach + 1),
      end: position + 1,
      symbol: level === 0 && !isPad ? symbols[position] : null,
      answer,
      machineClass,
      stateClass: level === 0 || isPad || !nearest ? machineClass : nearest(net.states[number], answer),
      parts,
    };
  }
  return node(net.depth(length), length - 1);
}

// Split a text into symbols, which are characters or words; return a sentence if a symbol is unknown.
function parsed(run, text) {
  const isBlank = run.symbols.some((symbol) => /\s/.test(symbol)); // then blanks are symbols, and are kept
  const characters = Array.from(isBlank ? text : text.replace(/\s+/g, ""));
  const words = run.separator ? text.split(run.separator).filter(Boolean) : characters;
  const symbols = words.map((word) => run.symbols.indexOf(word));
  const unknown = symbols.indexOf(-1);
  if (unknown < 0) return { symbols };
  return { problem: `${JSON.stringify(words[unknown])} is not a symbol of this task; use ${run.symbols.join(" ")}` };
}

function written(run, symbols) {
  return symbols.map((symbol) => run.symbols[symbol]).join(run.separator);
}

// Draw a string of `length` symbols. If the task has a machine, draw up to 20 until the task answers a whole string.
function randomString(run, length, random = Math.random) {
  let symbols = [];
  for (let attempt = 0; attempt < 20; attempt++) {
    symbols = run.task ? walk(run, length, random) : Array.from({ length }, () => pick(run.symbols.length, random));
    if (!run.task) return symbols;
    const states = statesOf(run.task, symbols);
    if (run.task.outputs[states[states.length - 1]] >= 0) return symbols;
  }
  return symbols;
}

function pick(count, random) {
  return Math.floor(random() * count);
}

// Draw symbols one by one, and avoid states without a way out as long as other states can be reached.
function walk(run, length, random) {
  const symbols = [];
  let state = run.task.start;
  for (let position = 0; position < length; position++) {
    const isTrap = (next) => run.task.table[next].every((other) => other === next);
    const fine = run.symbols.map((_, symbol) => symbol).filter((symbol) => !isTrap(run.task.table[state][symbol]));
    const choices = fine.length ? fine : run.symbols.map((_, symbol) => symbol);
    const symbol = choices[pick(choices.length, random)];
    symbols.push(symbol);
    state = run.task.table[state][symbol];
  }
  return symbols;
}
