//! What requests and workers share, in parts: a handler asks for those that it needs, and sees no others.

mod blobs;
mod collector;
mod durable;
mod intake;

use std::sync::Arc;

use axum::extract::FromRef;
use tokio_util::sync::CancellationToken;

pub(crate) use self::{
    blobs::{Charms, Contents, Resources},
    collector::BlobCollector,
    durable::{Durable, find_model},
    intake::Intake,
};
use crate::{
    bounds::StreamLimits, clock::Clock, presence::Presence, seal::SecretSealer, show::StatusSource,
    watch::Watches,
};

/// Declares the state as a whole, and lets a handler ask for each of its parts by type (`State<Durable>`).
macro_rules! parts {
    ($($(#[$text:meta])* $part:ident: $type:ty,)*) => {
        /// All parts. Cloning is cheap.
        #[derive(Clone)]
        pub(crate) struct ControllerState {
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
    /// What is on the disk.
    durable: Durable,
    /// How commands come to the writer.
    intake: Intake,
    /// Charms' archives.
    charms: Charms,
    /// Content of resources.
    resources: Resources,
    /// What answers that go on are made of.
    streams: Streams,
    /// What statuses say beside their model.
    statuses: StatusSource,
    /// What seals and opens what is confidential.
    sealer: SecretSealer,
    /// The time.
    clock: Arc<dyn Clock>,
}

/// What answers that go on for long need: who watches what, how many may, and when all of them end.
#[derive(Clone)]
pub(crate) struct Streams {
    pub(crate) watches: Watches,
    pub(crate) limits: StreamLimits,
    pub(crate) presence: Presence,
    /// Ends all streams.
    pub(crate) stop: CancellationToken,
}
