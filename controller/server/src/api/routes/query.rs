//! The keys that queries have.

use super::Parameter;

pub(super) const LOG_QUERY: &[Parameter] = &[
    Parameter {
        name: "tail",
        kind: "integer",
        description: "how many of the newest lines; 10 unless replay",
    },
    Parameter { name: "replay", kind: "boolean", description: "all lines that are there" },
    Parameter { name: "follow", kind: "boolean", description: "go on with new lines as they come" },
    Parameter {
        name: "include",
        kind: "array",
        description: "only of these units, applications, machines or entities (`unit-mysql-*`)",
    },
    Parameter { name: "exclude", kind: "array", description: "not of these" },
    Parameter {
        name: "include-module",
        kind: "array",
        description: "only of these modules and those below them (`unit.mysql/0`)",
    },
    Parameter {
        name: "exclude-module",
        kind: "array",
        description: "not of these modules, nor of those below them",
    },
    Parameter { name: "level", kind: "string", description: "only this important or more" },
];

pub(super) const WATCH_QUERY: &[Parameter] = &[
    Parameter { name: "store", kind: "string", description: "the store of the frame applied last" },
    Parameter { name: "revision", kind: "integer", description: "the revision of the frame applied last" },
];

pub(super) const STATUS_HISTORY_QUERY: &[Parameter] = &[
    Parameter {
        name: "entity",
        kind: "string",
        description: "A unit's, an application's or a machine's name.",
    },
    Parameter {
        name: "type",
        kind: "string",
        description: "unit (the default), juju-unit, workload, application or machine.",
    },
    Parameter { name: "tail", kind: "integer", description: "At most this many, the newest." },
    Parameter { name: "since", kind: "string", description: "None that is older than this time (RFC 3339)." },
];

pub(super) const JOURNAL_QUERY: &[Parameter] = &[
    Parameter { name: "unit", kind: "string", description: "of this unit alone" },
    Parameter {
        name: "seq",
        kind: "integer",
        description: "only the unit's runs that started from this seq",
    },
    Parameter { name: "calls", kind: "boolean", description: "with the unit's host calls" },
    Parameter {
        name: "secrets",
        kind: "boolean",
        description: "with seeds and secret answers; for the model's administrators",
    },
    Parameter { name: "after", kind: "string", description: "where the page before ended" },
];

pub(super) const OPERATIONS_QUERY: &[Parameter] = &[
    Parameter { name: "action", kind: "array", description: "only of these actions" },
    Parameter { name: "application", kind: "array", description: "only on units of these applications" },
    Parameter { name: "unit", kind: "array", description: "only on these units" },
    Parameter { name: "status", kind: "array", description: "only in these states" },
    Parameter { name: "limit", kind: "integer", description: "how many at most; 50 unless said" },
    Parameter { name: "offset", kind: "integer", description: "after so many that match" },
];

pub(super) const TASK_QUERY: &[Parameter] =
    &[Parameter { name: "after", kind: "string", description: "where the page before ended" }];

pub(super) const OFFERS_QUERY: &[Parameter] = &[
    Parameter { name: "url", kind: "string", description: "this one alone: [USER/]MODEL.OFFER" },
    Parameter { name: "owner", kind: "string", description: "only of this user's models" },
    Parameter { name: "model", kind: "string", description: "only of models of this name" },
    Parameter { name: "offer", kind: "string", description: "only offers of this name" },
    Parameter { name: "interface", kind: "string", description: "only with an endpoint of this interface" },
];

pub(super) const REFRESH_QUERY: &[Parameter] = &[
    Parameter { name: "charm", kind: "string", description: "the digest of an uploaded charm" },
    Parameter { name: "force", kind: "boolean", description: "as the command's" },
];

pub(super) const SECRETS_QUERY: &[Parameter] = &[
    Parameter { name: "secret", kind: "string", description: "this one alone, by name, id or URI" },
    Parameter { name: "reveal", kind: "boolean", description: "with its content" },
    Parameter { name: "revision", kind: "integer", description: "the content of this revision" },
];
