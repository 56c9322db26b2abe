// The causal transformer: pre-norm layers as in GPT-2. Position t only sees positions up to t, so one pass computes the
// answers to all prefixes.

class TransformerNet {
  constructor(net) {
    this.tensors = tensorsOf(net);
    this.heads = net.heads;
    this.layers = net.layers;
    this.latest = { symbols: [], states: [], memories: Array.from({ length: net.layers }, () => []) };
  }

  // Return the states after all layers at all positions, and for each layer the queries, keys and values there. If the
  // string begins as the latest one did, only later positions are computed: typing at the end costs one position.
  read(symbols) {
    const { latest } = this;
    let kept = 0;
    while (kept < Math.min(symbols.length, latest.symbols.length) && symbols[kept] === latest.symbols[kept]) kept++;
    const states = latest.states.slice(0, kept);
    const memories = latest.memories.map((memory) => memory.slice(0, kept));
    for (let position = kept; position < symbols.length; position++) {
      let state = this.readIn(symbols[position], position);
      for (let layer = 0; layer < this.layers; layer++) state = this.layerOutput(layer, state, memories[layer]);
      states.push(state);
    }
    this.latest = { symbols: symbols.slice(), states, memories };
    return this.latest;
  }

  readIn(symbol, position) {
    const { tensors } = this;
    const embedded = rowOf(tensors["read_in.embedding.weight"], symbol);
    const placed = tensors.positions ? added(embedded, rowOf(tensors.positions, position)) : embedded;
    return tensors["read_in.norm.weight"] ? this.norm("read_in.norm", placed) : placed;
  }

  // Return the layer's output at the newest position, and add its query, key and value to the memory.
  layerOutput(layer, state, memory) {
    const name = (part) => `layers.${layer}.${part}`;
    const projected = this.linear(name("query_key_value"), this.norm(name("norms.0"), state));
    if (this.tensors.cosines) this.rotate(projected, memory.length);
    memory.push(projected);
    const mixed = added(state, this.linear(name("output"), this.attended(memory, layer)));
    const hidden = this.linear(name("widen"), this.norm(name("norms.1"), mixed)).map(geluByTanh);
    return added(mixed, this.linear(name("narrow"), hidden));
  }

  // Rotate the query and the key in place, as rotary positions do: each pair of numbers by its angle at this position.
  rotate(projected, position) {
    const cosines = rowOf(this.tensors.cosines, position);
    const sines = rowOf(this.tensors.sines, position);
    for (let i = 0; i < projected.length * 2 / 3; i += 2) {
      const [cosine, sine] = [cosines[i / 2 % cosines.length], sines[i / 2 % sines.length]];
      const [x, y] = [projected[i], projected[i + 1]];
      projected[i] = x * cosine - y * sine;
      projected[i + 1] = x * sine + y * cosine;
    }
  }

  // Return the values in the memory, averaged by each head's weights at the newest position.
  attended(memory, layer) {
    const width = memory[0].length / 3;
    const size = width / this.heads;
    const sums = new Float64Array(width);
    for (let head = 0; head < this.heads; head++) {
      const weights = this.weights(memory, layer, head, memory.length - 1);
      for (let position = 0; position < memory.length; position++) {
        const values = memory[position];
        const weight = weights[position];
        for (let i = head * size; i < (head + 1) * size; i++) sums[i] += weight * values[2 * width + i];
      }
    }
    return Float32Array.from(sums);
  }

  // Return a head's attention weights at a position, one for each position up to it.
  weights(memory, layer, head, position) {
    const width = memory[0].length / 3;
    const size = width / this.heads;
    const own = memory[position].slice(head * size, (head + 1) * size);
    const { biases, u, v, distance_keys: distanceKeys } = this.tensors;
    const [query, distanceQuery] = u ? [added(own, rowOf(u, head)), added(own, rowOf(v, head))] : [own];
    const scores = new Float32Array(position + 1);
    for (let other = 0; other <= position; other++) {
      const distance = position - other;
      let product = dot(query, memory[other], width + head * size);
      if (u) product += dot(distanceQuery, distanceKeys.data, offsetOf(distanceKeys, layer, head, distance));
      scores[other] = product / Math.sqrt(size) + (biases ? biases.data[offsetOf(biases, layer, head, distance)] : 0);
    }
    return softmax(scores);
  }

  logits(state) {
    return this.linear("readout.1", this.norm("readout.0", state));
  }

  // A tied read-out has no bias.
  linear(name, x) {
    return linear(this.tensors[`${name}.weight`], this.tensors[`${name}.bias`], x);
  }

  norm(name, x) {
    return layerNorm(x, this.tensors[`${name}.weight`], this.tensors[`${name}.bias`]);
  }
}

// Return the attention of the last symbol of a prefix: for each layer, for each head, the weights of its positions.
function attentionAt({ net }, { pass }, step) {
  const heads = Array.from({ length: net.heads }, (_, head) => head);
  return pass.memories.map((memory, layer) => heads.map((head) => net.weights(memory, layer, head, step - 1)));
}
