//! The age of what a controller shows. One of several that hears nothing from the log, or does not keep up with it,
//! would show an old state and not know it: after a bound it refuses all reads, and ends streams, so that agents and
//! clients go to another controller.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use periapt_host_api::{ErrorCode, Refusal, Revision};
use periapt_log::{LEADERSHIP_TTL, Log};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::age::{AgeClock, AgeMoment};
use crate::published::Subscription;

/// The age above which nothing is shown.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(5);

/// The interval of questions to the log, and the longest wait for an answer.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// The pause before a question for which requests wait: however many wait, the log answers no more of them.
const ASK_SOON: Duration = Duration::from_millis(20);

// Another controller leads before this one refuses, so that there is one to go to; and a lost answer is no reason.
const _: () = assert!(LEADERSHIP_TTL.as_millis() < MAX_AGE.as_millis());
const _: () = assert!(4 * ASK_EVERY.as_millis() < MAX_AGE.as_millis());

/// The age of what this controller shows. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Freshness(Option<Arc<Known>>);

/// The freshness of one of several controllers.
#[derive(Debug)]
struct Known {
    clock: AgeClock,
    /// The last moment of which all entries are known to be applied.
    confirmed: watch::Sender<AgeMoment>,
    /// The last moment for whose confirmation a request waits.
    awaited: watch::Sender<Instant>,
    /// True while the age is above the bound, as far as the part that asks the log has noticed.
    is_stale: watch::Sender<bool>,
    /// The end of the log that it told last.
    end: AtomicU64,
    /// Notified when the log's end is before what this controller has applied.
    set_back: Notify,
}

impl Known {
    fn is_awaited(&self) -> bool {
        *self.awaited.borrow() > self.confirmed.borrow().at
    }
}

impl Freshness {
    /// The freshness of a controller without a log, which shows its own state.
    pub(crate) fn of_one() -> Self {
        Self(None)
    }

    /// The freshness of one of several controllers. It counts from now.
    pub(crate) fn of_several() -> Self {
        Self::counting(AgeClock::of_machine())
    }

    /// The freshness of one of several controllers, by a clock. It counts from now.
    fn counting(clock: AgeClock) -> Self {
        let now = clock.now();
        let (confirmed, awaited) = (watch::Sender::new(now), watch::Sender::new(now.at));
        let (is_stale, end, set_back) = (watch::Sender::new(false), AtomicU64::new(0), Notify::new());
        Self(Some(Arc::new(Known { clock, confirmed, awaited, is_stale, end, set_back })))
    }

    /// Returns true if what this controller shows may be older than the bound.
    pub(crate) fn is_stale(&self) -> bool {
        // By the clock: a process that was stopped for a while, or whose machine was suspended, knows it before its parts
        // do.
        self.age().is_some_and(|age| age > MAX_AGE)
    }

    /// Returns the end of the log, as it was told last; none of a controller without a log.
    pub(super) fn end(&self) -> Option<Revision> {
        self.0.as_ref().map(|known| Revision(known.end.load(Ordering::Relaxed)))
    }

    /// Returns the time for which this controller may not have applied what the log has; none without a log.
    pub(super) fn age(&self) -> Option<Duration> {
        self.0.as_ref().map(|known| known.clock.since(*known.confirmed.borrow()))
    }

    /// Refuses what an old state would answer.
    ///
    /// # Errors
    /// [`ErrorCode::TryAgain`]: clients ask the next controller that they know.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if !self.is_stale() {
            return Ok(());
        }
        let age = self.age().unwrap_or_default().as_secs();
        let text = format!(
            "this controller has not been up to date with its log for {age} s, and shows no old state: ask another one, \
             or look at the log's etcd"
        );
        Err(Refusal::new(ErrorCode::TryAgain, text))
    }

    /// Waits until this controller is stale; for ever if it shares no log.
    pub(crate) async fn lost(self) {
        let Some(known) = self.0 else { return std::future::pending().await };
        // The sender is held here.
        let _ = known.is_stale.subscribe().wait_for(|is_stale| *is_stale).await;
    }

    /// Waits until the log tells an end before what this controller has applied: its etcd was set back. For ever if it
    /// shares no log.
    pub(super) async fn set_back(&self) {
        match &self.0 {
            Some(known) => known.set_back.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until this controller has applied all that was in the log when the wait began. Requests that wait at the same
    /// time share a question to the log.
    pub(crate) async fn caught_up(&self) {
        let Some(known) = &self.0 else { return };
        let since = Instant::now();
        let mut confirmed = known.confirmed.subscribe();
        known.awaited.send_replace(since);
        // The sender is held here.
        let _ = confirmed.wait_for(|confirmed| confirmed.at >= since).await;
    }

    /// Asks the log at intervals for its end, until the controller stops: all that was in the log at that moment is shown
    /// once this controller has applied as much.
    pub(crate) async fn keep(self, log: Arc<dyn Log>, state: Subscription, stop: CancellationToken) {
        let Some(known) = self.0.clone() else { return };
        let mut awaited = known.awaited.subscribe();
        // The moment of the last answer, and the end of the log then, which is not reached yet.
        let mut waiting: Option<(AgeMoment, Revision)> = None;
        while !stop.is_cancelled() {
            if waiting.is_none() {
                let (asked, applied) = (known.clock.now(), state.current().revision());
                match timeout(ASK_EVERY, log.end()).await {
                    // What was applied before the question is in the log: this is not the log any more that it was.
                    Ok(Ok(end)) if end < applied => known.set_back.notify_one(),
                    Ok(Ok(end)) => {
                        known.end.store(end.0, Ordering::Relaxed);
                        waiting = Some((asked, end));
                    }
                    Ok(Err(error)) => tracing::debug!(%error, "the log does not tell its end"),
                    Err(_) => tracing::debug!("the log does not tell its end in time"),
                }
            }
            let reached = waiting.take_if(|(_, end)| state.current().revision() >= *end);
            self.note(&known, reached.map(|(asked, _)| asked));
            let pause = if waiting.is_none() && known.is_awaited() { ASK_SOON } else { ASK_EVERY };
            let asked_for = async {
                // The sender is held here.
                let _ = awaited.changed().await;
                sleep(ASK_SOON).await;
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(pause) => {}
                () = asked_for => {}
                // An entry that is on its way needs no whole interval.
                () = reach(state.clone(), waiting.map(|(_, end)| end)) => {}
            }
        }
    }

    fn note(&self, known: &Known, fresh_at: Option<AgeMoment>) {
        if let Some(at) = fresh_at {
            known.confirmed.send_replace(at);
        }
        let is_stale = self.is_stale();
        let has_changed = known.is_stale.send_if_modified(|was| std::mem::replace(was, is_stale) != is_stale);
        match (has_changed, is_stale) {
            (true, true) => {
                tracing::error!("not up to date with the log: nothing is shown until this controller is")
            }
            (true, false) => tracing::info!("up to date with the log again"),
            (false, _) => {}
        }
    }
}

/// Waits until a state has reached a revision; for ever if there is none to reach.
async fn reach(mut state: Subscription, revision: Option<Revision>) {
    let Some(revision) = revision else { return std::future::pending().await };
    while state.seen().revision() < revision {
        if !state.changed().await {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::StoreId;
    use periapt_log::MemoryLog;
    use periapt_model::Root;
    use tokio::time::advance;

    use super::*;
    use crate::published::{Changed, Origin, Published, Publisher};

    const LOG: StoreId = StoreId(uuid::Uuid::from_u128(1));

    /// Returns the freshness of a controller whose machine was suspended for so many milliseconds.
    fn on_machine(suspended_ms: &Arc<AtomicU64>) -> Freshness {
        let suspended_ms = Arc::clone(suspended_ms);
        Freshness::counting(AgeClock::with_suspensions(move || {
            Duration::from_millis(suspended_ms.load(Ordering::Relaxed))
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_for_which_the_machine_was_suspended_is_part_of_the_age() {
        let suspended_ms = Arc::new(AtomicU64::new(600_000));
        let freshness = on_machine(&suspended_ms);
        advance(Duration::from_secs(4)).await;
        assert!(freshness.check().is_ok(), "it was suspended before");
        suspended_ms.fetch_add(1_000, Ordering::Relaxed);
        assert!(!freshness.is_stale());
        suspended_ms.fetch_add(1, Ordering::Relaxed);
        assert!(freshness.is_stale());
        suspended_ms.fetch_add(60_000, Ordering::Relaxed);
        let refusal = freshness.check().unwrap_err();
        assert_eq!(refusal.code, ErrorCode::TryAgain, "{refusal}");
        assert!(refusal.message.contains("for 65 s"), "{refusal}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_controller_whose_machine_was_suspended_shows_nothing_until_the_log_has_answered() {
        let suspended_ms = Arc::new(AtomicU64::new(0));
        let freshness = on_machine(&suspended_ms);
        let (log, stop) = (MemoryLog::new(LOG).member(), CancellationToken::new());
        let first = Published {
            root: Root::default(),
            store: LOG,
            changed: Changed::at_start(Revision(0)),
            problem: None,
            since: Instant::now(),
        };
        let publisher = Publisher::new(first, Origin::Log);
        let keeping = freshness.clone().keep(Arc::new(log.clone()), publisher.subscribe(), stop.clone());
        let keeping = tokio::spawn(keeping);
        advance(ASK_EVERY).await;
        freshness.caught_up().await;
        assert!(!freshness.is_stale());

        log.cut_off();
        suspended_ms.store(6_000, Ordering::Relaxed);
        assert!(freshness.is_stale(), "the first request after it is refused");
        freshness.clone().lost().await;
        log.reconnect();
        assert!(freshness.is_stale());
        freshness.caught_up().await;
        assert!(!freshness.is_stale());
        stop.cancel();
        keeping.await.unwrap();
    }
}
