//! The keys of queries.

use super::Parameter;

pub(super) const LOG_QUERY: &[Parameter] = &[
    Parameter {
        name: "tail",
        kind: "integer",
        description: "The number of newest lines; 10 by default, all lines with `replay`.",
    },
    Parameter { name: "replay", kind: "boolean", description: "All stored lines." },
    Parameter { name: "follow", kind: "boolean", description: "Keeps the stream open for new lines." },
    Parameter {
        name: "include",
        kind: "array",
        description: "Only lines of these units, applications, machines or entities (`unit-mysql-*`).",
    },
    Parameter {
        name: "exclude",
        kind: "array",
        description: "No lines of these units, applications, machines or entities.",
    },
    Parameter {
        name: "include-module",
        kind: "array",
        description: "Only lines of these modules and those below them (`unit.mysql/0`).",
    },
    Parameter {
        name: "exclude-module",
        kind: "array",
        description: "No lines of these modules and those below them.",
    },
    Parameter {
        name: "level",
        kind: "string",
        description: "Only lines of this level or a more severe one.",
    },
];

pub(super) const WORKLOAD_LOG_QUERY: &[Parameter] = &[
    Parameter { name: "container", kind: "string", description: "The container." },
    Parameter { name: "service", kind: "array", description: "Only lines of these services." },
    Parameter {
        name: "tail",
        kind: "integer",
        description: "The number of newest lines; all that the container's Pebble keeps by default.",
    },
    Parameter { name: "follow", kind: "boolean", description: "Keeps the stream open for new lines." },
];

pub(super) const LOG_PART_QUERY: &[Parameter] = &[Parameter {
    name: "part",
    kind: "string",
    description: "`begun`: the agent takes a session, once; `data`: the content is the next bytes of the answer; `end`: it has ended, a session with the exit code in the content; `failed`: the content says why there is none.",
}];

pub(super) const WATCH_QUERY: &[Parameter] = &[
    Parameter { name: "store", kind: "string", description: "The store of the last applied frame." },
    Parameter { name: "revision", kind: "integer", description: "The revision of the last applied frame." },
];

pub(super) const AUDIT_QUERY: &[Parameter] =
    &[Parameter { name: "after", kind: "string", description: "The end of the page before." }];

pub(super) const STATUS_HISTORY_QUERY: &[Parameter] = &[
    Parameter {
        name: "entity",
        kind: "string",
        description: "The name of a unit, an application or a machine.",
    },
    Parameter {
        name: "type",
        kind: "string",
        description: "The kind of status: unit (the default), juju-unit, workload, application or machine.",
    },
    Parameter { name: "tail", kind: "integer", description: "The number of newest statuses." },
    Parameter { name: "since", kind: "string", description: "Only statuses from this time on (RFC 3339)." },
];

pub(super) const JOURNAL_QUERY: &[Parameter] = &[
    Parameter { name: "unit", kind: "string", description: "Only runs of this unit." },
    Parameter {
        name: "seq",
        kind: "integer",
        description: "Only the unit's runs that started from this sequence number.",
    },
    Parameter { name: "calls", kind: "boolean", description: "Adds the unit's host calls." },
    Parameter {
        name: "secrets",
        kind: "boolean",
        description: "Adds seeds and secret values. Only administrators of the model may ask for them.",
    },
    Parameter {
        name: "after",
        kind: "string",
        description: "The end of the page before, as its `next` says.",
    },
];

pub(super) const OPERATIONS_QUERY: &[Parameter] = &[
    Parameter { name: "action", kind: "array", description: "Only operations of these actions." },
    Parameter {
        name: "application",
        kind: "array",
        description: "Only operations on units of these applications.",
    },
    Parameter { name: "unit", kind: "array", description: "Only operations on these units." },
    Parameter { name: "status", kind: "array", description: "Only operations in these states." },
    Parameter {
        name: "limit",
        kind: "integer",
        description: "The largest number of operations; 50 by default.",
    },
    Parameter { name: "offset", kind: "integer", description: "The number of matching operations to skip." },
];

pub(super) const TASK_QUERY: &[Parameter] = &[Parameter {
    name: "after",
    kind: "string",
    description: "The end of the page before, as its `next` says.",
}];

pub(super) const OFFERS_QUERY: &[Parameter] = &[
    Parameter { name: "url", kind: "string", description: "Only this offer: [USER/]MODEL.OFFER." },
    Parameter { name: "owner", kind: "string", description: "Only offers of this user's models." },
    Parameter { name: "model", kind: "string", description: "Only offers of models with this name." },
    Parameter { name: "offer", kind: "string", description: "Only offers with this name." },
    Parameter {
        name: "interface",
        kind: "string",
        description: "Only offers with an endpoint of this interface.",
    },
];

pub(super) const REFRESH_QUERY: &[Parameter] = &[
    Parameter { name: "charm", kind: "string", description: "The digest of an uploaded charm." },
    Parameter { name: "force", kind: "boolean", description: "As `force` of the command." },
];

pub(super) const CONTENT_QUERY: &[Parameter] = &[Parameter {
    name: "kind",
    kind: "string",
    description: "file, or oci-image for an archive with an image, which the controller checks; file by default.",
}];

pub(super) const UPLOAD_QUERY: &[Parameter] = &[
    Parameter {
        name: "kind",
        kind: "string",
        description: "file, or oci-image for an archive with an image, which the controller checks; file by default.",
    },
    Parameter {
        name: "partial",
        kind: "boolean",
        description: "The upload leaves out layers of an image that the controller has. Its first line names them and their places as JSON.",
    },
];

pub(super) const SECRETS_QUERY: &[Parameter] = &[
    Parameter { name: "secret", kind: "string", description: "Only this secret, by name, id or URI." },
    Parameter { name: "reveal", kind: "boolean", description: "Adds the secret's content." },
    Parameter {
        name: "revision",
        kind: "integer",
        description: "The revision whose content is shown; the newest by default.",
    },
];
