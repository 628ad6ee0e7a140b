import { exchange } from "./http.js";
import { Websocket, input, text } from "./websocket.js";
import { boundaryOf, parts, upload } from "./form.js";
import { WorkloadStream, using } from "./workload.js";
import { decode, encode } from "./utf8.js";

/** The most bytes of an answer: a plan may have some MiB, and so may a file or a command's output. */
const MAX_ANSWER = 8 << 20;

/** How often the end of a change is waited for, and for how many seconds: the host ends a request that is silent for longer. */
const TRIES = 8;
const TRY_SECONDS = 4;

/** The longest pause between two looks at a command's streams, in milliseconds. */
const MAX_PAUSE = 200;

/** The most bytes of a call that may send few of them. */
const MAX_TRIED = 65536;

/** What a container's Pebble refused, or failed at. */
export class PebbleError extends Error {
  /**
   * @param {string} container
   * @param {string} kind Pebble's word, such as `not-found`, or the SDK's: `change-failed`, `timeout`, `broken`, `invalid`
   * @param {string} reason
   * @param {number} status of the response; 0 if it is not that of a response
   */
  constructor(container, kind, reason, status = 0) {
    super(`container ${JSON.stringify(container)}: ${reason}${status === 0 ? "" : ` (status ${status})`}`);
    this.name = "PebbleError";
    this.container = container;
    this.kind = kind;
    this.reason = reason;
    this.status = status;
  }
}

/** How a command ended, and what it printed. */
export class ExecOutput {
  /** @param {string} container @param {number} code @param {Uint8Array} stdout @param {Uint8Array} stderr */
  constructor(container, code, stdout, stderr) {
    this.container = container;
    this.code = code;
    this.stdout = stdout;
    this.stderr = stderr;
  }

  /** What it printed, as text, if it exited with 0; any other code is thrown. */
  success() {
    if (this.code === 0) return decode(this.stdout);
    const reason = `the command exited with code ${this.code}: ${decode(this.stderr).trimEnd()}`;
    throw new PebbleError(this.container, "exit-code", reason);
  }
}

/**
 * A container of this unit, by its Pebble: its services, files and commands. A WebAssembly workload is a container of its name.
 * Calls take effect at once, and stay if the hook fails.
 */
export class Container {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
  }

  /** A stream to its Pebble, which speaks HTTP. */
  connect() {
    return new WorkloadStream({ tag: "pebble", val: this.name }, `container ${JSON.stringify(this.name)}`);
  }

  /** Whether it has started and answers. */
  get canConnect() {
    try {
      return this.bootId !== "";
    } catch {
      return false;
    }
  }

  /** The id of its start: another after each restart. */
  get bootId() {
    return String(this.#get("/v1/system-info").result?.["boot-id"] ?? "");
  }

  /** Adds a layer, in YAML or as an object, or combines it with the layer of the same label. `replan` applies it. */
  addLayer(label, layer) {
    const yaml = typeof layer === "string" ? layer : JSON.stringify(layer);
    this.#post("/v1/layers", { action: "add", combine: true, label, format: "yaml", layer: yaml });
  }

  /** What all layers give together, in YAML. */
  get plan() {
    return String(this.#get("/v1/plan?format=yaml").result ?? "");
  }

  /** Starts enabled services that do not run, restarts those that the plan has otherwise, and waits for them. */
  replan() {
    this.#act("replan", []);
  }
  start(...services) {
    this.#act("start", services);
  }
  stop(...services) {
    this.#act("stop", services);
  }
  restart(...services) {
    this.#act("restart", services);
  }
  /** Sends a signal, such as `SIGHUP`, to services that run. */
  sendSignal(signal, ...services) {
    this.#post("/v1/signals", { signal, services });
  }

  /** The services of the plan: `{name, startup, current, isRunning}`. */
  get services() {
    const shown = ({ name, startup, current }) => ({ name, startup, current, isRunning: current === "active" });
    return this.#list("/v1/services").map(shown);
  }
  /** One of them; undefined if the plan has none of that name. */
  service(name) {
    return this.services.find((service) => service.name === name);
  }

  /** The checks of the plan: `{name, level, status, failures, threshold, isUp}`. */
  get checks() {
    const shown = ({ name, level = "", status, failures = 0, threshold }) => {
      return { name, level, status, failures, threshold, isUp: status === "up" };
    };
    return this.#list("/v1/checks").map(shown);
  }
  /** Starts checks; answers the names of those that did not run. */
  startChecks(...checks) {
    return this.#actOnChecks("start", checks);
  }
  /** Stops checks until `startChecks` or `replan`; answers the names of those that ran. */
  stopChecks(...checks) {
    return this.#actOnChecks("stop", checks);
  }

  /** The notices, the oldest first: `{id, type, key, occurrences, data}`. */
  get notices() {
    return this.#list("/v1/notices?users=all").map(shownNotice);
  }
  /** A notice by its id, such as that of a `pebble-custom-notice`. */
  notice(id) {
    return shownNotice(this.#get(`/v1/notices/${encoded(id)}`).result ?? {});
  }
  /** Makes a custom notice, or repeats it; answers its id. */
  notify(key, data = {}) {
    return String(this.#post("/v1/notices", { action: "add", type: "custom", key, data }).result?.id ?? "");
  }

  /** Writes a file, with the directories above it. */
  push(path, content, access = /** @type {any} */ ({})) {
    if (!/^\/[^"\\\p{Cc}]*$/u.test(path)) this.#fail("invalid", `${JSON.stringify(path)} is no absolute path of a file`);
    const bytes = typeof content === "string" ? encode(content) : content;
    const order = { action: "write", files: [{ path, "make-dirs": true, ...shownAccess(access) }] };
    const form = upload(order, path, bytes);
    if (form === undefined) this.#fail("invalid", `${path} contains the text that uploads end with`);
    this.#each(this.#ask({ method: "POST", path: "/v1/files", ...form }));
  }

  /** The content of a file, of at most 8 MiB. @returns {Uint8Array} */
  pull(path) {
    const response = this.#exchange({ path: `/v1/files?action=read&path=${encoded(path)}` });
    const boundary = boundaryOf(response.kind);
    if (boundary === undefined) {
      this.#answer(response);
      this.#fail("broken", "its answer has no file");
    }
    const form = parts(response.body, boundary);
    const answer = object(form?.get("response"));
    if (answer === undefined) this.#fail("broken", `the answer with ${path} is cut off`);
    this.#each(answer);
    return form.get("files") ?? this.#fail("broken", `the answer has not ${path}`);
  }
  /** The same, as text. */
  pullText(path) {
    return decode(this.pull(path));
  }

  /** Whether there is something at a path. */
  exists(path) {
    try {
      this.#get(`/v1/files?action=list&itself=true&path=${encoded(path)}`);
      return true;
    } catch (error) {
      if (error instanceof PebbleError && error.kind === "not-found") return false;
      throw error;
    }
  }

  /** What is in a directory: `{path, name, type, size, permissions, user, group, isDirectory}`. */
  listFiles(path) {
    const shown = ({ path, name, type, size = 0, permissions = "0", user = null, group = null }) => {
      const isDirectory = type === "directory";
      return { path, name, type, size, permissions: Number.parseInt(permissions, 8), user, group, isDirectory };
    };
    return this.#list(`/v1/files?action=list&path=${encoded(path)}`).map(shown);
  }

  /** Makes a directory, with those above it; one that is there stays. */
  makeDirectory(path, access = /** @type {any} */ ({})) {
    const dirs = [{ path, "make-parents": true, ...shownAccess(access) }];
    this.#each(this.#post("/v1/files", { action: "make-dirs", dirs }));
  }

  /** Removes a file, or a directory with all that is in it. A path that is not there is no error. */
  removePath(path) {
    this.#each(this.#post("/v1/files", { action: "remove", paths: [{ path, recursive: true }] }));
  }

  /** Runs a command without a shell, and waits for its end; takes four of the hook's streams meanwhile. */
  exec(command, { stdin = "", timeout, environment, workingDirectory, user, group, serviceContext } = /** @type {any} */ ({})) {
    const begun = this.#post("/v1/exec", {
      ...{ command, environment, user, group, "working-dir": workingDirectory, "service-context": serviceContext },
      timeout: timeout === undefined ? undefined : `${Math.ceil(timeout)}ms`,
      "split-stderr": true,
    });
    const task = begun.result?.["task-id"];
    if (!isNumber(task)) this.#fail("broken", "exec began no task");
    const sockets = [];
    try {
      for (const name of ["control", "stdio", "stderr"]) {
        const stream = this.connect();
        sockets.push(stream);
        sockets[sockets.length - 1] = this.#unbroken(
          () => new Websocket(stream, `/v1/tasks/${task}/websocket/${name}`, MAX_ANSWER),
        );
      }
      const [control, stdio, stderr] = sockets;
      try {
        this.#unbroken(() => carry(stdio, stderr, typeof stdin === "string" ? encode(stdin) : stdin));
      } catch (error) {
        control.send(text('{"command":"signal","signal":{"name":"SIGKILL"}}'), MAX_PAUSE);
        throw error;
      }
      const code = this.#ended(begun, "exec").tasks?.[0]?.data?.["exit-code"];
      if (!Number.isInteger(code)) this.#fail("broken", "the command ended without an exit code");
      return new ExecOutput(this.name, code, stdio.output, stderr.output);
    } finally {
      for (const socket of sockets) socket.close();
    }
  }

  #act(action, services) {
    this.#ended(this.#post("/v1/services", { action, services }), action);
  }

  #actOnChecks(action, checks) {
    return list(this.#post("/v1/checks", { action, checks }).result?.changed).map(String);
  }

  /** Waits for the end of a change that was begun. */
  #ended({ change }, action) {
    if (!isNumber(change)) this.#fail("broken", `${action} began no change`);
    for (let attempt = 0; attempt < TRIES; attempt += 1) {
      const response = this.#exchange({ path: `/v1/changes/${change}/wait?timeout=${TRY_SECONDS}s` });
      // 504: it still goes on.
      if (response.status === 504) continue;
      const ended = this.#answer(response).result ?? {};
      if (ended.status === "Done") return ended;
      const logs = list(ended.tasks).flatMap((task) => list(task?.log));
      return this.#fail("change-failed", [ended.err ?? "the change failed", ...logs].join("\n"));
    }
    return this.#fail("timeout", `${action} still goes on after ${TRIES * TRY_SECONDS} s`);
  }

  #get(path) {
    return this.#ask({ path });
  }

  #list(path) {
    return list(this.#get(path).result).filter((entry) => typeof entry === "object" && entry !== null);
  }

  #post(path, body) {
    return this.#ask({ method: "POST", path, kind: "application/json", body: encode(JSON.stringify(body)) });
  }

  #ask(request) {
    return this.#answer(this.#exchange(request));
  }

  #exchange(request) {
    return using(this.connect(), (stream) => this.#unbroken(() => exchange(stream, request, MAX_ANSWER)));
  }

  /** Does what fails if the stream breaks, or if there is no Pebble at its other end. */
  #unbroken(work) {
    try {
      return work();
    } catch (error) {
      return this.#fail("broken", error.message);
    }
  }

  #answer({ status, isSuccess, body }) {
    const answer = object(body);
    if (answer === undefined) return this.#fail("broken", `its answer with status ${status} is unreadable`);
    return isSuccess ? answer : this.#told(answer.result, status);
  }

  /** Throws what Pebble told, of a request or of one file. */
  #told(error, status) {
    return this.#fail(error?.kind || "api", error?.message || "it gives no reason", status);
  }

  /** Each file has a result of its own. */
  #each({ result }) {
    for (const item of list(result)) if (item?.error) this.#told(item.error, 0);
  }

  /** @returns {never} */
  #fail(kind, reason, status = 0) {
    throw new PebbleError(this.name, kind, reason, status);
  }
}

/** Sends a command's input and receives both of its outputs, to their ends: a command may print before it has read all. */
function carry(stdio, stderr, stdin) {
  let rest = input(stdin);
  for (let pause = 0; !(stdio.isOver && stderr.isOver); ) {
    let isMoving = false;
    if (rest.length > 0 && !stdio.isOver) {
      const sent = sendSome(stdio, rest);
      rest = rest.subarray(sent);
      isMoving = sent > 0;
    }
    // The wait is for one of them: the other is looked at soon enough.
    for (const [socket, wait] of stdio.isOver ? [[stderr, pause]] : [[stdio, pause], [stderr, 0]]) {
      if (!socket.isOver && socket.receive(wait)) isMoving = true;
    }
    pause = isMoving ? 0 : Math.min(pause * 2 + 1, MAX_PAUSE);
  }
}

/** Sends as much as goes at once. A command that has ended reads no more; what it printed comes all the same. */
function sendSome(socket, bytes) {
  try {
    return socket.send(bytes.subarray(0, MAX_TRIED), 0);
  } catch {
    return bytes.length;
  }
}

const isNumber = (id) => typeof id === "string" && /^\d+$/.test(id);
const list = (value) => (Array.isArray(value) ? value : []);

/** The object that bytes of JSON are; undefined if they are none. */
function object(bytes) {
  try {
    const value = JSON.parse(decode(bytes ?? []));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function shownNotice({ id, type, key, occurrences = 0, "last-data": data = {} }) {
  return { id, type, key, occurrences, data };
}

function shownAccess({ permissions, user, group }) {
  return { permissions: permissions?.toString(8).padStart(3, "0"), user, group };
}

/** A text as a part of a query. */
function encoded(text) {
  const escaped = (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return Array.from(encode(String(text)), (byte) => {
    const letter = String.fromCharCode(byte);
    return /[A-Za-z0-9/._~-]/.test(letter) ? letter : escaped(byte);
  }).join("");
}
