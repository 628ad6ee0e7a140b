// What charms and their libraries expect of an engine, and QuickJS has not. Loaded before the charm.
import { getRandomBytes } from "wasi:random/random@0.2.12";
import { log } from "../log.js";
import { decode, encode } from "../utf8.js";

globalThis.console = {
  log: log.info,
  info: log.info,
  debug: log.debug,
  trace: log.trace,
  warn: log.warning,
  error: log.error,
};

globalThis.TextEncoder = class TextEncoder {
  encoding = "utf-8";
  encode = (text = "") => encode(text);
};

globalThis.TextDecoder = class TextDecoder {
  encoding = "utf-8";
  decode = (bytes = []) => decode(ArrayBuffer.isView(bytes) ? bytes : new Uint8Array(bytes));
};

const random = (count) => Uint8Array.from(getRandomBytes(count));

// The engine's own generator was seeded when the charm was packed: every hook would draw the same numbers.
Math.random = () => random(6).reduce((sum, byte) => sum * 256 + byte, 0) / 2 ** 48;

globalThis.crypto = {
  getRandomValues(array) {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    bytes.set(random(bytes.length));
    return array;
  },
  randomUUID() {
    const bytes = random(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  },
};
