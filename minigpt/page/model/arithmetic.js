// The functions that the model is made of. Vectors of T tokens lie one after another in a Float32Array, (T, d); a matrix
// is {data, rows, columns}.

/** x Wᵀ + b, (T, d_in) -> (T, d_out). Four tokens and two outputs at a time, so that each number that is
 * fetched is used more than once. */
export function linear(x, { weight: { data: W, rows, columns: d }, bias }) {
  const T = x.length / d;
  const y = new Float32Array(T * rows);

  let t = 0;
  for (; t + 4 <= T; t += 4) fourRows(y, x, W, { t, rows, d });
  for (; t < T; t++) oneRow(y, x, W, { t, rows, d });

  if (bias) for (let i = 0; i < y.length; i++) y[i] += bias.data[i % rows];
  return y;
}

/** Rows t to t + 3 of x Wᵀ. */
function fourRows(y, x, W, { t, rows, d }) {
  const [y0, y1, y2, y3] = [t * rows, (t + 1) * rows, (t + 2) * rows, (t + 3) * rows];

  for (let o = 0; o < rows; o += 2) {
    const next = o + 1 < rows ? d : 0; // to the row of the second output; the last may be alone
    let [a0, a1, a2, a3] = [0, 0, 0, 0];
    let [b0, b1, b2, b3] = [0, 0, 0, 0];

    for (let i = t * d, w = o * d; i < (t + 1) * d; i++, w++) {
      const a = W[w];
      const b = W[w + next];
      const x0 = x[i];
      const x1 = x[i + d];
      const x2 = x[i + 2 * d];
      const x3 = x[i + 3 * d];
      a0 += a * x0;
      a1 += a * x1;
      a2 += a * x2;
      a3 += a * x3;
      b0 += b * x0;
      b1 += b * x1;
      b2 += b * x2;
      b3 += b * x3;
    }

    y[y0 + o] = a0;
    y[y1 + o] = a1;
    y[y2 + o] = a2;
    y[y3 + o] = a3;
    if (next === 0) return;
    y[y0 + o + 1] = b0;
    y[y1 + o + 1] = b1;
    y[y2 + o + 1] = b2;
    y[y3 + o + 1] = b3;
  }
}

/** Row t of x Wᵀ. */
function oneRow(y, x, W, { t, rows, d }) {
  for (let o = 0, w = 0; o < rows; o++) {
    let [i, s0, s1, s2, s3] = [t * d, 0, 0, 0, 0];
    for (const end = i + d - 3; i < end; i += 4, w += 4) {
      s0 += W[w] * x[i];
      s1 += W[w + 1] * x[i + 1];
      s2 += W[w + 2] * x[i + 2];
      s3 += W[w + 3] * x[i + 3];
    }
    for (const end = (t + 1) * d; i < end; i++, w++) s0 += W[w] * x[i];
    y[t * rows + o] = s0 + s1 + s2 + s3;
  }
}

/** RMSNorm, x / sqrt(mean(x²) + eps) * weight; or LayerNorm, which centres x first and may add a bias. */
export function norm(x, { weight: { data: weight }, bias }, eps, centres = false) {
  const d = weight.length;
  const y = new Float32Array(x.length);

  for (let start = 0; start < x.length; start += d) {
    const { mean, scale } = statistics(x.subarray(start, start + d), eps, centres);
    for (let i = 0; i < d; i++) {
      y[start + i] = (x[start + i] - mean) * scale * weight[i] + (bias ? bias.data[i] : 0);
    }
  }
  return y;
}

/** What a norm takes away from a vector, 0 or the mean, and what it multiplies it with then. */
export function statistics(x, eps, centres) {
  const d = x.length;
  let mean = 0;
  if (centres) for (let i = 0; i < d; i++) mean += x[i] / d;

  let square = 0;
  for (let i = 0; i < d; i++) square += (x[i] - mean) ** 2 / d;
  return { mean, scale: 1 / Math.sqrt(square + eps) };
}

/** exp(x) / sum(exp(x)). */
export function softmax(x) {
  let largest = -Infinity;
  for (const value of x) largest = Math.max(largest, value);

  const y = new Float32Array(x.length);
  let sum = 0;
  for (let i = 0; i < x.length; i++) {
    const power = Math.exp(x[i] - largest);
    y[i] = power;
    sum += power;
  }
  for (let i = 0; i < x.length; i++) y[i] /= sum;
  return y;
}

/** x / (1 + exp(-x)). */
export function silu(x) {
  return x / (1 + Math.exp(-x));
}

/** x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³))). */
export function gelu(x) {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
}

export function add(a, b) {
  return a.map((value, i) => value + b[i]);
}
