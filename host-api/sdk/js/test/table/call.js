// The host's functions by names and in shapes of the journal, which the table is written in.
import * as host from "#host";

const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

const text = (bytes) => new TextDecoder().decode(bytes);
const bytes = (string) => new TextEncoder().encode(string);

const bag = ({ unit, application }) =>
  unit === undefined ? { tag: "application", val: application } : { tag: "unit", val: unit };

function ports(named) {
  if (named === "icmp") return { tag: "icmp" };
  const [[tag, [first, last]]] = Object.entries(named);
  return { tag, val: { first, last } };
}

const content = (pairs) => pairs?.map(([key, value]) => [key, bytes(value)]) ?? null;
const metadata = (said) => ({ label: null, description: null, rotate: null, expire: null, ...said });

function condition(named) {
  if (named === "leader") return { tag: "leader" };
  const [[tag, val]] = Object.entries(named);
  return { tag, val: tag === "relation" ? { ...val, bag: bag(val.bag) } : val };
}

/** Arguments as the contract has them, where the journal has others. */
const given = {
  "relations.get": ([id, whose]) => [id, bag(whose)],
  "relations.get-value": ([id, whose, key]) => [id, bag(whose), key],
  "ports.open": ([range, endpoints]) => [ports(range), endpoints],
  "ports.close": ([range, endpoints]) => [ports(range), endpoints],
  "secrets.add": ([owner, pairs, said]) => [owner, content(pairs), metadata(said)],
  "secrets.set": ([uri, pairs, said]) => [uri, content(pairs), metadata(said)],
  "events.emit-later": ([{ name, data, "after-ms": after, when }]) => [
    { name, json: data, after, conditions: when.map(condition) },
  ],
  "log.write": ([level, message]) => [level.toLowerCase(), message],
};

const value = ({ tag, val }) => ({ [tag]: val });

function shownPorts({ ports, endpoints }) {
  const { tag, val } = ports;
  const range = tag === "icmp" ? tag : `${val.first === val.last ? val.first : `${val.first}-${val.last}`}/${tag}`;
  return { range, endpoints };
}

/** Answers as the journal has them, where the contract has others. */
const answered = {
  "config.get": (option) => option && value(option),
  "config.get-all": (all) => all.map(([key, option]) => [key, value(option)]),
  "relations.get": (pairs) => Object.fromEntries(pairs),
  "ports.opened": (all) => all.map(shownPorts),
  "status.get": ({ status, message }) => ({ status, message, since: "1970-01-01T00:00:00Z" }),
  "state.get-all": (pairs) => Object.fromEntries(pairs),
  "actions.params": JSON.parse,
  "actions.param": (json) => json && JSON.parse(json),
  "resources.get": ({ size, sha256, ...file }) => ({ ...file, size: Number(size), digest: sha256 }),
  "secrets.get": (pairs) => pairs.map(([key, content]) => [key, text(content)]),
  "secrets.info": ({ uri, access, ...said }) => ({
    id: uri.slice("secret:".length),
    ...said,
    access: Object.fromEntries(access.map(({ reader, relation }) => [reader, relation])),
  }),
};

/** Functions that the host never refuses: their answers stand alone. */
const SURE = ["config.get", "config.get-all", "relations.ids", "ports.opened", "status.get", "state.get", "state.get-all",
  "storage.list", "events.pending"];

/** Makes a call; answers what the journal would hold. */
export function call(name, args) {
  const [face, method] = name.split(".").map(camel);
  try {
    const answer = host[face][method](...(given[name] ?? ((same) => same))(args)) ?? null;
    const shown = (answered[name] ?? ((same) => same))(answer);
    return SURE.includes(name) ? shown : { Ok: shown };
  } catch (error) {
    if (error.payload === undefined) throw error;
    const { tag, val } = error.payload;
    return { Err: { [tag]: val } };
  }
}
