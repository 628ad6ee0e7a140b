//! The next step of a unit, and its record after the step.
//!
//! [`resolve`] compares the unit's record, which holds its past, with the view, which holds the wanted state, and
//! returns one operation. The driver carries it out, asks [`hook_ended`], [`deployed`] or [`deploy_failed`] for
//! the next record, commits that, and resolves again (`docs/hook-model.md` sections 1 and 2). There is no queue
//! of events and no state beside the record: a moot event never runs, ten changes of one subject are one hook,
//! and after a crash an agent continues from the record.
//!
//! An [`executor::Executor`] drives this with inputs and commands.
//!
//! This crate is pure: time and jitter are arguments.

mod action;
mod backoff;
mod coalesced;
mod decision;
pub mod executor;
mod jitter;
mod later;
mod progress;
mod relation;
mod resolve_input;
mod resolver;
mod retry;
mod status;
mod timeline;
mod update_status;
mod workloads;

pub use action::action_ended;
use backoff::Backoff;
pub use decision::{
    ActionEnd, ActionRun, Decision, DeployKind, DeployRun, HookEnd, HookRun, ListeningWorkload, Progress,
    SeenVersions, Skipped, UnitWorkloads, WorkloadBoots,
};
pub use executor::{begin, hook_ended};
pub use jitter::Jitter;
pub use progress::{deploy_failed, deployed};
pub use relation::MAX_SCOPES_PER_COMMIT;
pub use resolver::resolve;
use resolver::resolve_beside;
pub use status::{before_hook, charm_arrived, charm_away, hidden_failure, idle_effect};
pub use timeline::Timeline;
pub use workloads::{
    KnownWorkloads, ListeningPods, NoticeTold, NoticesTold, PodId, WorkloadsChanged, WorkloadsKnown,
    WorkloadsTold, WorkloadsWord,
};
