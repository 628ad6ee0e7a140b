import { names, shown } from "./event.js";
import { log } from "./log.js";
import { calls } from "./stack.js";
import { Status } from "./status.js";
import { Unit } from "./unit.js";

/** Handlers by the name of their event; `*` handles what no other does. */
const handlers = new Map();

/**
 * Registers a handler for an event, or for several: `install`, `config-changed`, `db-relation-changed` (of one endpoint) or
 * `relation-changed` (of any other), `backup-action`, `data-storage-attached`, `*` for all that nobody else handles.
 */
export function on(events, handle) {
  for (const event of [events].flat()) {
    if (handle.constructor?.name === "AsyncFunction") throw asynchronous(event);
    if (handlers.has(event)) throw new Error(`${event} is handled already`);
    handlers.set(event, handle);
  }
}

/** A hook is one call: nothing is waited for. */
const asynchronous = (event) =>
  new TypeError(`the handler of ${event} is asynchronous: what it waits for would never come in a hook`);

/** What the agent calls, once a hook. */
export const handler = {
  /** The events that have handlers. */
  get events() {
    return [...handlers.keys()];
  },

  handle({ event, attempt }) {
    const name = [...names(event), "*"].find((name) => handlers.has(name));
    if (name === undefined) return "unhandled";
    const unit = new Unit(attempt);
    try {
      run(name, unit, shown(event));
    } catch (thrown) {
      throw failure(thrown);
    }
    return "handled";
  },
};

function run(name, unit, event) {
  try {
    const answer = handlers.get(name)(unit, event);
    if (typeof answer?.then === "function") throw asynchronous(name);
  } catch (thrown) {
    if (!(thrown instanceof Status)) throw thrown;
    unit.status = thrown;
  }
}

/** What a hook fails with; the calls that led to it go to the log. */
function failure(thrown) {
  const isError = thrown instanceof Error;
  const message = isError ? thrown.message || thrown.name : String(thrown);
  const heading = isError ? `${thrown.name}: ${thrown.message}` : message;
  for (const line of [heading, ...calls(thrown).map((call) => `    ${call}`)]) log.error(line);
  const code = Number.isInteger(thrown?.exitCode) && thrown.exitCode !== 0 ? thrown.exitCode : 1;
  return { code, message };
}
