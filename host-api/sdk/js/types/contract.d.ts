// Generated from host-api/wit by `cargo run -p periapt-bindings`. DO NOT EDIT!

declare module "periapt:charm/types@0.1.0" {
  /** A relation's number in its model; never reused. */
  export type RelationId = number;
  /** Why a call was refused. The text says what was wrong, in the words of Juju's hook tools. */
  export type Error = { tag: "invalid-argument"; val: string } | { tag: "not-found"; val: string } | { tag: "permission-denied"; val: string } | { tag: "not-leader"; val: string } | { tag: "conflict"; val: string } | { tag: "already-exists"; val: string } | { tag: "limit-exceeded"; val: string } | { tag: "not-granted"; val: string } | { tag: "not-ready"; val: string } | { tag: "try-again"; val: string } | { tag: "wrong-context"; val: string } | { tag: "not-supported"; val: string } | { tag: "failed"; val: string } | { tag: "other"; val: [string, string] };
  /** A relation event that is about no unit. */
  export type RelationEvent = { endpoint: string; relation: RelationId; remoteApplication: string };
  /** A remote unit came into view. */
  export type RelationJoinedEvent = { endpoint: string; relation: RelationId; remoteApplication: string; remoteUnit: string };
  /** A bag changed: a remote unit's, or the remote application's if there is no unit. */
  export type RelationChangedEvent = { endpoint: string; relation: RelationId; remoteApplication: string; remoteUnit: string | null };
  /** A remote unit went out of view. `departing-unit` is who leaves: this unit, if it is the one. */
  export type RelationDepartedEvent = { endpoint: string; relation: RelationId; remoteApplication: string; remoteUnit: string; departingUnit: string };
  /** All that happened among a relation's members since the last hook, for charms that ask for batches. */
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
  /** What happened. */
  export type Event = { tag: "install" } | { tag: "start" } | { tag: "stop" } | { tag: "remove" } | { tag: "config-changed" } | { tag: "upgrade-charm" } | { tag: "update-status" } | { tag: "leader-elected" } | { tag: "leader-settings-changed" } | { tag: "relation-created"; val: RelationEvent } | { tag: "relation-joined"; val: RelationJoinedEvent } | { tag: "relation-changed"; val: RelationChangedEvent } | { tag: "relation-departed"; val: RelationDepartedEvent } | { tag: "relation-broken"; val: RelationEvent } | { tag: "relation-batch"; val: RelationBatchEvent } | { tag: "storage-attached"; val: StorageEvent } | { tag: "storage-detaching"; val: StorageEvent } | { tag: "secret-changed"; val: SecretEvent } | { tag: "secret-rotate"; val: SecretEvent } | { tag: "secret-expired"; val: SecretRevisionEvent } | { tag: "secret-remove"; val: SecretRevisionEvent } | { tag: "pebble-ready"; val: WorkloadEvent } | { tag: "pebble-custom-notice"; val: WorkloadNoticeEvent } | { tag: "pebble-check-failed"; val: WorkloadCheckEvent } | { tag: "pebble-check-recovered"; val: WorkloadCheckEvent } | { tag: "action"; val: ActionEvent } | { tag: "pre-series-upgrade"; val: SeriesUpgradeEvent } | { tag: "post-series-upgrade"; val: SeriesUpgradeEvent } | { tag: "collect-metrics" } | { tag: "meter-status-changed"; val: MeterStatusEvent } | { tag: "custom"; val: CustomEvent };
  /** One call of the handler. */
  export type Invocation = { event: Event; attempt: number };
  export type Outcome = "handled" | "unhandled";
  /** The hook failed: nothing that it asked for happens, and the unit goes into error. */
  export type Failure = { code: number; message: string };
}

declare module "periapt:charm/actions@0.1.0" {
  /** All parameters, with the defaults of what was not given: JSON text of an object. */
  export function params(): string;
  /** One parameter, or a part of it, by its path through objects (`a.b.c`), as JSON text; none: there is no such. */
  export function param(path: string): string | null;
  /** Sets results, all or nothing: a key is a path (`a.b.c`), and a later value stands in place of an earlier one. */
  export function setResults(results: Array<[string, string]>): void;
  /** A message for whoever waits for the action; sent at once. */
  export function log(message: string): void;
  /** Says that the action failed. The handler goes on, and what it asked for happens if it returns ok; the last message counts. */
  export function fail(message: string | null): void;
}

declare module "periapt:charm/config@0.1.0" {
  export type Value = { tag: "text"; val: string } | { tag: "integer"; val: number } | { tag: "number"; val: number } | { tag: "boolean"; val: boolean } | { tag: "secret"; val: string };
  /** One option's value; none if it is unset and has no default, or is unknown. */
  export function get(key: string): Value | null;
  /** All options that have a value. */
  export function getAll(): Array<[string, Value]>;
}

declare module "periapt:charm/relations@0.1.0" {
  /** Whose bag is read. */
  export type Bag = { tag: "unit"; val: string } | { tag: "application"; val: string };
  /** Which of its own bags this unit writes. */
  export type OwnBag = "unit" | "application";
  /** The relations of an endpoint; none for an unknown endpoint. */
  export function ids(endpoint: string): Array<import("periapt:charm/types@0.1.0").RelationId>;
  /** The endpoint of this unit's side. */
  export function endpoint(relation: import("periapt:charm/types@0.1.0").RelationId): string;
  /** The application at the other end (in a peer relation, the unit's own). */
  export function remoteApplication(relation: import("periapt:charm/types@0.1.0").RelationId): string;
  /** The remote units that this unit has been told of, sorted. */
  export function members(relation: import("periapt:charm/types@0.1.0").RelationId): Array<string>;
  /** A whole bag, sorted by key. */
  export function get(relation: import("periapt:charm/types@0.1.0").RelationId, bag: Bag): Array<[string, string]>;
  /** One key of a bag. */
  export function getValue(relation: import("periapt:charm/types@0.1.0").RelationId, bag: Bag, key: string): string | null;
  /** Writes to an own bag, all or nothing; an empty value deletes its key. */
  export function set(relation: import("periapt:charm/types@0.1.0").RelationId, bag: OwnBag, changes: Array<[string, string]>): void;
}

declare module "periapt:charm/events@0.1.0" {
  export type RelationKey = { relation: import("periapt:charm/types@0.1.0").RelationId; bag: import("periapt:charm/relations@0.1.0").Bag; key: string };
  /** What is to be other than this hook sees it. */
  export type Condition = { tag: "config"; val: string } | { tag: "relation"; val: RelationKey } | { tag: "leader" };
  export type Later = { name: string; json: string | null; after: number | null; conditions: Array<Condition> };
  export type PendingEvent = { id: number; name: string; json: string; after: number | null; conditions: Array<Condition> };
  /** Asks for an event, which is told after its time or when one of its conditions holds, whichever is first; answers its number. A unit waits for at most 64. */
  export function emitLater(later: Later): number;
  /** Takes an event back. */
  export function cancel(id: number): void;
  /** What this unit waits for, by number, with what this hook asked for and took back; without the event that is told now. */
  export function pending(): Array<PendingEvent>;
}

declare module "periapt:charm/ports@0.1.0" {
  export type PortRange = { first: number; last: number };
  export type Ports = { tag: "tcp"; val: PortRange } | { tag: "udp"; val: PortRange } | { tag: "icmp" };
  export type OpenedPorts = { ports: Ports; endpoints: Array<string> };
  /** Opens for some endpoints, or for all if none is named. */
  export function open(ports: Ports, endpoints: Array<string>): void;
  export function close(ports: Ports, endpoints: Array<string>): void;
  /** What is open, this hook's requests included. */
  export function opened(): Array<OpenedPorts>;
}

declare module "periapt:charm/status@0.1.0" {
  /** What a charm may say of its workload. */
  export type WorkloadStatus = "maintenance" | "blocked" | "waiting" | "active";
  /** What may be read. */
  export type Status = "maintenance" | "blocked" | "waiting" | "active" | "unknown" | "terminated" | "error";
  export type StatusInfo = { status: Status; message: string; data: string };
  export type ApplicationStatus = { application: StatusInfo; units: Array<[string, StatusInfo]> };
  /** Takes effect at once and stays if the hook fails. */
  export function set(status: WorkloadStatus, message: string): void;
  export function get(): StatusInfo;
  /** Leader only. */
  export function setApplication(status: WorkloadStatus, message: string): void;
  /** Leader only. */
  export function getApplication(): ApplicationStatus;
  /** The version of the workload, for operators to see. */
  export function setApplicationVersion(version: string): void;
}

declare module "periapt:charm/leadership@0.1.0" {
  /** True is guaranteed for 30 seconds from the answer. */
  export function isLeader(): boolean;
  /** Leader settings (legacy: an application's bag in a peer relation does the same). */
  export function getSettings(): Array<[string, string]>;
  /** Leader only; an empty value deletes its key. */
  export function setSettings(changes: Array<[string, string]>): void;
}

declare module "periapt:charm/state@0.1.0" {
  /** What was stored under a key, this hook's writes included. */
  export function get(key: string): string | null;
  /** All that was stored, sorted by key. */
  export function getAll(): Array<[string, string]>;
  /** Stores values, all or none; an empty value is a value. What is too much for a unit (a key of more than 256 bytes, a value of more than 65,536, 2 MiB or 4,096 keys in all) fails the hook when it commits. */
  export function set(changes: Array<[string, string]>): void;
  /** Deletes a key, if it is there. */
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
  /** The ids of what the unit has, of one storage or of all; what is not there yet or about to go included. */
  export function list(name: string | null): Array<string>;
  /** One instance, by its id. */
  export function get(id: string): StorageInfo;
  /** Asks for more instances of a storage; they come with hooks of their own. */
  export function add(name: string, count: number): void;
}

declare module "periapt:charm/network@0.1.0" {
  export type InterfaceAddress = { address: string; cidr: string };
  export type NetworkInterface = { name: string; mac: string; addresses: Array<InterfaceAddress> };
  export type NetworkInfo = { bindAddresses: Array<NetworkInterface>; ingressAddresses: Array<string>; egressSubnets: Array<string> };
  /** Of an endpoint or an extra binding; a relation, if one is given, must be of that endpoint. */
  export function get(binding: string, relation: import("periapt:charm/types@0.1.0").RelationId | null): NetworkInfo;
}

declare module "periapt:charm/identity@0.1.0" {
  /** `APPLICATION/NUMBER`. */
  export function unitName(): string;
  export function applicationName(): string;
  /** A subordinate's principal. */
  export function principalUnit(): string | null;
  export function modelName(): string;
  export function modelUuid(): string;
  export function machineId(): string;
  export function availabilityZone(): string;
  /** Periapt's version. */
  export function version(): string;
  export function privateAddress(): string;
  export function publicAddress(): string;
}

declare module "periapt:charm/log@0.1.0" {
  export type Level = "trace" | "debug" | "info" | "warning" | "error";
  /** One line in the unit's log; sent at once. */
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
  /** What is said of a secret beside its content; what is none stays, or has its default. */
  export type Metadata = { label: string | null; description: string | null; rotate: RotatePolicy | null; expire: string | null };
  /** Which revision is read. */
  export type RevisionMode = "tracked" | "peek" | "refresh";
  export type Access = { reader: string; relation: import("periapt:charm/types@0.1.0").RelationId };
  /** What only the owner knows. */
  export type Details = { uri: string; revision: number; label: string | null; owner: Owner; description: string; rotation: RotatePolicy; rotates: string | null; expiry: string | null; access: Array<Access> };
  /** Makes a secret; its URI is known at once. */
  export function add(owner: Owner, content: Array<[string, Uint8Array]>, metadata: Metadata): string;
  /** Changes a secret; content that differs makes a new revision. */
  export function set(uri: string, content: Array<[string, Uint8Array]> | null, metadata: Metadata): void;
  /** Content by URI or by label; with both, the label becomes this unit's own for it. */
  export function get(uri: string | null, label: string | null, mode: RevisionMode): Array<[string, Uint8Array]>;
  /** What the owner knows of a secret, by URI or by label. */
  export function info(uri: string | null, label: string | null): Details;
  /** The URIs of the secrets that this unit looks after. */
  export function ids(): Array<string>;
  /** Lets the application at the other end of a relation, or one unit of it, read; for as long as the relation is there. */
  export function grant(uri: string, relation: import("periapt:charm/types@0.1.0").RelationId, unit: string | null): void;
  /** Takes a grant to an application (`mysql`) or to a unit (`mysql/0`) back. */
  export function revoke(uri: string, reader: string): void;
  /** Removes a secret, or one revision of it. */
  export function remove(uri: string, revision: number | null): void;
}

declare module "periapt:charm/resources@0.1.0" {
  export type ResourceFile = { path: string; revision: number; size: number; sha256: string };
  /** The file of a resource, which is fetched first if it is not at hand. All of one hook see one revision. */
  export function get(name: string): ResourceFile;
}

declare module "periapt:charm/pebble@0.1.0" {
  export type Request = { method: string; target: string; headers: Array<[string, string]>; body: Uint8Array };
  export type Response = { status: number; headers: Array<[string, string]>; body: Uint8Array };
  /** Whether the Pebble of a container listens. Not ready: nobody does. */
  export function connect(container: string): void;
  /** Makes a request and waits for its response, whatever its status. */
  export function exchange(container: string, request: Request): Response;
}
