//! The process side of the two services, controller and agent.

mod log;
mod program;

use std::{fmt, path::PathBuf};

pub(crate) use program::{ControllerService, begin_service, make_way};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    error::{Explain as _, Result},
    output,
    process::{FAILED, READY, end_with_parent},
};

/// The word for the address of metrics, which may be printed before the service answers.
const METRICS: &str = "metrics";

/// Prints on standard output that the service answers, with its address. The starter may have gone.
pub(crate) fn announce(at: &impl fmt::Display) {
    say(READY, at);
}

/// Prints on standard output where the service answers scrapes of its metrics.
pub(crate) fn announce_metrics(at: &impl fmt::Display) {
    say(METRICS, at);
}

/// Prints on standard output why a background service ends, for a starter that still waits: the log may be on a full
/// disk.
pub(crate) fn report_failure(result: Result<()>) -> Result<()> {
    if let Err(failure) = &result {
        say(FAILED, &failure.to_string().replace('\n', "; "));
    }
    result
}

fn say(word: &str, what: &impl fmt::Display) {
    if let Err(error) = output::announce(&format!("{word} {what}")) {
        tracing::debug!(%error, word, "the receiver has ended");
    }
}

/// Returns a token that SIGTERM or SIGINT cancels. From now on neither ends the process by itself.
pub(crate) fn cancelled_by_signal() -> Result<CancellationToken> {
    let what = || "cannot listen to signals".to_owned();
    let mut terminate = signal(SignalKind::terminate()).explain(what)?;
    let mut interrupt = signal(SignalKind::interrupt()).explain(what)?;
    let cancel = CancellationToken::new();
    let cancelled = cancel.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("stopping: SIGTERM"),
            _ = interrupt.recv() => tracing::info!("stopping: SIGINT"),
        }
        cancelled.cancel();
    });
    Ok(cancel)
}

/// Leaves the terminal's session, which may be closed, and keeps the log small that standard error goes to. Standard
/// input is a guard: the service ends with its starter, until that has recorded it.
pub(crate) fn detach(log: PathBuf) -> Result<()> {
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "the service leads its session already");
    }
    end_with_parent()?;
    tokio::spawn(log::keep_small(log));
    Ok(())
}
