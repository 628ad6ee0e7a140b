import * as host from "#host";
import { ask } from "./error.js";
import { Container } from "./pebble.js";
import { Relation } from "./relation.js";
import * as ports from "./ports.js";
import * as secrets from "./secret.js";
import { state } from "./state.js";
import { Status } from "./status.js";
import { page, toPort } from "./workload.js";

const { identity, leadership, relations, resources, status, storage } = host;

/** The unit that a hook runs in. */
export class Unit {
  /** @param {number} attempt 1 for the first */
  constructor(attempt) {
    this.attempt = attempt;
    this.state = state;
  }

  get name() {
    return identity.unitName();
  }
  get app() {
    return identity.applicationName();
  }
  get model() {
    return identity.modelName();
  }
  get modelUuid() {
    return identity.modelUuid();
  }
  get machine() {
    return identity.machineId();
  }
  get zone() {
    return identity.availabilityZone();
  }
  /** A subordinate's principal. */
  get principal() {
    return identity.principalUnit() ?? undefined;
  }
  get privateAddress() {
    return ask("private address", () => identity.privateAddress());
  }
  get publicAddress() {
    return ask("public address", () => identity.publicAddress());
  }

  /** Whether it leads its application; true holds for 30 seconds from the answer. */
  get isLeader() {
    return ask("leadership", () => leadership.isLeader());
  }

  /** The options that have a value, by name. */
  get config() {
    return Object.fromEntries(host.config.getAll().map(([key, { val }]) => [key, val]));
  }

  /** The relations of an endpoint. */
  relations(endpoint) {
    return relations.ids(endpoint).map((id) => new Relation(id, endpoint));
  }

  /** The one relation of an endpoint; undefined if there is none. */
  relation(endpoint) {
    const all = this.relations(endpoint);
    if (all.length > 1) throw new Error(`endpoint ${endpoint} has ${all.length} relations, expected one`);
    return all[0];
  }

  /** What the unit last said of its workload. */
  get status() {
    const { status: workload, message } = ask("reading the status", () => status.get());
    // What it said itself; before that there is `unknown`, too.
    return new Status(/** @type {any} */ (workload), message);
  }
  set status({ workload, message }) {
    ask("setting the status", () => status.set(workload, message));
  }

  /** Says how the whole application is; leader only. */
  setAppStatus({ workload, message }) {
    ask("setting the application's status", () => status.setApplication(workload, message));
  }

  /** A container of this unit, or a WebAssembly workload, by its name. */
  container(name) {
    return new Container(name);
  }
  /** A page of a workload, by its port: `{status, body, text, isSuccess}`. */
  workloadPage(port, path = "/") {
    return page(port, path);
  }
  /** A stream to a TCP port that a workload listens on. */
  workloadPort(port) {
    return toPort(port);
  }

  /** Says which version of the workload runs. */
  setVersion(version) {
    ask("setting the version", () => status.setApplicationVersion(String(version)));
  }

  openPorts(given, endpoints) {
    ports.open(given, endpoints);
  }
  closePorts(given, endpoints) {
    ports.close(given, endpoints);
  }
  get openedPorts() {
    return ports.opened();
  }
  /** Closes all ports but these, and opens these. */
  setPorts(wanted) {
    ports.converge(wanted);
  }

  addSecret(content, options) {
    return secrets.add(content, options);
  }
  secret(named) {
    return new secrets.Secret(typeof named === "string" ? { uri: named } : named);
  }
  get ownSecrets() {
    return secrets.owned();
  }

  /** The file of a resource: where it is, its revision, size and SHA-256. */
  resource(name) {
    return ask(`resource ${name}`, () => resources.get(name));
  }

  /** The ids of the unit's storage, of one name or of all. */
  storage(name) {
    return storage.list(name ?? null);
  }
  /** The directory of a storage, by its id. */
  storageLocation(id) {
    return ask(`storage ${id}`, () => storage.get(id)).location;
  }
  addStorage(name, count = 1) {
    ask(`storage ${name}`, () => storage.add(name, count));
  }

  /** The addresses of an endpoint. */
  network(binding, relation) {
    return ask(`network of ${binding}`, () => host.network.get(binding, relation?.id ?? null));
  }

  /** Which units the operator wants. */
  get goalState() {
    return host.goalState.get();
  }

  /** Asks for an event of the charm's own: `after` milliseconds, or `when` a condition holds; answers its number. */
  emitLater(name, { data = null, after, when = [] }) {
    const json = JSON.stringify(data);
    const later = { name, json, after: after ?? null, conditions: when.map(condition) };
    return ask(`event ${name}`, () => host.events.emitLater(later));
  }
  cancel(id) {
    ask(`event ${id}`, () => host.events.cancel(id));
  }
  /** The events of its own that the unit waits for. */
  get pending() {
    return host.events.pending().map(({ json, ...event }) => ({ ...event, data: JSON.parse(json) }));
  }
}

/**
 * `"leader"`, `{config: "port"}`, or `{bag, key}` of a bag that others write.
 * @returns {import("periapt:charm/events@0.1.0").Condition}
 */
function condition(given) {
  if (given === "leader") return { tag: "leader" };
  if (given.config !== undefined) return { tag: "config", val: given.config };
  return { tag: "relation", val: { relation: given.bag.relation.id, bag: given.bag.whose, key: given.key } };
}
