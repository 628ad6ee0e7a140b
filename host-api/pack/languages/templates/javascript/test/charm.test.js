// Tests of the charm against an in-memory unit: `npm test`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Harness } from "@periapt/charm/testing";
import "../src/charm.js";

const configured = (greeting) => {
  const unit = new Harness("{name}/0").config({ greeting });
  unit.run("config-changed");
  return unit;
};

test("it says what it is told to", () => {
  assert.equal(configured("Ahoy").status, "active: says Ahoy");
});

test("without a greeting it is blocked", () => {
  assert.equal(configured("").status, "blocked: option greeting is empty");
});

test("the action greets whom it is given", () => {
  const { results } = configured("Ahoy").action("greet", { whom: "you" });
  assert.deepEqual(results, { greeting: "Ahoy, you!" });
});
