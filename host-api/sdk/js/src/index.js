// Write Periapt charms in JavaScript: register a handler for each event, and ask the unit that it is given.
export { RelationBag, OwnBag } from "./bag.js";
export { handler, on } from "./charm.js";
export { Refused } from "./error.js";
export { listFiles, makeDirectory, readFile, readText, removeFile, writeFile } from "./files.js";
export { log } from "./log.js";
export { Container, ExecOutput, PebbleError } from "./pebble.js";
export { Relation } from "./relation.js";
export { Secret } from "./secret.js";
export { Status, active, blocked, maintenance, waiting } from "./status.js";
export { tool } from "./tools.js";
export { WorkloadStream } from "./workload.js";
