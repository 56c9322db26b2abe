(function (root, make) {
  if (typeof module === "object" && module.exports) module.exports = make();
  else root.$name = make();
})(typeof self !== "undefined" ? self : this, function () {
  "use strict";
  const about = $about;
  const symbols = $symbols;
  const classes = $classes;
  const start = $start;
  const width = symbols.length;
  // The state after symbol v read in state q is table[q * width + v].
  const table = $array.from($table);
  // The class that each state answers with, or -1.
  const answers = Int32Array.from($answers);
  const ids = new Map(symbols.map((symbol, id) => [symbol, id]));
  const tests = $tests;

  // The number of a symbol in the list of symbols, or null.
  function symbolOf(name) {
    return ids.has(name) ? ids.get(name) : null;
  }

  // The state after one more symbol.
  function step(state, symbol) {
    const id = ids.get(symbol);
    if (id === undefined) throw new RangeError("expected one of the symbols " + symbols.join(" ") + ", got " + symbol);
    return table[state * width + id];
  }

  // The name of a state's answer, or null.
  function answer(state) {
    return answers[state] < 0 ? null : classes[answers[state]];
  }

  // The name of the answer to a string, or null. A string is an array of symbols, or a text if these are characters.
  function classify(string) {
    let state = start;
    for (const symbol of string) state = step(state, symbol);
    return answer(state);
  }

  // The strings whose answers differ from the answers when this file was written; the list should be empty.
  function selfTest() {
    return tests.filter(([string, expected]) => classify(string) !== expected).map(([string]) => string);
  }

  return { about, symbols, classes, start, symbolOf, step, answer, classify, selfTest, numTests: tests.length };
});
