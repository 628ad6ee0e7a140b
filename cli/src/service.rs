//! What the two services, controller and agent, have in common as processes.

mod log;

use std::{fmt, path::PathBuf};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    error::{Explain as _, Result},
    output,
    process::{FAILED, READY, end_with_parent},
};

/// Says on standard output that the service answers, and at what. Whoever started it may have gone.
pub(crate) fn announce(at: &impl fmt::Display) {
    say(READY, at);
}

/// Says on standard output why a service in the background ends, in case whoever started it still waits for it to
/// answer: its log may be on a disk that is full.
pub(crate) fn told(result: Result<()>) -> Result<()> {
    if let Err(failure) = &result {
        say(FAILED, &failure.to_string().replace('\n', "; "));
    }
    result
}

fn say(word: &str, what: &impl fmt::Display) {
    if let Err(error) = output::announce(&format!("{word} {what}")) {
        tracing::debug!(%error, word, "nobody hears it");
    }
}

/// Cancelled by SIGTERM or SIGINT. From now on neither ends the process by itself.
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

/// Goes on without the terminal that the service was started from, which may be closed, and keeps the log small to
/// which standard error goes. Standard input is a leash: the service ends with the process that has started it, until that
/// one has written down that it runs.
pub(crate) fn detach(log: PathBuf) -> Result<()> {
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "the service leads its session already");
    }
    end_with_parent()?;
    tokio::spawn(log::keep_small(log));
    Ok(())
}
