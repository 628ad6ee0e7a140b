// What a charm's author can rely on, shown by one charm of a few lines.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Refused,
  active,
  blocked,
  listFiles,
  log,
  makeDirectory,
  on,
  readFile,
  readText,
  removeFile,
  tool,
  writeFile,
} from "@periapt/charm";
import { Harness, HookFailed } from "@periapt/charm/testing";

/** What the charm does at `update-status`; each test says. */
let act = () => {};

on("update-status", (unit) => act(unit));
on("install", (unit) => unit.setVersion("1.0"));
on("db-relation-changed", (unit, { relation, unit: remote, bag }) => {
  relation.unitBag.set("seen", `${remote ?? "app"} ${bag.require("port")}`);
});
on("relation-changed", (unit, { relation }) => relation.unitBag.set("seen", "any"));
on("relation-departed", (unit, { departing }) => log.info(departing, "goes"));
on("greet-action", (unit, action) => {
  const { whom, times } = action.params;
  action.log(`greeting ${whom}`);
  action.setResults({ greeting: { text: `hello ${whom}`, times } });
});
on("secret-changed", (unit, { secret }) => log.info(secret.refresh().password));

const told = (unit, what) => {
  act = what;
  return unit.run("update-status");
};

test("events without a handler are reported as unhandled", () => {
  const unit = new Harness("app/0");
  assert.equal(unit.run("install"), "handled");
  assert.equal(unit.version, "1.0");
  assert.equal(unit.run("start"), "unhandled");
});

test("an event has one handler", () => {
  assert.throws(() => on("install", () => {}), /install is handled already/);
});

test("the handler of an endpoint comes before that of all", () => {
  const unit = new Harness("app/0");
  const db = unit.relate("db", "mysql");
  const web = unit.relate("web", "proxy");
  unit.run("relation-joined", { endpoint: "db", relation: 0, remoteApplication: "mysql", remoteUnit: "mysql/0" });
  assert.throws(() => unit.join(db, "mysql/0"), /bag of mysql\/0 in db:0 has no port/);
  unit.change(db, "mysql/0", { port: "3306" });
  assert.equal(unit.unitBag(db).seen, "mysql/0 3306");
  unit.changeApp(db, { port: "1" });
  assert.equal(unit.unitBag(db).seen, "app 1");
  unit.changeApp(web, {});
  assert.equal(unit.unitBag(web).seen, "any");
  unit.depart(db, "mysql/0");
  assert.deepEqual(unit.log.at(-1), { level: "info", message: "mysql/0 goes" });
});

test("what a hook that throws asked for did not happen, but its status and its log stay", () => {
  const unit = new Harness("app/0");
  const db = unit.relate("db", "mysql");
  const hook = () =>
    told(unit, (it) => {
      it.status = active("here");
      it.openPorts(80);
      it.state.set("a", "1");
      it.relation("db").unitBag.set("key", "value");
      throw new TypeError("out of luck");
    });
  assert.throws(hook, (error) => error instanceof HookFailed && error.message === "out of luck" && error.code === 1);
  assert.deepEqual([unit.status, unit.ports, unit.stored, unit.unitBag(db)], ["active: here", [], {}, {}]);
  assert.equal(unit.log[0].message, "TypeError: out of luck");
  assert.match(unit.log[2].message, /^ {4}at .*charm\.test\.js/);
});

test("a status that is thrown ends the hook well and keeps its effects", () => {
  const unit = new Harness("app/0");
  const outcome = told(unit, (it) => {
    it.openPorts("53/udp");
    throw blocked("needs a hand");
  });
  assert.deepEqual([outcome, unit.status, unit.ports], ["handled", "blocked: needs a hand", ["53/udp"]]);
});

test("an asynchronous handler is refused, since nothing would wait for it", () => {
  assert.throws(() => told(new Harness("app/0"), async () => {}), /the handler of update-status is asynchronous/);
});

test("a refusal says what was tried, why not, and by which code", () => {
  const unit = new Harness("app/0");
  unit.relate("db", "mysql");
  told(unit, (it) => {
    const bag = it.relation("db").appBag;
    assert.throws(() => bag.set("a", "b"), (error) => error instanceof Refused && error.code === "not-leader");
    assert.throws(() => bag.set("a", "b"), { message: "bag of app in db:0: cannot write relation settings" });
    assert.throws(() => bag.all(), { message: "bag of app in db:0: permission denied" });
    assert.throws(() => it.relation("db").bagOf("mysql/7").all(), { code: "not-found" });
    assert.throws(() => it.openPorts("90000"), /90000 is no port: expected numbers up to 65535/);
    assert.throws(() => it.openPorts("http"), /http is no port/);
  });
  unit.leader = true;
  told(unit, (it) => it.relation("db").appBag.update({ a: 1, b: undefined }));
  assert.deepEqual(unit.appBag({ id: 0 }), { a: "1" });
});

test("ports converge on what is wanted", () => {
  const unit = new Harness("app/0");
  told(unit, (it) => it.setPorts([80, "8000-8999/tcp", "53/udp", "icmp"]));
  assert.deepEqual(unit.ports, ["80/tcp", "8000-8999/tcp", "53/udp", "icmp"]);
  told(unit, (it) => it.setPorts(["80/tcp"]));
  assert.deepEqual(unit.ports, ["80/tcp"]);
});

test("an action reads its parameters, tells, and sets results by their paths", () => {
  const unit = new Harness("app/0");
  const { results, log } = unit.action("greet", { whom: "you", times: 2 });
  assert.deepEqual(results, { "greeting.text": "hello you", "greeting.times": "2" });
  assert.deepEqual(log, ["greeting you"]);
  assert.throws(() => unit.action("explode"), /action explode has no handler/);
});

test("secrets are made, granted, read and refreshed", () => {
  const unit = new Harness("app/0");
  const db = unit.relate("db", "mysql");
  let uri;
  told(unit, (it) => {
    const secret = it.addSecret({ password: "sésame" }, { owner: "unit", label: "own" });
    secret.grant(db);
    uri = secret.uri;
  });
  assert.deepEqual(unit.secret(uri), { content: { password: "sésame" }, revision: 1, readers: ["mysql"] });
  told(unit, (it) => it.secret({ label: "own" }).set({ password: "other" }));
  assert.equal(unit.secret(uri).revision, 2);

  const theirs = unit.grantSecret({ password: "one" });
  told(unit, (it) => assert.equal(it.secret(theirs).content().password, "one"));
  unit.reviseSecret(theirs, { password: "two" });
  told(unit, (it) => assert.equal(it.secret(theirs).content().password, "one"));
  unit.run("secret-changed", { uri: theirs, label: null });
  assert.equal(unit.log.at(-1).message, "two");
});

test("options, state, later events and hook tools are as the unit has them", () => {
  const unit = new Harness("app/0").config({ port: 80, title: "x", debug: false });
  unit.tools((name, args) => ({ stdout: `${name} ${args}` }));
  told(unit, (it) => {
    assert.deepEqual(it.config, { debug: false, port: 80, title: "x" });
    it.state.update({ a: "1", b: "" });
    assert.deepEqual([it.state.get("b"), it.state.get("c")], ["", undefined]);
    it.emitLater("look", { after: 60_000, data: { n: 1 }, when: ["leader", { config: "port" }] });
    assert.deepEqual(tool("config-get", ["port"]), { code: 0, stdout: "config-get port", stderr: "" });
  });
  assert.deepEqual(unit.stored, { a: "1", b: "" });
  assert.equal(unit.pending[0].json, '{"n":1}');
});

test("files of resources, storage and /tmp are read and written", () => {
  const page = { path: "/resources/page/page.txt", revision: 1, size: 6, sha256: "00" };
  const unit = new Harness("app/0").resource("page", page).addFile(page.path, "h\u00e4llo").storage("data/0");
  told(unit, (it) => {
    const { path } = it.resource("page");
    assert.equal(readText(path), "h\u00e4llo");
    assert.equal(readFile(path).length, 6);
    assert.throws(() => readFile("/srv/data/seen"), /^Error: cannot read \/srv\/data\/seen: no-entry$/);
    makeDirectory("/srv/data");
    assert.deepEqual(listFiles("/srv/data"), []);
    assert.equal(it.storageLocation("data/0"), "/srv/data");
    assert.throws(() => it.storageLocation("data/7"), Refused);
    writeFile("/srv/data/seen", "once");
    writeFile("/tmp/scratch", new Uint8Array([1, 2]));
    assert.deepEqual([listFiles("/srv/data"), listFiles("/tmp")], [["seen"], ["scratch"]]);
    assert.throws(() => readFile("/srv/data"), /is-directory/);
  });
  assert.equal(unit.file("/srv/data/seen"), "once");
  told(unit, () => {
    assert.throws(() => listFiles("/tmp"), /cannot list \/tmp: no-entry/);
    removeFile("/srv/data/seen");
    assert.throws(() => removeFile("/srv/data/seen"), /cannot remove/);
  });
  assert.equal(unit.file("/srv/data/seen"), undefined);
});
