// RegularGPT: one attention layer merges windows of states, level by level. Equal windows are merged once.

const MAX_KEPT_STATES = 60000;

class TreeNet {
  constructor(net) {
    this.net = net;
    this.tensors = tensorsOf(net);
    this.forget();
  }

  // States have numbers: first the pad's state, then the states of the symbols, then merged states.
  forget() {
    const leaves = this.tensors["embedding.weight"];
    this.states = Array.from({ length: leaves.shape[0] }, (_, index) => rowOf(leaves, index));
    this.merged = new Map();
    this.projected = new Map();
  }

  chunkAt(level) {
    return level < this.net.lowerChunks.length ? this.net.lowerChunks[level] : this.net.chunk;
  }

  // Return the states after each level at all positions, the pad's states, and the distance between parts of a window.
  levels(symbols) {
    if (this.states.length > MAX_KEPT_STATES) this.forget();
    let current = symbols.map((symbol) => symbol + 1);
    let pad = 0;
    let stride = 1;
    const levels = [{ states: current, pad, stride: 0, chunk: 0 }];
    while (stride < symbols.length || levels.length === 1) {
      const chunk = this.chunkAt(levels.length - 1);
      if (this.net.rawPads) pad = 0;
      for (let layer = 0; layer < this.net.thickness; layer++) {
        const below = current;
        const at = (position) => (position < 0 ? pad : below[position]);
        const offsets = Array.from({ length: chunk }, (_, j) => (chunk - 1 - j) * stride);
        current = below.map((_, position) => this.merge(layer, offsets.map((offset) => at(position - offset))));
        pad = this.merge(layer, Array(chunk).fill(pad));
      }
      levels.push({ states: current, pad, stride, chunk });
      stride *= chunk;
    }
    return levels;
  }

  // Return the number of levels that read a prefix of this length.
  depth(length) {
    let levels = 0;
    for (let reach = 1; reach < length || levels === 0; levels++) reach *= this.chunkAt(levels);
    return levels;
  }

  logits(state) {
    const norm = this.tensors["readout.0.weight"];
    const normed = norm ? layerNorm(state, norm, this.tensors["readout.0.bias"]) : state;
    return linear(this.tensors["readout.1.weight"], this.tensors["readout.1.bias"], normed);
  }

  // Return the number of a window's state, given the numbers of its parts, oldest first.
  merge(layer, parts) {
    const key = `${layer}:${parts.join()}`;
    if (!this.merged.has(key)) {
      this.merged.set(key, this.states.length);
      this.states.push(this.mergedState(layer, parts));
    }
    return this.merged.get(key);
  }

  tensor(layer, name) {
    return this.tensors[`layers.${layer}.${name}`];
  }

  projections(layer, part) {
    const key = `${layer}:${part}`;
    if (!this.projected.has(key)) {
      const normed = this.normalized(layer, this.states[part]);
      const project = (name) => linear(this.tensor(layer, `${name}.weight`), this.tensor(layer, `${name}.bias`), normed);
      this.projected.set(key, { query: project("to_query"), keyValue: project("to_key_value") });
    }
    return this.projected.get(key);
  }

  normalized(layer, state) {
    if (this.net.variant === "merge") {
      const gain = this.tensor(layer, "gain").data;
      return state.map((value, i) => Math.tanh(gain[i] * value));
    }
    if (this.net.variant === "paper") return this.norm(layer, "norm_1", state);
    return state;
  }

  norm(layer, name, state) {
    return layerNorm(state, this.tensor(layer, `${name}.weight`), this.tensor(layer, `${name}.bias`));
  }

  mergedState(layer, parts) {
    const newest = parts[parts.length - 1];
    const { query } = this.projections(layer, newest);
    const width = query.length;
    const heads = this.net.heads;
    const size = width / heads;
    const bias = this.tensor(layer, "bias");
    const newestFirst = parts.slice().reverse().map((part) => this.projections(layer, part).keyValue);
    const attended = new Float32Array(width);
    for (let head = 0; head < heads; head++) {
      const scores = newestFirst.map((keyValue, j) => {
        let product = 0;
        for (let i = head * size; i < (head + 1) * size; i++) product += query[i] * keyValue[i];
        return product / Math.sqrt(size) + bias.data[head * bias.shape[1] + j];
      });
      softmax(scores).forEach((share, j) => {
        for (let i = head * size; i < (head + 1) * size; i++) attended[i] += share * newestFirst[j][width + i];
      });
    }
    const mixed = linear(this.tensor(layer, "to_output.weight"), this.tensor(layer, "to_output.bias"), attended);
    return this.output(layer, this.states[newest], mixed);
  }

  feedForward(layer, block, state, f) {
    const tensor = (name) => this.tensor(layer, `feed_forwards.${block}.${name}`);
    const hidden = linear(tensor("widen.weight"), tensor("widen.bias"), state).map(f);
    return linear(tensor("narrow.weight"), tensor("narrow.bias"), hidden);
  }

  output(layer, newest, mixed) {
    if (this.net.variant === "bare") return this.feedForward(layer, 0, mixed, relu);
    if (this.net.variant === "paper") {
      const sum = added(newest, mixed);
      return added(sum, this.feedForward(layer, 0, this.norm(layer, "norm_2", sum), geluByTanh));
    }
    if (this.net.variant === "code") {
      const sum = this.norm(layer, "norm_1", added(newest, mixed));
      return this.norm(layer, "norm_2", added(sum, this.feedForward(layer, 0, sum, relu)));
    }
    for (const block of [0, 1]) {
      mixed = added(mixed, this.feedForward(layer, block, this.norm(layer, `norms.${block}`, mixed), gelu));
    }
    return layerNorm(mixed);
  }
}
