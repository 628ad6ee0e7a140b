// A container beside a unit in memory, with as much of a Pebble as charms see of it.
import { find, joined } from "../incoming.js";
import { decode, encode } from "../utf8.js";

const bytesOf = (content) => (typeof content === "string" ? encode(content) : content);

/**
 * A container beside a unit in memory. It keeps files and layers, writes down what is asked of services and checks, and runs none.
 */
export class TestContainer {
  #files = new Map();
  #directories = new Set();
  #layers = new Map();
  #run = () => ({ code: 127, stderr: "the container has no answer for commands" });
  #answer = () => undefined;
  #command;
  /** What was asked of services and checks, in order: `replan`, `start web`, `SIGHUP web`, `stop-checks page`. */
  actions = [];
  /** The notices that the charm made. */
  notices = [];
  /** The services that the charm sees, each with its state: `{web: "active"}`. */
  services = {};
  /** The checks that the charm sees, each with its state: `{page: "down"}`. */
  checks = {};
  /** The plan that the charm sees. */
  plan = "";
  /** What is sent in place of each response, after which the stream ends. */
  sends;
  /** What the running command printed to standard error. */
  errors;

  /** Writes a file, as an image has it. */
  write(path, content) {
    this.#files.set(path, bytesOf(content));
    return this;
  }

  /** A file as text; undefined if it is not there. */
  file(path) {
    const content = this.#files.get(path);
    return content === undefined ? undefined : decode(content);
  }

  /** The last layer that was added under a label, as the charm wrote it. */
  layer(label) {
    return this.#layers.get(label);
  }

  /** Runs commands: `(command, stdin) => ({code, stdout, stderr})`. */
  runs(run) {
    this.#run = run;
    return this;
  }

  /** Answers requests before the container's Pebble does: `({method, path, body}) => ({status, body})`, or undefined. */
  answers(answer) {
    this.#answer = answer;
    return this;
  }

  /** Answers a request. */
  respond(request) {
    const given = this.#answer({ ...request, body: decode(request.body) });
    if (given !== undefined) return { status: 200, kind: "application/json", ...given };
    const { pathname, searchParams } = new URL(request.path, "http://localhost");
    const isForm = find(request.body, "--") === 0;
    const body = request.method === "POST" && !isForm ? JSON.parse(decode(request.body)) : {};
    switch (`${request.method} ${pathname}`) {
      case "GET /v1/system-info":
        return sync({ version: "test", "boot-id": "1" });
      case "GET /v1/plan":
        return sync(this.plan);
      case "GET /v1/services":
        return sync(Object.entries(this.services).map(([name, current]) => ({ name, startup: "enabled", current })));
      case "GET /v1/checks":
        return sync(Object.entries(this.checks).map(([name, status]) => ({ name, status, threshold: 3 })));
      case "GET /v1/notices":
        return sync(this.notices);
      case "POST /v1/layers":
        this.#layers.set(body.label, body.layer);
        return sync(true);
      case "POST /v1/services":
        this.actions.push([body.action, ...body.services].join(" "));
        return begun();
      case "POST /v1/checks":
        return this.#actOnChecks(body);
      case "POST /v1/signals":
        this.actions.push([body.signal, ...body.services].join(" "));
        return sync(true);
      case "POST /v1/notices":
        return sync({ id: this.#notice(body) });
      case "POST /v1/exec":
        this.#command = { command: body.command };
        return begun({ "task-id": "1" });
      case "GET /v1/files":
        return searchParams.get("action") === "read" ? this.#read(searchParams) : this.#list(searchParams);
      case "POST /v1/files":
        return isForm ? this.#upload(request.body) : this.#actOnFiles(body);
    }
    if (/^\/v1\/changes\//.test(pathname)) {
      const { code } = this.#command ?? {};
      return sync({ status: "Done", err: null, tasks: [{ data: { "exit-code": code } }] });
    }
    const id = /^\/v1\/notices\/(.*)/.exec(pathname)?.[1];
    const notice = this.notices.find((notice) => notice.id === id);
    return notice === undefined ? refused(404, "not-found", "there is nothing") : sync(notice);
  }

  /** Runs the command whose input has come; answers what it printed. */
  run(stdin) {
    const { code = 0, stdout = "", stderr = "" } = this.#run(this.#command.command, stdin) ?? {};
    this.#command.code = code;
    this.errors = bytesOf(stderr);
    return bytesOf(stdout);
  }

  /** Starts or stops checks: those that run are `up` or `down`. */
  #actOnChecks({ action, checks }) {
    if (checks.length === 0) return refused(400, "", `no checks to ${action}`);
    const unknown = checks.find((name) => !Object.hasOwn(this.checks, name));
    if (unknown !== undefined) return refused(404, "", `cannot find check ${JSON.stringify(unknown)}`);
    const isStart = action === "start";
    const changed = [...new Set(checks)].filter((name) => (this.checks[name] === "inactive") === isStart).sort();
    for (const name of changed) this.checks[name] = isStart ? "up" : "inactive";
    this.actions.push([`${action}-checks`, ...checks].join(" "));
    return sync({ changed });
  }

  #notice({ key, data }) {
    const id = String(this.notices.length + 1);
    this.notices.push({ id, type: "custom", key, occurrences: 1, "last-data": data });
    return id;
  }

  #isDirectory(path) {
    const below = `${path.replace(/\/+$/, "")}/`;
    return [...this.#files.keys(), ...this.#directories].some((it) => it.startsWith(below)) || this.#directories.has(path);
  }

  #read(query) {
    const path = query.get("path");
    const content = this.#files.get(path);
    const error = content === undefined ? missing(path) : undefined;
    const part = (name, content) => [encode(`--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n`), content, encode("\r\n")];
    const file = content === undefined ? [] : part("files", content);
    const response = part("response", encode(JSON.stringify({ type: "sync", result: [{ path, error }] })));
    const body = joined([...file, ...response, encode("--b--\r\n")]);
    return { status: 200, kind: "multipart/form-data; boundary=b", body };
  }

  #list(query) {
    const path = query.get("path");
    const entry = (path) => {
      const [name, content] = [path.split("/").at(-1), this.#files.get(path)];
      if (content === undefined) return { path, name, type: "directory", permissions: "755" };
      return { path, name, type: "file", permissions: "644", size: content.length };
    };
    if (this.#files.has(path) || (query.get("itself") === "true" && this.#isDirectory(path))) return sync([entry(path)]);
    if (!this.#isDirectory(path)) return refused(404, "not-found", missing(path).message);
    const below = `${path.replace(/\/+$/, "")}/`;
    const inside = [...this.#files.keys(), ...this.#directories].filter((it) => it.startsWith(below));
    const names = new Set(inside.map((it) => it.slice(below.length).split("/")[0]).filter((name) => name !== ""));
    return sync([...names].sort().map((name) => entry(below + name)));
  }

  #upload(form) {
    const path = /filename="([^"]*)"/.exec(decode(form))[1];
    const start = find(form, "\r\n\r\n", find(form, "filename=")) + 4;
    const line = decode(form.subarray(0, find(form, "\r\n")));
    this.#files.set(path, form.slice(start, find(form, `\r\n${line}`, start - 4)));
    return sync([{ path }]);
  }

  #actOnFiles({ dirs = [], paths = [] }) {
    for (const { path } of dirs) this.#directories.add(path);
    for (const { path } of paths) {
      for (const all of [this.#files, this.#directories]) {
        for (const it of [...all.keys()]) if (it === path || it.startsWith(`${path}/`)) all.delete(it);
      }
    }
    return sync([]);
  }
}

const json = (status, value) => ({ status, kind: "application/json", body: encode(JSON.stringify(value)) });
const sync = (result) => json(200, { type: "sync", result });
const begun = (result = null) => json(202, { type: "async", change: "1", result });
const refused = (status, kind, message) => json(status, { type: "error", result: { kind, message } });
const missing = (path) => ({ kind: "not-found", message: `stat ${path}: no such file or directory` });
