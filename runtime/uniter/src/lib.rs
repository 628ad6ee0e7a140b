//! What a unit does next, and what its record is afterwards.
//!
//! [`resolve`] compares what the unit has done, its record, with what the model wants, its view, and names one
//! operation; whoever carries it out asks [`hook_ended`], [`deployed`] or [`deploy_failed`] for the record that
//! follows, commits that, and resolves again (`docs/hook-model.md` sections 1 and 2). There is no queue of events and
//! no state beside the record: an event that became moot never runs, ten changes of one thing are one hook, and
//! an agent that died goes on where the record stands.
//!
//! An [`executor::Executor`] carries it out: what happened goes in, commands come out.
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
mod resolver;
mod retry;
mod status;
mod subject;
mod timeline;
mod update_status;

pub use action::action_ended;
use backoff::Backoff;
pub use decision::{ActionEnd, ActionRun, Decision, DeployRun, HookEnd, HookRun, Progress, Seen, Skipped};
pub use jitter::Jitter;
pub use progress::{begin, deploy_failed, deployed, hook_ended};
pub use relation::MAX_SCOPES_PER_COMMIT;
pub use resolver::resolve;
pub use status::{before_hook, charm_arrived, charm_away, hidden_failure, idle_effect};
pub use timeline::Timeline;
