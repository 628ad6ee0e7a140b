// Secrets of a unit in memory: owned ones, which it makes, and those of others, which a test grants. What a hook changes is there
// for it at once, and a revision when it succeeds.
import { led, refuse } from "./state.js";

const denied = () => refuse("permission-denied", "permission denied");
const bare = (uri) => uri.replace(/^secret:/, "");
const missing = (uri) => refuse("not-found", `secret "${bare(uri)}" not found`);
const nameless = () => refuse("invalid-argument", "require either a secret URI or label");

/** A URI in full, from any way to write it. */
function parsed(uri) {
  const id = uri.split(/[/:]/).at(-1);
  return /^[0-9a-v]{20}$/.test(id) ? `secret:${id}` : refuse("invalid-argument", `secret URI "${uri}" not valid`);
}

const KEY = /^[a-z](?:-?[a-z0-9])*$/;

/** Content as the host keeps it: by key. */
function checked(content) {
  if (content.length === 0) refuse("invalid-argument", "empty secret value not valid");
  for (const [key] of content) {
    if (key.length < 3 || !KEY.test(key)) refuse("invalid-argument", `key "${key}" not valid`);
  }
  return [...new Map(content)].sort(([one], [other]) => (one < other ? -1 : 1));
}

/** A duration (`24h`, `1h30m`) or a time (`2026-03-04`, with or without more of it). */
function checkExpire({ expire }) {
  if (expire === null) return;
  const isDuration = (text) => /^(?:\d+(?:\.\d+)?(?:h|m|s|ms))+$/.test(text);
  if (expire.startsWith("-") && isDuration(expire.slice(1))) {
    refuse("invalid-argument", `negative expire duration "${expire}" not valid`);
  }
  const isTime = /^\d{4}-\d{2}-\d{2}/.test(expire);
  if (!isDuration(expire) && !isTime) refuse("invalid-argument", `expire time or duration "${expire}" not valid`);
}

function checkLabel({ durable }, label, owner, uri) {
  const isTaken = (secret) => secret.uri !== uri && secret.owner === owner && secret.label === label;
  if (label === null || ![...durable.secrets.values()].some(isTaken)) return;
  refuse("already-exists", `secret with label "${label}" already exists`);
}

const latest = ({ revisions }) => Math.max(...revisions.keys());

/** Makes a secret; `owner` is null for one of another application's. */
export function make({ durable }, owner, content, { label, description, rotate, expire }) {
  const uri = `secret:${String(durable.nextSecret++).padStart(20, "0")}`;
  const said = { label, description: description ?? "", rotate: rotate ?? "never", expire };
  const kept = { revisions: new Map([[1, content]]), pending: null, isFresh: owner !== null, tracked: null };
  durable.secrets.set(uri, { uri, owner, ...said, ...kept, consumerLabel: null, isRevoked: false, access: new Map() });
  return uri;
}

/** Gives one of another application's other content. */
export function revise({ durable }, uri, content) {
  const { revisions } = durable.secrets.get(uri);
  revisions.set(Math.max(...revisions.keys()) + 1, content);
}

/** A secret's latest content. */
export const content = (secret) => secret.pending ?? secret.revisions.get(latest(secret));

/** How many revisions it had. */
export const revision = (secret) => latest(secret) + (secret.pending === null ? 0 : 1);

/** The hook succeeded: what it gave is a revision, if it differs. */
export function commit({ durable }) {
  for (const secret of durable.secrets.values()) {
    const isNew = secret.pending !== null && !same(secret.pending, secret.revisions.get(latest(secret)));
    if (isNew) secret.revisions.set(latest(secret) + 1, secret.pending);
    Object.assign(secret, { pending: null, isFresh: false });
  }
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** One that the unit looks after. */
function own(state, uri) {
  const key = parsed(uri);
  const secret = state.durable.secrets.get(key);
  // What is another's is refused by the commit, which a harness has not: it is as if it were not there.
  if (secret === undefined || secret.owner === null) return missing(key);
  if (secret.owner === "application") led(state, "this unit is not the leader");
  return secret;
}

export function add(state, owner, content, metadata) {
  checkExpire(metadata);
  const kept = checked(content);
  if (owner === "application") led(state, "this unit is not the leader");
  checkLabel(state, metadata.label, owner);
  return make(state, owner, kept, metadata);
}

export function set(state, uri, content, metadata) {
  checkExpire(metadata);
  const kept = content === null ? null : checked(content);
  const secret = own(state, uri);
  checkLabel(state, metadata.label, secret.owner, secret.uri);
  for (const [key, value] of Object.entries(metadata)) if (value !== null) secret[key] = value;
  if (kept === null) return;
  if (secret.isFresh) secret.revisions.set(1, kept);
  else secret.pending = kept;
}

export function get({ durable }, uri, label, mode) {
  const all = [...durable.secrets.values()];
  const byLabel = all.find((secret) => label !== null && label === (secret.owner === null ? secret.consumerLabel : secret.label));
  if (uri === null && label === null) nameless();
  if (uri === null && byLabel === undefined) refuse("not-found", `consumer label "${label}" not found`);
  const key = uri === null ? byLabel.uri : parsed(uri);
  if (byLabel !== undefined && byLabel.uri !== key) {
    refuse("already-exists", `secret with label "${label}" already exists`);
  }
  const secret = durable.secrets.get(key) ?? missing(key);
  if (secret.isRevoked) denied();
  if (uri !== null && secret.owner === null) secret.consumerLabel = label ?? secret.consumerLabel;
  if (mode === "refresh" || secret.tracked === null) secret.tracked = latest(secret);
  return mode === "tracked" ? secret.revisions.get(secret.tracked) : content(secret);
}

export function info(state, uri, label) {
  if (uri === null && label === null) nameless();
  const labelled = [...state.durable.secrets.values()].find((secret) => secret.owner !== null && secret.label === label);
  const key = uri === null ? (labelled?.uri ?? missing(label)) : parsed(uri);
  const secret = state.durable.secrets.get(key);
  const isOwn = secret !== undefined && (secret.owner === "unit" || (secret.owner === "application" && state.leader));
  if (!isOwn) return missing(key);
  const { access, description, expire, owner, rotate } = secret;
  const readers = [...access].map(([reader, relation]) => ({ reader, relation }));
  const said = { uri: key, revision: revision(secret), label: secret.label, owner, description };
  return { ...said, rotation: rotate, rotates: null, expiry: expire, access: readers };
}

export function ids(state) {
  const looksAfter = ({ owner }) => owner === "unit" || (owner === "application" && state.leader);
  return [...state.durable.secrets.values()].filter(looksAfter).map(({ uri }) => uri);
}

export function grant(state, uri, id, unit) {
  const { access, uri: key } = own(state, uri);
  const { remote } = state.relation(id);
  const isOfRemote = (name) => name.startsWith(`${remote}/`);
  if (unit !== null && !isOfRemote(unit)) refuse("invalid-argument", `unit "${unit}" is not in relation ${id}`);
  const reader = unit ?? remote;
  if (access.has(remote) || access.has(reader)) return;
  const ofUnit = [...access.keys()].find(isOfRemote);
  if (unit === null && ofUnit !== undefined) {
    const granted = `it is granted to unit "${ofUnit}" already`;
    refuse("conflict", `cannot grant secret "${bare(key)}" to application "${remote}": ${granted}`);
  }
  access.set(reader, id);
}

export function revoke(state, uri, reader) {
  own(state, uri).access.delete(reader);
}

export function remove(state, uri, number) {
  const secret = own(state, uri);
  if (number !== null) secret.revisions.delete(number);
  if (number === null || secret.revisions.size === 0) state.durable.secrets.delete(secret.uri);
}
