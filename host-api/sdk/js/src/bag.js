import { relations } from "#host";
import { ask } from "./error.js";

/** A bag of a relation, to read. */
export class RelationBag {
  /** @param {import("./relation.js").Relation} relation @param {{tag: "unit" | "application", val: string}} owner */
  constructor(relation, owner) {
    this.relation = relation;
    this.owner = owner.val;
    this.whose = owner;
  }

  /** The value of a key; undefined if there is none. */
  get(key) {
    return ask(`${this}`, () => relations.getValue(this.relation.id, this.whose, key)) ?? undefined;
  }

  /** The value of a key that has to be there. */
  require(key) {
    const value = this.get(key);
    if (value === undefined) throw new Error(`${this} has no ${key}`);
    return value;
  }

  /** All of it, by key. */
  all() {
    return Object.fromEntries(ask(`${this}`, () => relations.get(this.relation.id, this.whose)));
  }

  toString() {
    return `bag of ${this.owner} in ${this.relation}`;
  }
}

/** A bag that this unit writes: its own, or its application's if it leads. */
export class OwnBag extends RelationBag {
  /** Sets one key; an empty value deletes it. */
  set(key, value) {
    this.update({ [key]: value });
  }

  /** Sets several keys, all or none; undefined, null and an empty text delete theirs. */
  update(values) {
    const changed = ([key, value]) => /** @type {[string, string]} */ ([key, value == null ? "" : String(value)]);
    const changes = Object.entries(values).map(changed);
    ask(`${this}`, () => relations.set(this.relation.id, this.whose.tag, changes));
  }

  /** Deletes a key. */
  delete(key) {
    this.set(key, "");
  }
}
