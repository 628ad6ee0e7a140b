// A load balancer: `reconcile` runs at each event.

import { type Action, Status, type Unit, active, blocked, on, waiting } from "@periapt/charm";
import { type Backend, backendsOf } from "./backends.ts";
import { digest, render } from "./haproxy.ts";
import { settingsOf } from "./settings.ts";

on("install", (unit) => {
  unit.setVersion("3.0");
});

const LOOKED_AT = [
  "config-changed",
  "start",
  "upgrade-charm",
  "update-status",
  "relation-created",
  "relation-changed",
  "relation-departed",
  "relation-broken",
] as const;
on(LOOKED_AT, (unit) => {
  reconcile(unit);
});

on("stop", (unit) => {
  unit.setPorts([]);
});

on("drain-action", (unit, action) => {
  const name = backendNamed(unit, action);
  unit.state.set(`drained ${name}`, "yes");
  action.setResults({ drained: name, serving: reconcile(unit).length });
});

on("restore-action", (unit, action) => {
  const name = backendNamed(unit, action);
  unit.state.delete(`drained ${name}`);
  action.setResults({ restored: name, serving: reconcile(unit).length });
});

on("show-config-action", (unit, action) => {
  const settings = settingsOf(unit);
  action.setResults({ config: render(settings, backendsOf(unit)) });
});

/** Brings ports, bags and status in line; returns the backends that serve. */
function reconcile(unit: Unit): Backend[] {
  const settings = settingsOf(unit);
  const backends = backendsOf(unit);
  const serving = backends.filter(({ drained }) => !drained);
  unit.setPorts([settings.port]);
  for (const website of unit.relations("website")) {
    website.unitBag.update({ hostname: unit.privateAddress, port: settings.port });
  }
  unit.state.set("config", digest(render(settings, backends)));
  unit.status = statusOf(unit, backends, serving, settings.port);
  return serving;
}

function statusOf(unit: Unit, backends: Backend[], serving: Backend[], port: number): Status {
  if (unit.relations("backends").length === 0) return blocked("needs backends: integrate with a website");
  if (backends.length === 0) return waiting("for backends to name their ports");
  if (serving.length === 0) return blocked("all backends are drained");
  const drained = backends.length - serving.length;
  const plural = serving.length === 1 ? "" : "s";
  return active(`${serving.length} backend${plural} on port ${port}${drained ? `, ${drained} drained` : ""}`);
}

function backendNamed(unit: Unit, action: Action): string {
  const { unit: name } = action.params as { unit: string };
  if (!backendsOf(unit).some((backend) => backend.unit === name)) throw new Error(`${name} is no backend`);
  return name;
}
