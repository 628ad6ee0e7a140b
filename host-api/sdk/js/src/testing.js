// Run a charm's hooks in Node.js, against a unit in memory.
export { Harness, HookFailed } from "./testing/harness.js";
