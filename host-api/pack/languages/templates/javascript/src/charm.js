// {name}: sets its greeting as its status.
// @ts-check

import { active, blocked, on } from "@periapt/charm";

/** Returns the greeting; blocks the unit if it is empty. @param {import("@periapt/charm").Unit} unit */
function greeting(unit) {
  const { greeting } = unit.config;
  if (!greeting) throw blocked("option greeting is empty");
  return greeting;
}

on("config-changed", (unit) => {
  unit.status = active(`says ${greeting(unit)}`);
});

on("greet-action", (unit, action) => {
  const { whom } = action.params;
  action.log(`greeting ${whom}`);
  action.setResults({ greeting: `${greeting(unit)}, ${whom}!` });
});
