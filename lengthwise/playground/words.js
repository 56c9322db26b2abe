// Sentences about a prefix of a string.

const MAX_QUOTED = 24;
const MAX_NAMED = 3; // positions of a sentence about attention
const ALIKE = 5e-4; // shares that differ by less have almost the same percentage

function quoted(run, symbols) {
  if (!symbols.length) return "the empty string";
  const text = written(run, symbols);
  return text.length <= MAX_QUOTED ? text : `${text.slice(0, 8)}...${text.slice(-12)}`;
}

function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function listed(names) {
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}` : names[0];
}

function percent(probability) {
  const rounded = (100 * probability).toFixed(1);
  return rounded === "100.0" && probability < 1 ? "over 99.9 %" : `${rounded.replace(/\.0$/, "")} %`;
}

function answerName(run, answer) {
  return answer === null ? "no answer" : run.classes[answer];
}

// Name a class of the machine by the shortest string that leads to it.
function className(run, number) {
  const name = run.machine.names[number];
  if (name === ".") return "the class of no symbols";
  if (name === "(start)") return "the start";
  return name.startsWith("#") ? `class ${number}` : `the class of ${name}`;
}

function verdict(run, analysis, step) {
  if (!step) return { text: "Nothing has been read yet.", isWrong: false };
  const prefix = analysis.prefixes[step - 1];
  if (run.task === null) return { text: run.taskSentence, isWrong: false };
  if (prefix.taskAnswer === null) return { text: "The task has no answer after this prefix.", isWrong: false };
  if (run.isLearned) { // the machine may itself be wrong, so agreement with it does not make an answer right
    const verb = prefix.isWrong ? "differs from" : "agrees with";
    return { text: `The net ${verb} the machine in its certificate.`, isWrong: prefix.isWrong };
  }
  if (prefix.isWrong) return { text: "The net is wrong.", isWrong: true };
  return { text: "The net is right.", isWrong: false };
}

// Explain the net's answer: the class of its state, and the machine's answer for this class.
function reasons(player, analysis, step) {
  const { run } = player;
  if (!step) return ["Before the first symbol, there is nothing to answer."];
  const prefix = analysis.prefixes[step - 1];
  const said = answerName(run, prefix.answer);
  if (prefix.answer === null) return ["The net's numbers are not finite here, which counts as a wrong answer."];
  const read = quoted(run, analysis.symbols.slice(0, step));
  const sentences = [];
  if (!run.machine) {
    sentences.push(
      `After ${read}, the net gives ${said} a probability of ${percent(prefix.probabilities[prefix.answer])}.`,
      "No finite machine was read off this net, so its states have no classes. They are colored by their answers.",
    );
  } else if (player.isTree) {
    sentences.push(...treeReasons(player, analysis, step, said));
  } else {
    sentences.push(...machineReasons(run, analysis, step, said));
  }
  if (player.isTransformer && step > 1) {
    sentences.push(attentionReason(run, analysis, attentionAt(player, analysis, step).pop()));
  }
  if (run.task !== null && prefix.taskAnswer !== null && prefix.isWrong) {
    const [owner, errs, erred, isWrong, answer] = run.isLearned
      ? ["The machine in its certificate", "differs", "differed", "differs", "machine's answer"]
      : ["The task's own machine", "errs", "erred", "is wrong", "right answer"];
    sentences.push(`${owner} is in state ${prefix.taskState} after ${read}, and answers ` +
      `${answerName(run, prefix.taskAnswer)}${run.isLearned ? "." : `: ${run.question}`}`);
    const first = analysis.prefixes.findIndex((other) => other.isWrong);
    const before = first === step - 1 ? `${errs} here first, after ${counted(step, "symbol")}`
      : first ? `${erred} first after ${first + 1} symbols` : `${isWrong} from the first symbol on`;
    sentences.push(`The net ${before}; the curve shows how sure it was of the ${answer}.`);
  }
  return sentences;
}

function machineReasons(run, analysis, step, said) {
  const { machineClass, machineAnswer, stateClass } = analysis.prefixes[step - 1];
  const before = step > 1 ? analysis.prefixes[step - 2].machineClass : run.machine.start;
  const symbol = run.symbols[analysis.symbols[step - 1]];
  const sentences = [
    `Reading ${symbol} takes the machine from state ${before} to state ${machineClass}, where it answers ` +
      `${answerName(run, machineAnswer)}; all strings that lead to this state have the same answer.`,
  ];
  const shortest = run.machine.names[machineClass];
  // The empty string, which no net answers, also leads to the start.
  if (machineClass !== run.machine.start && /^[^#(]/.test(shortest) && shortest !== quoted(run, analysis.symbols.slice(0, step))) {
    sentences.push(`The shortest of them is ${shortest}.`);
  }
  if (isDecided(run.machine, machineClass)) sentences.push("Whatever follows, the answer stays the same.");
  if (stateClass === null || stateClass === machineClass) {
    const where = stateClass === null ? "The net" : "The net's state lies in the class of that state, so the net";
    sentences.push(`${where} answers ${said}.`);
  } else {
    sentences.push("Here the net has left its machine: its state is nearest to a state of another class.");
  }
  return sentences;
}

function treeReasons(player, analysis, step, said) {
  const { run } = player;
  const root = treeOf(player, analysis, step);
  const parts = root.parts.filter((part) => !part.isPad);
  const named = parts.map((part) => {
    const window = quoted(run, analysis.symbols.slice(part.begin, part.end));
    return `${window} (${className(run, part.machineClass)})`;
  });
  const result = className(run, root.machineClass);
  const merged = parts.length > 1 ? `Its last merge joins ${listed(named)}; together they have ${result}` : `It reads ${listed(named)}`;
  return [
    `The net merges the string as a tree of ${counted(root.level, "level")}. ${merged}, and that class answers ` +
      `${answerName(run, answerOrNull(run.machine.outputs[root.machineClass]))}.`,
    root.stateClass === root.machineClass
      ? `The net's state at the root lies in that class, so the net answers ${said}.`
      : "Here the net has left its machine: its state at the root is nearest to a state of another class.",
  ];
}

// Name the positions to which a layer attends most, on average over its heads; `byHead` are the weights of each head.
function attentionReason(run, analysis, byHead) {
  const averageAt = (position) => byHead.reduce((sum, weights) => sum + weights[position], 0) / byHead.length;
  const shares = byHead[0].map((_, position) => averageAt(position));
  const order = shares.map((_, position) => position).sort((one, other) => shares[other] - shares[one]);
  const average = byHead.length > 1 ? `, on average over its ${byHead.length} heads` : "";
  const even = percent(1 / shares.length);
  if (shares[order[0]] - shares[order[order.length - 1]] < ALIKE) {
    return `The last layer attends to all ${counted(shares.length, "position")} alike${average}: ${even} each.`;
  }
  const named = order.slice(0, MAX_NAMED).map((position) => (
    `${position + 1} (${run.symbols[analysis.symbols[position]]}, ${percent(shares[position])})`
  ));
  return `The last layer attends most to the positions ${listed(named)}${average}. An even share would be ${even}.`;
}
