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

/// The most failing workers that another controller may tell of itself: a later version has a few more than this one.
const MAX_TOLD: usize = 16;

/// A background worker of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Worker {
    /// Tells the model which agents are connected.
    Agents,
    /// Writes the sums of refused requests into the audit log.
    Audit,
    /// Raises the level of what is stored.
    Level,
    /// Does what the model says is due.
    Work,
    /// Moves models to other controllers.
    Migrations,
    /// Fetches registered blobs that this controller lacks.
    Copies,
    /// Syncs the store of one of several controllers.
    Sync,
    /// Trims the log of several controllers.
    Trimming,
    /// Deletes what is kept no longer.
    Pruning,
}

impl Worker {
    /// All workers, in the order in which they start.
    pub(crate) const ALL: [Self; 9] = [
        Self::Agents,
        Self::Audit,
        Self::Level,
        Self::Work,
        Self::Migrations,
        Self::Copies,
        Self::Sync,
        Self::Trimming,
        Self::Pruning,
    ];

    /// Returns the name by which operators are told of the worker.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Audit => "audit",
            Self::Level => "level",
            Self::Work => "work",
            Self::Migrations => "migrations",
            Self::Copies => "copies",
            Self::Sync => "sync",
            Self::Trimming => "trimming",
            Self::Pruning => "pruning",
        }
    }
}

/// The workers that failed a short while ago. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkerHealth {
    failing: Arc<Mutex<BTreeMap<Worker, FailingWorker>>>,
    #[cfg(test)]
    pub(crate) sabotage: Sabotage,
}

impl WorkerHealth {
    /// Returns the workers that failed, by name.
    pub(crate) fn failing(&self) -> Vec<FailingWorker> {
        self.failing.lock().values().cloned().collect()
    }

    /// Does the work of a worker that starts.
    pub(crate) async fn started(self, worker: Worker, work: impl Future<Output = ()>) {
        tracing::debug!(worker = worker.name(), "a worker starts");
        #[cfg(test)]
        self.sabotage.started(worker);
        work.await;
    }

    fn failed(&self, worker: Worker, message: String, clock: &dyn Clock) {
        let name = worker.name();
        tracing::error!(worker = name, %message, "a worker failed, and is started again");
        metrics().worker_failures.inc(&[name]);
        let mut failing = self.failing.lock();
        let since = failing.get(&worker).map_or_else(|| clock.now(), |worker| worker.since);
        let failures = failing.get(&worker).map_or(1, |worker| worker.failures.saturating_add(1));
        failing.insert(worker, FailingWorker { name: name.to_owned(), since, failures, message });
    }

    fn is_well(&self, worker: Worker) {
        self.failing.lock().remove(&worker);
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
    pub(crate) async fn keep<F>(self, worker: Worker, start: impl Fn() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        loop {
            let mut running = tokio::spawn(start());
            let ended = tokio::select! {
                ended = &mut running => ended,
                () = tokio::time::sleep(WELL_AFTER) => {
                    self.health.is_well(worker);
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
            self.health.failed(worker, message, &*self.clock);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(backoff.failed()) => {}
            }
        }
    }
}

/// Returns what another controller tells of its failing workers, within the bounds of what this one would tell.
pub(crate) fn bounded(mut told: Vec<FailingWorker>) -> Vec<FailingWorker> {
    told.truncate(MAX_TOLD);
    for worker in &mut told {
        worker.name = shortened(&worker.name);
        worker.message = shortened(&worker.message);
    }
    told
}

/// Returns the text of a panic.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    shortened(text.unwrap_or("it panicked"))
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

/// The workers that a test lets panic as they start, and the starts of each.
#[cfg(test)]
#[derive(Debug, Clone, Default)]
pub(crate) struct Sabotage(Arc<Mutex<SabotageState>>);

/// The worker that panics, and the starts of all.
#[cfg(test)]
#[derive(Debug, Default)]
struct SabotageState {
    broken: Option<Worker>,
    starts: Vec<(Worker, tokio::time::Instant)>,
}

#[cfg(test)]
impl Sabotage {
    /// Lets the worker panic whenever it starts. Any other one starts as it should.
    pub(crate) fn set(&self, worker: Option<Worker>) {
        self.0.lock().broken = worker;
    }

    /// Returns the times at which a worker was started.
    pub(crate) fn starts(&self, worker: Worker) -> Vec<tokio::time::Instant> {
        self.0.lock().starts.iter().filter(|(started, _)| *started == worker).map(|(_, at)| *at).collect()
    }

    /// Notes the start of a worker, and panics if that is told to fail.
    pub(crate) fn started(&self, worker: Worker) {
        let broken = {
            let mut state = self.0.lock();
            state.starts.push((worker, tokio::time::Instant::now()));
            state.broken
        };
        assert_ne!(broken, Some(worker), "sabotage");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn what_another_controller_tells_of_its_workers_is_bounded() {
        let told = FailingWorker {
            name: "n".repeat(10_000),
            since: periapt_host_api::Timestamp::UNIX_EPOCH,
            failures: u32::MAX,
            message: "ü".repeat(10_000),
        };
        let kept = bounded(vec![told; 100]);
        assert_eq!(kept.len(), MAX_TOLD);
        assert!(kept.iter().all(|worker| worker.name.len() == MAX_TEXT));
        assert!(kept.iter().all(|worker| worker.message.chars().count() == MAX_TEXT));
    }

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
        let failing = supervisor.clone().keep(Worker::Pruning, move || {
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
        let working = supervisor.keep(Worker::Work, move || {
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
        assert_eq!((&*told.name, told.failures, &*told.message), ("pruning", 2, "no 1"));
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
