//! Content of secrets, fetched when a hook asks for it (`design.md` section 7).

use std::time::Duration;

use periapt_hook::CallError;
use periapt_host_api::{
    ErrorCode, UnitName,
    secret::{SecretData, SecretKey},
};
use tokio::time::{sleep, timeout};

use super::link::Link;
use crate::{
    backoff::Backoff,
    protocol::{Call, CallOutcome},
};

/// How long a hook waits for content while the controller is away.
const FETCHED_WITHIN: Duration = Duration::from_secs(10);

/// Fetches one revision; whether the unit may read it, the controller decides now.
pub(crate) async fn fetch(link: &Link, unit: &UnitName, key: SecretKey) -> Result<SecretData, CallError> {
    timeout(FETCHED_WITHIN, answered(link, unit, key)).await.unwrap_or_else(|_| {
        let text = format!("cannot read secret {:?}: the controller is away, try again", key.id.to_string());
        Err(CallError::TryAgain(text))
    })
}

async fn answered(link: &Link, unit: &UnitName, key: SecretKey) -> Result<SecretData, CallError> {
    let mut backoff = Backoff::network();
    loop {
        match link.call(Call::Secret { unit: unit.clone(), key }).await {
            CallOutcome::Secret(content) => return Ok(content),
            CallOutcome::Refused(refusal) => {
                return Err(match refusal.code {
                    ErrorCode::PermissionDenied => CallError::PermissionDenied(refusal.message),
                    ErrorCode::NotFound => CallError::NotFound(refusal.message),
                    _ => CallError::Failed(refusal.message),
                });
            }
            // The call may be made again: it changes nothing.
            CallOutcome::Away { .. } | CallOutcome::Answered { .. } | CallOutcome::Charm(_) => {
                sleep(backoff.failed()).await;
            }
        }
    }
}
