// Secrets of a unit in memory: owned ones, which it makes, and those of others, which a test grants.
import { refuse } from "./state.js";

const missing = (named) => refuse("not-found", `secret "${named}" not found`);

/** A secret by its URI, or by the label that this unit gave it. */
export function find({ durable }, uri, label) {
  if (uri === null && label === null) refuse("invalid-argument", "require either a secret URI or label");
  if (uri !== null) return durable.secrets.get(uri) ?? missing(uri);
  return [...durable.secrets.values()].find((secret) => secret.label === label) ?? missing(label);
}

function own(state, uri, label = null) {
  const secret = find(state, uri, label);
  if (secret.owner === null) refuse("permission-denied", "permission denied");
  if (secret.owner === "application" && !state.leader) refuse("permission-denied", "permission denied");
  return secret;
}

const latest = ({ revisions }) => revisions.length;

/** Makes a secret; `owner` is null for one of another application's. */
export function make({ durable }, owner, content, { label, description, rotate, expire }) {
  const uri = `secret:${String(durable.nextSecret++).padStart(20, "0")}`;
  const said = { label, description: description ?? "", rotate: rotate ?? "never", expire };
  durable.secrets.set(uri, { uri, owner, ...said, revisions: [content], tracked: null, access: new Map() });
  return uri;
}

export function add(state, owner, content, metadata) {
  if (owner === "application" && !state.leader) refuse("not-leader", "this unit is not the leader");
  const { label } = metadata;
  if (label !== null && [...state.durable.secrets.values()].some((secret) => secret.label === label)) {
    refuse("already-exists", `secret with label "${label}" already exists`);
  }
  return make(state, owner, content, metadata);
}

export function set(state, uri, content, metadata) {
  const secret = own(state, uri);
  for (const [key, value] of Object.entries(metadata)) if (value !== null) secret[key] = value;
  const isNew = content !== null && JSON.stringify(content) !== JSON.stringify(secret.revisions.at(-1));
  if (isNew) secret.revisions.push(content);
}

export function get(state, uri, label, mode) {
  const secret = find(state, uri, label);
  if (secret.revoked) refuse("permission-denied", "permission denied");
  if (uri !== null && label !== null) secret.label = label;
  if (mode === "refresh" || secret.tracked === null) secret.tracked = latest(secret);
  return secret.revisions[(mode === "peek" ? latest(secret) : secret.tracked) - 1];
}

export function info(state, uri, label) {
  const { access, description, expire, owner, rotate, ...secret } = own(state, uri, label);
  const readers = [...access].map(([reader, relation]) => ({ reader, relation }));
  const times = { rotates: null, expiry: expire };
  const said = { uri: secret.uri, revision: latest(secret), label: secret.label, owner, description };
  return { ...said, rotation: rotate, ...times, access: readers };
}

export function ids(state) {
  const looksAfter = ({ owner }) => owner === "unit" || (owner === "application" && state.leader);
  return [...state.durable.secrets.values()].filter(looksAfter).map(({ uri }) => uri);
}

export function grant(state, uri, id, unit) {
  own(state, uri).access.set(unit ?? state.relation(id).remote, id);
}

export function revoke(state, uri, reader) {
  own(state, uri).access.delete(reader);
}

export function remove(state, uri, revision) {
  const secret = own(state, uri);
  if (revision === null) state.durable.secrets.delete(secret.uri);
}
