//! The contents that the keeper fetches while a hook waits (`docs/design/secrets.md`).

use std::{
    fs::File,
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::Arc,
    time::Duration,
};

use periapt_hook::{CallError, WorkloadTarget};
use periapt_host_api::{
    ErrorCode, UnitName,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

use super::link::Link;
use crate::protocol::{Call, CallOutcome};
use periapt_client::Backoff;

/// The time that a hook waits for content while the controller is away.
const FETCHED_WITHIN: Duration = Duration::from_secs(10);

/// The most resources to fetch at a time: a runner's calls are limited, and long downloads must leave some for
/// commits.
const RESOURCES_AT_A_TIME: usize = 8;

/// The fetcher of contents for hooks. The controller checks the units' permissions.
#[derive(Debug)]
pub(crate) struct Fetch {
    link: Link,
    resources: Semaphore,
}

impl Fetch {
    /// Creates the fetcher for a keeper's link.
    pub(crate) fn new(link: Link) -> Self {
        Self { link, resources: Semaphore::new(RESOURCES_AT_A_TIME) }
    }

    /// Fetches one revision of a secret.
    pub(crate) async fn secret(&self, unit: &UnitName, key: SecretKey) -> Result<SecretData, CallError> {
        let away = |_: &str| {
            format!("cannot read secret {:?}: the controller is not reachable, try again", key.id.to_string())
        };
        let call = Call::Secret { unit: unit.clone(), key };
        let fetched = self.answered(call, &away, |outcome| match outcome {
            CallOutcome::Secret(content) => Some(content),
            _ => None,
        });
        timeout(FETCHED_WITHIN, fetched).await.unwrap_or_else(|_| Err(CallError::TryAgain(away(""))))
    }

    /// Fetches a resource and returns the open file. A transfer in progress may take longer than the limit for an
    /// absent controller.
    pub(crate) async fn resource(&self, unit: &UnitName, key: ResourceKey) -> Result<File, CallError> {
        // The semaphore is never closed. Even without the permit, the work would be correct.
        let _place = self.resources.acquire().await;
        let away = |reason: &str| {
            let name = &key.name;
            format!("could not download resource: {name:?} is not available, try again: {reason}")
        };
        let call = Call::Resource { unit: unit.clone(), key: key.clone() };
        let held = self.answered(call, &away, |outcome| match outcome {
            CallOutcome::Resource(held) => held.file,
            _ => None,
        });
        // Each answer has a descriptor of its own, so this is the only reference.
        Arc::try_unwrap(held.await?)
            .map_err(|_| CallError::Failed("a descriptor came to more than one".to_owned()))
    }

    /// Opens a stream to a workload of a unit. Nobody waits for one that has not started: charms ask again.
    pub(crate) async fn stream(
        &self,
        unit: &UnitName,
        target: WorkloadTarget,
    ) -> Result<UnixStream, CallError> {
        let call = Call::Connect { unit: unit.clone(), target };
        let held = match self.link.call(call).await {
            CallOutcome::Stream(held) => held.file.and_then(|file| Arc::try_unwrap(file).ok()),
            CallOutcome::Away { message } => return Err(CallError::NotReady(message)),
            CallOutcome::Refused(refusal) => return Err(CallError::NotReady(refusal.message)),
            _ => None,
        };
        let lost = || CallError::Failed("a stream came without its descriptor".to_owned());
        held.map(|file| UnixStream::from(OwnedFd::from(file))).ok_or_else(lost)
    }

    /// Repeats a call until it is answered, or the controller was away for too long. The call changes nothing, so
    /// repeats are harmless.
    async fn answered<T>(
        &self,
        call: Call,
        away: impl Fn(&str) -> String,
        take: impl Fn(CallOutcome) -> Option<T>,
    ) -> Result<T, CallError> {
        let (began, mut backoff) = (Instant::now(), Backoff::network());
        let mut reason = String::new();
        loop {
            match self.link.call(call.clone()).await {
                CallOutcome::Refused(refusal) => {
                    return Err(match refusal.code {
                        ErrorCode::PermissionDenied => CallError::PermissionDenied(refusal.message),
                        ErrorCode::NotFound => CallError::NotFound(refusal.message),
                        _ => CallError::Failed(refusal.message),
                    });
                }
                outcome => {
                    if let CallOutcome::Away { message } = &outcome {
                        reason.clone_from(message);
                    }
                    if let Some(content) = take(outcome) {
                        return Ok(content);
                    }
                }
            }
            if began.elapsed() >= FETCHED_WITHIN {
                return Err(CallError::TryAgain(away(&reason)));
            }
            sleep(backoff.failed()).await;
        }
    }
}
