// What cannot be: a test that sets it up would show nothing, so it fails. `try-hook` and the harnesses of the other SDKs
// refuse the same, in the same words (runtime/hook/tests/impossible.json).

const IS_UNIT = /^([a-z][a-z0-9-]*)\/\d+$/;
const IS_APP = /^[a-z][a-z0-9-]*$/;
const IS_STORAGE = /^[^/]+\/\d+$/;

function inconsistent(says) {
  throw new Error(`inconsistent: ${says}`);
}

/** The application that a unit's name begins with; anything but a unit's name fails the test. */
export function applicationOf(unit) {
  const found = IS_UNIT.exec(unit);
  if (found !== null) return found[1];
  const [first] = String(unit).split("/");
  inconsistent(`"${unit}" is no unit's name; one is written ${IS_APP.test(first) ? first : "app"}/0`);
}

/** What a test names is declared, as far as that is known: in `names`. */
export function checkDeclared(what, name, names) {
  if (names !== undefined && !names.has(name)) inconsistent(`the charm has no ${what} "${name}"`);
}

export function checkOption({ declared: { options } }, name) {
  if (options === undefined || options.has(name)) return;
  const known = options.size === 0 ? "the charm has no options" : `known are ${[...options].sort().join(", ")}`;
  inconsistent(`config: unknown option "${name}"; ${known}`);
}

/** A relation with the unit's own application is one of peers, and no other is. */
export function checkPeers({ app, declared: { peers } }, id, endpoint, remote) {
  if (peers === undefined || peers.has(endpoint) === (remote === app)) return;
  if (peers.has(endpoint)) inconsistent(`relation ${id} is of peers: it has no remote application`);
  inconsistent(`relation ${id} cannot be with ${app} itself: ${endpoint} is no endpoint of peers; name another application`);
}

/** A principal is a unit of another application. */
export function checkPrincipal({ app }, unit) {
  if (unit === null || applicationOf(unit) !== app) return;
  inconsistent(`${unit} cannot be the principal: it is a unit of ${app} itself; name a unit of another application`);
}

/** Each storage has a number, and is there once. */
export function checkStorage({ storage }, id) {
  if (!IS_STORAGE.test(id)) inconsistent(`"${id}" is no storage's id; one is written ${String(id).split("/")[0]}/0`);
  if (storage.includes(id)) inconsistent(`storage ${id} is given twice; give each a number of its own`);
}

/** Nothing happens in a relation that is over. */
export function checkRelation(state, id) {
  if (state.relation(id).broken) inconsistent(`relation ${id} is over; relate again for another`);
}

/** A remote unit is one of the remote application, and not the unit itself. */
export function checkRemoteUnit(state, id, unit) {
  const { remote } = state.relation(id);
  const application = applicationOf(unit);
  const cannot = `${unit} cannot be a remote unit of relation ${id}`;
  if (unit === state.unit) inconsistent(`${cannot}: it is the unit itself; name another unit of ${remote}`);
  if (application !== remote) inconsistent(`${cannot}: the remote application is ${remote}; name a unit of ${remote}`);
}

/** Only who has joined changes what it wrote, and leaves. */
export function checkMember(state, id, unit) {
  checkRelation(state, id);
  checkRemoteUnit(state, id, unit);
  if (!state.relation(id).members.has(unit)) inconsistent(`${unit} is no member of relation ${id}; it has to join first`);
}

/** What an event is about is there. */
export function checkEvent(state, tag, val) {
  if (!tag.startsWith("relation-") || val === undefined) return;
  const { relations } = state.durable;
  if (!relations.has(val.relation)) inconsistent(`${tag} is about relation ${val.relation}, which the unit has not`);
  if (typeof val.remoteUnit === "string") checkRemoteUnit(state, val.relation, val.remoteUnit);
  for (const unit of [val.joined, val.changed, val.departed].flatMap((units) => units ?? [])) {
    checkRemoteUnit(state, val.relation, unit);
  }
}
