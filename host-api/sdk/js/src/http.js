// HTTP/1.1 on a stream to a workload: one exchange, within bounds.
import { Incoming, joined } from "./incoming.js";
import { decode, encode } from "./utf8.js";

const MAX_HEAD = 65536;
/** The line before a chunk. */
const MAX_CHUNK_LINE = 1024;

/** A workload's answer to a request. */
export class HttpResponse {
  /** @param {number} status @param {Uint8Array} body @param {string} kind its type */
  constructor(status, body, kind = "") {
    this.status = status;
    this.body = body;
    this.kind = kind;
  }

  get isSuccess() {
    return this.status >= 200 && this.status < 300;
  }

  /** The body as text. */
  get text() {
    return decode(this.body);
  }
}

/** Sends a request, and reads a response whose body has at most `most` bytes. */
export function exchange(stream, { method = "GET", path, kind = "text/plain", body = new Uint8Array(0) }, most) {
  // A path with a space or a line break would be another request.
  if (!/^\/[!-~]*$/.test(path)) throw new Error(`${JSON.stringify(path)} is no path of a request`);
  const fields = `Host: localhost\r\nConnection: close\r\nContent-Type: ${kind}\r\nContent-Length: ${body.length}`;
  stream.write(joined([encode(`${method} ${path} HTTP/1.1\r\n${fields}\r\n\r\n`), body]));
  const incoming = new Incoming(stream);
  const { status, fields: told } = readHead(incoming);
  const content = readBody(incoming, status, told, most);
  if (content === undefined) throw new Error(`the body of the response has more than ${most} bytes`);
  return new HttpResponse(status, content, told.get("content-type") ?? "");
}

/** Reads the head of a response: its status and its fields, by their names in lower case. */
export function readHead(incoming) {
  const head = incoming.until("\r\n\r\n", MAX_HEAD);
  if (head === undefined) throw new Error(`the head of the response has more than ${MAX_HEAD} bytes`);
  const [first, ...lines] = head.split("\r\n");
  const status = /^HTTP\/1\.\S+ (\d{3})(?: |$)/.exec(first)?.[1];
  if (status === undefined) throw new Error("the response is no HTTP/1.1");
  const fields = new Map();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return { status: Number(status), fields };
}

/** Reads a body; undefined if it has more bytes than `most`. */
function readBody(incoming, status, fields, most) {
  const encoding = fields.get("transfer-encoding");
  if (encoding !== undefined) {
    if (encoding.toLowerCase() !== "chunked") throw new Error(`the response is encoded as ${JSON.stringify(encoding)}`);
    return readChunks(incoming, most);
  }
  if (status === 204 || status === 304) return new Uint8Array(0);
  const length = fields.get("content-length");
  if (length === undefined) return incoming.rest(most);
  if (!/^\d+$/.test(length)) throw new Error("the response has no valid length");
  return Number(length) > most ? undefined : incoming.exactly(Number(length));
}

function readChunks(incoming, most) {
  const chunks = [];
  for (let length = 0; ; ) {
    const digits = /^\s*([0-9a-fA-F]+)\s*(?:;|$)/.exec(incoming.until("\r\n", MAX_CHUNK_LINE) ?? "")?.[1];
    if (digits === undefined || digits.length > 16) wrongChunk();
    const next = Number.parseInt(digits, 16);
    // Fields may follow the last chunk. Nothing here needs them.
    if (next === 0) return joined(chunks);
    length += next;
    if (length > most) return undefined;
    chunks.push(incoming.exactly(next));
    const [cr, lf] = incoming.exactly(2);
    if (cr !== 13 || lf !== 10) wrongChunk();
  }
}

function wrongChunk() {
  throw new Error("a chunk of the response has no valid length");
}
