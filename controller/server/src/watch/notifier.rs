//! The notifier: it wakes watchers a few at a time, so that a commit waits for none of them.
//!
//! The writer wakes one notifier, whatever the number of watchers. All watchers of the same topic form a watcher
//! group, which goes from one state to the same next one, so its answers are made once. The groups take turns, a few
//! subscribers each, and other tasks run in between. So a group of a thousand delays neither commits nor small
//! groups, and states that come while it is being woken add one more round in all, not one each.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{ModelUuid, Revision};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::published::{Published, Subscription};

/// The number of a group's subscribers that are woken before other tasks have their turn: about the work of one
/// commit.
const AT_A_TIME: usize = 16;
/// The longest pause of a notifier. Groups that were added meanwhile may be due earlier than those that it knew.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// A topic that a watcher group waits for.
pub(crate) trait Topic: Ord + Clone + Send + Sync + 'static {
    /// The data that the group shares.
    type Shared: std::fmt::Debug + Send + Sync + 'static;

    /// The shortest time between two states that the group is shown.
    const PACE: Duration;
    /// The time after which the group is shown a state without differences; none means never.
    const AGAIN: Option<Duration>;

    /// True if the topic may change without a write in its model.
    const OF_ALL: bool;

    /// Returns the model of the topic.
    fn model(&self) -> ModelUuid;

    /// Returns true if the topic may differ between two states.
    fn differs(&self, before: &Published, after: &Published) -> bool;

    /// Returns the time at which the group is to be shown `now`, given the state that it was shown last.
    fn due(&self, shown: &ShownState, now: &Published) -> Option<Instant> {
        let after = if self.differs(&shown.published, now) { Some(Self::PACE) } else { Self::AGAIN };
        after.map(|after| shown.since + after)
    }
}

/// A notifier: the watcher groups of one kind of topic. Cloning is cheap.
#[derive(Debug)]
pub(crate) struct Notifier<T: Topic>(Arc<Mutex<WatcherGroups<T>>>);

impl<T: Topic> Clone for Notifier<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Topic> Default for Notifier<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(WatcherGroups {
            models: BTreeMap::new(),
            due: BTreeSet::new(),
            rounds: BTreeSet::new(),
            notified_for: None,
            looked_at: 0,
            next_subscriber: 0,
        })))
    }
}

#[derive(Debug)]
struct WatcherGroups<T: Topic> {
    /// The groups by model: a commit concerns the groups of the models that it writes.
    models: BTreeMap<ModelUuid, BTreeMap<T, WatcherGroup<T>>>,
    /// The due times of groups that are in no round. An entry whose group has another time now, or is gone, is
    /// skipped.
    due: BTreeSet<(Instant, T)>,
    /// The groups of which some subscribers are not woken yet.
    rounds: BTreeSet<T>,
    /// The last state for which groups were woken.
    notified_for: Option<Arc<Published>>,
    /// The number of looks at a group so far.
    looked_at: u64,
    next_subscriber: u64,
}

#[derive(Debug)]
struct WatcherGroup<T: Topic> {
    shared_state: Arc<GroupState<T>>,
    subscribers: BTreeMap<u64, Arc<Notify>>,
    /// The subscriber at which the round goes on; none if all are woken.
    round: Option<u64>,
    /// The time of the next look.
    due: Option<Instant>,
}

#[derive(Debug)]
struct GroupState<T: Topic> {
    shown: Mutex<ShownState>,
    shared: T::Shared,
}

/// The state that a group is shown.
#[derive(Debug, Clone)]
pub(crate) struct ShownState {
    /// The number of the state in this group. Each next state has a higher number, even if nothing was written.
    pub(crate) number: u64,
    /// The published state.
    pub(crate) published: Arc<Published>,
    since: Instant,
}

/// A subscriber: one watcher in its group. It leaves when it is dropped.
#[derive(Debug)]
pub(crate) struct Subscriber<T: Topic> {
    notifier: Notifier<T>,
    topic: T,
    number: u64,
    shared_state: Arc<GroupState<T>>,
    wake: Arc<Notify>,
}

/// The next step of a notifier.
enum Next {
    /// Some subscribers are not woken yet.
    GoOn,
    /// Nothing is due before this time.
    Rest(Option<Instant>),
}

impl<T: Topic> Notifier<T> {
    /// Adds a subscriber to the group of a topic. The group is shown the current state at once if it has newer
    /// writes: a new watcher must see all that was written before it came.
    pub(crate) fn join(
        &self,
        topic: T,
        current: Arc<Published>,
        shared: impl FnOnce() -> T::Shared,
    ) -> Subscriber<T> {
        self.join_after(Revision(0), topic, current, shared)
    }

    /// Adds a subscriber that has seen a revision, which the current state has. The group is shown the current state at
    /// once if it was shown an older one than the subscriber has seen, whatever differs.
    pub(crate) fn join_after(
        &self,
        seen: Revision,
        topic: T,
        current: Arc<Published>,
        shared: impl FnOnce() -> T::Shared,
    ) -> Subscriber<T> {
        let (mut groups, now) = (self.lock(), Instant::now());
        let groups = &mut *groups;
        let number = groups.next_subscriber;
        groups.next_subscriber += 1;
        let of_model = groups.models.entry(topic.model()).or_default();
        let group = of_model.entry(topic.clone()).or_insert_with(|| {
            let shown = ShownState { number: 0, published: Arc::clone(&current), since: now };
            let shared_state = GroupState { shown: Mutex::new(shown), shared: shared() };
            // The notifier may have a newer state already, so it looks at once.
            groups.due.insert((now, topic.clone()));
            WatcherGroup {
                shared_state: Arc::new(shared_state),
                subscribers: BTreeMap::new(),
                round: None,
                due: Some(now),
            }
        });
        let shown = group.shared_state.shown().published;
        // The notifier may have shown a newer state meanwhile.
        let is_new = topic.differs(&shown, &current) || shown.revision() < seen;
        if shown.revision() <= current.revision() && is_new {
            group.show(current, now);
            groups.rounds.insert(topic.clone());
        }
        let wake = Arc::new(Notify::new());
        group.subscribers.insert(number, Arc::clone(&wake));
        Subscriber {
            notifier: self.clone(),
            shared_state: Arc::clone(&group.shared_state),
            topic,
            number,
            wake,
        }
    }

    /// Wakes subscribers until the controller stops.
    pub(crate) async fn run(self, mut state: Subscription, stop: CancellationToken) {
        loop {
            let rest = match self.notify(&state.seen(), Instant::now()) {
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

    /// Wakes a few subscribers of each group that has something new.
    fn notify(&self, published: &Arc<Published>, now: Instant) -> Next {
        self.lock().notify(published, now)
    }

    fn lock(&self) -> MutexGuard<'_, WatcherGroups<T>> {
        // Each call leaves the groups consistent.
        self.0.lock()
    }
}

impl<T: Topic> WatcherGroups<T> {
    fn notify(&mut self, published: &Arc<Published>, now: Instant) -> Next {
        for topic in self.concerned(published) {
            self.look(&topic, published, now);
        }
        while self.due.first().is_some_and(|(due, _)| *due <= now) {
            let Some((due, topic)) = self.due.pop_first() else { break };
            if self.group(&topic).is_some_and(|group| group.due == Some(due)) {
                self.look(&topic, published, now);
            }
        }
        for topic in self.rounds.clone() {
            if self.group(&topic).is_none_or(|group| !group.notify()) {
                self.rounds.remove(&topic);
                self.look(&topic, published, now);
            }
        }
        match self.rounds.is_empty() {
            true => Next::Rest(self.due.first().map(|(due, _)| *due)),
            false => Next::GoOn,
        }
    }

    /// Returns the groups whose answers may differ between a state and the last one.
    fn concerned(&mut self, published: &Arc<Published>) -> Vec<T> {
        let Some(before) = self.notified_for.replace(Arc::clone(published)) else { return self.all() };
        if Arc::ptr_eq(&before, published) {
            return Vec::new();
        }
        let written = published.changed.models_since(&before.changed);
        match written.filter(|_| before.store == published.store && !T::OF_ALL) {
            Some(models) => {
                let groups = models.iter().filter_map(|model| self.models.get(model));
                groups.flat_map(|groups| groups.keys().cloned()).collect()
            }
            None => self.all(),
        }
    }

    fn all(&self) -> Vec<T> {
        self.models.values().flat_map(|groups| groups.keys().cloned()).collect()
    }

    fn group(&mut self, topic: &T) -> Option<&mut WatcherGroup<T>> {
        self.models.get_mut(&topic.model())?.get_mut(topic)
    }

    /// Shows a group a state if that is due, or notes the due time. A group in a round waits until all subscribers
    /// are woken.
    fn look(&mut self, topic: &T, published: &Arc<Published>, now: Instant) {
        self.looked_at += 1;
        let Some(group) = self.group(topic).filter(|group| group.round.is_none()) else { return };
        let due = topic.due(&group.shared_state.shown(), published);
        if due.is_some_and(|due| due <= now) {
            group.show(Arc::clone(published), now);
            self.rounds.insert(topic.clone());
            return;
        }
        let before = std::mem::replace(&mut group.due, due);
        if let Some(before) = before {
            self.due.remove(&(before, topic.clone()));
        }
        self.due.extend(due.map(|due| (due, topic.clone())));
    }
}

impl<T: Topic> WatcherGroup<T> {
    /// Begins a round with a state. Subscribers that an unfinished round has not reached are shown this one.
    fn show(&mut self, published: Arc<Published>, now: Instant) {
        let mut shown = self.shared_state.lock();
        *shown = ShownState { number: shown.number + 1, published, since: now };
        self.round = Some(0);
    }

    /// Wakes a few subscribers of the round. Returns true if the round has to go on.
    fn notify(&mut self) -> bool {
        let Some(from) = self.round else { return false };
        let mut rest = self.subscribers.range(from..);
        for (_, wake) in rest.by_ref().take(AT_A_TIME) {
            wake.notify_one();
        }
        self.round = rest.next().map(|(subscriber, _)| *subscriber);
        self.round.is_some()
    }
}

impl<T: Topic> GroupState<T> {
    fn lock(&self) -> MutexGuard<'_, ShownState> {
        // The value is replaced in one step.
        self.shown.lock()
    }

    fn shown(&self) -> ShownState {
        self.lock().clone()
    }
}

impl<T: Topic> Subscriber<T> {
    /// Returns the state that the group is shown now.
    pub(crate) fn shown(&self) -> ShownState {
        self.shared_state.shown()
    }

    /// Returns true if the group has no other subscriber now.
    pub(crate) fn is_alone(&self) -> bool {
        // The group and each subscriber hold one reference each.
        Arc::strong_count(&self.shared_state) <= 2
    }

    /// Returns the topic.
    pub(crate) fn topic(&self) -> &T {
        &self.topic
    }

    /// Returns the data that the group shares.
    pub(crate) fn shared(&self) -> &T::Shared {
        &self.shared_state.shared
    }

    /// Waits until the group is shown a state since the last call.
    pub(crate) async fn notified(&self) {
        self.wake.notified().await;
    }
}

impl<T: Topic> Drop for Subscriber<T> {
    fn drop(&mut self) {
        let mut groups = self.notifier.lock();
        let groups = &mut *groups;
        let model = self.topic.model();
        let Some(of_model) = groups.models.get_mut(&model) else { return };
        if let Some(group) = of_model.get_mut(&self.topic) {
            group.subscribers.remove(&self.number);
            if group.subscribers.is_empty() {
                // Otherwise a client that opens and closes streams would leave an entry for each.
                if let Some(due) = group.due {
                    groups.due.remove(&(due, self.topic.clone()));
                }
                groups.rounds.remove(&self.topic);
                of_model.remove(&self.topic);
            }
        }
        if of_model.is_empty() {
            groups.models.remove(&model);
        }
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::StoreId;
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
        Arc::new(Published {
            root,
            store: StoreId(uuid::Uuid::nil()),
            changed,
            problem: None,
            since: Instant::now(),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_looks_at_the_groups_of_its_model_alone() {
        let notifier = Notifier::<LogOf>::default();
        let first = wrote(1, model(1));
        let subscribers: Vec<_> = (0..MODELS)
            .map(|number| notifier.join(LogOf(model(number)), Arc::clone(&first), || ()))
            .collect();
        assert!(matches!(notifier.notify(&first, Instant::now()), Next::Rest(_)));
        let looked_at = |notifier: &Notifier<LogOf>| notifier.lock().looked_at;
        let at_first = looked_at(&notifier);
        assert!(at_first >= MODELS as u64, "all of them are new");
        tokio::time::advance(Duration::from_secs(1)).await;
        for revision in 2..12 {
            notifier.notify(&wrote(revision, model(1)), Instant::now());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        // Each group is looked at when its model is written, and after its round.
        assert!(looked_at(&notifier) - at_first <= 4 * 10, "{} looks", looked_at(&notifier) - at_first);
        let shown = |number: usize| subscribers[number].shown().published.revision();
        assert_eq!((shown(1), shown(2)), (Revision(11), Revision(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_subscriber_that_comes_and_goes_leaves_no_entry() {
        let notifier = Notifier::<LogOf>::default();
        let (old, new) = (wrote(1, model(1)), wrote(2, model(1)));
        for _ in 0..100 {
            let subscriber = notifier.join(LogOf(model(1)), Arc::clone(&old), || ());
            notifier.notify(&new, Instant::now());
            tokio::time::advance(Duration::from_millis(1)).await;
            drop(subscriber);
        }
        let groups = notifier.lock();
        assert!(groups.models.is_empty() && groups.due.is_empty() && groups.rounds.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_that_comes_with_an_older_state_is_shown_what_the_notifier_knows() {
        let notifier = Notifier::<LogOf>::default();
        let (old, new) = (wrote(1, model(1)), wrote(2, model(1)));
        let _other = notifier.join(LogOf(model(2)), Arc::clone(&new), || ());
        notifier.notify(&new, Instant::now());
        let subscriber = notifier.join(LogOf(model(1)), old, || ());
        tokio::time::advance(Duration::from_secs(1)).await;
        notifier.notify(&new, Instant::now());
        assert_eq!(subscriber.shown().published.revision(), Revision(2));
    }
}
