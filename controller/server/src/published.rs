//! The published states: the newest durable state, and those shortly before it.

mod history;

use std::{sync::Arc, time::Duration};

use imbl::{OrdMap, Vector, ordmap::DiffItem};
use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{
    ModelUuid, Revision, StoreId,
    trace::{MAX_FRAME_TRACES, RevisionTrace, TraceContext},
};
use periapt_model::Root;
use periapt_store::Batch;
use tokio::{sync::watch, time::Instant};

use self::history::History;

/// The bytes of memory of an entity besides its stored form: the copied nodes of the maps that lead to it.
const ENTITY_BYTES: usize = 4 << 10;

/// The most commands that are known as causes of the newest revisions. A frame of older revisions names no cause.
const CAUSES: usize = 256;
/// The time for which a whole view names the commands that its newest revisions come from: a runner that starts because
/// of a command requests the view within this time.
const CAUSES_OF_WHOLE_VIEW: Duration = Duration::from_secs(30);

/// The durable state at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    /// The state of the controller.
    pub(crate) root: Root,
    /// The id of the store, to which the revisions belong.
    pub(crate) store: StoreId,
    /// The revisions of the last writes.
    pub(crate) changed: Changed,
    /// The reason why nothing can be written now, for people; none if writes work.
    pub(crate) problem: Option<String>,
    /// The time of its publication.
    pub(crate) since: Instant,
}

impl Published {
    /// Returns the durable revision.
    pub(crate) fn revision(&self) -> Revision {
        self.root.revision()
    }
}

/// The revision of the last write in each model, and of the last write outside of models.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changed {
    /// The revision at which the state was loaded.
    loaded: Revision,
    outside: Revision,
    models: OrdMap<ModelUuid, Revision>,
    /// The traced commands of the newest revisions, the oldest first.
    causes: Vector<Cause>,
}

/// A traced command that wrote in a model.
#[derive(Debug, Clone, Copy)]
struct Cause {
    model: ModelUuid,
    revision: Revision,
    context: TraceContext,
    at: Instant,
}

impl Changed {
    /// Returns the value after a start: everything counts as written at the loaded revision.
    pub(crate) fn at_start(revision: Revision) -> Self {
        Self { loaded: revision, outside: revision, models: OrdMap::new(), causes: Vector::new() }
    }

    /// Notes a write outside of models.
    pub(crate) fn note_outside(&mut self, revision: Revision) {
        self.outside = revision;
    }

    /// Notes a write in a model.
    pub(crate) fn note_model(&mut self, model: ModelUuid, revision: Revision) {
        self.models.insert(model, revision);
    }

    /// Notes the traced command that a model's write comes from. The oldest is forgotten for it.
    pub(crate) fn note_cause(&mut self, model: ModelUuid, revision: Revision, context: TraceContext) {
        if self.causes.len() >= CAUSES {
            self.causes.pop_front();
        }
        self.causes.push_back(Cause { model, revision, context, at: Instant::now() });
    }

    /// Returns the commands that a model's writes after a revision come from, as far as they are known: the newest, in
    /// order. Without a revision, those of the last moments.
    pub(crate) fn traces(&self, model: &ModelUuid, after: Option<Revision>) -> Vec<RevisionTrace> {
        let is_new = |cause: &&Cause| match after {
            Some(after) => cause.revision > after,
            None => cause.at.elapsed() < CAUSES_OF_WHOLE_VIEW,
        };
        let newest = self.causes.iter().rev().take_while(is_new).filter(|cause| cause.model == *model);
        let mut traces: Vec<_> = newest
            .take(MAX_FRAME_TRACES)
            .map(|Cause { revision, context, .. }| RevisionTrace { revision: *revision, context: *context })
            .collect();
        traces.reverse();
        traces
    }

    /// Returns the models that may look different since `then`, or none if it may be any of them.
    pub(crate) fn models_since(&self, then: &Self) -> Option<Vec<ModelUuid>> {
        if self.outside == then.outside { self.written_since(then) } else { None }
    }

    /// Returns the models that were written since `then`, whatever was written outside of models. Returns none if it may
    /// be any of them, because the state was loaded again.
    pub(crate) fn written_since(&self, then: &Self) -> Option<Vec<ModelUuid>> {
        let written = || then.models.diff(&self.models);
        let model = |item| match item {
            DiffItem::Add(model, _)
            | DiffItem::Remove(model, _)
            | DiffItem::Update { new: (model, _), .. } => *model,
        };
        (self.loaded == then.loaded).then(|| written().map(model).collect())
    }

    /// Returns the revision since which a model looks as it does now.
    pub(crate) fn model(&self, model: &ModelUuid) -> Revision {
        self.models.get(model).copied().unwrap_or_default().max(self.outside)
    }
}

/// The origin of published states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The controller's own writer: no newer state than the published one was ever shown.
    Writer,
    /// A log that other controllers apply, too: some may be ahead of this one.
    Log,
}

/// The writer's end: it publishes states.
#[derive(Debug)]
pub(crate) struct Publisher {
    origin: Origin,
    sender: watch::Sender<Arc<Published>>,
    history: Arc<Mutex<History>>,
}

/// A reader's end. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    origin: Origin,
    receiver: watch::Receiver<Arc<Published>>,
    history: Arc<Mutex<History>>,
}

/// The memory that a batch writes, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Weight(usize);

impl Weight {
    /// Returns the weight of a batch.
    pub(crate) fn of(batch: &Batch) -> Self {
        let bytes =
            |(_, value): &(Vec<u8>, Option<Vec<u8>>)| value.as_ref().map_or(0, Vec::len) + ENTITY_BYTES;
        Self(batch.entities.iter().map(bytes).sum())
    }
}

impl Publisher {
    pub(crate) fn new(first: Published, origin: Origin) -> Self {
        let history = History::new(&first);
        Self { origin, sender: watch::Sender::new(Arc::new(first)), history: Arc::new(Mutex::new(history)) }
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        let (receiver, history) = (self.sender.subscribe(), Arc::clone(&self.history));
        Subscription { origin: self.origin, receiver, history }
    }

    pub(crate) fn current(&self) -> Arc<Published> {
        Arc::clone(&self.sender.borrow())
    }

    /// Publishes a state to all readers. `replaced` is the weight of its batch.
    pub(crate) fn publish(&self, next: Published, replaced: Weight) {
        lock(&self.history).push(&self.current(), &next, replaced);
        self.sender.send_replace(Arc::new(next));
    }
}

impl Subscription {
    /// Returns the newest durable state, without marking it as seen.
    pub(crate) fn current(&self) -> Arc<Published> {
        Arc::clone(&self.receiver.borrow())
    }

    /// Returns the newest durable state, and marks it as seen for [`changed`](Self::changed).
    pub(crate) fn seen(&mut self) -> Arc<Published> {
        Arc::clone(&self.receiver.borrow_and_update())
    }

    /// Waits for a state that was not seen. Returns false if there will be none.
    pub(crate) async fn changed(&mut self) -> bool {
        self.receiver.changed().await.is_ok()
    }

    /// Returns true if other controllers show states of the same store.
    pub(crate) fn is_of_several(&self) -> bool {
        self.origin == Origin::Log
    }

    /// Returns true if another controller has shown a revision that this one has not applied yet. One of another store
    /// counts as applied.
    pub(crate) fn is_behind(&self, store: StoreId, revision: Revision) -> bool {
        let now = self.receiver.borrow();
        self.is_of_several() && now.store == store && now.revision() < revision
    }

    /// Waits until this controller has applied a revision that another one has shown. Returns false if there will be no
    /// more states.
    pub(crate) async fn reach(&mut self, store: StoreId, revision: Revision) -> bool {
        loop {
            self.seen();
            if !self.is_behind(store, revision) {
                return true;
            }
            if !self.changed().await {
                return false;
            }
        }
    }

    /// Returns the state at a revision, as far as views of one model show it; none if it is not kept any more.
    pub(crate) fn at(&self, store: StoreId, model: &ModelUuid, revision: Revision) -> Option<Root> {
        lock(&self.history).at(store, model, revision)
    }

    /// Drops states that are too old. The writer does so only with each commit.
    pub(crate) fn forget_old(&self) {
        lock(&self.history).forget_old(Instant::now());
    }
}

fn lock(history: &Mutex<History>) -> MutexGuard<'_, History> {
    // Each call leaves the history consistent.
    history.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_changed_when_it_or_the_outside_was_written() {
        let (one, two) = (ModelUuid(uuid::Uuid::from_u128(1)), ModelUuid(uuid::Uuid::from_u128(2)));
        let mut changed = Changed::at_start(Revision(5));
        let before = changed.clone();
        changed.note_model(one, Revision(7));
        assert_eq!(changed.models_since(&before), Some(vec![one]));
        assert_eq!(changed.models_since(&changed.clone()), Some(vec![]));
        assert_eq!((changed.model(&one), changed.model(&two)), (Revision(7), Revision(5)));
        changed.note_outside(Revision(8));
        assert_eq!(changed.models_since(&before), None);
        assert_eq!(changed.written_since(&before), Some(vec![one]));
        assert_eq!(Changed::at_start(Revision(9)).written_since(&before), None, "loaded again");
        assert_eq!((changed.model(&one), changed.model(&two)), (Revision(8), Revision(8)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_models_writes_are_told_with_the_commands_that_they_come_from() {
        let (one, two) = (ModelUuid(uuid::Uuid::from_u128(1)), ModelUuid(uuid::Uuid::from_u128(2)));
        let context = |span: u64| -> TraceContext {
            format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{span:016x}-01").parse().unwrap()
        };
        let mut changed = Changed::at_start(Revision(5));
        let revisions = |changed: &Changed, model, after: Option<u64>| -> Vec<u64> {
            let traces = changed.traces(model, after.map(Revision));
            assert!(traces.iter().all(|trace| trace.context == context(trace.revision.0)));
            traces.iter().map(|trace| trace.revision.0).collect()
        };
        for revision in [6, 8] {
            changed.note_cause(one, Revision(revision), context(revision));
            changed.note_cause(two, Revision(revision + 1), context(revision + 1));
        }
        assert_eq!(revisions(&changed, &one, Some(5)), [6, 8]);
        assert_eq!(revisions(&changed, &one, Some(6)), [8]);
        assert_eq!(revisions(&changed, &two, None), [7, 9]);
        tokio::time::advance(CAUSES_OF_WHOLE_VIEW).await;
        assert!(revisions(&changed, &two, None).is_empty(), "a returning watcher was not caused by them");
        for revision in 10..10 + 2 * CAUSES as u64 {
            changed.note_cause(one, Revision(revision), context(revision));
        }
        assert_eq!(changed.causes.len(), CAUSES);
        assert_eq!(revisions(&changed, &one, Some(5)).len(), MAX_FRAME_TRACES);
        assert!(revisions(&changed, &two, Some(5)).is_empty(), "others have come since");
    }
}
