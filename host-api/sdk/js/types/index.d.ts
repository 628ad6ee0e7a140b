/** Write Periapt charms in JavaScript and TypeScript. */

/** Events that are about nothing but the unit. */
export type PlainEventName =
  | "install"
  | "start"
  | "stop"
  | "remove"
  | "config-changed"
  | "upgrade-charm"
  | "update-status"
  | "leader-elected"
  | "leader-settings-changed"
  | "collect-metrics";

type RelationEventName = "relation-created" | "relation-broken";
type RelationUnitEventName = "relation-joined" | "relation-changed";
type StorageEventName = "storage-attached" | "storage-detaching";
type SecretEventName = "secret-changed" | "secret-rotate";
type SecretRevisionEventName = "secret-expired" | "secret-remove";
type PebbleCheckEventName = "pebble-check-failed" | "pebble-check-recovered";
type PebbleEventName = "pebble-ready" | "pebble-custom-notice" | PebbleCheckEventName;

/** A name by itself, or with whom it is about in front: `relation-changed`, `db-relation-changed`. */
type OrOf<Name extends string> = Name | `${string}-${Name}`;

/** The name of an event, as hooks are called. */
export type EventName =
  | PlainEventName
  | OrOf<RelationEventName | RelationUnitEventName | "relation-departed" | "relation-batch">
  | OrOf<StorageEventName | PebbleEventName>
  | OrOf<"action" | "custom">
  | SecretEventName
  | SecretRevisionEventName
  | "meter-status-changed"
  | "pre-series-upgrade"
  | "post-series-upgrade";

/** What a handler is told of its event. */
export type EventOf<Name extends string> = Name extends OrOf<"action">
  ? Action
  : Name extends OrOf<RelationUnitEventName>
    ? RelationUnitEvent
    : Name extends OrOf<"relation-departed">
      ? RelationDepartedEvent
      : Name extends OrOf<"relation-batch">
        ? RelationBatchEvent
        : Name extends OrOf<RelationEventName>
          ? RelationEvent
          : Name extends OrOf<StorageEventName>
            ? StorageEvent
            : Name extends SecretEventName
              ? SecretEvent
              : Name extends SecretRevisionEventName
                ? SecretRevisionEvent
                : Name extends OrOf<"custom">
                  ? CustomEvent
                  : Name extends OrOf<"pebble-ready">
                    ? WorkloadEvent
                    : Name extends OrOf<"pebble-custom-notice">
                      ? WorkloadNoticeEvent
                      : Name extends OrOf<PebbleCheckEventName>
                        ? WorkloadCheckEvent
                        : BaseEvent;

/**
 * Registers a handler for an event, or for several. The most particular name counts: `db-relation-changed` before
 * `relation-changed`, and `*` handles what no other does. An event without a handler is reported as unhandled: a hook then
 * counts as a success, an action as a failure.
 *
 * What a handler throws fails the hook, and nothing that it asked for happens; a thrown {@link Status} ends it well.
 */
export function on<Name extends EventName>(
  events: Name | readonly Name[],
  handle: (unit: Unit, event: EventOf<Name>) => void,
): void;
export function on(event: "*", handle: (unit: Unit, event: BaseEvent) => void): void;

export interface BaseEvent {
  /** The event's name, without whom it is about. */
  event: string;
}

export interface RelationEvent extends BaseEvent {
  relation: Relation;
  /** The application at the other end. */
  app: string;
}

export interface RelationUnitEvent extends RelationEvent {
  /** None: the remote application's bag changed. */
  unit?: string;
  /** The bag that changed. */
  bag: RelationBag;
}

export interface RelationDepartedEvent extends RelationEvent {
  unit: string;
  /** Who leaves: this unit, if it is the one. */
  departing: string;
}

export interface RelationBatchEvent extends RelationEvent {
  applicationChanged: boolean;
  joined: string[];
  changed: string[];
  departed: string[];
}

export interface StorageEvent extends BaseEvent {
  id: string;
  name: string;
  kind: "block" | "filesystem";
  location: string;
}

export interface WorkloadEvent extends BaseEvent {
  /** The container. */
  workload: string;
}

export interface WorkloadNoticeEvent extends WorkloadEvent {
  noticeId: string;
  noticeType: string;
  noticeKey: string;
}

export interface WorkloadCheckEvent extends WorkloadEvent {
  /** The check's name. */
  check: string;
}

export interface SecretEvent extends BaseEvent {
  secret: Secret;
  uri: string;
  label: string | null;
}

export interface SecretRevisionEvent extends SecretEvent {
  revision: number;
}

export interface CustomEvent extends BaseEvent {
  name: string;
  data: unknown;
}

/** The value of an option. */
export type OptionValue = string | number | boolean;

/** A port: `80`, `"80/tcp"`, `"8000-8999/udp"`, `"icmp"`. */
export type Port = number | string;

/** The unit that a hook runs in. */
export interface Unit {
  /** 1 for the first attempt. */
  readonly attempt: number;
  readonly name: string;
  readonly app: string;
  readonly model: string;
  readonly modelUuid: string;
  readonly machine: string;
  readonly zone: string;
  /** A subordinate's principal. */
  readonly principal: string | undefined;
  readonly privateAddress: string;
  readonly publicAddress: string;
  /** Whether it leads its application; true holds for 30 seconds from the answer. */
  readonly isLeader: boolean;
  /** The options that have a value, by name: those without a default may be missing. */
  readonly config: Record<string, OptionValue>;
  /** What the charm keeps for the unit from one hook to the next. */
  readonly state: State;
  /** What the unit last said of its workload; set, it is seen at once. */
  status: Status;

  relations(endpoint: string): Relation[];
  /** The one relation of an endpoint; undefined if there is none. Throws if there are several. */
  relation(endpoint: string): Relation | undefined;

  /** Says how the whole application is; leader only. */
  setAppStatus(status: Status): void;
  /** A container of this unit, or a WebAssembly workload, by its name. */
  container(name: string): Container;
  /** A page of a workload, by its port and path, of at most 4 MiB; `/` unless said. */
  workloadPage(port: number, path?: string): HttpResponse;
  /** A stream to a TCP port that a workload listens on. */
  workloadPort(port: number): WorkloadStream;

  /** Says which version of the workload runs. */
  setVersion(version: string): void;

  openPorts(port: Port, endpoints?: string[]): void;
  closePorts(port: Port, endpoints?: string[]): void;
  readonly openedPorts: { ports: string; endpoints: string[] }[];
  /** Closes all ports but these, and opens these. */
  setPorts(ports: Port[]): void;

  /** Makes a secret: the application's, unless said otherwise. */
  addSecret(content: Record<string, string>, options?: SecretMetadata & { owner?: "application" | "unit" }): Secret;
  /** A secret by its URI, or by a label. */
  secret(named: string | { uri?: string; label?: string }): Secret;
  /** Those that this unit looks after. */
  readonly ownSecrets: Secret[];

  /** The file of a resource; {@link readFile} reads it. */
  resource(name: string): { path: string; revision: number; size: number; sha256: string };
  /** The ids of the unit's storage, of one name or of all. */
  storage(name?: string): string[];
  /** The directory of a storage, by its id. */
  storageLocation(id: string): string;
  addStorage(name: string, count?: number): void;

  network(binding: string, relation?: Relation): NetworkInfo;
  readonly goalState: GoalState;

  /** Asks to be told `custom`, once: `after` milliseconds, or `when` one of the conditions holds. Answers its number. */
  emitLater(name: string, options: { data?: unknown; after?: number; when?: Condition[] }): number;
  cancel(id: number): void;
  readonly pending: { id: number; name: string; data: unknown; after: number | null }[];
}

/** The content of a file: of storage, of a resource, of the charm's own directory, or of /tmp. */
export function readFile(path: string): Uint8Array;
/** The same, as text. */
export function readText(path: string): string;
/**
 * Writes a file, or puts it in another's place. What is written to storage stays, also if the hook fails; /tmp lasts as long as
 * the hook.
 */
export function writeFile(path: string, content: string | Uint8Array): void;
/** The names in a directory, sorted. */
export function listFiles(path: string): string[];
export function removeFile(path: string): void;
export function makeDirectory(path: string): void;

export type Condition = "leader" | { config: string } | { bag: RelationBag; key: string };

export interface State {
  get(key: string): string | undefined;
  all(): Record<string, string>;
  set(key: string, value: string): void;
  update(values: Record<string, string>): void;
  delete(key: string): void;
}

/** A relation of this unit. */
export class Relation {
  constructor(id: number, endpoint: string);
  /** Its number in the model. */
  readonly id: number;
  /** The endpoint of this unit's side. */
  readonly endpoint: string;
  /** The application at the other end; in a peer relation, the unit's own. */
  readonly app: string;
  /** The remote units that this unit has been told of, sorted. */
  readonly units: string[];
  /** The bag of a remote unit. */
  bagOf(unit: string): RelationBag;
  /** The bag of the application at the other end. */
  readonly remoteBag: RelationBag;
  /** This unit's own bag. */
  readonly unitBag: OwnBag;
  /** The bag of this unit's application, which only its leader writes. */
  readonly appBag: OwnBag;
}

/** A bag of a relation, to read. */
export class RelationBag {
  readonly owner: string;
  readonly relation: Relation;
  get(key: string): string | undefined;
  /** The value of a key that has to be there. */
  require(key: string): string;
  all(): Record<string, string | undefined>;
}

type BagValue = string | number | boolean | null | undefined;

/** A bag that this unit writes: its own, or its application's if it leads. */
export class OwnBag extends RelationBag {
  /** Sets one key; an empty text, null and undefined delete it. */
  set(key: string, value: BagValue): void;
  /** Sets several, all or none. */
  update(values: Record<string, BagValue>): void;
  delete(key: string): void;
}

/** A workload's answer to a request. */
export interface HttpResponse {
  readonly status: number;
  readonly isSuccess: boolean;
  readonly body: Uint8Array;
  /** The body as text. */
  readonly text: string;
}

/** A stream of bytes to a workload. What is written takes effect at once, and stays if the hook fails. */
export class WorkloadStream {
  private constructor();
  /** Waits for bytes: undefined at the end; null if none came within the time in milliseconds, where one is given. */
  read(most?: number, milliseconds?: number | null): Uint8Array | undefined | null;
  /** Sends all of it. */
  write(content: string | Uint8Array): void;
  /** Sends as many bytes as the workload takes, within a time in milliseconds where one is given. */
  send(bytes: Uint8Array, milliseconds: number | null): number;
  /** Ends the writing: the workload reads to the end. Reading goes on. */
  endWriting(): void;
  close(): void;
}

/** The permissions (0o644) and the owner of a new file or directory. */
export interface FileAccess {
  permissions?: number;
  user?: string;
  group?: string;
}

export interface FileInfo {
  readonly path: string;
  readonly name: string;
  readonly type: "file" | "directory" | "symlink" | "socket" | "named-pipe" | "device" | "unknown";
  readonly size: number;
  readonly permissions: number;
  readonly user: string | null;
  readonly group: string | null;
  readonly isDirectory: boolean;
}

export interface Service {
  readonly name: string;
  readonly startup: "enabled" | "disabled";
  readonly current: "active" | "inactive" | "backoff" | "error";
  readonly isRunning: boolean;
}

export interface Check {
  readonly name: string;
  readonly level: string;
  readonly status: "up" | "down" | "inactive";
  readonly failures: number;
  readonly threshold: number;
  readonly isUp: boolean;
}

export interface Notice {
  readonly id: string;
  readonly type: string;
  readonly key: string;
  readonly occurrences: number;
  readonly data: Record<string, string>;
}

export interface ExecOptions {
  /** The command's input; empty unless said. */
  stdin?: string | Uint8Array;
  /** Milliseconds after which Pebble kills it: a {@link PebbleError} of kind `change-failed`. */
  timeout?: number;
  environment?: Record<string, string>;
  workingDirectory?: string;
  user?: string;
  group?: string;
  /** A service whose environment, directory and user the command gets. */
  serviceContext?: string;
}

/** How a command ended, and what it printed. */
export class ExecOutput {
  private constructor();
  readonly code: number;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  /** What it printed, as text, if it exited with 0; any other code is thrown. */
  success(): string;
}

/**
 * A container of this unit, by its Pebble: its services, files and commands. A WebAssembly workload is a container of its name.
 * Calls take effect at once, and stay if the hook fails. What Pebble refuses is thrown as {@link PebbleError}; a container that
 * nobody listens for, as {@link Refused} with the code `not-ready`.
 */
export class Container {
  private constructor();
  readonly name: string;
  /** A stream to its Pebble, which speaks HTTP. */
  connect(): WorkloadStream;
  /** Whether it has started and answers. */
  readonly canConnect: boolean;
  /** The id of its start: another after each restart. */
  readonly bootId: string;

  /** Adds a layer, in YAML or as an object, or combines it with the layer of the same label. `replan` applies it. */
  addLayer(label: string, layer: string | object): void;
  /** What all layers give together, in YAML. */
  readonly plan: string;
  /** Starts enabled services that do not run, restarts those that the plan has otherwise, and waits for them. */
  replan(): void;
  start(...services: string[]): void;
  stop(...services: string[]): void;
  restart(...services: string[]): void;
  /** Sends a signal, such as `SIGHUP`, to services that run. */
  sendSignal(signal: string, ...services: string[]): void;
  readonly services: Service[];
  service(name: string): Service | undefined;
  readonly checks: Check[];
  /** Starts checks; answers the names of those that did not run. */
  startChecks(...checks: string[]): string[];
  /** Stops checks until `startChecks` or `replan`; answers the names of those that ran. */
  stopChecks(...checks: string[]): string[];
  readonly notices: Notice[];
  /** A notice by its id, such as that of a `pebble-custom-notice`. */
  notice(id: string): Notice;
  /** Makes a custom notice, or repeats it; answers its id. A key is as in `example.com/backup-done`. */
  notify(key: string, data?: Record<string, string>): string;

  /** Writes a file, with the directories above it. */
  push(path: string, content: string | Uint8Array, access?: FileAccess): void;
  /** The content of a file, of at most 8 MiB. */
  pull(path: string): Uint8Array;
  /** The same, as text. */
  pullText(path: string): string;
  exists(path: string): boolean;
  listFiles(path: string): FileInfo[];
  /** Makes a directory, with those above it; one that is there stays. */
  makeDirectory(path: string, access?: FileAccess): void;
  /** Removes a file, or a directory with all that is in it. A path that is not there is no error. */
  removePath(path: string): void;

  /** Runs a command without a shell, and waits for its end; takes four of the hook's streams meanwhile. */
  exec(command: string[], options?: ExecOptions): ExecOutput;
}

/** What a container's Pebble refused, or failed at. */
export class PebbleError extends Error {
  private constructor();
  readonly container: string;
  /**
   * Pebble's word, such as `not-found`, `permission-denied` or `generic-file-error`; `api` if it gives none. The SDK's own are
   * `change-failed`, `timeout`, `broken` (the answer broke off, or makes no sense), `invalid` and `exit-code`.
   */
  readonly kind: string;
  readonly reason: string;
  /** The status of the response; 0 if the error is not that of a response. */
  readonly status: number;
}

/** What a charm says of its workload. Thrown by a handler, it ends the hook early, and well. */
export class Status {
  constructor(workload: "active" | "blocked" | "waiting" | "maintenance", message?: string);
  readonly workload: string;
  readonly message: string;
}
/** The workload does what it is for. */
export function active(message?: string): Status;
/** An operator has to do something. */
export function blocked(message: string): Status;
/** Something else has to happen first. */
export function waiting(message: string): Status;
/** The charm is at work. */
export function maintenance(message?: string): Status;

export interface SecretMetadata {
  label?: string;
  description?: string;
  rotate?: "never" | "hourly" | "daily" | "weekly" | "monthly" | "quarterly" | "yearly";
  /** A duration such as `24h`, or a time in RFC 3339. */
  expire?: string;
}

/** A secret, by its URI or by the label that this unit knows it by. */
export class Secret {
  constructor(named: { uri?: string | null; label?: string | null });
  readonly uri: string | undefined;
  readonly label: string | undefined;
  /** The content that this unit tracks. */
  content(): Record<string, string>;
  /** The latest, just this time. */
  peek(): Record<string, string>;
  /** The latest, from now on. */
  refresh(): Record<string, string>;
  /** What only the owner knows of it. */
  info(): {
    uri: string;
    revision: number;
    label: string | null;
    owner: "application" | "unit";
    description: string;
    rotation: string;
    rotates: string | null;
    expiry: string | null;
    access: { reader: string; relation: number }[];
  };
  set(content: Record<string, string> | undefined, metadata?: SecretMetadata): void;
  grant(relation: Relation, unit?: string): void;
  revoke(reader: string): void;
  remove(revision?: number): void;
}

/** The action that runs. */
export interface Action {
  readonly name: string;
  readonly id: string;
  /** All parameters, with the defaults of what was not given. */
  readonly params: Record<string, unknown>;
  /** Sets results; objects in it become paths (`a.b.c`). */
  setResults(results: Record<string, unknown>): void;
  /** Tells the operators who wait for the action; sent at once. */
  log(message: string): void;
  /** Says that the action failed; what the handler asks for happens all the same if it returns. */
  fail(message?: string): void;
}

/** The host refused a call. */
export class Refused extends Error {
  /** Such as `not-leader`: the contract's name of the reason. */
  readonly code: string;
  /** In the words of Juju's hook tools. */
  readonly reason: string;
}

type Log = (...values: unknown[]) => void;
/** The unit's log: what is written is seen at once, and stays if the hook fails. */
export const log: { trace: Log; debug: Log; info: Log; warning: Log; error: Log };

/** Runs one of Juju's hook tools, such as `tool("config-get", ["--format=json", "port"])`. */
export function tool(name: string, args?: string[], stdin?: string): { code: number; stdout: string; stderr: string };

export interface NetworkInfo {
  bindAddresses: { name: string; mac: string; addresses: { address: string; cidr: string }[] }[];
  ingressAddresses: string[];
  egressSubnets: string[];
}

export interface GoalStatus {
  status: string;
  since: string;
}

export interface GoalState {
  units: [string, GoalStatus][];
  relations: { endpoint: string; applications: [string, GoalStatus][]; units: [string, GoalStatus][] }[];
}

/** The component's handler; `periapt pack` exports it. */
export const handler: { handle(invocation: { event: { tag: string; val?: unknown }; attempt: number }): string };
