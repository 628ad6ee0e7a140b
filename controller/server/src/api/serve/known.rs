//! The user of a connection, which the controller knows once it has granted one of its requests.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use periapt_host_api::command::Caller;
use tokio_util::sync::CancellationToken;

use crate::{
    api::connection::{ConnectionIdentity, Peer},
    bounds::{ConnectionPermit, Connections},
};

/// The caller of a connection, which is added to each of its requests. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct KnownCaller {
    connections: Connections,
    /// Set with the first granted request; holds the permit of the user's connection.
    permit: Arc<OnceLock<Option<ConnectionPermit>>>,
    /// Cancelled if the user has too many connections.
    full: CancellationToken,
}

/// The reason to close a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum CloseReason {
    #[error("no request was granted")]
    Stranger,
    #[error("its user has as many connections as are allowed")]
    TooMany,
}

impl KnownCaller {
    /// Begins a connection. Callers on the same host, and those with an agent's certificate, are known from the
    /// beginning.
    pub(super) fn new(peer: &Peer, connections: Connections) -> Self {
        let permit = match peer.identity {
            ConnectionIdentity::Tls(None) => OnceLock::new(),
            ConnectionIdentity::Tls(Some(_))
            | ConnectionIdentity::Controller(_)
            | ConnectionIdentity::Socket
            | ConnectionIdentity::InProcess => OnceLock::from(None),
        };
        Self { connections, permit: Arc::new(permit), full: CancellationToken::new() }
    }

    /// Notes the caller of a request that is granted, before it is answered: an upload may take long.
    pub(crate) fn note(&self, caller: &Caller) {
        self.permit.get_or_init(|| {
            let Caller::User(user) = caller else { return None };
            let permit = self.connections.take_for(user);
            if permit.is_none() {
                self.full.cancel();
            }
            permit
        });
    }

    /// Waits for a reason to close the connection.
    pub(super) async fn unwanted(&self, within: Duration) -> CloseReason {
        tokio::select! {
            () = self.full.cancelled() => return CloseReason::TooMany,
            () = tokio::time::sleep(within) => {}
        }
        if self.permit.get().is_none() {
            return CloseReason::Stranger;
        }
        self.full.cancelled().await;
        CloseReason::TooMany
    }
}
