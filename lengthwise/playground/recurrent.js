// Nets with one state: initial(), step(symbol, state) and logits(state), with states in PyTorch's layout.

// `gru` and `lstm`: embedded symbols, then layers z + cell(norm(z)). The state consists of the states of all cells, and
// of the last layer's output at the latest symbol.
class StackedNet {
  constructor(net) {
    this.tensors = tensorsOf(net);
    this.cell = net.cell;
    this.layers = net.layers;
    this.width = net.width;
    this.size = net.cell === "lstm" ? 2 * net.width : net.width;
  }

  initial() {
    return new Float32Array(this.layers * this.size + this.width);
  }

  step(symbol, state) {
    const after = this.initial();
    let features = rowOf(this.tensors["embedding.weight"], symbol);
    for (let layer = 0; layer < this.layers; layer++) {
      const norm = `norms.${layer}`;
      const normed = layerNorm(features, this.tensors[`${norm}.weight`], this.tensors[`${norm}.bias`]);
      const before = state.subarray(layer * this.size, (layer + 1) * this.size);
      const latest = stepOfCell(this.cell, this.tensors, `layers.${layer}.cell`, 0, normed, before);
      after.set(latest, layer * this.size);
      features = added(features, latest.subarray(0, this.width));
    }
    after.set(features, this.layers * this.size);
    return after;
  }

  logits(state) {
    return hiddenLayerLogits(this.tensors, state.subarray(state.length - this.width));
  }
}

// A user's net: head(core(embedding(symbols))) of torch's modules. The state consists of the cell states of all layers
// (for an LSTM), and of the hidden states of all layers.
class WrappedNet {
  constructor(net) {
    this.tensors = tensorsOf(net);
    this.cell = net.cell;
    this.layers = net.layers;
    this.width = net.width;
    this.numCells = net.cell === "lstm" ? net.layers : 0;
  }

  initial() {
    return new Float32Array((this.numCells + this.layers) * this.width);
  }

  step(symbol, state) {
    const after = this.initial();
    const part = (index) => state.subarray(index * this.width, (index + 1) * this.width);
    let features = rowOf(this.tensors["embedding.weight"], symbol);
    for (let layer = 0; layer < this.layers; layer++) {
      const before = new Float32Array(this.numCells ? 2 * this.width : this.width);
      before.set(part(this.numCells + layer));
      if (this.numCells) before.set(part(layer), this.width);
      const latest = stepOfCell(this.cell, this.tensors, "core", layer, features, before);
      features = latest.subarray(0, this.width);
      after.set(features, (this.numCells + layer) * this.width);
      if (this.numCells) after.set(latest.subarray(this.width), layer * this.width);
    }
    return after;
  }

  logits(state) {
    const top = state.subarray(state.length - this.width);
    return linear(this.tensors["readout.1.weight"], this.tensors["readout.1.bias"], top);
  }
}

// Elman's network: f(W_h x + column of W_x), from a learned first state.
class ElmanNet {
  constructor(net) {
    this.tensors = tensorsOf(net);
    this.between = { tanh: Math.tanh, relu }[net.activation];
  }

  initial() {
    return this.tensors.first_state.data;
  }

  step(symbol, state) {
    const inputs = this.tensors["recurrence.weight_ih_l0"];
    const sums = linear(this.tensors["recurrence.weight_hh_l0"], null, state);
    return sums.map((sum, row) => this.between(sum + inputs.data[row * inputs.shape[1] + symbol]));
  }

  logits(state) {
    return linear(this.tensors["readout.weight"], this.tensors["readout.bias"], state);
  }
}

// x_t = A(u_t) x_{t-1} + v(u_t) with block-diagonal A, one matrix and one vector for each symbol.
class BlockLinearNet {
  constructor(net) {
    this.tensors = tensorsOf(net);
    this.readout = net.readout;
    this.largest = net.largest ?? Infinity; // the bound on a state's numbers; larger states are scaled down to it
    [, this.numBlocks, this.blockSize] = this.tensors.values.shape;
  }

  initial() {
    return this.tensors.first_state.data;
  }

  step(symbol, state) {
    const size = this.blockSize;
    const width = this.numBlocks * size;
    const matrices = this.tensors.transitions.data.subarray(symbol * width * size, (symbol + 1) * width * size);
    const after = this.tensors.values.data.slice(symbol * width, (symbol + 1) * width);
    for (let row = 0; row < width; row++) {
      const block = row - (row % size);
      let sum = after[row];
      for (let column = 0; column < size; column++) sum += matrices[row * size + column] * state[block + column];
      after[row] = sum;
    }
    const most = after.reduce((size, number) => Math.max(size, Math.abs(number)), 0);
    return most > this.largest ? after.map((number) => number * Math.fround(this.largest / most)) : after;
  }

  logits(state) {
    return this.readout === "mixture" ? this.mixture(state) : hiddenLayerLogits(this.tensors, state);
  }

  // The log of a mixture of the states' distributions of answers; probabilities below 1e-30 count as 1e-30.
  mixture(state) {
    const weight = this.tensors["readout.weight"];
    const mixed = new Float32Array(weight.shape[1]);
    for (let row = 0; row < state.length; row++) {
      softmax(rowOf(weight, row)).forEach((share, answer) => (mixed[answer] += state[row] * share));
    }
    return mixed.map((probability) => Math.log(Math.max(probability, 1e-30)));
  }
}

// A norm and one hidden layer of ReLU.
function hiddenLayerLogits(tensors, state) {
  const normed = layerNorm(state, tensors["readout.1.weight"], tensors["readout.1.bias"]);
  const hidden = linear(tensors["readout.2.weight"], tensors["readout.2.bias"], normed).map(relu);
  return linear(tensors["readout.4.weight"], tensors["readout.4.bias"], hidden);
}

// Take a step of torch's RNN, GRU or LSTM; `before` is the hidden state, followed for an LSTM by the cell state.
function stepOfCell(cell, tensors, name, layer, features, before) {
  const width = tensors[`${name}.weight_hh_l${layer}`].shape[1];
  const hidden = before.subarray(0, width);
  const image = (kind, x) =>
    linear(tensors[`${name}.weight_${kind}_l${layer}`], tensors[`${name}.bias_${kind}_l${layer}`], x);
  const inputs = image("ih", features);
  const states = image("hh", hidden);
  const after = new Float32Array(before.length);
  for (let i = 0; i < width; i++) {
    const gate = (index) => inputs[index * width + i] + states[index * width + i];
    if (cell === "rnn-tanh") after[i] = Math.tanh(gate(0));
    else if (cell === "rnn-relu") after[i] = relu(gate(0));
    else if (cell === "gru") {
      const reset = sigmoid(gate(0));
      const update = sigmoid(gate(1));
      const candidate = Math.tanh(inputs[2 * width + i] + reset * states[2 * width + i]);
      after[i] = (1 - update) * candidate + update * hidden[i];
    } else {
      const content = sigmoid(gate(1)) * before[width + i] + sigmoid(gate(0)) * Math.tanh(gate(2));
      after[width + i] = content;
      after[i] = sigmoid(gate(3)) * Math.tanh(content);
    }
  }
  return after;
}
