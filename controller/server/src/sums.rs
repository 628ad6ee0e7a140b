//! The task that writes the sums of refused requests into the audit log.

use std::{sync::Arc, time::Duration};

use periapt_host_api::command::Caller;
use periapt_model::Input;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    refusals::Refusals,
    writer::{Commands, QueueKey},
};

/// The time for which equal requests are counted before their entry is written, in milliseconds.
const COUNTED_MS: u64 = 60_000;

/// Writes entries for what is counted, until the controller stops, and once more then.
pub(crate) async fn write_sums(
    refusals: Refusals,
    commands: Commands,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        if refusals.is_empty() {
            tokio::select! {
                () = stop.cancelled() => {}
                () = refusals.filled() => {}
            }
            continue;
        }
        let due = clock.monotonic_ms().saturating_add(COUNTED_MS);
        while let left @ 1.. = due.saturating_sub(clock.monotonic_ms()) {
            tokio::select! {
                () = stop.cancelled() => break,
                () = clock.sleep(Duration::from_millis(left)) => {}
            }
        }
        write(&refusals, &commands, &*clock).await;
    }
    write(&refusals, &commands, &*clock).await;
}

async fn write(refusals: &Refusals, commands: &Commands, clock: &dyn Clock) {
    let taken = refusals.take(clock.monotonic_ms());
    if taken.is_empty() {
        return;
    }
    let inputs = taken.into_iter().map(|request| Input::Audit(request).into()).collect();
    let answered = commands.submit(QueueKey::Controller, &Caller::Worker, inputs, 0).await;
    let refused = match answered {
        Ok(answered) => answered.into_iter().find_map(|answered| answered.result.err()),
        Err(refusal) => Some(refusal),
    };
    if let Some(refusal) = refused {
        tracing::warn!(%refusal, "refused requests are missing in the audit log");
    }
}
