import * as host from "#host";
import { ask } from "./error.js";
import { exchange } from "./http.js";
import { encode } from "./utf8.js";

/** The most bytes of one call. */
const MOST = 262144;

/** The most bytes of a page. */
const MAX_PAGE = 4 << 20;

/**
 * A stream of bytes to a workload. What is written takes effect at once, and stays if the hook fails. The stream ends with the
 * hook, or when it is closed.
 */
export class WorkloadStream {
  #number;
  #what;

  /**
   * @param {import("periapt:charm/workloads@0.1.0").Target} target
   * @param {string} what it leads to, for errors
   */
  constructor(target, what) {
    this.#what = what;
    this.#number = ask(what, () => host.workloads.connect(target));
  }

  /**
   * Waits for bytes: undefined at the end of the stream; null if none came within the time in milliseconds, where one is given.
   * @param {number} [most]
   * @param {number | null} [milliseconds]
   */
  read(most = MOST, milliseconds = null) {
    const received = ask(this.#what, () => host.workloads.read(this.#number, Math.min(most, MOST), milliseconds));
    return received.tag === "bytes" ? received.val : received.tag === "end" ? undefined : null;
  }

  /** Sends all of the bytes, or of a text. @param {string | Uint8Array} content */
  write(content) {
    const bytes = typeof content === "string" ? encode(content) : content;
    for (let at = 0; at < bytes.length; ) at += this.send(bytes.subarray(at), null);
  }

  /** Sends as many bytes as the workload takes, within a time in milliseconds where one is given; answers their number. */
  send(bytes, milliseconds) {
    return ask(this.#what, () => host.workloads.write(this.#number, bytes.slice(0, MOST), milliseconds));
  }

  /** Ends the writing: the workload reads to the end. Reading goes on. */
  endWriting() {
    ask(this.#what, () => host.workloads.shutdown(this.#number));
  }

  close() {
    host.workloads.close(this.#number);
  }
}

/** Lets go of a stream once it was used: a hook has 16 of them at a time. */
export function using(stream, use) {
  try {
    return use(stream);
  } finally {
    stream.close();
  }
}

/** A stream to a TCP port that a workload of this unit listens on. @param {number} port */
export const toPort = (port) => new WorkloadStream({ tag: "port", val: port }, `port ${port}`);

/** Asks a workload for a page. */
export function page(port, path) {
  return using(toPort(port), (stream) => exchange(stream, { path }, MAX_PAGE));
}
