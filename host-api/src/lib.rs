//! The vocabulary that all sides of Periapt speak: names and ids, events, a hook's effects, the unit's record,
//! the views that agents mirror, charm metadata, and the HTTP API's commands and answers.
//!
//! The modules stand in folders by subject (`values`, `charms`, `configuration`, `model`, `hooks`, `identity`, `protocol`). The
//! folders are no part of a path: each module is at the crate's root (`periapt_host_api::secret`). Names and ids are
//! re-exported at the root, because most code needs them.
//!
//! This crate is pure: no clock, no randomness, no I/O. `wit/` beside it is the contract with charms.

mod charms;
mod configuration;
mod hooks;
mod identity;
mod model;
mod protocol;
mod values;

pub use charms::{charm, imports, refresh, schema, workloads};
pub use configuration::{budget, constraints, settings};
pub use hooks::{action, commit, event, exec, journal, notice, pending, record, state, usage};
pub use identity::{access, audit, password, token, user};
pub use model::{
    bundle, cloud, connections, egress, firewall, network, offer, ports, relation, resource, secret, ssh_key,
    storage,
};
pub use protocol::{
    agent, api, backup, command, container, exec_session, logs, member, migration, pod, problem, program,
    status, timing, trace, view, workload_log,
};
pub use values::{
    duration, excerpt, glob, hash, id, level, name, rule, size, truth, unit_map, version, yaml,
};

pub use id::{
    ActionOperationId, Digest, EventId, Incarnation, LeaderTerm, MachineId, ModelUuid, OfferUuid,
    OperationId, RelationId, RequestId, Revision, StoreId, TaskId,
};
pub use jiff::Timestamp;
pub use level::{LEVEL, Level};
pub use name::{
    AgentName, ApplicationName, CloudName, ContainerName, CredentialName, EndpointName, InterfaceName,
    ModelName, NameError, ResourceName, SpaceName, StorageName, TagName, UnitName, UserName,
};
pub use problem::{ErrorCode, Refusal};
pub use storage::StorageId;
pub use unit_map::UnitMap;
pub use version::JUJU_VERSION;
