/** How many bytes are read at once. */
const PIECE = 65536;

/** The bytes that a stream brings, read ahead and taken in order. Each byte is looked at once. */
export class Incoming {
  #stream;
  #bytes = new Uint8Array(0);
  #at = 0;
  #end = 0;

  /** @param {{ read(most: number): Uint8Array | undefined }} stream */
  constructor(stream) {
    this.#stream = stream;
  }

  /** What was read, and nobody took. */
  get waiting() {
    return this.#bytes.subarray(this.#at, this.#end);
  }

  /** Reads a piece; false at the end of the stream. */
  #more() {
    const piece = this.#stream.read(PIECE);
    if (piece === undefined) return false;
    const waiting = this.waiting;
    if (this.#bytes.length - this.#end < piece.length) {
      // Twice the room: a byte is moved a bounded number of times.
      const bytes = new Uint8Array(2 * (waiting.length + piece.length));
      bytes.set(waiting);
      [this.#bytes, this.#at, this.#end] = [bytes, 0, waiting.length];
    }
    this.#bytes.set(piece, this.#end);
    this.#end += piece.length;
    return true;
  }

  /** Takes the bytes up to a mark of ASCII, and the mark, as a text; undefined if there are more than `most`. */
  until(mark, most) {
    for (let searched = 0; ; ) {
      const waiting = this.waiting;
      const end = find(waiting, mark, searched);
      if (end > most || (end < 0 && waiting.length > most)) return undefined;
      if (end >= 0) {
        this.#at += end + mark.length;
        return latin(waiting.subarray(0, end));
      }
      // A mark may begin in this piece and end in the next one.
      searched = Math.max(0, waiting.length + 1 - mark.length);
      if (!this.#more()) cutOff();
    }
  }

  /** Takes so many bytes. */
  exactly(length) {
    const taken = new Uint8Array(length);
    for (let at = 0; ; ) {
      const bytes = this.waiting.subarray(0, length - at);
      taken.set(bytes, at);
      at += bytes.length;
      this.#at += bytes.length;
      if (at === length) return taken;
      if (!this.#more()) cutOff();
    }
  }

  /** Takes all bytes to the end of the stream; undefined if there are more than `most`. */
  rest(most) {
    while (this.waiting.length <= most) if (!this.#more()) return this.waiting.slice();
    return undefined;
  }
}

function cutOff() {
  throw new Error("the response was cut off");
}

/** Where a mark of ASCII begins in bytes; -1 if nowhere. */
export function find(bytes, mark, from = 0) {
  const first = mark.charCodeAt(0);
  for (let at = from; (at = bytes.indexOf(first, at)) >= 0 && at + mark.length <= bytes.length; at += 1) {
    let length = 1;
    while (length < mark.length && bytes[at + length] === mark.charCodeAt(length)) length += 1;
    if (length === mark.length) return at;
  }
  return -1;
}

/** Bytes as a text, a character for each. */
export const latin = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

/** One array of several. */
export function joined(parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
