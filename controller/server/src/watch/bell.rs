//! Tells those who wait for news, a few at a time, so that a commit waits for none of them.
//!
//! The writer wakes one bell, whatever the number of watchers. Who waits for the same thing is one crowd: all of it
//! goes from one state to the same next one, so what they are told is made once. Crowds are rung in turn, a few seats
//! each, and between these everybody else has a turn: a crowd of a thousand holds up neither commits nor small crowds,
//! and what comes while it is still being rung is one more round, not one more a commit.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use periapt_host_api::ModelUuid;
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

    /// Whether it may differ without a write in its model.
    const OF_ALL: bool;

    /// The model that it is about.
    fn model(&self) -> ModelUuid;

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
        Self(Arc::new(Mutex::new(Crowds {
            models: BTreeMap::new(),
            due: BTreeSet::new(),
            rounds: BTreeSet::new(),
            rung_for: None,
            looked_at: 0,
            next_seat: 0,
        })))
    }
}

#[derive(Debug)]
struct Crowds<T: Topic> {
    /// By the models that they are about: a commit concerns the crowds of the models that it writes.
    models: BTreeMap<ModelUuid, BTreeMap<T, Crowd<T>>>,
    /// When crowds that are in no round are to be looked at. One that has another time since, or is gone, is passed over.
    due: BTreeSet<(Instant, T)>,
    /// Crowds of which some seats were not rung yet.
    rounds: BTreeSet<T>,
    /// The state for which was rung last.
    rung_for: Option<Arc<Published>>,
    /// How often a crowd was looked at so far.
    looked_at: u64,
    next_seat: u64,
}

#[derive(Debug)]
struct Crowd<T: Topic> {
    common: Arc<Common<T>>,
    seats: BTreeMap<u64, Arc<Notify>>,
    /// The seat from which the round goes on; none: all were rung.
    round: Option<u64>,
    /// When it is to be looked at.
    due: Option<Instant>,
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
        let crowds = &mut *crowds;
        let number = crowds.next_seat;
        crowds.next_seat += 1;
        let of_model = crowds.models.entry(topic.model()).or_default();
        let crowd = of_model.entry(topic.clone()).or_insert_with(|| {
            let shown = Shown { number: 0, published: Arc::clone(&current), since: now };
            let common = Common { shown: Mutex::new(shown), shared: shared() };
            // The bell may know a newer state already: it looks at once.
            crowds.due.insert((now, topic.clone()));
            Crowd { common: Arc::new(common), seats: BTreeMap::new(), round: None, due: Some(now) }
        });
        let shown = crowd.common.shown().published;
        // The bell may have shown a newer one meanwhile.
        if shown.revision() <= current.revision() && topic.differs(&shown, &current) {
            crowd.show(current, now);
            crowds.rounds.insert(topic.clone());
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
        self.lock().ring(published, now)
    }

    fn lock(&self) -> MutexGuard<'_, Crowds<T>> {
        // Each call leaves the crowds whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Topic> Crowds<T> {
    fn ring(&mut self, published: &Arc<Published>, now: Instant) -> Next {
        for topic in self.concerned(published) {
            self.look(&topic, published, now);
        }
        while self.due.first().is_some_and(|(due, _)| *due <= now) {
            let Some((due, topic)) = self.due.pop_first() else { break };
            if self.crowd(&topic).is_some_and(|crowd| crowd.due == Some(due)) {
                self.look(&topic, published, now);
            }
        }
        for topic in self.rounds.clone() {
            if self.crowd(&topic).is_none_or(|crowd| !crowd.ring()) {
                self.rounds.remove(&topic);
                self.look(&topic, published, now);
            }
        }
        match self.rounds.is_empty() {
            true => Next::Rest(self.due.first().map(|(due, _)| *due)),
            false => Next::GoOn,
        }
    }

    /// The crowds that a state may be news to, since the one before.
    fn concerned(&mut self, published: &Arc<Published>) -> Vec<T> {
        let Some(before) = self.rung_for.replace(Arc::clone(published)) else { return self.all() };
        if Arc::ptr_eq(&before, published) {
            return Vec::new();
        }
        let written = published.changed.models_since(&before.changed);
        match written.filter(|_| before.store == published.store && !T::OF_ALL) {
            Some(models) => {
                let crowds = models.iter().filter_map(|model| self.models.get(model));
                crowds.flat_map(|crowds| crowds.keys().cloned()).collect()
            }
            None => self.all(),
        }
    }

    fn all(&self) -> Vec<T> {
        self.models.values().flat_map(|crowds| crowds.keys().cloned()).collect()
    }

    fn crowd(&mut self, topic: &T) -> Option<&mut Crowd<T>> {
        self.models.get_mut(&topic.model())?.get_mut(topic)
    }

    /// Shows a crowd a state if that is due, or notes when it will be. In a round, that waits until all were rung.
    fn look(&mut self, topic: &T, published: &Arc<Published>, now: Instant) {
        self.looked_at += 1;
        let Some(crowd) = self.crowd(topic).filter(|crowd| crowd.round.is_none()) else { return };
        let due = topic.due(&crowd.common.shown(), published);
        if due.is_some_and(|due| due <= now) {
            crowd.show(Arc::clone(published), now);
            self.rounds.insert(topic.clone());
            return;
        }
        let before = std::mem::replace(&mut crowd.due, due);
        if let Some(before) = before {
            self.due.remove(&(before, topic.clone()));
        }
        self.due.extend(due.map(|due| (due, topic.clone())));
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
        let crowds = &mut *crowds;
        let model = self.topic.model();
        let Some(of_model) = crowds.models.get_mut(&model) else { return };
        if let Some(crowd) = of_model.get_mut(&self.topic) {
            crowd.seats.remove(&self.number);
            if crowd.seats.is_empty() {
                // Otherwise a client that opens and closes streams would leave an entry for each.
                if let Some(due) = crowd.due {
                    crowds.due.remove(&(due, self.topic.clone()));
                }
                crowds.rounds.remove(&self.topic);
                of_model.remove(&self.topic);
            }
        }
        if of_model.is_empty() {
            crowds.models.remove(&model);
        }
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{Revision, StoreId};
    use periapt_model::{Changes, Root};

    use super::{super::LogOf, *};
    use crate::published::Changed;

    const MODELS: u128 = 1_000;

    fn model(number: u128) -> ModelUuid {
        ModelUuid(uuid::Uuid::from_u128(number))
    }

    fn wrote(revision: u64, model: ModelUuid) -> Arc<Published> {
        let root = Root::default().apply(&Changes::default(), Revision(revision));
        let mut changed = Changed::at_start(Revision(0));
        changed.note_model(model, Revision(revision));
        Arc::new(Published { root, store: StoreId(uuid::Uuid::nil()), changed, problem: None })
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_looks_at_the_crowds_of_its_model_alone() {
        let bell = Bell::<LogOf>::default();
        let first = wrote(1, model(1));
        let seats: Vec<_> =
            (0..MODELS).map(|number| bell.join(LogOf(model(number)), Arc::clone(&first), || ())).collect();
        assert!(matches!(bell.ring(&first, Instant::now()), Next::Rest(_)));
        let looked_at = |bell: &Bell<LogOf>| bell.lock().looked_at;
        let at_first = looked_at(&bell);
        assert!(at_first >= MODELS as u64, "all of them are new");
        tokio::time::advance(Duration::from_secs(1)).await;
        for revision in 2..12 {
            bell.ring(&wrote(revision, model(1)), Instant::now());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        // Each is looked at when it was written, and after its round.
        assert!(looked_at(&bell) - at_first <= 4 * 10, "{} looks", looked_at(&bell) - at_first);
        let shown = |number: usize| seats[number].shown().published.revision();
        assert_eq!((shown(1), shown(2)), (Revision(11), Revision(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_subscriber_that_comes_and_goes_leaves_no_entry() {
        let bell = Bell::<LogOf>::default();
        let (old, new) = (wrote(1, model(1)), wrote(2, model(1)));
        for _ in 0..100 {
            let seat = bell.join(LogOf(model(1)), Arc::clone(&old), || ());
            bell.ring(&new, Instant::now());
            tokio::time::advance(Duration::from_millis(1)).await;
            drop(seat);
        }
        let crowds = bell.lock();
        assert!(crowds.models.is_empty() && crowds.due.is_empty() && crowds.rounds.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_that_comes_with_an_older_state_is_shown_what_the_bell_knows() {
        let bell = Bell::<LogOf>::default();
        let (old, new) = (wrote(1, model(1)), wrote(2, model(1)));
        let _other = bell.join(LogOf(model(2)), Arc::clone(&new), || ());
        bell.ring(&new, Instant::now());
        let seat = bell.join(LogOf(model(1)), old, || ());
        tokio::time::advance(Duration::from_secs(1)).await;
        bell.ring(&new, Instant::now());
        assert_eq!(seat.shown().published.revision(), Revision(2));
    }
}
