// Relations of a unit in memory, and who reads and writes which bag.
import { apply, byNumber, refuse, sorted } from "./state.js";

const IS_APPLICATION = /^[a-z][a-z0-9-]*$/;
const IS_UNIT = /^([a-z][a-z0-9-]*)\/\d+$/;
const denied = () => refuse("permission-denied", "permission denied");

function applicationOf(unit) {
  if (IS_APPLICATION.test(unit)) refuse("invalid-argument", `expected unit name, got application name "${unit}"`);
  return IS_UNIT.exec(unit)?.[1] ?? refuse("invalid-argument", `invalid unit name "${unit}"`);
}

/** A bag, if this unit may read it. */
export function readable(state, id, { tag, val: owner }) {
  const { remote, units, apps } = state.relation(id);
  if (tag === "application") {
    const isOwn = owner === state.app;
    if (isOwn && !state.leader && remote !== state.app) denied();
    if (!isOwn && owner !== remote) denied();
    return apps.get(owner) ?? new Map();
  }
  if (owner === state.unit) return units.get(owner) ?? new Map();
  if (applicationOf(owner) !== remote) denied();
  return units.get(owner) ?? refuse("not-found", `unit "${owner}": settings not found`);
}

/** A bag that this unit writes. */
function writable(state, id, which) {
  const { units, apps } = state.relation(id);
  if (which === "application" && !state.leader) refuse("not-leader", "cannot write relation settings");
  const [bags, owner] = which === "application" ? [apps, state.app] : [units, state.unit];
  if (!bags.has(owner)) bags.set(owner, new Map());
  return bags.get(owner);
}

export const relations = {
  ids: ({ durable }, endpoint) =>
    [...durable.relations].filter(([, it]) => it.endpoint === endpoint && !it.broken).map(([id]) => id),
  endpoint: (state, id) => state.relation(id).endpoint,
  remoteApplication: (state, id) => state.relation(id).remote,
  members: (state, id) => [...state.relation(id).members].sort(byNumber),
  get: (state, id, bag) => sorted(readable(state, id, bag)),
  getValue: (state, id, bag, key) => readable(state, id, bag).get(key) ?? null,
  set: (state, id, bag, changes) => apply(writable(state, id, bag), changes),
};
