// Finite machines as tables.

// Return the states of a Moore machine along a string, the start first.
function statesOf(machine, symbols) {
  const states = [machine.start];
  for (const symbol of symbols) states.push(machine.table[states[states.length - 1]][symbol]);
  return states;
}

// Return whether all strings from a state get the answer of the state itself.
function isDecided(machine, state) {
  const reached = new Set([state]);
  for (const one of reached) machine.table[one].forEach((next) => reached.add(next));
  return [...reached].every((one) => machine.outputs[one] === machine.outputs[state]);
}

// A tree machine merges classes as RegularGPT merges states; the result is undefined if its table has no entry.
class TreeMachine {
  constructor(machine) {
    this.machine = machine;
    this.entries = new Map(machine.table.map((entry) => [entry.slice(0, -1).join(), entry[entry.length - 1]]));
  }

  merged(parts) {
    return this.entries.get(parts.join());
  }

  // Return the classes after each level at all positions, and the classes of the pad.
  levels(symbols) {
    const { chunk_size: chunk, leaves } = this.machine;
    let current = symbols.map((symbol) => leaves[symbol + 1]);
    let pad = leaves[0];
    const levels = [{ classes: current, pad }];
    for (let stride = 1; stride < symbols.length || levels.length === 1; stride *= chunk) {
      const below = current;
      const padBelow = pad;
      const offsets = Array.from({ length: chunk }, (_, j) => (chunk - 1 - j) * stride);
      const at = (position) => (position < 0 ? padBelow : below[position]);
      current = below.map((_, position) => this.merged(offsets.map((offset) => at(position - offset))));
      pad = this.merged(Array(chunk).fill(padBelow));
      levels.push({ classes: current, pad });
    }
    return levels;
  }
}
