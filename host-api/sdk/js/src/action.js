import { actions as host } from "#host";
import { ask } from "./error.js";

/** The action that runs. */
export class Action {
  /** @param {{name: string, id: string}} event */
  constructor({ name, id }) {
    this.name = name;
    this.id = id;
  }

  /** All parameters, with the defaults of what was not given. */
  get params() {
    return JSON.parse(ask(`action ${this.name}`, () => host.params()));
  }

  /** Sets results; objects in it become paths (`a.b.c`). */
  setResults(results) {
    ask(`action ${this.name}`, () => host.setResults(flattened(results)));
  }

  /** Tells the operators who wait for the action; sent at once. */
  log(message) {
    ask(`action ${this.name}`, () => host.log(String(message)));
  }

  /** Says that the action failed; what the handler asks for happens all the same if it returns. */
  fail(message) {
    ask(`action ${this.name}`, () => host.fail(message === undefined ? null : String(message)));
  }
}

function flattened(values, prefix = "") {
  return Object.entries(values).flatMap(([key, value]) => {
    const isObject = typeof value === "object" && value !== null;
    return isObject ? flattened(value, `${prefix}${key}.`) : [[`${prefix}${key}`, String(value)]];
  });
}
