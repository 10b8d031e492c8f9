// The forward pass of all-MiniLM-L6-v2, a BERT of six layers of twelve heads, written to be read.
//
// Everything is a Float32Array that holds a matrix row by row: x of shape (n, 384) has feature j of token i at
// x[i * 384 + j]. Weights of matrices are whole numbers of 8 bits; each row has a scale by which it is multiplied.
//
//     x = norm(words + positions)                          (n, 384)
//     six times:
//         x = norm(x + attention(x))                       (n, 384)
//         x = norm(x + down(gelu(up(x))))                  (n, 384), in between (n, 1536)
//
// Sources: Vaswani et al. 2017, Attention Is All You Need; Devlin et al. 2019, BERT; Wang et al. 2020, MiniLM.
"use strict";

const LAYERS = 6, HEADS = 12, D_MODEL = 384, D_K = D_MODEL / HEADS; // a head is 32 wide

/**
 * Read a file in the format of safetensors: the length of a header (8 bytes), the header (JSON), then all numbers.
 * Returns tensors by name, each with its `shape` and `data`.
 */
function readTensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: [start, end] }] of Object.entries(header)) {
    const bytes = buffer.slice(8 + length + start, 8 + length + end);
    tensors[name] = { shape, data: dtype === "I8" ? new Int8Array(bytes) : new Float32Array(bytes) };
  }
  return tensors;
}

class MiniLM {
  constructor(tensors) {
    this.tensors = tensors;
  }

  /**
   * Run the model on one text.
   * numbers: the n tokens, as numbers of the vocabulary.
   * Returns the attention weights of all heads, (6, 12, n, n) in one Float32Array.
   */
  run(numbers) {
    const n = numbers.length;
    const maps = new Float32Array(LAYERS * HEADS * n * n);
    let x = this.embed(numbers); // (n, 384)
    for (let layer = 0; layer < LAYERS; layer++) {
      const name = `encoder.layer.${layer}`;
      const { output, weights } = this.attention(x, n, `${name}.attention`); // (n, 384), (12, n, n)
      maps.set(weights, layer * HEADS * n * n);
      x = this.norm(add(x, output), `${name}.attention.output.LayerNorm`); // (n, 384)
      const wide = gelu(this.linear(x, n, `${name}.intermediate.dense`)); // (n, 1536)
      x = this.norm(add(x, this.linear(wide, n, `${name}.output.dense`)), `${name}.output.LayerNorm`); // (n, 384)
    }
    return maps;
  }

  /** Each token's vector: what the token is, where it stands, and that it belongs to the first of two texts. */
  embed(numbers) {
    const x = new Float32Array(numbers.length * D_MODEL); // (n, 384)
    const firstText = this.row("embeddings.token_type_embeddings", 0); // (384,)
    numbers.forEach((number, position) => {
      const word = this.row("embeddings.word_embeddings", number); // (384,)
      const place = this.row("embeddings.position_embeddings", position); // (384,)
      for (let j = 0; j < D_MODEL; j++) x[position * D_MODEL + j] = word[j] + place[j] + firstText[j];
    });
    return this.norm(x, "embeddings.LayerNorm");
  }

  /** Multi-head attention: softmax(q kᵀ / √d_k) v in each head, the heads side by side, and W_O. */
  attention(x, n, name) {
    const q = this.linear(x, n, `${name}.self.query`); // (n, 384): head h owns columns 32 h to 32 h + 31
    const k = this.linear(x, n, `${name}.self.key`); // (n, 384)
    const v = this.linear(x, n, `${name}.self.value`); // (n, 384)
    const weights = new Float32Array(HEADS * n * n); // (12, n, n)
    const heads = new Float32Array(n * D_MODEL); // (n, 384): the results of the heads, side by side
    for (let head = 0; head < HEADS; head++) {
      const first = head * D_K; // the head's first column
      for (let i = 0; i < n; i++) {
        const row = weights.subarray((head * n + i) * n, (head * n + i + 1) * n); // (n,): of query i
        for (let j = 0; j < n; j++) row[j] = dot(q, i * D_MODEL + first, k, j * D_MODEL + first) / Math.sqrt(D_K);
        softmax(row);
        for (let j = 0; j < n; j++) {
          for (let c = first; c < first + D_K; c++) heads[i * D_MODEL + c] += row[j] * v[j * D_MODEL + c];
        }
      }
    }
    return { output: this.linear(heads, n, `${name}.output.dense`), weights };
  }

  /** x Wᵀ + b for n tokens, where W is stored as (out, in). */
  linear(x, n, name) {
    const [dOut, dIn] = this.tensors[`${name}.weight`].shape;
    const bias = this.tensors[`${name}.bias`].data; // (dOut,)
    const y = new Float32Array(n * dOut); // (n, dOut)
    for (let o = 0; o < dOut; o++) {
      const w = this.row(name, o); // (dIn,)
      for (let i = 0; i < n; i++) {
        let sum = bias[o];
        for (let j = 0; j < dIn; j++) sum += x[i * dIn + j] * w[j];
        y[i * dOut + o] = sum;
      }
    }
    return y;
  }

  /** One row of a matrix: its whole numbers times the scale of the row. */
  row(name, index) {
    const { shape: [, columns], data } = this.tensors[`${name}.weight`];
    const scale = this.tensors[`${name}.weight.scale`].data[index];
    const row = new Float32Array(columns);
    for (let j = 0; j < columns; j++) row[j] = data[index * columns + j] * scale;
    return row;
  }

  /** Layer norm: each token gets mean 0 and variance 1 over its features, then a learned scale and shift. */
  norm(x, name) {
    const scale = this.tensors[`${name}.weight`].data, shift = this.tensors[`${name}.bias`].data; // (384,) each
    for (let start = 0; start < x.length; start += D_MODEL) {
      const token = x.subarray(start, start + D_MODEL); // (384,): a window on x, so x itself changes
      const mean = token.reduce((sum, value) => sum + value, 0) / D_MODEL;
      const variance = token.reduce((sum, value) => sum + (value - mean) ** 2, 0) / D_MODEL;
      const deviation = Math.sqrt(variance + 1e-12);
      for (let j = 0; j < D_MODEL; j++) token[j] = ((token[j] - mean) / deviation) * scale[j] + shift[j];
    }
    return x;
  }
}

/** The dot product of 32 numbers of a, from place i on, with 32 numbers of b, from place j on. */
function dot(a, i, b, j) {
  let sum = 0;
  for (let c = 0; c < D_K; c++) sum += a[i + c] * b[j + c];
  return sum;
}

/** Turn scores into weights, in place: positive numbers with the sum 1. The largest is subtracted first, so that no
 * exponential overflows; that changes no weight. */
function softmax(row) {
  const largest = Math.max(...row);
  let sum = 0;
  for (let j = 0; j < row.length; j++) sum += row[j] = Math.exp(row[j] - largest);
  for (let j = 0; j < row.length; j++) row[j] /= sum;
}

/** The sum of two matrices: the residual connection. */
function add(a, b) {
  return a.map((value, index) => value + b[index]);
}

/** GELU: x times the probability that a standard normal number is below x. */
function gelu(x) {
  return x.map((value) => value * (1 + erf(value / Math.SQRT2)) / 2);
}

/** The error function, to within 1.5e-7. Source: Abramowitz and Stegun 1964, formula 7.1.26. */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - series * Math.exp(-x * x));
}
