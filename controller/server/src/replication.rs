//! Several controllers with one state (`docs/design/replication.md`).
//!
//! All apply the entries of one log, in order, to their own stores. One of them leads at a time: its writer evaluates
//! commands and appends their writes. The others follow: they serve reads and watches, and pass commands on to the one
//! that leads.

mod age;
mod apply;
mod clocks;
mod forward;
mod freshness;
mod joins;
mod levels;
mod link;
mod members;
mod passed_on;
mod presence;
mod recent;
mod replica;
mod role;
mod rollout;
mod snapshot;
mod trimming;
mod turns;
mod wire;

use std::sync::Arc;

use periapt_blobs::S3Options;
use periapt_host_api::{Level, Revision, member::LogPlace};
use periapt_log::{Log, Term};

pub use self::recent::{KEPT_LOG_BYTES, LogBounds, MAX_LOG_BYTES};
pub(crate) use self::{
    clocks::SteadyClock,
    freshness::Freshness,
    joins::{Joins, SharedKeys},
    levels::LevelRaise,
    link::{LinkCertificate, LinkIdentity, Links},
    members::{Members, OwnMember},
    passed_on::PassedOn,
    presence::{KnownPresence, REPORT_EVERY, Reporter},
    recent::RecentEntries,
    replica::{Replica, head_of, initialize},
    role::{Role, RoleReceiver, while_leading},
    rollout::Step,
    snapshot::{SnapshotFailure, Snapshots},
    trimming::{DurablePosition, Trimming},
    wire::{ForwardedAnswers, ForwardedCommand, ReceivedCommands},
};

/// The part that makes a controller one of several.
pub struct ReplicationOptions {
    /// The log that all controllers share.
    pub log: Arc<dyn Log>,
    /// The name of this controller among them.
    pub member: String,
    /// The place of the log, which further controllers are told.
    pub place: LogPlace,
    /// The place of the blobs, which further controllers are told, if it is an object store.
    pub blobs: Option<S3Options>,
    /// The bounds on the entries that stay in the log.
    pub bounds: LogBounds,
    /// The level that this controller's program knows: [`LEVEL`](periapt_host_api::LEVEL), or a lower one in a test that
    /// upgrades controllers.
    pub level: Level,
    /// The observer of the writer's answers; none: they are not observed.
    pub observer: Option<Arc<dyn AnswerObserver>>,
}

/// An observer of the answers that a writer of the log gives. A test compares what each answer rests on with the log.
pub trait AnswerObserver: Send + Sync + 'static {
    /// Notes that the writer of a term has evaluated a batch of commands, and neither written it nor answered any.
    fn evaluated(&self, term: Term);

    /// Notes that the writer of a term answers the batch now. The answers show the state at a position.
    fn answers(&self, term: Term, shown: Revision);
}

impl std::fmt::Debug for ReplicationOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplicationOptions").field("member", &self.member).finish_non_exhaustive()
    }
}
