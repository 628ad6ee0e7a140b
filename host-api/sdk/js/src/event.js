import { Action } from "./action.js";
import { Relation } from "./relation.js";
import { Secret } from "./secret.js";

const RELATION = /^relation-/;
const SECRET = /^secret-/;
const STORAGE = /^storage-/;
const WORKLOAD = /^pebble-/;

/** The names that an event can be handled by, the most particular first. */
export function names({ tag, val }) {
  if (RELATION.test(tag)) return [`${val.endpoint}-${tag}`, tag];
  if (STORAGE.test(tag)) return [`${val.name}-${tag}`, tag];
  if (WORKLOAD.test(tag)) return [`${val.workload}-${tag}`, tag];
  if (tag === "action" || tag === "custom") return [`${val.name}-${tag}`, tag];
  return [tag];
}

/** An event as handlers see it. @param {{tag: string, val?: any}} event */
export function shown({ tag, val = {} }) {
  if (RELATION.test(tag)) return ofRelation(tag, val);
  if (SECRET.test(tag)) return { event: tag, ...val, secret: new Secret(val) };
  if (tag === "action") return new Action(val);
  if (tag === "custom") return { event: tag, name: val.name, data: JSON.parse(val.json) };
  return { event: tag, ...val };
}

function ofRelation(tag, { endpoint, relation: id, remoteApplication, remoteUnit, departingUnit, ...batch }) {
  const relation = new Relation(id, endpoint);
  /** @type {Record<string, unknown>} */
  const event = { event: tag, relation, app: remoteApplication, ...batch };
  if (remoteUnit != null) event.unit = remoteUnit;
  if (departingUnit !== undefined) event.departing = departingUnit;
  // Whose bag changed: a unit's, or the application's.
  if (tag === "relation-joined" || tag === "relation-changed") {
    event.bag = remoteUnit == null ? relation.remoteBag : relation.bagOf(remoteUnit);
  }
  return event;
}
