/** Run a charm's hooks in Node.js, against a unit in memory. */

import type { GoalState, OptionValue, PlainEventName, Relation } from "./index.d.ts";

/** A hook failed: nothing that it asked for happened, save its statuses and its log. */
export class HookFailed extends Error {
  readonly hook: string;
  readonly code: number;
}

type Outcome = "handled" | "unhandled";
type Texts = Record<string, string>;

/** A unit in memory that runs the hooks of the charm that a test has imported. */
export class Harness {
  /** What cannot be fails a test: a remote unit of another application, the unit itself among its peers. */
  constructor(unit: string);
  /** Says what the charm declares, as the text of its `charmcraft.yaml`: what is not declared there fails a test. */
  declares(charmcraft: string): this;
  set leader(leads: boolean);
  /** The unit's address; null if it is not known. */
  set address(address: string | null);
  /** Makes the unit a subordinate beside this principal. */
  set principal(unit: string | null);
  set goalState(goal: GoalState);

  /** Sets options, without an event; undefined takes one away. */
  config(values: Record<string, OptionValue | undefined>): this;
  /** Starts a container, without an event: hooks reach its Pebble from now on. */
  container(name: string): TestContainer;
  /** Starts a workload that answers requests on a port. */
  serve(
    port: number,
    respond: (request: { method: string; path: string; body: Uint8Array }) => { status: number; body: string | Uint8Array },
  ): this;
  /** Answers hook tools. */
  tools(
    answer: (name: string, args: string[], stdin: Uint8Array | null) => { code?: number; stdout?: string; stderr?: string },
  ): this;
  /** Gives the unit storage by its id, such as `data/0`, without an event; in a directory, `/srv/data` unless said. */
  storage(id: string, location?: string): this;
  /** Attaches a file as the content of a resource. */
  resource(name: string, file: { path: string; revision: number; size: number; sha256: string }): this;

  /** Puts a file where the charm finds it: in storage, in the charm's directory, at a resource's path. */
  addFile(path: string, content: string | Uint8Array): this;
  /** The content of a file as text. Files below /tmp are empty at each hook's beginning. */
  file(path: string): string | undefined;

  /** Grants the unit a secret of another application's, without an event; answers its URI. */
  grantSecret(content: Texts): string;
  /** The other application gives such a secret other content, without an event. */
  reviseSecret(uri: string, content: Texts): void;
  /** The other application takes such a secret back, without an event. */
  revokeSecret(uri: string): void;
  /** The latest content of a secret, and who may read it. */
  secret(uri: string): { content: Texts; revision: number; readers: string[] } | undefined;

  /** Adds a relation, without an event; one with the unit's own application is a peer relation. */
  relate(endpoint: string, remote: string): Relation;
  /** Runs one hook. `event` is what the contract says of it, for those that are about something. */
  run(name: PlainEventName): Outcome;
  run(name: string, event: object): Outcome;
  /** A remote unit with its bag comes into view: joined, then changed. */
  join(relation: Relation, unit: string, bag?: Texts): Outcome;
  /** A remote unit's bag changes. */
  change(relation: Relation, unit: string, bag: Texts): Outcome;
  /** The remote application's bag changes. */
  changeApp(relation: Relation, bag: Texts): Outcome;
  /** A remote unit goes out of view. */
  depart(relation: Relation, unit: string): Outcome;
  /** The relation ends: its members depart, then it is broken. */
  end(relation: Relation): Outcome;
  /** Runs an action; answers its results by their paths, its messages, and what it failed with. */
  action(name: string, params?: Record<string, unknown>): { results: Texts; log: string[]; failed: string | null };

  /** What the unit last said of its workload, as `active: message`. */
  readonly status: string | undefined;
  readonly appStatus: string | undefined;
  readonly version: string | null;
  /** Ports that are open: `80/tcp`. */
  readonly ports: string[];
  /** What the charm keeps for the unit. */
  readonly stored: Texts;
  readonly log: { level: string; message: string }[];
  /** The events that the unit waits for. */
  readonly pending: { id: number; name: string; json: string; after: number | null; conditions: object[] }[];
  /** The unit's own bag in a relation. */
  unitBag(relation: Relation): Texts;
  /** Its application's bag in a relation. */
  appBag(relation: Relation): Texts;
}

/**
 * A container beside a unit in memory. It keeps files and layers, writes down what is asked of services and checks, and runs none.
 */
export class TestContainer {
  /** Writes a file, as an image has it. */
  write(path: string, content: string | Uint8Array): this;
  /** A file as text. */
  file(path: string): string | undefined;
  /** The last layer that was added under a label, as the charm wrote it. */
  layer(label: string): string | undefined;
  /** What was asked of services and checks, in order: `replan`, `start web`, `SIGHUP web`, `stop-checks page`. */
  actions: string[];
  /** The notices that the charm made. */
  notices: { id: string; key: string }[];
  /** The services that the charm sees, each with its state: `{web: "active"}`. */
  services: Texts;
  /** The checks that the charm sees, each with its state: `{page: "down"}`. */
  checks: Texts;
  /** The plan that the charm sees. */
  plan: string;
  /** What is sent in place of each response, after which the stream ends. */
  sends: string | Uint8Array | undefined;
  /** Runs commands. */
  runs(
    run: (
      command: string[],
      stdin: Uint8Array,
    ) => { code?: number; stdout?: string | Uint8Array; stderr?: string | Uint8Array },
  ): this;
  /** Answers requests before the container's Pebble does; that answers those for which the function answers undefined. */
  answers(
    answer: (request: {
      method: string;
      path: string;
      body: string;
    }) => { status?: number; body: string | Uint8Array } | undefined,
  ): this;
}
