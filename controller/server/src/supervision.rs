//! The supervision of background workers: one that fails starts again after a pause, keeps no other from its work, and is
//! told with its reason.

use std::{any::Any, collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use parking_lot::Mutex;
use periapt_client::Backoff;
use periapt_host_api::command::FailingWorker;
use tokio_util::sync::CancellationToken;

use crate::{clock::Clock, metrics::metrics};

/// The first and the longest pause before a worker starts again.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The time after which a worker that was started again counts as well.
const WELL_AFTER: Duration = Duration::from_secs(120);

/// The most characters of a failure's text.
const MAX_TEXT: usize = 400;

/// The workers that failed a short while ago. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkerHealth(Arc<Mutex<BTreeMap<&'static str, FailingWorker>>>);

impl WorkerHealth {
    /// Returns the workers that failed, by name.
    pub(crate) fn failing(&self) -> Vec<FailingWorker> {
        self.0.lock().values().cloned().collect()
    }

    fn failed(&self, name: &'static str, message: String, clock: &dyn Clock) {
        tracing::error!(worker = name, %message, "a worker failed, and is started again");
        metrics().worker_failures.inc(&[name]);
        let mut failing = self.0.lock();
        let since = failing.get(name).map_or_else(|| clock.now(), |worker| worker.since);
        let failures = failing.get(name).map_or(1, |worker| worker.failures.saturating_add(1));
        failing.insert(name, FailingWorker { name: name.to_owned(), since, failures, message });
    }

    fn is_well(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

/// The supervisor of the workers of one controller.
#[derive(Clone)]
pub(crate) struct Supervisor {
    pub(crate) health: WorkerHealth,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stop: CancellationToken,
}

impl Supervisor {
    /// Runs a worker until the controller stops. One that panics, or ends by itself, starts again.
    pub(crate) async fn keep<F>(self, name: &'static str, start: impl Fn() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        loop {
            let mut running = tokio::spawn(start());
            let ended = tokio::select! {
                ended = &mut running => ended,
                () = tokio::time::sleep(WELL_AFTER) => {
                    self.health.is_well(name);
                    backoff.succeeded();
                    running.await
                }
            };
            if self.stop.is_cancelled() {
                return;
            }
            let message = match ended {
                Ok(()) => "it ended by itself".to_owned(),
                Err(error) if error.is_panic() => panic_text(&*error.into_panic()),
                Err(error) => error.to_string(),
            };
            self.health.failed(name, message, &*self.clock);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(backoff.failed()) => {}
            }
        }
    }
}

/// Returns the text of a panic.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it panicked").chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::SystemClock;

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_fails_starts_again_is_told_meanwhile_and_keeps_no_other() {
        let stop = CancellationToken::new();
        let health = WorkerHealth::default();
        let supervisor = Supervisor {
            health: health.clone(),
            clock: Arc::new(SystemClock::default()),
            stop: stop.clone(),
        };
        let (starts, beats) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counted, until) = (Arc::clone(&starts), stop.clone());
        // It panics twice, ends once, and works then.
        let failing = supervisor.clone().keep("records", move || {
            let (start, until) = (counted.fetch_add(1, Ordering::SeqCst), until.clone());
            async move {
                match start {
                    0 | 1 => panic!("no {start}"),
                    2 => {}
                    _ => until.cancelled().await,
                }
            }
        });
        let (counted, until) = (Arc::clone(&beats), stop.clone());
        let working = supervisor.keep("work", move || {
            let (counted, until) = (Arc::clone(&counted), until.clone());
            async move {
                while !until.is_cancelled() {
                    counted.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        });
        let all = tokio::spawn(async move { tokio::join!(failing, working) });

        while starts.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let [told] = health.failing().try_into().unwrap();
        assert_eq!((&*told.name, told.failures, &*told.message), ("records", 2, "no 1"));
        while starts.load(Ordering::SeqCst) < 4 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let [told] = health.failing().try_into().unwrap();
        assert_eq!((told.failures, &*told.message), (3, "it ended by itself"));
        let so_far = beats.load(Ordering::SeqCst);
        tokio::time::sleep(WELL_AFTER + Duration::from_secs(1)).await;
        assert!(health.failing().is_empty(), "it is well again");
        assert!(beats.load(Ordering::SeqCst) > so_far + 100, "the other one works on");
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(60), all).await.unwrap().unwrap();
    }
}
