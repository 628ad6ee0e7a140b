// UTF-8 without `TextEncoder`, which the engine in the sandbox has not.

/** @param {string} text @returns {Uint8Array} */
export function encode(text) {
  const bytes = [];
  for (const character of text) {
    const point = character.codePointAt(0);
    if (point < 0x80) bytes.push(point);
    else if (point < 0x800) bytes.push(0xc0 | (point >> 6), 0x80 | (point & 63));
    else if (point >= 0xd800 && point < 0xe000) bytes.push(0xef, 0xbf, 0xbd);
    else if (point < 0x10000) bytes.push(0xe0 | (point >> 12), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63));
    else bytes.push(0xf0 | (point >> 18), 0x80 | ((point >> 12) & 63), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63));
  }
  return Uint8Array.from(bytes);
}

/** What is no UTF-8 becomes U+FFFD, one for each byte. @param {Iterable<number>} given @returns {string} */
export function decode(given) {
  const bytes = Uint8Array.from(given);
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const [point, length] = character(bytes, at);
    text += String.fromCodePoint(point);
    at += length;
  }
  return text;
}

const INVALID = [0xfffd, 1];

/** The character that begins at a byte, and how many bytes it has. */
function character(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return [first, 1];
  const length = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xc2 && first < 0xe0 ? 2 : 0;
  if (length === 0 || at + length > bytes.length) return INVALID;
  let point = first & (0x7f >> length);
  for (let i = 1; i < length; i += 1) {
    const next = bytes[at + i];
    if ((next & 0xc0) !== 0x80) return INVALID;
    point = (point << 6) | (next & 63);
  }
  const smallest = [0, 0, 0x80, 0x800, 0x10000][length];
  const isCharacter = point >= smallest && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
  return isCharacter ? [point, length] : INVALID;
}
