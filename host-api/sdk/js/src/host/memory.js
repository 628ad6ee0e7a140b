// The host's functions outside a sandbox: answered by the harness whose hook runs. In a component, `component.js` stands in for
// this file.
import * as answers from "../testing/answers.js";
import { current } from "../testing/state.js";

/** An interface that answers as its table says; each answer gets the unit in memory in front of its arguments. */
const answered = (table) =>
  Object.fromEntries(Object.entries(table).map(([name, answer]) => [name, (...args) => answer(current(), ...args)]));

export const actions = answered(answers.actions);
export const config = answered(answers.config);
export const events = answered(answers.events);
export const files = answered(answers.files);
export const goalState = answered(answers.goalState);
export const hookTools = answered(answers.hookTools);
export const identity = answered(answers.identity);
export const leadership = answered(answers.leadership);
export const log = answered(answers.log);
export const network = answered(answers.network);
export const ports = answered(answers.ports);
export const relations = answered(answers.relations);
export const resources = answered(answers.resources);
export const secrets = answered(answers.secrets);
export const state = answered(answers.state);
export const status = answered(answers.status);
export const storage = answered(answers.storage);
export const workloads = answered(answers.workloads);
