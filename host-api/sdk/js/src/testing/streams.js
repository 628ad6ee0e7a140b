// Streams between a charm under test and workloads in memory.
import { find, joined, latin } from "../incoming.js";
import { encode } from "../utf8.js";
import { refuse } from "./state.js";

/** As on an agent. */
const MAX_OPEN = 16;

const NONE = new Uint8Array(0);

/** A stream and the workload at its other end. */
class Stream {
  #peer;
  #sent = NONE;
  #input = [];
  #websocket;
  answer = NONE;
  isOver = false;

  constructor(peer) {
    this.#peer = peer;
  }

  take(bytes) {
    this.#sent = joined([this.#sent, bytes]);
    if (this.#websocket === undefined) this.#request();
    else this.#frames();
  }

  /** What a command printed to standard error comes once it has run. */
  ready() {
    if (this.#websocket !== "stderr" || this.#peer.errors === undefined) return;
    this.answer = frames(this.#peer.errors);
    this.#peer.errors = undefined;
  }

  /** Answers a request that is whole. */
  #request() {
    const end = find(this.#sent, "\r\n\r\n");
    if (end < 0) return;
    const head = latin(this.#sent.subarray(0, end));
    const length = Number(/^Content-Length: (\d+)$/m.exec(head)?.[1] ?? 0);
    if (this.#sent.length < end + 4 + length) return;
    const body = this.#sent.slice(end + 4, end + 4 + length);
    this.#sent = NONE;
    const [method, path] = head.split(" ");
    this.#websocket = /\/websocket\/(.*)$/.exec(path)?.[1];
    this.isOver = this.#websocket === undefined || this.#peer.sends !== undefined;
    if (this.#peer.sends !== undefined) {
      this.answer = typeof this.#peer.sends === "string" ? encode(this.#peer.sends) : this.#peer.sends;
    } else if (this.#websocket !== undefined) {
      const accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
      this.answer = encode(`HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${accept}\r\n\r\n`);
    } else {
      const { status, kind = "text/plain", body: said } = this.#peer.respond({ method, path, body });
      const content = typeof said === "string" ? encode(said) : said;
      const fields = `Content-Type: ${kind}\r\nContent-Length: ${content.length}`;
      this.answer = joined([encode(`HTTP/1.1 ${status} X\r\n${fields}\r\n\r\n`), content]);
    }
  }

  /** Takes the frames of a command's input; its end runs the command. */
  #frames() {
    for (let frame; (frame = clientFrame(this.#sent)) !== undefined; ) {
      this.#sent = this.#sent.slice(frame.length);
      if (frame.kind === 2) this.#input.push(frame.payload);
      else if (this.#websocket === "stdio") {
        this.answer = joined([this.answer, frames(this.#peer.run(joined(this.#input)))]);
      }
    }
  }
}

/** A frame with a mask; undefined if it is not whole. */
function clientFrame(bytes) {
  const isLong = (bytes[1] & 127) === 126;
  const head = isLong ? 4 : 2;
  const size = isLong ? bytes[2] * 256 + bytes[3] : bytes[1] & 127;
  const length = head + 4 + size;
  if (bytes.length < head || bytes.length < length) return undefined;
  const mask = bytes.subarray(head, head + 4);
  const payload = bytes.slice(head + 4, length).map((byte, at) => byte ^ mask[at % 4]);
  return { kind: bytes[0] & 15, payload, length };
}

/** The frames of an output and of its end. */
function frames(output) {
  const all = [];
  for (let at = 0; at < output.length; at += 30000) {
    const piece = output.subarray(at, at + 30000);
    all.push(Uint8Array.of(0x82, 126, piece.length >> 8, piece.length & 255), piece);
  }
  return joined([...all, Uint8Array.of(0x81, 17), encode('{"command":"end"}')]);
}

const opened = ({ streams }, number) => streams.get(number) ?? refuse("not-found", `stream ${number} is not open`);

export const workloads = {
  connect(state, { tag, val }) {
    if (state.streams.size === MAX_OPEN) refuse("limit-exceeded", `more than ${MAX_OPEN} streams are open at a time`);
    const [peer, name] = tag === "pebble" ? [state.containers.get(val), val] : [state.served.get(val), `port ${val}`];
    if (peer === undefined) refuse("not-ready", `nobody listens: the test has not started ${name} beside the unit in memory`);
    state.lastStream += 1;
    state.streams.set(state.lastStream, new Stream(peer));
    return state.lastStream;
  },
  read(state, number, most, timeout) {
    const stream = opened(state, number);
    stream.ready();
    if (stream.answer.length > 0) {
      const val = stream.answer.slice(0, most);
      stream.answer = stream.answer.subarray(val.length);
      return { tag: "bytes", val };
    }
    if (stream.isOver) return { tag: "end" };
    if (timeout !== null) return { tag: "nothing" };
    return refuse("failed", "the workload in memory sends nothing: the hook would wait for ever");
  },
  write(state, number, bytes) {
    opened(state, number).take(bytes);
    return bytes.length;
  },
  shutdown: (state, number) => void opened(state, number),
  close: ({ streams }, number) => void streams.delete(number),
};
