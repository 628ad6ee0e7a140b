import { handler } from "../charm.js";
import { Relation } from "../relation.js";
import { shown } from "../ports.js";
import { TestContainer } from "./container.js";
import { declaredBy } from "./declared.js";
import { decode, encode } from "../utf8.js";
import {
  applicationOf,
  checkDeclared,
  checkEvent,
  checkMember,
  checkOption,
  checkPeers,
  checkPrincipal,
  checkRelation,
  checkRemoteUnit,
  checkStorage,
} from "./possible.js";
import { commit, content, make, revise, revision } from "./secrets.js";
import { State, apply, during } from "./state.js";

/** A hook failed: nothing that it asked for happened, save its statuses and its log. */
export class HookFailed extends Error {
  constructor(hook, { code, message }) {
    super(message);
    this.name = "HookFailed";
    this.hook = hook;
    this.code = code;
  }
}

/** A unit in memory that runs the hooks of the charm that a test has imported. */
export class Harness {
  #state;
  #nextRelation = 0;

  /**
   * What cannot be fails a test: a remote unit of another application, the unit itself among its peers, a change by who has
   * not joined.
   * @param {string} unit such as `mysql/0`
   */
  constructor(unit) {
    applicationOf(unit);
    this.#state = new State(unit);
  }

  /**
   * Says what the charm declares, as the text of its `charmcraft.yaml`. From then on a test that sets up an option, a relation,
   * storage, a resource or an action that is not declared there fails: it would show nothing.
   */
  declares(charmcraft) {
    this.#state.declared = declaredBy(charmcraft);
    return this;
  }

  /** Makes the unit its application's leader, or not. */
  set leader(leads) {
    this.#state.leader = leads;
  }

  /** The unit's address; null if it is not known. */
  set address(address) {
    this.#state.address = address;
  }

  /** Makes the unit a subordinate beside this principal. */
  set principal(unit) {
    checkPrincipal(this.#state, unit);
    this.#state.principal = unit;
  }

  set goalState(goal) {
    this.#state.goal = goal;
  }

  /** Sets options, without an event; undefined takes one away. */
  config(values) {
    for (const [key, value] of Object.entries(values)) {
      checkOption(this.#state, key);
      if (value === undefined) this.#state.config.delete(key);
      else this.#state.config.set(key, value);
    }
    return this;
  }

  /** Starts a container, without an event: hooks reach its Pebble from now on. */
  container(name) {
    const { containers } = this.#state;
    if (!containers.has(name)) containers.set(name, new TestContainer());
    return containers.get(name);
  }

  /** Starts a workload that answers requests on a port: `({method, path, body}) => ({status, body})`. */
  serve(port, respond) {
    this.#state.served.set(port, { respond });
    return this;
  }

  /** Answers hook tools: `(name, args, stdin) => ({code, stdout, stderr})`. */
  tools(answer) {
    this.#state.tool = answer;
    return this;
  }

  /** Gives the unit storage by its id, such as `data/0`, without an event; in a directory, `/srv/data` unless said. */
  storage(id, location = `/srv/${id.split("/")[0]}`) {
    checkStorage(this.#state, id);
    checkDeclared("storage", id.split("/")[0], this.#state.declared.storage);
    this.#state.storage.push(id);
    this.#state.storageLocations.set(id, location);
    return this;
  }

  /** Attaches a file as the content of a resource: `{path, revision, size, sha256}`. */
  resource(name, file) {
    checkDeclared("resource", name, this.#state.declared.resources);
    this.#state.resources.set(name, file);
    return this;
  }

  /** Puts a file where the charm finds it: in storage, in the charm's directory, at a resource's path. */
  addFile(path, content) {
    this.#state.files.set(path, typeof content === "string" ? encode(content) : Uint8Array.from(content));
    return this;
  }

  /** The content of a file as text; undefined if there is none. What hooks wrote below /tmp went with them. */
  file(path) {
    const content = this.#state.files.get(path);
    return content === undefined ? undefined : decode(content);
  }

  /** Grants the unit a secret of another application's, without an event; answers its URI. */
  grantSecret(content) {
    const metadata = { label: null, description: null, rotate: null, expire: null };
    return make(this.#state, null, pairs(content), metadata);
  }

  /** The other application gives such a secret other content, without an event. */
  reviseSecret(uri, content) {
    revise(this.#state, uri, pairs(content));
  }

  /** The other application takes such a secret back, without an event. */
  revokeSecret(uri) {
    this.#state.durable.secrets.get(uri).isRevoked = true;
  }

  /** The latest content of a secret, and who may read it; undefined if there is none. */
  secret(uri) {
    const secret = this.#state.durable.secrets.get(uri);
    if (secret === undefined) return undefined;
    const texts = Object.fromEntries(content(secret).map(([key, bytes]) => [key, decode(bytes)]));
    return { content: texts, revision: revision(secret), readers: [...secret.access.keys()] };
  }

  /** Adds a relation, without an event; one with the unit's own application is a peer relation. */
  relate(endpoint, remote) {
    checkDeclared("endpoint", endpoint, this.#state.declared.endpoints);
    checkPeers(this.#state, this.#nextRelation, endpoint, remote);
    const id = this.#nextRelation++;
    const bags = { units: new Map(), apps: new Map() };
    this.#state.durable.relations.set(id, { endpoint, remote, members: new Set(), broken: false, ...bags });
    return new Relation(id, endpoint);
  }

  /** Runs one hook by its event's name, such as `config-changed`; answers `handled` or `unhandled`. */
  run(tag, val) {
    const state = this.#state;
    checkEvent(state, tag, val);
    const before = structuredClone(state.durable);
    state.portsBefore = before.ports;
    for (const path of [...state.files.keys()].filter((path) => path.startsWith("/tmp/"))) state.files.delete(path);
    if (state.action !== null) state.action.running = tag === "action";
    const event = val === undefined ? { tag } : { tag, val };
    try {
      const outcome = during(state, () => handler.handle({ event, attempt: 1 }));
      commit(state);
      return outcome;
    } catch (failure) {
      Object.assign(state.durable, before);
      throw new HookFailed(tag, failure);
    }
  }

  /** A remote unit with its bag comes into view: joined, then changed. */
  join(relation, unit, bag = {}) {
    checkRelation(this.#state, relation.id);
    checkRemoteUnit(this.#state, relation.id, unit);
    const { members, units } = this.#relation(relation);
    members.add(unit);
    units.set(unit, new Map());
    apply(units.get(unit), Object.entries(bag));
    this.run("relation-joined", { ...this.#about(relation), remoteUnit: unit });
    return this.#changed(relation, unit);
  }

  /** A remote unit's bag changes. */
  change(relation, unit, bag) {
    checkMember(this.#state, relation.id, unit);
    const { units } = this.#relation(relation);
    apply(units.get(unit), Object.entries(bag));
    return this.#changed(relation, unit);
  }

  /** The remote application's bag changes. */
  changeApp(relation, bag) {
    checkRelation(this.#state, relation.id);
    const { apps, remote } = this.#relation(relation);
    if (!apps.has(remote)) apps.set(remote, new Map());
    apply(apps.get(remote), Object.entries(bag));
    return this.#changed(relation, null);
  }

  /** A remote unit goes out of view. */
  depart(relation, unit) {
    checkMember(this.#state, relation.id, unit);
    this.#relation(relation).members.delete(unit);
    return this.run("relation-departed", { ...this.#about(relation), remoteUnit: unit, departingUnit: unit });
  }

  /** The relation ends: its members depart, then it is broken. */
  end(relation) {
    checkRelation(this.#state, relation.id);
    for (const unit of [...this.#relation(relation).members]) this.depart(relation, unit);
    this.#relation(relation).broken = true;
    return this.run("relation-broken", this.#about(relation));
  }

  /** Runs an action; answers its results, its messages, and what it failed with. */
  action(name, params = {}) {
    checkDeclared("action", name, this.#state.declared.actions);
    const action = { params, results: {}, log: [], failed: null };
    this.#state.action = action;
    const outcome = this.run("action", { name, id: "1" });
    if (outcome === "unhandled") throw new HookFailed("action", { code: 1, message: `action ${name} has no handler` });
    const { results, log, failed } = action;
    return { results, log, failed };
  }

  /** What the unit last said of its workload, as `active: message`. */
  get status() {
    return said(this.#state.status);
  }

  /** What the leader last said of the application, in the same way. */
  get appStatus() {
    return said(this.#state.appStatus);
  }

  get version() {
    return this.#state.version;
  }

  /** Ports that are open: `80/tcp`. */
  get ports() {
    return this.#state.durable.ports.map(({ ports }) => shown(ports));
  }

  /** What the charm keeps for the unit. */
  get stored() {
    return Object.fromEntries(this.#state.durable.state);
  }

  /** The lines logged so far: `{level, message}`. */
  get log() {
    return this.#state.log;
  }

  /** The events that the unit waits for. */
  get pending() {
    return [...this.#state.durable.events.values()];
  }

  /** The unit's own bag in a relation. */
  unitBag(relation) {
    return Object.fromEntries(this.#relation(relation).units.get(this.#state.unit) ?? []);
  }

  /** Its application's bag in a relation. */
  appBag(relation) {
    return Object.fromEntries(this.#relation(relation).apps.get(this.#state.app) ?? []);
  }

  #relation({ id }) {
    return this.#state.relation(id);
  }

  #about(relation) {
    const { endpoint, remote } = this.#relation(relation);
    return { endpoint, relation: relation.id, remoteApplication: remote };
  }

  #changed(relation, unit) {
    return this.run("relation-changed", { ...this.#about(relation), remoteUnit: unit });
  }
}

const said = (status) => (status === null ? undefined : [status.workload, status.message].filter(Boolean).join(": "));

const pairs = (content) => Object.entries(content).map(([key, value]) => [key, encode(value)]);
