//! What the two services, controller and agent, have in common as processes.

use std::{
    fmt,
    io::{self, Write as _},
};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    error::{Explain as _, Result},
    process::READY,
};

/// Says on standard output that the service answers, and at what. Whoever started it may have gone.
pub(crate) fn announce(at: &impl fmt::Display) {
    let mut output = io::stdout().lock();
    if let Err(error) = writeln!(output, "{READY} {at}").and_then(|()| output.flush()) {
        tracing::debug!(%error, "nobody hears that the service is ready");
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

/// Leaves the session of the terminal that the service was started from, which may be closed.
pub(crate) fn leave_session() {
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "the service leads its session already");
    }
}
