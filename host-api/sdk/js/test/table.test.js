// The harness, asked what the table of hook tools asks of the host (runtime/hook/tests/typed.json): a charm's tests are answered
// as its hooks will be.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Scene } from "./table/scene.js";

const { cases, secrets, drawn } = JSON.parse(
  readFileSync(new URL("../../../../runtime/hook/tests/typed.json", import.meta.url), "utf8"),
);

/** What a harness has no counterpart of: bounds, other units of the machine, what operators do to applications. */
const NOT_IN_A_HARNESS = ["limit", "subordinate", "option", "application"];

/** Functions that the SDK has no word for; and those that tests give answers of their own. */
const NOT_ANSWERED = [
  "leadership.get-settings",
  "leadership.set-settings",
  "status.get-application",
  "goal-state.get",
  "network.get",
  "identity.model-uuid",
];

/** Single cases, and why none of them can be put. */
const NOT_PUT = {
  "what is not the unit's is refused when the hook commits": "a harness refuses at the call",
  "who joins in a batch is listed, and who departs is not": "a harness tells no batches",
  "an endpoint that is not there": "a harness does not know what the charm declares",
  "a storage that the charm does not declare": "nor this",
  "what nobody attached": "nor which resources there are",
  "an image": "nor of which type they are",
  "what is not there yet": "storage of a harness is there at once",
};

/** Whether a harness can be brought to where a case happens. */
function isComparable({ case: name, function: asked, given, before }) {
  const isOdd = ([word, owner]) => NOT_IN_A_HARNESS.includes(word) || (word === "opened" && owner !== "a/0");
  // Tools that ran before, in the same hook, were called through the other door.
  return !(before.length > 0 || given.some(isOdd) || NOT_ANSWERED.includes(asked) || name in NOT_PUT);
}

test("the harness answers typed calls as the table says", () => {
  const comparable = cases.filter(isComparable);
  const wrong = comparable.flatMap((each) => {
    const told = new Scene(each.given, secrets, drawn).ask(each.hook, each.function, each.arguments);
    if (isDeepStrictEqual(told, each.answer)) return [];
    const [is, not] = [told, each.answer].map((answer) => JSON.stringify(answer));
    return [`${each.tool}: ${each.case}: ${each.function} ${JSON.stringify(each.arguments)}\n  is  ${is}\n  not ${not}`];
  });
  assert.ok(comparable.length > 100, `${comparable.length} cases were compared`);
  assert.equal(wrong.length, 0, `${wrong.length} of ${comparable.length} differ\n${wrong.join("\n")}`);
});

test("no case is left out for nothing", () => {
  for (const name of Object.keys(NOT_PUT)) assert.ok(cases.some((each) => each.case === name), name);
  for (const name of NOT_ANSWERED) assert.ok(cases.some((each) => each.function === name), name);
});
