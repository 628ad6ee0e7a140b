import { secrets as host } from "#host";
import { ask } from "./error.js";
import { decode, encode } from "./utf8.js";

const NOTHING = { label: null, description: null, rotate: null, expire: null };

/** A secret, by its URI or by the label that this unit knows it by. */
export class Secret {
  /** @param {{uri?: string, label?: string}} named */
  constructor({ uri, label }) {
    this.uri = uri;
    this.label = label;
  }

  /** The content that this unit tracks: of its first reading, or of its last refresh. */
  content() {
    return this.#read("tracked");
  }

  /** The latest content, just this time. */
  peek() {
    return this.#read("peek");
  }

  /** The latest content, from now on. */
  refresh() {
    return this.#read("refresh");
  }

  #read(mode) {
    const content = ask(`${this}`, () => host.get(this.uri ?? null, this.label ?? null, mode));
    return Object.fromEntries(content.map(([key, bytes]) => [key, decode(bytes)]));
  }

  /** What only the owner knows of it. */
  info() {
    return ask(`${this}`, () => host.info(this.uri ?? null, this.label ?? null));
  }

  /** Gives it other content: a new revision, unless it is the same. */
  set(content, metadata = {}) {
    const pairs = content === undefined ? null : encoded(content);
    ask(`${this}`, () => host.set(this.#known(), pairs, { ...NOTHING, ...metadata }));
  }

  /** Lets the application at the other end of a relation read it, or one of its units. */
  grant(relation, unit) {
    ask(`${this}`, () => host.grant(this.#known(), relation.id, unit ?? null));
  }

  /** Takes a grant back, from an application or a unit. */
  revoke(reader) {
    ask(`${this}`, () => host.revoke(this.#known(), reader));
  }

  /** Removes it, or one revision of it. */
  remove(revision) {
    ask(`${this}`, () => host.remove(this.#known(), revision ?? null));
  }

  #known() {
    return (this.uri ??= this.info().uri);
  }

  toString() {
    return `secret ${this.uri ?? this.label}`;
  }
}

/**
 * Makes a secret.
 * @param {Record<string, string>} content
 * @param {{owner?: import("periapt:charm/secrets@0.1.0").Owner} & Partial<typeof NOTHING>} [options]
 */
export function add(content, { owner = "application", ...metadata } = {}) {
  const uri = ask("adding a secret", () => host.add(owner, encoded(content), { ...NOTHING, ...metadata }));
  return new Secret({ uri });
}

/** Those that this unit looks after. */
export function owned() {
  return ask("listing secrets", () => host.ids()).map((uri) => new Secret({ uri }));
}

/** @param {Record<string, unknown>} content @returns {[string, Uint8Array][]} */
const encoded = (content) => Object.entries(content).map(([key, value]) => [key, encode(String(value))]);
