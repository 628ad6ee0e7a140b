// The client of Pebble, beside a Pebble in memory and beside one that answers nonsense.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PebbleError, Refused, on } from "@periapt/charm";
import { Harness } from "@periapt/charm/testing";

import { Incoming } from "../src/incoming.js";
import { exchange } from "../src/http.js";
import { readFrame } from "../src/websocket.js";

let act = () => {};
on("collect-metrics", (unit) => act(unit.container("web"), unit));

/** Does something in a hook. */
const told = (unit, what) => {
  act = what;
  assert.equal(unit.run("collect-metrics"), "handled");
};

function started() {
  const unit = new Harness("app/0");
  return [unit, unit.container("web")];
}

test("a container that has not started cannot be reached", () => {
  const unit = new Harness("app/0");
  told(unit, (web) => {
    assert.equal(web.canConnect, false);
    assert.throws(() => web.replan(), (error) => error instanceof Refused && error.code === "not-ready");
  });
  unit.container("web");
  told(unit, (web) => assert.ok(web.canConnect));
});

test("files are written, read, listed and removed", () => {
  const [unit, inside] = started();
  inside.write("/etc/os", "Debian");
  told(unit, (web) => {
    assert.equal(web.pullText("/etc/os"), "Debian");
    const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    web.push("/srv/a b&c", all);
    assert.deepEqual(web.pull("/srv/a b&c"), all);
    web.push("/srv/x/y", "", { permissions: 0o600, user: "www" });
    assert.equal(web.pullText("/srv/x/y"), "");
    web.makeDirectory("/srv/empty");
    assert.deepEqual(
      web.listFiles("/srv").map(({ name, size, isDirectory }) => [name, size, isDirectory]),
      [["a b&c", 256, false], ["empty", 0, true], ["x", 0, true]],
    );
    assert.ok(web.exists("/srv/x") && !web.exists("/srv/z"));
    web.removePath("/srv/x");
    assert.ok(!web.exists("/srv/x/y"));
    assert.throws(() => web.pull("/none"), (error) => error instanceof PebbleError && error.kind === "not-found");
    for (const path of ["etc/x", '/a"b', "/a\r\nb", "/a\\b"]) assert.throws(() => web.push(path, "x"), /no absolute path/);
  });
});

test("services are planned and told of", () => {
  const [unit, inside] = started();
  Object.assign(inside, { services: { web: "active", job: "backoff" }, checks: { page: "down" }, plan: "services: {}\n" });
  told(unit, (web) => {
    web.addLayer("charm", { services: { web: { override: "merge" } } });
    web.replan();
    web.restart("web", "job");
    web.sendSignal("SIGHUP", "web");
    assert.equal(web.plan, "services: {}\n");
    assert.ok(web.service("web").isRunning && !web.service("job").isRunning && web.service("none") === undefined);
    assert.deepEqual(web.checks.map(({ name, isUp, threshold }) => [name, isUp, threshold]), [["page", false, 3]]);
    assert.deepEqual([web.stopChecks("page"), web.stopChecks("page")], [["page"], []]);
    assert.equal(web.checks[0].status, "inactive");
    assert.deepEqual(web.startChecks("page"), ["page"]);
    const refused = (call, reason) =>
      assert.throws(call, (error) => error instanceof PebbleError && error.kind === "api" && error.reason === reason);
    refused(() => web.startChecks("page", "none"), 'cannot find check "none"');
    refused(() => web.stopChecks(), "no checks to stop");
    const notice = web.notice(web.notify("example.com/done", { size: "5" }));
    assert.deepEqual(notice, { id: "1", type: "custom", key: "example.com/done", occurrences: 1, data: { size: "5" } });
    assert.deepEqual(web.notices, [notice]);
  });
  assert.equal(inside.layer("charm"), '{"services":{"web":{"override":"merge"}}}');
  const checks = ["stop-checks page", "stop-checks page", "start-checks page"];
  assert.deepEqual(inside.actions, ["replan", "restart web job", "SIGHUP web", ...checks]);
  assert.deepEqual(inside.checks, { page: "up" });
});

test("a command has input, outputs and an exit code", () => {
  const [unit, inside] = started();
  inside.runs((command, stdin) => ({ code: command[0] === "false" ? 1 : 0, stdout: stdin, stderr: command.join(" ") }));
  told(unit, (web) => {
    const input = new Uint8Array(100_000).fill(7);
    const { code, stdout, stderr } = web.exec(["cat", "-"], { stdin: input, timeout: 5000, environment: { A: "b" } });
    assert.deepEqual([code, stdout, new TextDecoder().decode(stderr)], [0, input, "cat -"]);
    assert.throws(() => web.exec(["false"]).success(), /the command exited with code 1: false/);
    // All streams are closed again.
    for (let times = 0; times < 20; times += 1) web.exec(["true"]);
  });
});

test("an error of Pebble has its kind and one message", () => {
  const [unit, inside] = started();
  inside.answers(({ path }) => {
    if (path === "/v1/layers") return { status: 400, body: '{"type":"error","result":{"message":"cannot parse layer"}}' };
    if (path.includes("/wait")) return { body: '{"result":{"status":"Error","err":"exited quickly","tasks":[{"log":["x"]}]}}' };
    return undefined;
  });
  told(unit, (web) => {
    const failed = (call, kind, message) =>
      assert.throws(call, (error) => error instanceof PebbleError && error.kind === kind && error.message === message);
    failed(() => web.addLayer("x", "y"), "api", 'container "web": cannot parse layer (status 400)');
    failed(() => web.replan(), "change-failed", 'container "web": exited quickly\nx');
  });
});

test("a peer that is no Pebble is one error within bounds", () => {
  const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const [unit, inside] = started();
  for (const [sends, expected] of [
    ["", "the response was cut off"],
    ["HTTP/1.1 200 OK\r\nX: y\r\n", "the response was cut off"],
    ["x".repeat(100_000), "the head of the response has more than 65536 bytes"],
    [`${chunked}ffffffff\r\n`, "the body of the response has more than 8388608 bytes"],
    [`${chunked}${"f".repeat(20)}\r\n`, "a chunk of the response has no valid length"],
    [`${chunked}-5\r\nhello\r\n`, "a chunk of the response has no valid length"],
    [`${chunked}1\r\nab\r\n`, "a chunk of the response has no valid length"],
    [`${chunked}${"0".repeat(2000)}`, "a chunk of the response has no valid length"],
    [`${chunked}5\r\nhe`, "the response was cut off"],
    ["HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "the response has no valid length"],
    ["HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "more than 8388608 bytes"],
    ["HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", 'the response is encoded as "gzip"'],
    ["SSH-2.0\r\n\r\n", "the response is no HTTP/1.1"],
    ["HTTP/1.1 200 OK\r\n\r\n[1]", "its answer with status 200 is unreadable"],
    [`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(9 << 20)}`, "more than 8388608 bytes"],
  ]) {
    inside.sends = sends;
    told(unit, (web) => {
      for (const call of [() => web.plan, () => web.pull("/x"), () => web.exec(["x"])]) {
        const isTold = (error) => error instanceof PebbleError && error.kind === "broken" && error.message.includes(expected);
        assert.throws(call, isTold, expected);
      }
      assert.equal(web.canConnect, false);
    });
  }
});

/** A stream whose other end sends pieces. */
const scripted = (...pieces) => ({
  sent: "",
  write(bytes) {
    this.sent += new TextDecoder().decode(bytes);
  },
  read: () => {
    const piece = pieces.shift();
    return piece === undefined ? undefined : new TextEncoder().encode(piece);
  },
});

test("a response is read in each form of its length, however it is cut into pieces", () => {
  for (const response of [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
    "HTTP/1.0 200 OK\r\n\r\nhello",
  ]) {
    for (const pieces of [[response], [...response]]) {
      assert.equal(exchange(scripted(...pieces), { path: "/" }, 5).text, "hello");
      assert.throws(() => exchange(scripted(...pieces), { path: "/" }, 4), /more than 4 bytes/);
    }
  }
  const stream = scripted();
  assert.throws(() => exchange(stream, { path: "/ HTTP/1.1\r\nX: y" }, 1), /is no path of a request/);
  assert.equal(stream.sent, "");
});

test("a large response costs no more for each byte than a small one", () => {
  const pieces = Array.from({ length: 100 }, () => "1\r\nx\r\n".repeat(1000));
  const stream = scripted("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ...pieces, "0\r\n\r\n");
  assert.equal(exchange(stream, { path: "/" }, 1 << 20).body.length, 100_000);
  assert.throws(() => new Incoming(scripted("ab")).exactly(3), /cut off/);
});

test("frames are read whole and within bounds", () => {
  const read = (...bytes) => readFrame(Uint8Array.from(bytes));
  assert.deepEqual(read(0x82, 2, 7, 8, 9), { kind: 2, isLast: true, payload: Uint8Array.of(7, 8), length: 4 });
  assert.deepEqual(read(0x82, 126, 0, 1, 7).payload, Uint8Array.of(7));
  for (const part of [[], [0x82], [0x82, 2, 7], [0x82, 126, 0], [0x82, 127, 0, 0, 0, 0, 0, 0, 1]]) {
    assert.equal(read(...part), undefined);
  }
  for (const bad of [[0x82, 0x81, 0, 0, 0, 0, 7], [0xc2, 0], [0x83, 0], [0x8b, 0], [0x82, 127, ...Array(8).fill(255)]]) {
    assert.throws(() => read(...bad), /a frame of the websocket/);
  }
});

test("a page of a workload is fetched from its port", () => {
  const unit = new Harness("app/0").serve(8080, ({ path }) => ({ status: 404, body: `no ${path}` }));
  told(unit, (_, { workloadPage: page }) => {
    const { status, text, isSuccess } = page(8080, "/a");
    assert.deepEqual([status, text, isSuccess], [404, "no /a", false]);
  });
});
