//! Whether an uploaded archive is a charm that can run: found out by a helper process, since nobody's bytes are decoded in
//! the process that holds everybody's models.

use std::{fs::File, process::ExitCode, time::Duration};

use periapt_helper::{Failure, Fault, Limits, Program, run_helper};
use periapt_host_api::{Digest, ErrorCode, Refusal, charm::CharmMeta};
use serde::{Deserialize, Serialize};
use tokio::{sync::Semaphore, time::timeout};

/// How many helpers check at a time: with their memory they bound what uploads can cost together.
const AT_ONCE: usize = 2;

/// How long a check may wait for others: one that takes its helper's whole time holds it up for this long.
const PERMIT_WITHIN: Duration = Duration::from_secs(120);

/// What bounds one check. The largest charm known, a Python interpreter of 40 MB, takes a second.
const LIMITS: Limits = Limits {
    // The largest archive, unpacked, and as much again.
    memory: 1536 << 20,
    cpu_seconds: 60,
    deadline: Duration::from_secs(90),
    input: periapt_host_api::api::MAX_ARCHIVE_BYTES,
    // Metadata that the store takes are far smaller.
    output: 8 << 20,
};

/// What is found in an archive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Checked {
    /// The component's digest.
    pub(crate) component: Digest,
    /// What the charm declares.
    pub(crate) meta: CharmMeta,
}

/// The one kind of work.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Work {
    CheckCharm,
}

/// Checks archives, a few at a time.
#[derive(Debug)]
pub(crate) struct Checks {
    helper: Program,
    permits: Semaphore,
}

impl Checks {
    pub(crate) fn new(helper: Program) -> Self {
        Self { helper, permits: Semaphore::new(AT_ONCE) }
    }

    /// Checks an archive. `turn` has one permit for all archives of a connection: a connection waits for a permit with one
    /// archive at a time, and since permits are given in order, it takes no more of them than any other.
    ///
    /// # Errors
    /// A refusal that says what is wrong with the charm; or that it cannot be checked.
    pub(crate) async fn check(&self, archive: File, turn: &Semaphore) -> Result<Checked, Refusal> {
        let permit = async { (turn.acquire().await, self.permits.acquire().await) };
        let _permit = timeout(PERMIT_WITHIN, permit).await.map_err(|_| {
            Refusal::new(ErrorCode::TooManyRequests, "too many charms wait to be checked; try again later")
        })?;
        let found = self.helper.run_in_memory(Work::CheckCharm, LIMITS, archive).await.map_err(refusal)?;
        // What the helper was made to say by its archive goes no further than this archive's charm.
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
            // A helper that cannot be started is seldom a passing fault: clients do not send the archive again by themselves.
            Refusal::new(ErrorCode::Internal, format!("the controller cannot check charms: {failure}"))
        }
    }
}

/// What a program runs when it is started as a helper that checks a charm. `order` is its last argument.
pub fn run_check_helper(order: &str) -> ExitCode {
    run_helper(order, |Work::CheckCharm, archive| {
        let inspected =
            periapt_archive::inspect(&archive).map_err(|error| Fault::Refused(error.to_string()))?;
        let checked = Checked { component: inspected.component, meta: inspected.meta };
        serde_json::to_vec(&checked).map_err(|error| Fault::Host(error.to_string()))
    })
}
