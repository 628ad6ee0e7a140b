//! The state that requests and workers share, in parts. A handler takes only the parts that it needs.

mod blobs;
mod collector;
mod durable;
mod sizes;
mod submission;

use std::{ops::Deref, sync::Arc};

use axum::extract::FromRef;
use tokio_util::sync::CancellationToken;

pub(crate) use self::{
    blobs::{BlobKind, Charms, Contents, Copies, Kept, Resources, StoredContent},
    collector::{BlobCollector, BlobHold},
    durable::Durable,
    sizes::Sizes,
    submission::Submission,
};
use crate::{
    backup::BackupSource,
    bounds::StreamLimits,
    clock::Clock,
    listen::Issuer,
    login::Logins,
    oidc::IssuerLogins,
    presence::Presence,
    refusals::Refusals,
    replication::{DurablePosition, Freshness, Joins, Members, RoleReceiver, Snapshots},
    seal::SecretSealer,
    show::StatusSource,
    watch::Watches,
    workload_orders::WorkloadOrders,
};

/// The whole state. Cloning is cheap: each request does so several times.
#[derive(Clone)]
pub(crate) struct ControllerState(Arc<ControllerParts>);

impl ControllerState {
    /// Creates the state from its parts.
    pub(crate) fn new(parts: ControllerParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for ControllerState {
    type Target = ControllerParts;

    fn deref(&self) -> &ControllerParts {
        &self.0
    }
}

/// Declares the parts of the state, which handlers extract by type (`State<Durable>`).
macro_rules! parts {
    ($($(#[$text:meta])* $part:ident: $type:ty,)*) => {
        /// The parts of the state.
        pub(crate) struct ControllerParts {
            $($(#[$text])* pub(crate) $part: $type,)*
        }

        $(impl FromRef<ControllerState> for $type {
            fn from_ref(state: &ControllerState) -> Self {
                state.$part.clone()
            }
        })*
    };
}

parts! {
    /// The durable state.
    durable: Durable,
    /// The submission of commands.
    submission: Submission,
    /// The archives of charms.
    charms: Charms,
    /// The content of resources.
    resources: Resources,
    /// The parts for streamed answers.
    streams: Streams,
    /// The data of statuses that is in no model.
    statuses: StatusSource,
    /// The encryption of confidential data.
    sealer: SecretSealer,
    /// The role of this controller among several.
    role: RoleReceiver,
    /// The known controllers of the same log.
    members: Members,
    /// The age of what this controller shows.
    freshness: Freshness,
    /// The joining of further controllers.
    joins: Joins,
    /// The snapshots for other controllers.
    snapshots: Snapshots,
    /// The part of the log that is durable here.
    log_position: DurablePosition,
    /// The clock.
    clock: Arc<dyn Clock>,
    /// The authority that issues agents' certificates.
    issuer: Issuer,
    /// Sizes on the disk.
    sizes: Sizes,
    /// Logins: hashes of passwords, tokens, and the bounds on failures.
    logins: Logins,
    /// Logins at the issuer of identities.
    issuer_logins: IssuerLogins,
    /// The refused requests for the audit log.
    refusals: Refusals,
    /// The directory that backups are made of.
    backups: BackupSource,
    /// The orders of operators to workloads: for output, and for sessions.
    workload_orders: WorkloadOrders,
}

/// The parts for streamed answers: watches, bounds on them, and their common end.
#[derive(Clone)]
pub(crate) struct Streams {
    pub(crate) watches: Watches,
    pub(crate) limits: StreamLimits,
    pub(crate) presence: Presence,
    /// The token that ends all streams.
    pub(crate) stop: CancellationToken,
}
