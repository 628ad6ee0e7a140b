import { state as host } from "#host";
import { ask } from "./error.js";

/** What the charm keeps for its unit from one hook to the next, as texts. */
export const state = {
  /** @param {string} key @returns {string | undefined} */
  get: (key) => host.get(key) ?? undefined,
  all: () => Object.fromEntries(host.getAll()),
  set(key, value) {
    ask("storing", () => host.set([[key, String(value)]]));
  },
  update(values) {
    ask("storing", () => host.set(Object.entries(values).map(([key, value]) => [key, String(value)])));
  },
  delete(key) {
    ask("storing", () => host.delete(key));
  },
};
