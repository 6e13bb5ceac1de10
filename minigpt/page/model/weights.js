// The weights as the page holds them: all tensors one after another, in base64.

/** The matrices by their names.
 * @param {string} base64 @param {"float16"|"float32"} dtype @param {[string, number[]][]} tensors names and shapes */
export function unpackWeights(base64, dtype, tensors) {
  const numbers = decodeNumbers(base64, dtype);
  const matrices = new Map();

  let start = 0;
  for (const [name, shape] of tensors) {
    const size = shape.reduce((a, b) => a * b);
    const data = numbers.subarray(start, start + size);
    matrices.set(name, { data, rows: shape[0], columns: shape.at(-1) });
    start += size;
  }
  return matrices;
}

/** Base64 to Float32Array. */
function decodeNumbers(base64, dtype) {
  const bytes = Uint8Array.fromBase64?.(base64) ?? decodeBytes(base64);
  if (dtype === "float32") return new Float32Array(bytes.buffer);

  const halves = new Uint16Array(bytes.buffer);
  const values = Float32Array.from({ length: 1 << 16 }, (_, half) => halfPrecision(half));
  const numbers = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) numbers[i] = values[halves[i]];
  return numbers;
}

/** Base64 to bytes, in browsers that have no function for it. */
function decodeBytes(base64) {
  const characters = atob(base64);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** The number that 16 bits stand for in IEEE 754. */
function halfPrecision(half) {
  const sign = half >> 15 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : fraction * 2 ** -24);
}
