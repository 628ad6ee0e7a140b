// Events that a charm asks to be told later.
import { readable } from "./relations.js";
import { refuse } from "./state.js";

const invalid = (text) => refuse("invalid-argument", text);

const NAME = /^[a-z][a-z0-9-]{0,63}$/;
/** Hooks that are about nothing, and how the names of all others end. */
const PLAIN = [
  ...["install", "start", "stop", "remove", "config-changed", "upgrade-charm", "update-status"],
  ...["leader-elected", "leader-settings-changed", "pre-series-upgrade", "post-series-upgrade"],
  ...["secret-changed", "secret-rotate", "secret-expired", "secret-remove", "collect-metrics", "meter-status-changed"],
];
const ENDING = new RegExp(
  "-relation-(created|joined|changed|departed|broken|batch)$" +
    "|-storage-(attached|detaching)$" +
    "|-pebble-(ready|custom-notice|check-failed|check-recovered)$",
);

function checkName(name) {
  const rule = "use lower-case letters, digits and dashes, a letter first, at most 64 of them";
  if (!NAME.test(name)) invalid(`"${name}" is no name of an event: ${rule}`);
  if (PLAIN.includes(name) || ENDING.test(name)) {
    invalid(`"${name}" is the name of a hook; give the event a name of the charm's own`);
  }
}

function checkTimes({ after, conditions }) {
  if (after === null && conditions.length === 0) invalid("say when: after a time, or when something changes");
  if (conditions.length > 8) {
    refuse("limit-exceeded", `the event has ${conditions.length} conditions; at most 8 are allowed`);
  }
  if (after !== null && after < 1000) invalid("an event can be put off by one second or more");
  if (after !== null && after > 8784 * 3600_000) invalid("an event can be put off by 8784 hours, a year, or less");
}

/** What refuses the reading of a bag refuses the waiting for it. */
function checkCondition(state, { tag, val }) {
  if (tag !== "relation") return;
  const { relation, bag } = val;
  readable(state, relation, bag);
  const isPeer = state.relation(relation).remote === state.app;
  if (bag.val === state.unit || (bag.val === state.app && !isPeer)) {
    invalid("a unit knows what it writes itself: wait for a bag that others write");
  }
}

export const events = {
  emitLater(state, later) {
    checkName(later.name);
    checkTimes(later);
    for (const condition of later.conditions) checkCondition(state, condition);
    const { durable } = state;
    const id = durable.nextEvent++;
    durable.events.set(id, { id, ...later });
    return id;
  },
  cancel({ durable }, id) {
    if (!durable.events.delete(id)) refuse("not-found", `the unit waits for no event ${id}`);
  },
  pending: ({ durable }) => [...durable.events.values()],
};
