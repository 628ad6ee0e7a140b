//! Tells those who wait for news, a few at a time, so that a commit waits for none of them.
//!
//! The writer wakes one bell, whatever the number of watchers. Who waits for the same thing is one crowd: all of it
//! goes from one state to the same next one, so what they are told is made once. Crowds are rung in turn, a few seats
//! each, and between these everybody else has a turn: a crowd of a thousand holds up neither commits nor small crowds,
//! and what comes while it is still being rung is one more round, not one more a commit.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::published::{Published, Subscription};

/// How many seats of one crowd are rung before others have their turn: about as much work as one commit is.
const AT_A_TIME: usize = 16;
/// The longest that a bell rests: crowds that came meanwhile may be due earlier than those that it knew.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// What a crowd waits for.
pub(crate) trait Topic: Ord + Clone + Send + Sync + 'static {
    /// What its crowd has in common.
    type Shared: std::fmt::Debug + Send + Sync + 'static;

    /// The least time between two looks.
    const PACE: Duration;
    /// After how long it looks again though nothing differs; none: never.
    const AGAIN: Option<Duration>;

    /// Whether what it waits for may differ between two states.
    fn differs(&self, before: &Published, after: &Published) -> bool;

    /// When it is to look at a state, given which it looked at last, and when.
    fn due(&self, shown: &Shown, now: &Published) -> Option<Instant> {
        let after = if self.differs(&shown.published, now) { Some(Self::PACE) } else { Self::AGAIN };
        after.map(|after| shown.since + after)
    }
}

/// The crowds of one kind of topic. Cloning is cheap.
#[derive(Debug)]
pub(crate) struct Bell<T: Topic>(Arc<Mutex<Crowds<T>>>);

impl<T: Topic> Clone for Bell<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Topic> Default for Bell<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Crowds { crowds: BTreeMap::new(), next_seat: 0 })))
    }
}

#[derive(Debug)]
struct Crowds<T: Topic> {
    crowds: BTreeMap<T, Crowd<T>>,
    next_seat: u64,
}

#[derive(Debug)]
struct Crowd<T: Topic> {
    common: Arc<Common<T>>,
    seats: BTreeMap<u64, Arc<Notify>>,
    /// The seat from which the round goes on; none: all were rung.
    round: Option<u64>,
}

#[derive(Debug)]
struct Common<T: Topic> {
    shown: Mutex<Shown>,
    shared: T::Shared,
}

/// The state that a crowd is to look at.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    /// Which of this crowd's it is; each next one has a higher number, also where nothing was written.
    pub(crate) number: u64,
    /// The state.
    pub(crate) published: Arc<Published>,
    since: Instant,
}

/// One watcher's place in its crowd; it leaves when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat<T: Topic> {
    bell: Bell<T>,
    topic: T,
    number: u64,
    common: Arc<Common<T>>,
    rung: Arc<Notify>,
}

/// What a bell does next.
enum Next {
    /// Some seats were not rung yet.
    GoOn,
    /// Nothing is due before then.
    Rest(Option<Instant>),
}

impl<T: Topic> Bell<T> {
    /// Takes a seat among those who wait for the same. The crowd is shown the present state at once if it has not seen
    /// what was written: who comes reads what was there when it came.
    pub(crate) fn join(
        &self,
        topic: T,
        current: Arc<Published>,
        shared: impl FnOnce() -> T::Shared,
    ) -> Seat<T> {
        let (mut crowds, now) = (self.lock(), Instant::now());
        let number = crowds.next_seat;
        crowds.next_seat += 1;
        let crowd = crowds.crowds.entry(topic.clone()).or_insert_with(|| {
            let shown = Shown { number: 0, published: Arc::clone(&current), since: now };
            let common = Common { shown: Mutex::new(shown), shared: shared() };
            Crowd { common: Arc::new(common), seats: BTreeMap::new(), round: None }
        });
        let shown = crowd.common.shown().published;
        // The bell may have shown a newer one meanwhile.
        if shown.revision() <= current.revision() && topic.differs(&shown, &current) {
            crowd.show(current, now);
        }
        let rung = Arc::new(Notify::new());
        crowd.seats.insert(number, Arc::clone(&rung));
        Seat { bell: self.clone(), common: Arc::clone(&crowd.common), topic, number, rung }
    }

    /// Rings until it is told to stop.
    pub(crate) async fn run(self, mut state: Subscription, stop: CancellationToken) {
        loop {
            let rest = match self.ring(&state.seen(), Instant::now()) {
                Next::GoOn => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Next::Rest(until) => until,
            };
            let longest = Instant::now() + LONGEST_REST;
            tokio::select! {
                () = stop.cancelled() => return,
                alive = state.changed() => if !alive { return },
                () = tokio::time::sleep_until(rest.map_or(longest, |rest| rest.min(longest))) => {}
            }
        }
    }

    /// Rings a few seats of each crowd that has something to look at.
    fn ring(&self, published: &Arc<Published>, now: Instant) -> Next {
        let (mut more, mut earliest) = (false, None);
        for (topic, crowd) in &mut self.lock().crowds {
            if crowd.round.is_none() {
                let shown = crowd.common.shown();
                match topic.due(&shown, published) {
                    Some(due) if due <= now => crowd.show(Arc::clone(published), now),
                    Some(due) => earliest = Some(earliest.map_or(due, |earliest: Instant| earliest.min(due))),
                    None => {}
                }
            }
            more |= crowd.ring();
        }
        match more {
            true => Next::GoOn,
            false => Next::Rest(earliest),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Crowds<T>> {
        // Each call leaves the crowds whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Topic> Crowd<T> {
    /// Begins a round with a state; should one not be finished, those that it has not come to are shown this one.
    fn show(&mut self, published: Arc<Published>, now: Instant) {
        let mut shown = self.common.lock();
        *shown = Shown { number: shown.number + 1, published, since: now };
        self.round = Some(0);
    }

    /// Rings a few seats of the round; whether it has to go on.
    fn ring(&mut self) -> bool {
        let Some(from) = self.round else { return false };
        let mut rest = self.seats.range(from..);
        for (_, rung) in rest.by_ref().take(AT_A_TIME) {
            rung.notify_one();
        }
        self.round = rest.next().map(|(seat, _)| *seat);
        self.round.is_some()
    }
}

impl<T: Topic> Common<T> {
    fn lock(&self) -> MutexGuard<'_, Shown> {
        // It is replaced in one step.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> Shown {
        self.lock().clone()
    }
}

impl<T: Topic> Seat<T> {
    /// What the crowd is to look at now.
    pub(crate) fn shown(&self) -> Shown {
        self.common.shown()
    }

    /// What it waits for.
    pub(crate) fn topic(&self) -> &T {
        &self.topic
    }

    /// What the crowd has in common.
    pub(crate) fn shared(&self) -> &T::Shared {
        &self.common.shared
    }

    /// Waits until there is something to look at that was not there at the last call.
    pub(crate) async fn rung(&self) {
        self.rung.notified().await;
    }
}

impl<T: Topic> Drop for Seat<T> {
    fn drop(&mut self) {
        let mut crowds = self.bell.lock();
        if let Some(crowd) = crowds.crowds.get_mut(&self.topic) {
            crowd.seats.remove(&self.number);
            if crowd.seats.is_empty() {
                crowds.crowds.remove(&self.topic);
            }
        }
    }
}
