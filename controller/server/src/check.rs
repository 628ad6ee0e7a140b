//! The check of uploaded archives. A helper process runs it, because uploaded bytes must not be decoded in the
//! process that holds all models.

use std::{fs::File, process::ExitCode, time::Duration};

use periapt_helper::{Failure, Fault, Limits, Program, run_helper};
use periapt_host_api::{Digest, ErrorCode, Refusal, charm::CharmMeta};
use serde::{Deserialize, Serialize};
use tokio::{sync::Semaphore, time::timeout};

/// The number of helpers that run at a time. Together with their memory limit, it bounds the cost of uploads.
const AT_ONCE: usize = 2;

/// The longest wait for a permit. It is longer than one check's deadline.
const PERMIT_WITHIN: Duration = Duration::from_secs(120);

/// The limits of one check. The largest known charm, a Python interpreter of 40 MB, takes a second.
const LIMITS: Limits = Limits {
    // Twice the largest archive, unpacked.
    memory: 1536 << 20,
    cpu_seconds: 60,
    deadline: Duration::from_secs(90),
    input: periapt_host_api::api::MAX_ARCHIVE_BYTES,
    // The largest metadata that the store takes is far smaller.
    output: 8 << 20,
};

/// The contents of a checked archive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Checked {
    /// The component's digest.
    pub(crate) component: Digest,
    /// The metadata that the charm declares.
    pub(crate) meta: CharmMeta,
}

/// The kinds of work of the helper.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Work {
    CheckCharm,
}

/// The checks of archives, a few at a time.
#[derive(Debug)]
pub(crate) struct Checks {
    helper: Program,
    permits: Semaphore,
}

impl Checks {
    pub(crate) fn new(helper: Program) -> Self {
        Self { helper, permits: Semaphore::new(AT_ONCE) }
    }

    /// Checks an archive. `turn` is the connection's semaphore with a single permit, so a connection waits for a
    /// permit to check with one archive at a time. Permits are given in order, so each connection gets an equal
    /// share.
    ///
    /// # Errors
    /// The reason why the charm is invalid, or why it cannot be checked.
    pub(crate) async fn check(&self, archive: File, turn: &Semaphore) -> Result<Checked, Refusal> {
        let permit = async { (turn.acquire().await, self.permits.acquire().await) };
        let _permit = timeout(PERMIT_WITHIN, permit).await.map_err(|_| {
            Refusal::new(ErrorCode::TooManyRequests, "too many charms wait to be checked; try again later")
        })?;
        let found = self.helper.run_in_memory(Work::CheckCharm, LIMITS, archive).await.map_err(refusal)?;
        // A hostile archive can only affect the result for its own charm.
        serde_json::from_slice(&found).map_err(|error| {
            Refusal::new(ErrorCode::CharmRefused, format!("the charm could not be checked: {error}"))
        })
    }
}

fn refusal(failure: Failure) -> Refusal {
    match failure {
        Failure::Refused(text) => Refusal::new(ErrorCode::CharmRefused, text),
        failure @ (Failure::Late(_) | Failure::Died(_)) => {
            tracing::warn!(%failure, "a charm could not be checked");
            Refusal::new(ErrorCode::CharmRefused, format!("checking the charm failed: {failure}"))
        }
        failure @ Failure::Host(_) => {
            tracing::error!(%failure, "charms cannot be checked");
            // Not a temporary error: clients would send the archive again, and a helper that cannot start rarely
            // recovers.
            Refusal::new(ErrorCode::Internal, format!("the controller cannot check charms: {failure}"))
        }
    }
}

/// Runs the charm check in a process that was started as a helper. `order` is its last argument.
pub fn run_check_helper(order: &str) -> ExitCode {
    run_helper(order, |Work::CheckCharm, archive| {
        let inspected =
            periapt_archive::inspect(&archive).map_err(|error| Fault::Refused(error.to_string()))?;
        let checked = Checked { component: inspected.component, meta: inspected.meta };
        serde_json::to_vec(&checked).map_err(|error| Fault::Host(error.to_string()))
    })
}
