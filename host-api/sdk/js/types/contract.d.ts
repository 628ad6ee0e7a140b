// Generated from host-api/wit by `cargo run -p periapt-bindings`. DO NOT EDIT!

declare module "periapt:charm/types@0.1.0" {
  /** A relation's number in its model; never reused. */
  export type RelationId = number;
  /** The reason that the host refuses a call. The text is that of Juju's hook tools. */
  export type Error = { tag: "invalid-argument"; val: string } | { tag: "not-found"; val: string } | { tag: "permission-denied"; val: string } | { tag: "not-leader"; val: string } | { tag: "conflict"; val: string } | { tag: "already-exists"; val: string } | { tag: "limit-exceeded"; val: string } | { tag: "not-granted"; val: string } | { tag: "not-ready"; val: string } | { tag: "try-again"; val: string } | { tag: "wrong-context"; val: string } | { tag: "not-supported"; val: string } | { tag: "failed"; val: string } | { tag: "other"; val: [string, string] };
  /** A relation event without a remote unit. */
  export type RelationEvent = { endpoint: string; relation: RelationId; remoteApplication: string };
  /** A remote unit came into view. */
  export type RelationJoinedEvent = { endpoint: string; relation: RelationId; remoteApplication: string; remoteUnit: string };
  /** A bag changed: that of a remote unit, or the remote application's if there is no unit. */
  export type RelationChangedEvent = { endpoint: string; relation: RelationId; remoteApplication: string; remoteUnit: string | null };
  /** A remote unit went out of view. `departing-unit` is the unit that leaves: the remote unit, or this unit itself. */
  export type RelationDepartedEvent = { endpoint: string; relation: RelationId; remoteApplication: string; remoteUnit: string; departingUnit: string };
  /** All changes in a relation since the last hook, for charms that ask for batches. */
  export type RelationBatchEvent = { endpoint: string; relation: RelationId; remoteApplication: string; applicationChanged: boolean; joined: Array<string>; changed: Array<string>; departed: Array<string> };
  export type StorageKind = "block" | "filesystem";
  export type StorageEvent = { id: string; name: string; kind: StorageKind; location: string };
  export type SecretEvent = { uri: string; label: string | null };
  export type SecretRevisionEvent = { uri: string; label: string | null; revision: number };
  export type WorkloadEvent = { workload: string };
  export type WorkloadNoticeEvent = { workload: string; noticeId: string; noticeType: string; noticeKey: string };
  export type WorkloadCheckEvent = { workload: string; check: string };
  export type ActionEvent = { name: string; id: string };
  export type SeriesUpgradeEvent = { targetBase: string };
  export type MeterStatusEvent = { code: string; info: string };
  export type CustomEvent = { name: string; json: string };
  /** An event of the unit. */
  export type Event = { tag: "install" } | { tag: "start" } | { tag: "stop" } | { tag: "remove" } | { tag: "config-changed" } | { tag: "upgrade-charm" } | { tag: "update-status" } | { tag: "leader-elected" } | { tag: "leader-settings-changed" } | { tag: "relation-created"; val: RelationEvent } | { tag: "relation-joined"; val: RelationJoinedEvent } | { tag: "relation-changed"; val: RelationChangedEvent } | { tag: "relation-departed"; val: RelationDepartedEvent } | { tag: "relation-broken"; val: RelationEvent } | { tag: "relation-batch"; val: RelationBatchEvent } | { tag: "storage-attached"; val: StorageEvent } | { tag: "storage-detaching"; val: StorageEvent } | { tag: "secret-changed"; val: SecretEvent } | { tag: "secret-rotate"; val: SecretEvent } | { tag: "secret-expired"; val: SecretRevisionEvent } | { tag: "secret-remove"; val: SecretRevisionEvent } | { tag: "pebble-ready"; val: WorkloadEvent } | { tag: "pebble-custom-notice"; val: WorkloadNoticeEvent } | { tag: "pebble-check-failed"; val: WorkloadCheckEvent } | { tag: "pebble-check-recovered"; val: WorkloadCheckEvent } | { tag: "action"; val: ActionEvent } | { tag: "pre-series-upgrade"; val: SeriesUpgradeEvent } | { tag: "post-series-upgrade"; val: SeriesUpgradeEvent } | { tag: "collect-metrics" } | { tag: "meter-status-changed"; val: MeterStatusEvent } | { tag: "custom"; val: CustomEvent };
  /** One call of the handler. */
  export type Invocation = { event: Event; attempt: number };
  export type Outcome = "handled" | "unhandled";
  /** A failed hook: it has no effects, and the unit goes into error. */
  export type Failure = { code: number; message: string };
}

declare module "periapt:charm/actions@0.1.0" {
  /** Returns all parameters, with defaults filled in: JSON text of an object. */
  export function params(): string;
  /** Returns one parameter, or a part of it, by its path through objects (`a.b.c`), as JSON text; none if it is absent. */
  export function param(path: string): string | null;
  /** Sets results, all or none. A key is a path (`a.b.c`), and a later value replaces an earlier one. */
  export function setResults(results: Array<[string, string]>): void;
  /** Sends a progress message at once to the operator who waits for the action. */
  export function log(message: string): void;
  /** Marks the action as failed. The handler goes on, and its effects happen if it returns ok. The last message counts. */
  export function fail(message: string | null): void;
}

declare module "periapt:charm/config@0.1.0" {
  export type Value = { tag: "text"; val: string } | { tag: "integer"; val: number } | { tag: "number"; val: number } | { tag: "boolean"; val: boolean } | { tag: "secret"; val: string };
  /** Returns an option's value; none if it is unset and has no default, or is unknown. */
  export function get(key: string): Value | null;
  /** Returns all options that have a value. */
  export function getAll(): Array<[string, Value]>;
}

declare module "periapt:charm/relations@0.1.0" {
  /** The owner of a bag to read. */
  export type Bag = { tag: "unit"; val: string } | { tag: "application"; val: string };
  /** A bag that this unit writes. */
  export type OwnBag = "unit" | "application";
  /** Returns the relations of an endpoint; none for an unknown endpoint. */
  export function ids(endpoint: string): Array<import("periapt:charm/types@0.1.0").RelationId>;
  /** Returns the endpoint of this unit's side. */
  export function endpoint(relation: import("periapt:charm/types@0.1.0").RelationId): string;
  /** Returns the application at the other end (in a peer relation, the unit's own). */
  export function remoteApplication(relation: import("periapt:charm/types@0.1.0").RelationId): string;
  /** Returns the remote units in view, sorted. */
  export function members(relation: import("periapt:charm/types@0.1.0").RelationId): Array<string>;
  /** Returns a whole bag, sorted by key. */
  export function get(relation: import("periapt:charm/types@0.1.0").RelationId, bag: Bag): Array<[string, string]>;
  /** Returns one key of a bag. */
  export function getValue(relation: import("periapt:charm/types@0.1.0").RelationId, bag: Bag, key: string): string | null;
  /** Writes to an own bag, all keys or none; an empty value deletes its key. */
  export function set(relation: import("periapt:charm/types@0.1.0").RelationId, bag: OwnBag, changes: Array<[string, string]>): void;
}

declare module "periapt:charm/events@0.1.0" {
  export type RelationKey = { relation: import("periapt:charm/types@0.1.0").RelationId; bag: import("periapt:charm/relations@0.1.0").Bag; key: string };
  /** A value whose change makes an event due. */
  export type Condition = { tag: "config"; val: string } | { tag: "relation"; val: RelationKey } | { tag: "leader" };
  export type Later = { name: string; json: string | null; after: number | null; conditions: Array<Condition> };
  export type PendingEvent = { id: number; name: string; json: string; after: number | null; conditions: Array<Condition> };
  /** Schedules an event, which is due after its delay or when one of its conditions holds, whichever is first. Returns its number. A unit may have 64 pending events. */
  export function emitLater(later: Later): number;
  /** Cancels an event. */
  export function cancel(id: number): void;
  /** Returns the pending events of this unit, by number, with this hook's changes and without the event that is being handled. */
  export function pending(): Array<PendingEvent>;
}

declare module "periapt:charm/ports@0.1.0" {
  export type PortRange = { first: number; last: number };
  export type Ports = { tag: "tcp"; val: PortRange } | { tag: "udp"; val: PortRange } | { tag: "icmp" };
  export type OpenedPorts = { ports: Ports; endpoints: Array<string> };
  /** Opens ports for some endpoints, or for all if none is named. */
  export function open(ports: Ports, endpoints: Array<string>): void;
  export function close(ports: Ports, endpoints: Array<string>): void;
  /** Returns the open ports, this hook's requests included. */
  export function opened(): Array<OpenedPorts>;
}

declare module "periapt:charm/status@0.1.0" {
  /** A workload status that a charm can set. */
  export type WorkloadStatus = "maintenance" | "blocked" | "waiting" | "active";
  /** A status that a charm can read. */
  export type Status = "maintenance" | "blocked" | "waiting" | "active" | "unknown" | "terminated" | "error";
  export type StatusInfo = { status: Status; message: string; data: string };
  export type ApplicationStatus = { application: StatusInfo; units: Array<[string, StatusInfo]> };
  /** Sets the workload's status, at once. The status stays if the hook fails. */
  export function set(status: WorkloadStatus, message: string): void;
  export function get(): StatusInfo;
  /** Sets the application's status; leader only. */
  export function setApplication(status: WorkloadStatus, message: string): void;
  /** Returns the statuses of the application and its units; leader only. */
  export function getApplication(): ApplicationStatus;
  /** Sets the version of the workload, for operators. */
  export function setApplicationVersion(version: string): void;
}

declare module "periapt:charm/leadership@0.1.0" {
  /** Returns true if this unit leads. True is guaranteed for 30 seconds from the answer. */
  export function isLeader(): boolean;
  /** Returns the leader settings (legacy: an application's bag in a peer relation does the same). */
  export function getSettings(): Array<[string, string]>;
  /** Writes to the leader settings; leader only. An empty value deletes its key. */
  export function setSettings(changes: Array<[string, string]>): void;
}

declare module "periapt:charm/state@0.1.0" {
  /** Returns the value of a key, this hook's writes included. */
  export function get(key: string): string | null;
  /** Returns all keys and values, sorted by key. */
  export function getAll(): Array<[string, string]>;
  /** Stores values, all or none; an empty value counts as a value. State beyond the bounds of a unit (a key of more than 256 bytes, a value of more than 65,536, 2 MiB or 4,096 keys in all) fails the hook at its commit. */
  export function set(changes: Array<[string, string]>): void;
  /** Deletes a key, if it exists. */
  function delete_(key: string): void;
  export { delete_ as delete };
}

declare module "periapt:charm/goal-state@0.1.0" {
  export type GoalStatus = { status: string; since: string };
  export type GoalRelation = { endpoint: string; applications: Array<[string, GoalStatus]>; units: Array<[string, GoalStatus]> };
  export type GoalState = { units: Array<[string, GoalStatus]>; relations: Array<GoalRelation> };
  export function get(): GoalState;
}

declare module "periapt:charm/storage@0.1.0" {
  export type StorageInfo = { kind: import("periapt:charm/types@0.1.0").StorageKind; location: string };
  /** Returns the ids of the unit's instances, of one storage or of all, including those being attached or detached. */
  export function list(name: string | null): Array<string>;
  /** Returns one instance, by its id. */
  export function get(id: string): StorageInfo;
  /** Adds instances of a storage; each comes with a hook of its own. */
  export function add(name: string, count: number): void;
}

declare module "periapt:charm/network@0.1.0" {
  export type InterfaceAddress = { address: string; cidr: string };
  export type NetworkInterface = { name: string; mac: string; addresses: Array<InterfaceAddress> };
  export type NetworkInfo = { bindAddresses: Array<NetworkInterface>; ingressAddresses: Array<string>; egressSubnets: Array<string> };
  /** Returns the network info of an endpoint or an extra binding. A given relation must be of that endpoint. */
  export function get(binding: string, relation: import("periapt:charm/types@0.1.0").RelationId | null): NetworkInfo;
}

declare module "periapt:charm/identity@0.1.0" {
  /** Returns `APPLICATION/NUMBER`. */
  export function unitName(): string;
  export function applicationName(): string;
  /** Returns the principal of a subordinate. */
  export function principalUnit(): string | null;
  export function modelName(): string;
  export function modelUuid(): string;
  export function machineId(): string;
  export function availabilityZone(): string;
  /** Returns Periapt's version. */
  export function version(): string;
  export function privateAddress(): string;
  export function publicAddress(): string;
}

declare module "periapt:charm/log@0.1.0" {
  export type Level = "trace" | "debug" | "info" | "warning" | "error";
  /** Writes one line to the unit's log; sent at once. */
  export function write(level: Level, message: string): void;
}

declare module "periapt:charm/hook-tools@0.1.0" {
  export type Output = { exitCode: number; stdout: Uint8Array; stderr: Uint8Array };
  /** Runs one tool, such as `run("relation-get", ["--format=json", "-", "mysql/0"], none)`. */
  export function run(name: string, args: Array<string>, stdin: Uint8Array | null): Output;
}

declare module "periapt:charm/secrets@0.1.0" {
  export type Owner = "application" | "unit";
  export type RotatePolicy = "never" | "hourly" | "daily" | "weekly" | "monthly" | "quarterly" | "yearly";
  /** The metadata of a secret. A field that is none stays unchanged, or has its default in a new secret. */
  export type Metadata = { label: string | null; description: string | null; rotate: RotatePolicy | null; expire: string | null };
  /** The revision to read. */
  export type RevisionMode = "tracked" | "peek" | "refresh";
  export type Access = { reader: string; relation: import("periapt:charm/types@0.1.0").RelationId };
  /** The details of a secret, for its owner only. */
  export type Details = { uri: string; revision: number; label: string | null; owner: Owner; description: string; rotation: RotatePolicy; rotates: string | null; expiry: string | null; access: Array<Access> };
  /** Adds a secret, and returns its URI. */
  export function add(owner: Owner, content: Array<[string, Uint8Array]>, metadata: Metadata): string;
  /** Updates a secret; content that differs makes a new revision. */
  export function set(uri: string, content: Array<[string, Uint8Array]> | null, metadata: Metadata): void;
  /** Returns content by URI or by label; with both, the label becomes this unit's own for the secret. */
  export function get(uri: string | null, label: string | null, mode: RevisionMode): Array<[string, Uint8Array]>;
  /** Returns the details of a secret, by URI or by label. */
  export function info(uri: string | null, label: string | null): Details;
  /** Returns the URIs of the secrets that this unit manages. */
  export function ids(): Array<string>;
  /** Grants read access to the application at the other end of a relation, or to one unit of it, for the relation's life. */
  export function grant(uri: string, relation: import("periapt:charm/types@0.1.0").RelationId, unit: string | null): void;
  /** Revokes the grant of an application (`mysql`) or of a unit (`mysql/0`). */
  export function revoke(uri: string, reader: string): void;
  /** Removes a secret, or one revision of it. */
  export function remove(uri: string, revision: number | null): void;
}

declare module "periapt:charm/resources@0.1.0" {
  export type ResourceFile = { path: string; revision: number; size: number; sha256: string };
  /** Returns the file of a resource. The agent fetches it first, if necessary. A hook sees one revision throughout. */
  export function get(name: string): ResourceFile;
}

declare module "periapt:charm/pebble@0.1.0" {
  export type Request = { method: string; target: string; headers: Array<[string, string]>; body: Uint8Array };
  export type Response = { status: number; headers: Array<[string, string]>; body: Uint8Array };
  /** Checks that the Pebble of a container listens. Not-ready means that it does not. */
  export function connect(container: string): void;
  /** Sends a request and returns its response, with any status. */
  export function exchange(container: string, request: Request): Response;
}

declare module "periapt:charm/workloads@0.1.0" {
  /** An open stream: a number of this hook. A hook may have 16 of them, and they end with it. */
  export type Connection = number;
  /** The other end of a stream. */
  export type Target = { tag: "pebble"; val: string } | { tag: "port"; val: number };
  export type Received = { tag: "bytes"; val: Uint8Array } | { tag: "end" } | { tag: "nothing" };
  /** Opens a stream. Not-ready means that nobody listens, now or ever: charms treat it as a workload that has not started yet. */
  export function connect(target: Target): Connection;
  /** Waits for bytes, at most so many, for a time in milliseconds; without a time it waits as long as it takes. */
  export function read(connection: Connection, most: number, timeout: number | null): Received;
  /** Sends as many of the bytes as the other end takes, and returns their number. It waits like `read` until it takes one; 0 means that it took none within the time. */
  export function write(connection: Connection, bytes: Uint8Array, timeout: number | null): number;
  /** Ends the writing: the other end reads to the end. Reading goes on. */
  export function shutdown(connection: Connection): void;
  /** Ends a stream. An unknown number is ignored. */
  export function close(connection: Connection): void;
}
