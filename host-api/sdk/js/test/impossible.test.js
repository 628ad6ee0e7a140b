// The table of states that cannot be (runtime/hook/tests/impossible.json), which try-hook and all harnesses read.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Harness } from "@periapt/charm/testing";

const { cases, charms } = JSON.parse(
  readFileSync(new URL("../../../../runtime/hook/tests/impossible.json", import.meta.url), "utf8"),
);

/** What a step of the table is in words of the harness; a harness tells no batches. */
const WORDS = {
  declares: (unit) => unit.declares(charms.app),
  config: (unit, _, name) => unit.config({ [name]: "x" }),
  resource: (unit, _, name) => unit.resource(name, {}),
  action: (unit, _, name) => unit.action(name),
  relate: (unit, relations, endpoint, app) => relations.push(unit.relate(endpoint, app)),
  join: (unit, relations, id, other) => unit.join(relations[id], other),
  change: (unit, relations, id, other) => unit.change(relations[id], other, {}),
  "change-app": (unit, relations, id) => unit.changeApp(relations[id], {}),
  depart: (unit, relations, id, other) => unit.depart(relations[id], other),
  end: (unit, relations, id) => unit.end(relations[id]),
  storage: (unit, _, id) => unit.storage(id),
  principal: (unit, _, other) => (unit.principal = other),
};

test("a test of what cannot be fails, and is told what would be right", () => {
  const known = cases.filter(({ steps }) => steps?.every(([word]) => word in WORDS));
  for (const { case: name, steps, says } of known) {
    const [unit, relations] = [new Harness("app/0"), []];
    const played = steps.map(([word, ...rest]) => () => WORDS[word](unit, relations, ...rest));
    const last = played.pop();
    for (const step of played) step();
    if (says === null) last();
    else assert.throws(last, { message: `inconsistent: ${says}` }, name);
  }
  assert.ok(known.length > 15, `${known.length} cases were tried`);
});

test("a unit has a unit's name, and an event is about what is there", () => {
  assert.throws(() => new Harness("app"), { message: `inconsistent: "app" is no unit's name; one is written app/0` });
  const unit = new Harness("app/0");
  const about = { endpoint: "ring", relation: unit.relate("ring", "app").id, remoteApplication: "app" };
  const itself = { message: /^inconsistent: app\/0 cannot be a remote unit of relation 0: it is the unit itself/ };
  assert.throws(() => unit.run("relation-changed", { ...about, remoteUnit: "app/0" }), itself);
  const absent = { message: "inconsistent: relation-created is about relation 7, which the unit has not" };
  assert.throws(() => unit.run("relation-created", { ...about, relation: 7 }), absent);
});
