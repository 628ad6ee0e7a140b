/** The unit in memory that answers a charm under test. */
export class State {
  constructor(unit) {
    this.unit = unit;
    this.leader = false;
    this.principal = null;
    this.address = "10.0.0.1";
    this.config = new Map();
    /** What the charm declares, as far as a test says so. */
    this.declared = {};
    this.storage = [];
    this.storageLocations = new Map();
    this.resources = new Map();
    this.files = new Map();
    /** The containers that have started, by name, and what is served on ports. */
    this.containers = new Map();
    this.served = new Map();
    this.streams = new Map();
    this.lastStream = 0;
    this.goal = { units: [], relations: [] };
    this.network = new Map();
    this.tool = (name) => ({ code: 1, stderr: `ERROR the harness has no answer for ${name}\n` });
    this.log = [];
    this.status = null;
    this.appStatus = null;
    this.version = null;
    this.action = null;
    this.durable = new Durable();
  }

  get app() {
    return this.unit.split("/")[0];
  }

  relation(id) {
    const relation = this.durable.relations.get(id);
    if (relation === undefined) refuse("not-found", "relation not found");
    return relation;
  }
}

/** What a failing hook does not change. */
class Durable {
  relations = new Map();
  ports = [];
  state = new Map();
  addedStorage = new Map();
  secrets = new Map();
  nextSecret = 1;
  events = new Map();
  nextEvent = 0;
}

let running;

/** The unit whose hook runs. */
export function current() {
  if (running === undefined) {
    throw new Error("a charm's code was called outside a Harness, which answers for the host");
  }
  return running;
}

/** Lets a unit answer what is asked meanwhile. */
export function during(state, hook) {
  const before = running;
  running = state;
  try {
    return hook();
  } finally {
    running = before;
  }
}

/** Refuses a call, in the way that an engine in the sandbox tells of it. */
export function refuse(tag, val) {
  throw Object.assign(new Error(val), { payload: { tag, val } });
}

/** Refuses what only the leader may. */
export function led({ leader }, message) {
  if (!leader) refuse("not-leader", message);
}

/** Units by their numbers, as the host sorts them. */
export const byNumber = (one, other) => Number(one.split("/")[1]) - Number(other.split("/")[1]);

/** By key, as the host sorts what it answers. */
export const sorted = (map) => [...map].sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));

/** Applies changes to a bag: an empty value deletes its key. */
export function apply(bag, changes) {
  for (const [key, value] of changes) {
    if (value === "") bag.delete(key);
    else bag.set(key, value);
  }
}
