// What the host answers, from memory: the same refusals, in the same words.
import { led, refuse, sorted } from "./state.js";

export { events } from "./events.js";
export { relations } from "./relations.js";
export * as secrets from "./secrets.js";
export { workloads } from "./streams.js";

/** A value as the contract carries options. */
function option(value) {
  if (typeof value === "boolean") return { tag: "boolean", val: value };
  if (typeof value === "number") return { tag: Number.isInteger(value) ? "integer" : "number", val: value };
  return { tag: value.startsWith("secret:") ? "secret" : "text", val: value };
}

export const config = {
  get: ({ config }, key) => (config.has(key) ? option(config.get(key)) : null),
  getAll: ({ config }) => sorted(config).map(([key, value]) => [key, option(value)]),
};

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const overlap = (one, other) =>
  one.tag === other.tag && one.tag !== "icmp" && one.val.first <= other.val.last && other.val.first <= one.val.last;
const named = ({ tag, val }) =>
  tag === "icmp" ? tag : `${val.first === val.last ? val.first : `${val.first}-${val.last}`}/${tag}`;

/** Refuses a range that is none, and one that shares a port with another of the unit. */
function checkPorts({ unit, durable, portsBefore = [] }, verb, ports) {
  const { tag, val } = ports;
  if (tag !== "icmp" && val.first > val.last) {
    refuse("invalid-argument", `invalid port range ${val.first}-${val.last}/${tag}`);
  }
  const other = durable.ports.find((open) => !same(open.ports, ports) && overlap(open.ports, ports));
  if (other === undefined) return;
  const when = portsBefore.some((open) => same(open, other)) ? "" : " requested earlier";
  const conflict = `port range conflicts with ${named(other.ports)} (unit "${unit}")${when}`;
  refuse("conflict", `cannot ${verb} ${named(ports)} (unit "${unit}"): ${conflict}`);
}

export const ports = {
  open(state, ports, endpoints) {
    checkPorts(state, "open", ports);
    const opened = { ports, endpoints };
    if (!state.durable.ports.some((open) => same(open, opened))) state.durable.ports.push(opened);
  },
  close(state, ports, endpoints) {
    if (!state.durable.ports.some((open) => same(open.ports, ports))) return checkPorts(state, "close", ports);
    state.durable.ports = state.durable.ports.filter((open) => !same(open, { ports, endpoints }));
  },
  opened: ({ durable }) => durable.ports.map((open) => structuredClone(open)),
};

const statusInfo = (status) => ({ status: status?.workload ?? "unknown", message: status?.message ?? "", data: "{}" });

export const status = {
  set(state, workload, message) {
    state.status = { workload, message };
  },
  get: (state) => statusInfo(state.status),
  setApplication(state, workload, message) {
    led(state, "this unit is not the leader");
    state.appStatus = { workload, message };
  },
  setApplicationVersion(state, version) {
    state.version = version;
  },
};

export const leadership = { isLeader: ({ leader }) => leader };

export const network = {
  /** One interface with the unit's one address, whatever the binding. */
  get({ address }, binding) {
    if (address === null) refuse("not-ready", `no address is known for binding "${binding}"`);
    const cidr = `${address}/32`;
    const bindAddresses = [{ name: "eth0", mac: "", addresses: [{ address, cidr }] }];
    return { bindAddresses, ingressAddresses: [address], egressSubnets: [cidr] };
  },
};

export const goalState = { get: ({ goal }) => goal };

export const state = {
  get: ({ durable }, key) => durable.state.get(key) ?? null,
  getAll: ({ durable }) => sorted(durable.state),
  set({ durable }, changes) {
    if (changes.some(([key]) => key === "")) refuse("invalid-argument", "a key must not be empty");
    for (const [key, value] of changes) durable.state.set(key, value);
  },
  delete: ({ durable }, key) => void durable.state.delete(key),
};

const KEY = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
/** Results that the host sets itself. */
const RESERVED = ["stdout", "stdout-encoding", "stderr", "stderr-encoding"];

function runningAction({ action }) {
  return action?.running ? action : refuse("wrong-context", "not running an action");
}

export const actions = {
  params: (state) => JSON.stringify(runningAction(state).params),
  param(state, path) {
    const value = path.split(".").reduce((inner, part) => inner?.[part], runningAction(state).params);
    return value === undefined ? null : JSON.stringify(value);
  },
  setResults(state, results) {
    for (const [key] of results) {
      if (!KEY.test(key)) {
        const rule = "must start and end with lowercase alphanumeric, and contain only lowercase alphanumeric, hyphens and periods";
        refuse("invalid-argument", `key "${key}" ${rule}`);
      }
      if (RESERVED.includes(key.split(".")[0])) refuse("invalid-argument", `cannot set reserved action key "${key}"`);
    }
    Object.assign(runningAction(state).results, Object.fromEntries(results));
  },
  log: (state, message) => void runningAction(state).log.push(message),
  fail(state, message) {
    runningAction(state).failed = message ?? "action failed without reason given, check action for errors";
  },
};

export const storage = {
  list: ({ storage }, name) => storage.filter((id) => name === null || id.split("/")[0] === name),
  get({ storageLocations }, id) {
    const location = storageLocations.get(id) ?? refuse("not-found", `storage "${id}" not found`);
    return { kind: "filesystem", location };
  },
  add({ durable }, name, count) {
    if (count === 0) refuse("invalid-argument", 'cannot parse count: count must be greater than zero, got "0"');
    durable.addedStorage.set(name, (durable.addedStorage.get(name) ?? 0) + count);
  },
};

export const resources = {
  get: ({ resources }, name) =>
    resources.get(name) ?? refuse("not-found", `could not download resource: resource "${name}" not found`),
};

const unreadable = (what, path, code) => new Error(`cannot ${what} ${path}: ${code}`);
const isDirectory = ({ files }, path) => [...files.keys()].some((file) => file.startsWith(`${path.replace(/\/+$/, "")}/`));

/** Files in memory, with WASI's words for what goes wrong. */
export const files = {
  read(state, path) {
    const content = state.files.get(path);
    if (content === undefined) throw unreadable("read", path, isDirectory(state, path) ? "is-directory" : "no-entry");
    return content;
  },
  write: (state, path, bytes) => void state.files.set(path, Uint8Array.from(bytes)),
  list(state, path) {
    const inside = `${path.replace(/\/+$/, "")}/`;
    const below = [...state.files.keys()].filter((file) => file.startsWith(inside));
    if (below.length === 0) throw unreadable("list", path, state.files.has(path) ? "not-directory" : "no-entry");
    const names = below.map((file) => file.slice(inside.length).split("/")[0]).filter((name) => name !== "");
    return [...new Set(names)].sort();
  },
  remove(state, path) {
    if (!state.files.delete(path)) throw unreadable("remove", path, "no-entry");
  },
  /** An empty file of no name stands for a directory that holds nothing yet. */
  makeDirectory(state, path) {
    if (isDirectory(state, path) || state.files.has(path)) throw unreadable("make", path, "exist");
    state.files.set(`${path}/`, new Uint8Array());
  },
};

const address = ({ address }, which) => address ?? refuse("not-ready", `no ${which} address(es) found`);

export const identity = {
  unitName: ({ unit }) => unit,
  applicationName: ({ app }) => app,
  principalUnit: ({ principal }) => principal,
  modelName: () => "test",
  modelUuid: () => "00000000-0000-4000-8000-000000000000",
  machineId: () => "0",
  availabilityZone: () => "",
  version: () => "0.1.0",
  privateAddress: (state) => address(state, "private"),
  publicAddress: (state) => address(state, "public"),
};

export const log = { write: ({ log }, level, message) => void log.push({ level, message }) };

export const hookTools = {
  run({ tool }, name, args, stdin) {
    const { code = 0, stdout = "", stderr = "" } = tool(name, args, stdin);
    const bytes = (text) => new TextEncoder().encode(text);
    return { exitCode: code, stdout: bytes(stdout), stderr: bytes(stderr) };
  },
};
