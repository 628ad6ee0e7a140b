// The host's functions in the sandbox: the contract's imports. Elsewhere `memory.js` stands in for this file.
export * as actions from "periapt:charm/actions@0.1.0";
export * as config from "periapt:charm/config@0.1.0";
export * as events from "periapt:charm/events@0.1.0";
export * as files from "./files.js";
export * as goalState from "periapt:charm/goal-state@0.1.0";
export * as hookTools from "periapt:charm/hook-tools@0.1.0";
export * as identity from "periapt:charm/identity@0.1.0";
export * as leadership from "periapt:charm/leadership@0.1.0";
export * as log from "periapt:charm/log@0.1.0";
export * as network from "periapt:charm/network@0.1.0";
export * as ports from "periapt:charm/ports@0.1.0";
export * as relations from "periapt:charm/relations@0.1.0";
export * as resources from "periapt:charm/resources@0.1.0";
export * as secrets from "periapt:charm/secrets@0.1.0";
export * as state from "periapt:charm/state@0.1.0";
export * as status from "periapt:charm/status@0.1.0";
export * as storage from "periapt:charm/storage@0.1.0";
