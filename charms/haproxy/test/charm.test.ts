// Tests of the charm against an in-memory unit.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Harness, HookFailed } from "@periapt/charm/testing";
import "../src/charm.ts";

/** Returns a started unit with two backends. */
function serving() {
  const unit = started();
  const backends = unit.relate("backends", "wordpress");
  unit.join(backends, "wordpress/0", { hostname: "10.0.0.5", port: "80" });
  unit.join(backends, "wordpress/1", { hostname: "10.0.0.6", port: "8080" });
  return { unit, backends };
}

function started() {
  const unit = new Harness("haproxy/0").config({ port: 80, balance: "roundrobin" });
  for (const hook of ["install", "config-changed", "start"] as const) unit.run(hook);
  return unit;
}

test("it is blocked without a website and waits for its units to say where they are", () => {
  const unit = started();
  assert.equal(unit.status, "blocked: needs backends: integrate with a website");
  const backends = unit.relate("backends", "wordpress");
  unit.join(backends, "wordpress/0");
  assert.equal(unit.status, "waiting: for backends to name their ports");
  unit.change(backends, "wordpress/0", { hostname: "10.0.0.5", port: "80" });
  assert.equal(unit.status, "active: 1 backend on port 80");
  assert.deepEqual(unit.ports, ["80/tcp"]);
});

test("backends are rendered and go with their units", () => {
  const { unit, backends } = serving();
  const { config } = unit.action("show-config").results;
  assert.match(config, /bind \*:80\n/);
  assert.match(config, /server wordpress-1 10\.0\.0\.6:8080 check\n/);
  const before = unit.stored.config;
  unit.depart(backends, "wordpress/1");
  assert.equal(unit.status, "active: 1 backend on port 80");
  assert.notEqual(unit.stored.config, before);
  unit.end(backends);
  assert.equal(unit.status, "blocked: needs backends: integrate with a website");
});

test("another port closes the one before and is told to whom it sends visitors for", () => {
  const { unit } = serving();
  const website = unit.relate("website", "dns");
  unit.config({ port: 8080 }).run("config-changed");
  assert.deepEqual(unit.ports, ["8080/tcp"]);
  assert.deepEqual(unit.unitBag(website), { hostname: "10.0.0.1", port: "8080" });
});

test("options that make no sense block and say what would", () => {
  const { unit } = serving();
  unit.config({ balance: "random" }).run("config-changed");
  assert.equal(unit.status, 'blocked: option balance is "random", expected roundrobin, leastconn, source');
  unit.config({ balance: "source", port: 0 }).run("config-changed");
  assert.equal(unit.status, "blocked: option port is 0, expected 1 to 65535");
});

test("a drained backend stays in the configuration and gets no visitors until it is restored", () => {
  const { unit } = serving();
  const { results } = unit.action("drain", { unit: "wordpress/1" });
  assert.deepEqual(results, { drained: "wordpress/1", serving: "1" });
  assert.equal(unit.status, "active: 1 backend on port 80, 1 drained");
  assert.match(unit.action("show-config").results.config, /wordpress-1 .* check disabled\n/);
  unit.action("drain", { unit: "wordpress/0" });
  assert.equal(unit.status, "blocked: all backends are drained");
  unit.action("restore", { unit: "wordpress/1" });
  assert.equal(unit.status, "active: 1 backend on port 80, 1 drained");
  assert.throws(() => unit.action("drain", { unit: "wordpress/7" }), HookFailed);
});

test("what another charm says does not get into the configuration unless it is a host and a port", () => {
  const { unit, backends } = serving();
  const hook = { hostname: "10.0.0.5\nlisten evil", port: "80" };
  assert.throws(() => unit.change(backends, "wordpress/0", hook), /is no host/);
  assert.throws(() => unit.change(backends, "wordpress/0", { hostname: "a", port: "80 check" }), /has port "80 check"/);
  assert.equal(unit.status, "active: 2 backends on port 80", "a hook that fails changes nothing");
});
