// The plain world of the table, in a harness.
import { on } from "@periapt/charm";
import { Harness } from "@periapt/charm/testing";
import { call } from "./call.js";

/** What the charm is to ask in its next hook, and what it was told. */
let asked;
let told;

/** A charm that asks what it is told to ask. */
function ask() {
  if (asked !== undefined) told = call(...asked);
}
const kinds = ["created", "joined", "changed", "departed", "broken"].map((kind) => `relation-${kind}`);
for (const kind of ["update-status", "action", ...kinds]) on(kind, ask);

export class Scene {
  constructor(given, secrets, drawn) {
    const unit = new Harness("a/0");
    this.unit = unit;
    unit.leader = true;
    unit.address = "10.0.0.9";
    unit.config({ title: "hello", size: 80, ratio: 0.5 });
    unit.relate("unused", "nobody");
    this.db = unit.relate("db", "b");
    const ring = unit.relate("ring", "a");
    unit.changeApp(this.db, { version: "8" });
    unit.changeApp(ring, { password: "p" });
    unit.join(this.db, "b/0", { host: "10.0.0.4", port: "3306" });
    unit.join(this.db, "b/1", { host: "10.0.0.5" });
    unit.join(ring, "a/1", { seed: "7" });
    const sha256 = "1eb7c54d52831bbfe8942af0b1c56b7409523a59ed6ca99c1174fef7eb32c1b5";
    unit.resource("data", { path: "/resources/data/rows.csv", revision: 3, size: 3n, sha256 });
    unit.storage("data/0").storage("logs/1", "/srv/logs/1");
    this.does("relations.set", [1, "unit", [["ingress-address", "10.0.0.9"]]]);
    this.does("relations.set", [1, "application", [["database", "wp"]]]);
    this.does("state.set", [[["seen", "1"], ["done", ""]]]);
    this.does("status.set", ["active", "a/0"]);
    this.secrets(secrets, drawn);
    for (const words of given) this.arrange(...words);
    unit.leader = given.some(([word]) => word === "leader");
  }

  /** Makes a call in a hook of its own. */
  does(name, args) {
    asked = [name, args];
    this.unit.run("update-status");
    asked = undefined;
    return told;
  }

  /** Those of the table: the harness's URIs, and the ids that the table has for them. */
  secrets({ own, app, theirs, revoked }, drawn) {
    const said = { description: "what it is", rotate: "daily" };
    const made = [
      [own, "unit", "own", "mine-1"],
      [app, "application", "ours", "ours-1"],
    ].map(([id, owner, label, value]) => {
      const { Ok: uri } = this.does("secrets.add", [owner, [["password", value]], { label, ...said }]);
      this.does("secrets.grant", [uri, 1, "b/0"]);
      return [uri, id];
    });
    const granted = this.unit.grantSecret({ password: "theirs-1" });
    this.does("secrets.get", [granted, "theirs", "tracked"]);
    this.unit.reviseSecret(granted, { password: "theirs-2" });
    const taken = this.unit.grantSecret({ password: "x" });
    this.unit.revokeSecret(taken);
    const next = `secret:${"5".padStart(20, "0")}`;
    this.ids = [...made, [granted, theirs], [taken, revoked], [next, drawn]];
    this.ids = this.ids.map(([uri, id]) => [uri.slice("secret:".length), id]);
  }

  arrange(word, ...rest) {
    if (word === "addresses") this.unit.address = rest[0] ?? null;
    if (word === "members") {
      const members = rest.slice(1);
      for (const unit of ["b/0", "b/1"]) if (!members.includes(unit)) this.unit.depart(this.db, unit);
      for (const unit of members) this.unit.join(this.db, unit);
    }
    if (word === "opened") {
      const [, range, ...endpoints] = rest;
      const [, first, last = first, protocol = "tcp"] = /^(\d+)(?:-(\d+))?(?:\/(\w+))?$/.exec(range);
      this.does("ports.open", [{ [protocol]: [Number(first), Number(last)] }, endpoints]);
    }
  }

  /** Makes a call in the case's hook; what the hook tells of has happened. */
  ask(hook, name, args) {
    const { unit, db } = this;
    const about = { endpoint: "db", relation: db.id, remoteApplication: "b" };
    const [kind, remoteUnit] = hook;
    if (kind === "joined") unit.join(db, remoteUnit);
    if (kind === "departed") unit.depart(db, remoteUnit);
    if (kind === "broken") unit.end(db);
    asked = [name, this.replaced(args, ([uri, id]) => [id, uri])];
    if (kind === "action") unit.action("backup", { level: 3, fast: true, target: { dir: "/srv", tags: ["a", "b"] } });
    else if (kinds.includes(`relation-${kind}`)) {
      const departing = kind === "departed" ? { departingUnit: remoteUnit } : {};
      unit.run(`relation-${kind}`, { ...about, remoteUnit: remoteUnit ?? null, ...departing });
    } else unit.run("update-status");
    asked = undefined;
    return this.replaced(told, (pair) => pair);
  }

  /** A value with the ids of one side in place of the other's. */
  replaced(value, pair) {
    let text = JSON.stringify(value);
    for (const names of this.ids) text = text.replaceAll(...pair(names));
    return JSON.parse(text);
  }
}
