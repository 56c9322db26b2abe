// The page: the typed text, the selected prefix, and its display.

const MAX_SYMBOLS = 512; // or as many as the counterexample has, see maxSymbols
const LENGTHS = { random: 12, longer: 60 };
const MILLISECONDS_PER_STEP = 450;

// A counterexample has up to 10,000 symbols: a second for a net that reads symbol by symbol, a minute for a tree. The
// time of a transformer is quadratic, and its tables of positions end.
function maxSymbols({ run, isTree, isTransformer }) {
  if (isTransformer) return run.net.maxLength;
  return isTree || !run.counterexample ? MAX_SYMBOLS : Math.max(MAX_SYMBOLS, run.counterexample.string.length);
}

function whyNoCounterexample(player) {
  const { counterexample } = player.run;
  if (!counterexample) {
    return player.run.isLearned ? "No string is known on which this net differs from its machine."
      : "No string is known that this net answers wrongly.";
  }
  const length = counterexample.string.length;
  return length > maxSymbols(player) ? `The counterexample has ${length} symbols, too many for this page.` : "";
}

function startPage(content) {
  const at = (id) => document.getElementById(id);
  const state = { player: null, analysis: null, step: 0, timer: null, cell: null };

  function open(index) {
    state.player = opened(content.runs[index]);
    const { run } = state.player;
    at("run").value = index;
    at("question").textContent = run.question;
    const separator = run.separator ? ", separated by blanks" : "";
    at("alphabet").textContent =
      `Symbols: ${run.symbols.join(" ")}${separator}; up to ${maxSymbols(state.player)} of them.`;
    const missing = whyNoCounterexample(state.player);
    at("counterexample").disabled = Boolean(missing);
    at("counterexample").title = missing;
    at("tree-section").hidden = !state.player.isTree;
    at("attention-section").hidden = !state.player.isTransformer;
    state.cell = null;
    at("proved").textContent = run.level
      ? `Level ${run.level}. ${run.claim} ${run.reason ? `The level is not higher, because ${run.reason}.` : ""}`
      : "No certificate: the task has no finite machine to compare the net with.";
    at("about").textContent = `${run.about} ${content.about.command ? `Page made by: ${content.about.command}. ` : ""}` +
      `lengthwise ${content.about.lengthwise}, commit ${content.about.commit.slice(0, 10)}.`;
    drawMachines(run);
  }

  function drawMachines(run) {
    const parser = new DOMParser();
    at("drawings").replaceChildren(...run.drawings.map((drawing) => {
      const figure = document.createElement("div");
      const heading = document.createElement("h3");
      heading.textContent = drawing.title;
      figure.append(heading);
      if (drawing.svg) {
        const svg = document.importNode(parser.parseFromString(drawing.svg, "image/svg+xml").documentElement, true);
        svg.dataset.of = drawing.of;
        if (drawing.of === "machine") svg.querySelectorAll(".state").forEach((node) => {
          node.querySelector("circle").dataset.hue = "";
          tint(node, Number(node.dataset.state));
        });
        const scroll = document.createElement("div");
        scroll.className = "scroll";
        scroll.append(svg);
        figure.append(scroll);
      } else {
        const note = document.createElement("p");
        note.className = "note";
        note.textContent = drawing.note;
        figure.append(note);
      }
      return figure;
    }));
  }

  function read(text, step) {
    stop();
    const [given, limit] = [parsed(state.player.run, text), maxSymbols(state.player)];
    const tooLong = given.symbols && given.symbols.length > limit
      ? `expected at most ${limit} symbols, got ${given.symbols.length}` : "";
    const problem = given.problem || tooLong;
    at("problem").textContent = problem;
    at("string").setAttribute("aria-invalid", String(Boolean(problem)));
    // The display of an earlier string or net would look as if it were about this text.
    const symbols = problem ? [] : given.symbols;
    state.analysis = analyzed(state.player, symbols);
    at("step").max = symbols.length;
    showStrip();
    look(Number.isInteger(step) ? Math.max(0, Math.min(step, symbols.length)) : symbols.length);
  }

  function put(symbols) {
    at("string").value = written(state.player.run, symbols);
    read(at("string").value);
  }

  // A table of learned positions may be shorter than a random string.
  function random(length) {
    return randomString(state.player.run, Math.min(length, maxSymbols(state.player)));
  }

  // Begin with the counterexample if the certificate has one, and otherwise with a short random string.
  function begin() {
    const { run } = state.player;
    if (whyNoCounterexample(state.player)) put(random(8));
    else put(run.counterexample.string.map((symbol) => run.symbols.indexOf(symbol)));
  }

  function firstApart() {
    return state.analysis.prefixes.findIndex((prefix) => prefix.isWrong ||
      (prefix.stateClass !== null && prefix.stateClass !== prefix.machineClass)) + 1;
  }

  function showStrip() {
    const { run } = state.player;
    const apart = firstApart();
    at("wrong").disabled = !apart;
    at("strip").replaceChildren(...state.analysis.prefixes.map((prefix, index) => {
      const item = document.createElement("li");
      const symbol = document.createElement("b");
      symbol.textContent = run.symbols[state.analysis.symbols[index]];
      const answer = document.createElement("span");
      answer.textContent = answerName(run, prefix.answer);
      if (prefix.isWrong) answer.className = "wrong";
      item.append(symbol, answer);
      tint(item, run.machine ? (prefix.stateClass === null ? prefix.machineClass : prefix.stateClass) : prefix.answer);
      if (index + 1 === apart) item.classList.add("apart");
      item.addEventListener("click", () => look(index + 1));
      return item;
    }));
    const colors = run.machine ? "the classes of the net's states in the machine" : "the net's answers";
    const marked = apart ? ` The first disagreement, after ${counted(apart, "symbol")}, is marked in red.` : "";
    at("legend").textContent = `Each card shows a symbol and the net's answer to the string up to this symbol; colors ` +
      `show ${colors}.${marked}`;
  }

  function look(step) {
    const { player, analysis } = state;
    const { run } = player;
    state.step = step;
    at("step").value = step;
    at("step-label").textContent = `Symbols read: ${step} of ${analysis.symbols.length}`;
    const prefix = step ? analysis.prefixes[step - 1] : null;
    fill("net-answer", prefix ? answerName(run, prefix.answer) : "-",
      prefix && prefix.probabilities ? `probability ${percent(prefix.probabilities[prefix.answer])}` : "");
    fill("machine-answer", run.machine ? (prefix ? answerName(run, prefix.machineAnswer) : "-") : "-",
      run.machine ? "" : "none was read off the net");
    fill("task-answer", run.task ? (prefix ? answerName(run, prefix.taskAnswer) : "-") : "-", "");
    const { text, isWrong } = verdict(run, analysis, step);
    at("verdict").textContent = text;
    at("verdict").className = isWrong ? "wrong" : prefix && prefix.taskAnswer !== null ? "right" : "";
    at("why").replaceChildren(...reasons(player, analysis, step).map((sentence) => {
      const paragraph = document.createElement("p");
      paragraph.textContent = sentence;
      return paragraph;
    }));
    at("chart").replaceChildren(...(analysis.prefixes.length > 1 ? [chartPicture(run, analysis, step)] : []));
    [...at("strip").children].forEach((item, index) => {
      item.classList.toggle("current", index + 1 === step);
      item.classList.toggle("later", index + 1 > step);
    });
    if (player.isTree) showTree(step);
    if (player.isTransformer) showAttention();
    light("machine", run.machine && !run.machine.leaves ? run.machine : null);
    light("task", run.task);
  }

  function showTree(step) {
    at("tree").replaceChildren(...(step ? [treePicture(state.player, state.analysis, step)] : []));
    const more = step > MAX_LEAVES_SHOWN ? ` Only the newest ${MAX_LEAVES_SHOWN} symbols are drawn.` : "";
    const color = state.player.run.machine ? "Its number and color show the machine's class of the symbols below it"
      : "Its color shows the net's answer to the symbols below it";
    at("tree-note").textContent = `A circle is a state of the net. ${color}.${more}`;
  }

  // A net whose numbers are not finite has no attention weights to show.
  function attentionNow() {
    const { player, analysis, step } = state;
    return step && analysis.prefixes[step - 1].answer !== null ? attentionRows(player, analysis, step) : null;
  }

  function showAttention() {
    const { player: { run }, analysis } = state;
    const attention = attentionNow();
    state.cell = attention && drawnCell(state.cell, attention);
    at("attention").replaceChildren(...(attention ? [attentionTable(run, analysis, attention, state.cell)] : []));
    at("attention-cell").textContent = attention ? attentionSentence(run, analysis, attention, state.cell) : "";
    at("attention-note").textContent = attention ? attentionNote(attention) : "";
  }

  function choose(cell) {
    state.cell = cell;
    showAttention();
    at("attention").querySelector(".chosen").scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // If a drawing is wider than its column, scroll only the drawing, until the state is in the middle.
  function bringIntoView(node, scroll) {
    const [inner, outer] = [node.getBoundingClientRect(), scroll.getBoundingClientRect()];
    if (inner.left < outer.left || inner.right > outer.right) {
      scroll.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
    }
  }

  function light(which, machine) {
    for (const svg of document.querySelectorAll(`svg[data-of="${which}"]`)) {
      svg.querySelectorAll(".lit").forEach((node) => node.classList.remove("lit"));
      if (!machine) continue;
      const states = statesOf(machine, state.analysis.symbols.slice(0, state.step));
      const now = states[states.length - 1];
      const node = svg.querySelector(`[data-state="${now}"]`);
      node.classList.add("lit");
      bringIntoView(node, svg.parentElement);
      if (state.step) {
        const ends = `[data-from="${states[states.length - 2]}"][data-to="${now}"]`;
        svg.querySelectorAll(ends).forEach((node) => node.classList.add("lit"));
      }
    }
  }

  function fill(id, answer, note) {
    const small = document.createElement("small");
    small.textContent = note;
    at(id).replaceChildren(answer, small);
  }

  function stop() {
    clearInterval(state.timer);
    state.timer = null;
    at("play").textContent = "Play";
  }

  function play() {
    if (state.timer) return stop();
    if (state.step === state.analysis.symbols.length) look(0);
    at("play").textContent = "Pause";
    state.timer = setInterval(() => {
      if (state.step < state.analysis.symbols.length) look(state.step + 1);
      else stop();
    }, MILLISECONDS_PER_STEP);
  }

  function move(by) {
    stop();
    look(Math.max(0, Math.min(state.analysis.symbols.length, state.step + by)));
  }

  content.runs.forEach((run, index) => at("run").append(new Option(run.name, index)));
  at("run").addEventListener("change", () => {
    open(Number(at("run").value));
    begin();
  });
  at("string").addEventListener("input", () => read(at("string").value));
  at("random").addEventListener("click", () => put(random(LENGTHS.random)));
  at("longer").addEventListener("click", () => put(random(LENGTHS.longer)));
  at("clear").addEventListener("click", () => put([]));
  at("counterexample").addEventListener("click", begin);
  at("step").addEventListener("input", () => {
    stop();
    look(Number(at("step").value));
  });
  at("back").addEventListener("click", () => move(-1));
  at("next").addEventListener("click", () => move(1));
  at("wrong").addEventListener("click", () => move(firstApart() - state.step));
  at("play").addEventListener("click", play);

  at("attention").addEventListener("click", (event) => {
    const data = event.target.closest("td");
    if (data) choose({ row: Number(data.dataset.row), position: Number(data.dataset.position) });
  });
  at("attention").addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own keys
    const attention = attentionNow();
    const cell = attention && movedCell(state.cell, event.key, attention);
    if (!cell) return;
    event.preventDefault(); // or the arrow key also scrolls
    choose(cell);
  });

  // An address may end in #net=1&string=abba&step=3. A plus sign in it is a symbol, and not a blank.
  const asked = new URLSearchParams(location.hash.slice(1).replace(/\+/g, "%2B"));
  const index = Number(asked.get("net") || 0);
  open(content.runs[index] ? index : 0);
  if (asked.has("string")) {
    at("string").value = asked.get("string");
    read(at("string").value, asked.has("step") ? Number(asked.get("step")) : undefined);
  } else {
    begin();
  }
}

startPage(JSON.parse(document.getElementById("data").textContent));
