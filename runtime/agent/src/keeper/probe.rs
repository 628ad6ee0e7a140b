//! The agent as a service whose program is replaced: it comes up once a controller answers it.

use std::{path::PathBuf, time::Duration};

use futures_util::StreamExt as _;
use periapt_client::{Addresses, Backoff, ClientError};
use periapt_host_api::AgentName;
use periapt_program::{AfterTrial, ReplaceableService};
use tokio::time::{sleep, timeout};

use super::{
    directories::identity_in,
    identity::{AgentIdentity, IdentityError},
};

/// The time for a controller to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// An agent that asks for its assignments before it serves, or while its next program is on trial. It writes nothing, so
/// that a process on trial can use the same files.
#[derive(Debug, Clone)]
pub struct ControllerProbe {
    /// The agent's name.
    pub name: AgentName,
    /// The agent's own directory.
    pub data: PathBuf,
    /// The controllers' URLs.
    pub controllers: Addresses,
}

impl ReplaceableService for ControllerProbe {
    const AFTER_TRIAL: AfterTrial = AfterTrial::GoesBack;

    /// Returns true if a controller gives the agent its assignments within 10 s. An agent that is refused, or cannot use
    /// its own files, is not served either.
    async fn is_answered(&self) -> bool {
        match timeout(ANSWERS_WITHIN, self.ask()).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the agent is not served");
                false
            }
            Err(_) => false,
        }
    }
}

impl ControllerProbe {
    /// Waits until a controller gives the agent its assignments.
    async fn ask(&self) -> Result<(), IdentityError> {
        let identity = AgentIdentity::existing(self.name.clone(), identity_in(&self.data))?;
        let Some(identity) = identity else { return Err(IdentityError::NotJoined(self.name.clone())) };
        let client = identity.certified(&self.controllers, None).await?.client;
        let mut backoff = Backoff::network();
        loop {
            let first = async { client.assignments(&self.name).await?.next().await.transpose() };
            match first.await {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => {}
                Err(ClientError::Refused(refusal)) if !refusal.code.is_temporary() => {
                    return Err(ClientError::Refused(refusal).into());
                }
                Err(error) => tracing::debug!(%error, "no assignments yet"),
            }
            sleep(backoff.failed()).await;
        }
    }
}
