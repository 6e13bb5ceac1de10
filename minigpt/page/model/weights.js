// The weights as the page holds them: a safetensors file in base64. Its header, JSON after its own length in bytes,
// gives the type, shape and place of each tensor. Beside a matrix in 8 bits stand the scales of its rows.

const SCALE = ".scale"; // after the name of a matrix
const STORED = { F32: Float32Array, F16: Uint16Array, I8: Int8Array };
const HALVES = Float32Array.from({ length: 1 << 16 }, (_, half) => halfPrecision(half)); // all numbers of 16 bits

/** The matrices by their names, in float32. @param {string} base64 @returns {Map<string, Matrix>} */
export function readWeights(base64) {
  const { buffer } = Uint8Array.fromBase64?.(base64) ?? decodeBytes(base64);
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));

  const numbersOf = ({ dtype, data_offsets: [start, end] }) => {
    const Type = STORED[dtype];
    const stored = new Type(buffer, 8 + length + start, (end - start) / Type.BYTES_PER_ELEMENT);
    return dtype === "F16" ? Float32Array.from(stored, (half) => HALVES[half]) : stored;
  };

  const matrices = new Map();
  for (const [name, tensor] of Object.entries(header)) {
    if (name.endsWith(SCALE)) continue;
    const [rows, columns] = [tensor.shape[0], tensor.shape.at(-1)];
    const numbers = numbersOf(tensor);
    const data = tensor.dtype === "I8" ? scaled(numbers, numbersOf(header[name + SCALE]), columns) : numbers;
    matrices.set(name, { data, rows, columns });
  }
  return matrices;
}

/** Each row of whole numbers times its scale. */
function scaled(numbers, scales, columns) {
  const data = new Float32Array(numbers.length);
  let i = 0;
  for (const scale of scales) {
    for (const end = i + columns; i < end; i++) data[i] = scale * numbers[i];
  }
  return data;
}

/** The number that 16 bits stand for in IEEE 754. */
function halfPrecision(half) {
  const sign = half >> 15 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : fraction * 2 ** -24);
}

/** Base64 to bytes, in browsers that have no function for it. */
function decodeBytes(base64) {
  const characters = atob(base64);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}
