// Websockets (RFC 6455) on streams to a Pebble, as far as commands need them.
import { readHead } from "./http.js";
import { Incoming, joined, latin } from "./incoming.js";
import { encode } from "./utf8.js";

/** The key of each handshake, and the answer to it. A key keeps caches and proxies from mistaking answers: here are none. */
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/** The most bytes of a frame that is read. Pebble sends some tens of KiB at once. */
const MAX_FRAME = 1 << 20;

/** The bytes of a frame that is sent. */
const PIECE = 32768;

const [CONTINUED, TEXT, BINARY, CLOSE] = [0, 1, 2, 8];

/** A websocket of a command. */
export class Websocket {
  #stream;
  #received;
  /** The kind of the message that the last frame began. */
  #message = BINARY;
  #text = "";
  #pieces = [];
  #length = 0;
  #most;
  isOver = false;

  /** Connects; the output has at most `most` bytes. */
  constructor(stream, path, most) {
    const fields = "Host: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13";
    stream.write(`GET ${path} HTTP/1.1\r\n${fields}\r\nSec-WebSocket-Key: ${KEY}\r\n\r\n`);
    const incoming = new Incoming(stream);
    const { status, fields: told } = readHead(incoming);
    if (status !== 101 || told.get("sec-websocket-accept") !== ACCEPT) {
      throw new Error(`${path} opens no websocket (status ${status})`);
    }
    this.#stream = stream;
    this.#most = most;
    this.#received = incoming.waiting.slice();
    this.#take();
  }

  get output() {
    return joined(this.#pieces);
  }

  /** Sends bytes within a time in milliseconds; answers how many went. */
  send(bytes, milliseconds) {
    return this.#stream.send(bytes, milliseconds);
  }

  /** Waits for bytes, within a time in milliseconds; whether some came, or the end. */
  receive(milliseconds) {
    const bytes = this.#stream.read(undefined, milliseconds);
    if (bytes === null) return false;
    if (bytes === undefined) this.isOver = true;
    else {
      this.#received = joined([this.#received, bytes]);
      this.#take();
    }
    return true;
  }

  close() {
    this.#stream.close();
  }

  #take() {
    let at = 0;
    for (let frame; (frame = readFrame(this.#received.subarray(at))) !== undefined; at += frame.length) this.#frame(frame);
    this.#received = this.#received.slice(at);
  }

  #frame({ kind, isLast, payload }) {
    if (kind === CLOSE) this.isOver = true;
    // Pings and pongs need no answer here.
    if (kind >= CLOSE || this.isOver) return;
    if (kind !== CONTINUED) this.#message = kind;
    const isText = this.#message === TEXT;
    const most = isText ? MAX_FRAME : this.#most;
    if (payload.length > most - (isText ? this.#text.length : this.#length)) {
      throw new Error(`the command printed more than ${most} bytes`);
    }
    if (!isText) {
      this.#pieces.push(payload);
      this.#length += payload.length;
      return;
    }
    this.#text += latin(payload);
    if (!isLast) return;
    this.isOver = /^\s*\{\s*"command"\s*:\s*"end"\s*\}\s*$/.test(this.#text);
    this.#text = "";
  }
}

/** Reads a frame; undefined if more bytes must come. */
export function readFrame(bytes) {
  if (bytes.length < 2) return undefined;
  const [first, second] = bytes;
  const kind = first & 15;
  // Servers mask nothing, and extensions were not asked for.
  if ((first & 0x70) !== 0 || (second & 0x80) !== 0 || (kind > BINARY && kind < CLOSE) || kind > 10) {
    throw new Error("a frame of the websocket is malformed");
  }
  const head = second === 127 ? 10 : second === 126 ? 4 : 2;
  if (bytes.length < head) return undefined;
  let length = head === 2 ? second : 0;
  for (const digit of bytes.subarray(2, head)) length = length * 256 + digit;
  if (length > MAX_FRAME) throw new Error(`a frame of the websocket has more than ${MAX_FRAME} bytes`);
  if (bytes.length < head + length) return undefined;
  return { kind, isLast: (first & 0x80) !== 0, payload: bytes.slice(head, head + length), length: head + length };
}

/** The frames of an input and of its end. @param {Uint8Array} bytes */
export function input(bytes) {
  const frames = [];
  for (let at = 0; at < bytes.length; at += PIECE) frames.push(frame(BINARY, bytes.subarray(at, at + PIECE)));
  return joined([...frames, frame(TEXT, encode('{"command":"end"}'))]);
}

/** The frame of a text. @param {string} text */
export const text = (text) => frame(TEXT, encode(text));

function frame(kind, payload) {
  const { length } = payload;
  const lengths = length < 126 ? [0x80 | length] : [0x80 | 126, length >> 8, length & 255];
  // Clients mask what they send. This mask changes nothing: no proxy reads along that it would have to mislead.
  return joined([[0x80 | kind, ...lengths, 0, 0, 0, 0], payload]);
}
