import { identity, relations } from "#host";
import { OwnBag, RelationBag } from "./bag.js";
import { ask } from "./error.js";

/** A relation of this unit. */
export class Relation {
  /** @param {number} id its number in the model @param {string} endpoint of this unit's side */
  constructor(id, endpoint) {
    this.id = id;
    this.endpoint = endpoint;
  }

  /** The application at the other end; in a peer relation, the unit's own. */
  get app() {
    return ask(`${this}`, () => relations.remoteApplication(this.id));
  }

  /** The remote units that this unit has been told of, sorted. */
  get units() {
    return ask(`${this}`, () => relations.members(this.id));
  }

  /** The bag of a remote unit, by its name. */
  bagOf(unit) {
    return new RelationBag(this, { tag: "unit", val: unit });
  }

  /** The bag of the application at the other end. */
  get remoteBag() {
    return new RelationBag(this, { tag: "application", val: this.app });
  }

  /** This unit's own bag. */
  get unitBag() {
    return new OwnBag(this, { tag: "unit", val: identity.unitName() });
  }

  /** The bag of this unit's application, which only its leader writes. */
  get appBag() {
    return new OwnBag(this, { tag: "application", val: identity.applicationName() });
  }

  toString() {
    return `${this.endpoint}:${this.id}`;
  }
}
