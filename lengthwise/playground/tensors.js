// Numbers: weights from base64, matrices times vectors, norms. Sums are in double precision, and results are rounded to
// float32 as in PyTorch. PyTorch adds in another order, so the last digits differ from the certified numbers.

function floatsOf(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

// Return the tensors of a net by name, each with its shape, as views of one array.
function tensorsOf(net) {
  const all = floatsOf(net.weights);
  const tensors = {};
  let begin = 0;
  for (const { name, shape } of net.tensors) {
    const size = shape.reduce((product, length) => product * length, 1);
    tensors[name] = { shape, data: all.subarray(begin, begin + size) };
    begin += size;
  }
  return tensors;
}

// Return W x + b for W of shape [rows, columns]; the bias may be missing.
function linear(weight, bias, x) {
  const [rows, columns] = weight.shape;
  const out = new Float32Array(rows);
  for (let row = 0; row < rows; row++) {
    let sum = bias ? bias.data[row] : 0;
    const begin = row * columns;
    for (let column = 0; column < columns; column++) sum += weight.data[begin + column] * x[column];
    out[row] = sum;
  }
  return out;
}

// Return row `index` of a matrix.
function rowOf(matrix, index) {
  const width = matrix.shape[1];
  return matrix.data.subarray(index * width, (index + 1) * width);
}

// Return the position in `data` of the number of a tensor at these indices; missing last indices are 0.
function offsetOf({ shape }, ...indices) {
  return shape.reduce((offset, length, axis) => offset * length + (indices[axis] || 0), 0);
}

// Return the sum of products of a vector's numbers and the numbers from index `begin` on.
function dot(x, numbers, begin) {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i] * numbers[begin + i];
  return sum;
}

// Return (x - mean) / sqrt(variance + 1e-5), times scale and plus shift if these are given.
function layerNorm(x, scale, shift) {
  let mean = 0;
  for (const value of x) mean += value / x.length;
  let variance = 0;
  for (const value of x) variance += (value - mean) ** 2 / x.length;
  const rate = 1 / Math.sqrt(variance + 1e-5);
  return x.map((value, i) => (value - mean) * rate * (scale ? scale.data[i] : 1) + (shift ? shift.data[i] : 0));
}

function added(x, y) {
  return x.map((value, i) => value + y[i]);
}

function sigmoid(x) {
  return 1 / (1 + Math.exp(-x));
}

const relu = (x) => Math.max(0, x);

// The error function to 2e-7: Abramowitz and Stegun (1964), 7.1.26.
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - series * Math.exp(-x * x));
}

const gelu = (x) => 0.5 * x * (1 + erf(x / Math.SQRT2));
const geluByTanh = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

function softmax(logits) {
  const highest = Math.max(...logits);
  const powers = Array.from(logits, (logit) => Math.exp(logit - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

// Return the index of the largest logit (the first of equal ones), or -1 if a logit is not finite.
function answerOf(logits) {
  if (!logits.every(Number.isFinite)) return -1;
  return logits.indexOf(Math.max(...logits));
}
