//! The data that all watchers of one runner's view share: the views that they were sent last, and the frames from
//! these to the newest, each made once.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use periapt_host_api::{
    AgentName, ModelUuid, Revision, StoreId,
    command::Caller,
    timing::HEARTBEAT,
    view::{Frame, View},
};
use periapt_model::{Root, follow, view};
use tokio::sync::Mutex;

use super::{Encoder, Topic};
use crate::published::Published;

/// The number of views of reconnecting watchers that are remembered, and of frames to the newest view. After a
/// restart, all watchers of a host come back with the same few views.
const REMEMBERED: usize = 4;
/// The number of entries above which a view is made on a separate thread. A step of a smaller view takes less time
/// than the handover.
const LARGE: usize = 256;
/// The number of entries up to which a view is kept only until the first frame after a change. The maps of such a view take ten
/// times the memory of all else that a watcher costs, and it is made again in less time than a commit takes.
const SMALL: usize = 64;

/// The topic of one runner's view. All its watchers see the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ViewOf {
    pub(crate) model: ModelUuid,
    pub(crate) agent: AgentName,
}

impl Topic for ViewOf {
    type Shared = Frames;

    const PACE: Duration = Duration::ZERO;
    /// The heartbeat also renews the states that watchers hold, so that no old state stays alive.
    const AGAIN: Option<Duration> = Some(HEARTBEAT);
    const OF_ALL: bool = false;

    fn model(&self) -> ModelUuid {
        self.model
    }

    /// An empty frame also matters: it says that a revision is reached, and the committer waits for it.
    fn differs(&self, before: &Published, after: &Published) -> bool {
        let continues = before.store == after.store && before.revision() <= after.revision();
        !continues || after.changed.model(&self.model) > before.changed.model(&self.model)
    }
}

/// A view that was sent.
#[derive(Debug)]
pub(crate) struct SentView {
    state: ShownOf,
    /// The view itself. None for a small view that has not changed since the last frame, is the first of its watchers, or is
    /// that of a watcher that came back. It is then made again from its state for the next frame that needs it.
    kept: Option<Box<View>>,
}

/// The state that a view shows.
#[derive(Debug)]
enum ShownOf {
    /// One that was published since the watchers came.
    Published(Arc<Published>),
    /// The one at which a reconnecting watcher left.
    Former(StoreId, Box<Root>),
}

impl ShownOf {
    fn store(&self) -> StoreId {
        match self {
            Self::Published(published) => published.store,
            Self::Former(store, _) => *store,
        }
    }

    fn root(&self) -> &Root {
        match self {
            Self::Published(published) => &published.root,
            Self::Former(_, root) => root,
        }
    }
}

impl SentView {
    fn at(state: ShownOf, caller: &Caller) -> Self {
        let kept = Some(Box::new(view(state.root(), caller)));
        Self { state, kept }
    }

    /// Keeps the view itself only if it is large.
    fn kept_if_large(self) -> Self {
        Self { kept: self.kept.filter(|view| view.entries() > SMALL), ..self }
    }

    /// Returns the view at a later state of the same history.
    fn next(&self, to: &Arc<Published>, caller: &Caller) -> Self {
        let state = ShownOf::Published(Arc::clone(to));
        if self.looks_like(&to.root, caller) {
            let large = self.kept.as_deref().filter(|view| view.entries() > SMALL);
            let kept = large.map(|view| Box::new(View { revision: to.revision(), ..view.clone() }));
            return Self { state, kept };
        }
        let view = follow(self.state.root(), &self.view(caller), &to.root, caller);
        Self { state, kept: Some(Box::new(view)) }
    }

    fn view(&self, caller: &Caller) -> Cow<'_, View> {
        match &self.kept {
            Some(view) => Cow::Borrowed(view),
            None => Cow::Owned(view(self.state.root(), caller)),
        }
    }

    /// Returns true if a state shows the same view. A `false` may be wrong, a `true` never is.
    fn looks_like(&self, root: &Root, caller: &Caller) -> bool {
        match caller {
            Caller::Runner { model, .. } => self.state.root().looks_the_same(root, caller, model),
            _ => false,
        }
    }

    /// Returns the frame that turns this view into a newer one.
    fn frame_to(&self, newer: &Self, caller: &Caller) -> Frame {
        let store = newer.state.store();
        if self.looks_like(newer.state.root(), caller) {
            let (from, to) = (Some(self.revision()), newer.revision());
            return Frame { store, from, to, puts: Vec::new(), deletes: Vec::new(), traces: Vec::new() };
        }
        self.view(caller).frame_to(&newer.view(caller), store)
    }

    /// Returns true if a state is a later one of the same history.
    pub(crate) fn continues_to(&self, published: &Published) -> bool {
        self.state.store() == published.store && self.revision() <= published.revision()
    }

    /// The revision of the view.
    pub(crate) fn revision(&self) -> Revision {
        self.state.root().revision()
    }

    fn is_at(&self, store: StoreId, revision: Revision) -> bool {
        self.state.store() == store && self.revision() == revision
    }

    fn is_large(&self) -> bool {
        self.kept.as_ref().is_some_and(|view| view.entries() > LARGE)
    }
}

/// An encoded frame, and the view that it leads to.
pub(crate) type Sent = (Bytes, Arc<SentView>);

/// The watchers that a frame is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// One watcher, which sees the view alone: nobody else wants its frames.
    One,
    /// Several watchers: each frame is remembered for the others.
    Several,
}

/// The frames of one view.
#[derive(Debug)]
pub(crate) struct Frames {
    caller: Caller,
    encoder: Encoder,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    newest: Option<(Arc<Published>, Arc<SentView>)>,
    /// Frames to the newest view, by the view that they start from, which they do not keep alive.
    frames: VecDeque<(Option<Weak<SentView>>, Bytes)>,
    /// Views of reconnecting watchers.
    resumed: VecDeque<Arc<SentView>>,
}

impl Frames {
    pub(crate) fn new(of: &ViewOf, encoder: Encoder) -> Self {
        let caller = Caller::Runner { agent: of.agent.clone(), model: of.model };
        Self { caller, encoder, memory: Mutex::default() }
    }

    /// Returns the frame from a view, or from nothing, to a state. Returns none if making it failed.
    pub(crate) async fn to(
        &self,
        from: Option<&Arc<SentView>>,
        to: &Arc<Published>,
        audience: impl Fn() -> Audience + Sync,
    ) -> Option<Sent> {
        // The lock is held while a frame is made, so that others who want the same frame wait for it.
        let mut memory = self.memory.lock().await;
        // The changes since the last step fit into a few commits; a whole view, or missed changes, may be of any
        // size.
        let is_step = memory
            .newest
            .as_ref()
            .zip(from)
            .is_some_and(|((at, seen), from)| !Arc::ptr_eq(at, to) && Arc::ptr_eq(seen, from));
        let (base, ready) = match memory.newest.take() {
            Some((at, seen)) if Arc::ptr_eq(&at, to) => {
                let known = memory.frame_from(from);
                memory.newest = Some((at, Arc::clone(&seen)));
                if let Some(frame) = known {
                    return Some((frame, seen));
                }
                (None, Some(seen))
            }
            // The view that the other watchers saw last is nearer than this watcher's.
            Some((_, seen)) if seen.continues_to(to) => (Some(seen), None),
            _ => (from.cloned(), None),
        };
        let large = !is_step || base.as_ref().is_none_or(|seen| seen.is_large());
        let made = {
            let (caller, encoder) = (self.caller.clone(), self.encoder.clone());
            let (from, to) = (from.cloned(), Arc::clone(to));
            let make = move || make(from.as_deref(), base.as_deref(), ready, &to, &caller, &encoder);
            match large {
                true => self.encoder.apart(make).await?,
                false => make(),
            }
        };
        // Others may have come while it was made.
        memory.remember((from, to), &made, audience());
        Some(made)
    }

    /// Returns the view at a position that a reconnecting watcher has.
    pub(crate) async fn seen_at(&self, store: StoreId, root: Root) -> Option<Arc<SentView>> {
        let mut memory = self.memory.lock().await;
        let revision = root.revision();
        let newest = memory.newest.iter().map(|(_, seen)| seen);
        if let Some(known) = newest.chain(&memory.resumed).find(|seen| seen.is_at(store, revision)) {
            return Some(Arc::clone(known));
        }
        let caller = self.caller.clone();
        let former = move || SentView::at(ShownOf::Former(store, Box::new(root)), &caller).kept_if_large();
        let seen = Arc::new(self.encoder.apart(former).await?);
        memory.resumed.push_back(Arc::clone(&seen));
        if memory.resumed.len() > REMEMBERED {
            memory.resumed.pop_front();
        }
        Some(seen)
    }
}

impl Memory {
    fn frame_from(&self, from: Option<&Arc<SentView>>) -> Option<Bytes> {
        // No other view has the address of one that a frame starts from, even if that one is gone.
        let same = |known: &Option<Weak<SentView>>| match (known, from) {
            (Some(known), Some(from)) => std::ptr::eq(known.as_ptr(), Arc::as_ptr(from)),
            (None, None) => true,
            _ => false,
        };
        self.frames.iter().find(|(known, _)| same(known)).map(|(_, frame)| frame.clone())
    }

    fn remember(
        &mut self,
        (from, to): (Option<&Arc<SentView>>, &Arc<Published>),
        (frame, seen): &Sent,
        audience: Audience,
    ) {
        if !self.newest.as_ref().is_some_and(|(at, _)| Arc::ptr_eq(at, to)) {
            self.frames.clear();
            // Views of reconnecting watchers are dropped at the second state after their return, so that old states
            // do not stay alive.
            self.resumed.retain(|seen| from.is_some_and(|from| Arc::ptr_eq(seen, from)));
            self.newest = Some((Arc::clone(to), Arc::clone(seen)));
        }
        if audience == Audience::One {
            return;
        }
        self.frames.push_back((from.map(Arc::downgrade), frame.clone()));
        if self.frames.len() > REMEMBERED {
            self.frames.pop_front();
        }
    }
}

/// Makes a frame. `base` is a view to compute the next one from; `ready` is that next view, if it exists already.
fn make(
    from: Option<&SentView>,
    base: Option<&SentView>,
    ready: Option<Arc<SentView>>,
    to: &Arc<Published>,
    caller: &Caller,
    encoder: &Encoder,
) -> Sent {
    let frame = |seen: &SentView| {
        let mut frame = match from {
            Some(from) => from.frame_to(seen, caller),
            None => seen.view(caller).full_frame(to.store),
        };
        if let Caller::Runner { model, .. } = caller {
            frame.traces = to.changed.traces(model, frame.from);
        }
        encoder.frame(frame)
    };
    match (ready, base) {
        (Some(ready), _) => (frame(&ready), ready),
        (None, Some(base)) => {
            let next = base.next(to, caller);
            (frame(&next), Arc::new(next))
        }
        (None, None) => {
            let first = SentView::at(ShownOf::Published(Arc::clone(to)), caller);
            (frame(&first), Arc::new(first.kept_if_large()))
        }
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{command::Command, view::ViewKey};
    use periapt_model::{Changes, Input};
    use tokio::time::Instant;

    use super::*;
    use crate::{api::test_state::State, published::Changed};

    const STORE: StoreId = StoreId(uuid::Uuid::from_u128(1));

    fn published(root: &Root, revision: u64) -> Arc<Published> {
        Arc::new(Published {
            root: root.apply(&Changes::default(), Revision(revision)),
            store: STORE,
            changed: Changed::at_start(Revision(1)),
            problem: None,
            since: Instant::now(),
        })
    }

    fn frame(line: &Bytes) -> Frame {
        serde_json::from_slice(line).unwrap()
    }

    #[tokio::test]
    async fn a_small_view_is_kept_only_after_a_change_and_its_next_frame_is_the_change_alone() {
        let mut state = State::new();
        let model = state.add_model("admin", "prod");
        let of = ViewOf { model, agent: AgentName::new("one").unwrap() };
        let frames = Frames::new(&of, Encoder::default());
        let (line, first) = frames.to(None, &published(&state.root, 1), || Audience::Several).await.unwrap();
        assert_eq!(frame(&line).puts.len(), 1);
        assert!(first.kept.is_none());

        let (line, still) =
            frames.to(Some(&first), &published(&state.root, 2), || Audience::Several).await.unwrap();
        let heartbeat = frame(&line);
        assert_eq!((heartbeat.from, heartbeat.to), (Some(Revision(1)), Revision(2)));
        assert!(heartbeat.puts.is_empty() && heartbeat.deletes.is_empty());
        assert!(still.kept.is_none());
        let before = Arc::downgrade(&first);
        drop(first);
        assert!(before.upgrade().is_none(), "no frame keeps the view before alive");

        let set = [("automatically-retry-hooks".to_owned(), "false".to_owned())].into();
        state.operate(Input::Model(model, Command::SetModelConfig { set, reset: Vec::new() }));
        let (line, changed) =
            frames.to(Some(&still), &published(&state.root, 3), || Audience::Several).await.unwrap();
        let change = frame(&line);
        assert_eq!((change.from, change.to), (Some(Revision(2)), Revision(3)));
        let keys: Vec<_> = change.puts.iter().map(|entity| entity.key()).collect();
        assert_eq!((keys, change.deletes), (vec![ViewKey::Model], Vec::new()));
        assert_eq!(changed.kept.as_deref(), Some(&view(changed.state.root(), &frames.caller)));
        let (_, still) =
            frames.to(Some(&changed), &published(&state.root, 4), || Audience::Several).await.unwrap();
        assert!(still.kept.is_none());
    }

    #[tokio::test]
    async fn frames_are_remembered_only_where_several_watch() {
        let mut state = State::new();
        let model = state.add_model("admin", "prod");
        let of = ViewOf { model, agent: AgentName::new("one").unwrap() };
        for (audience, remembered) in [(Audience::One, 0), (Audience::Several, 1)] {
            let frames = Frames::new(&of, Encoder::default());
            let (mut first, at) = (None, published(&state.root, 1));
            for _ in 0..2 {
                let (line, seen) = frames.to(None, &at, || audience).await.unwrap();
                assert_eq!(frames.memory.lock().await.frames.len(), remembered);
                let before = first.replace((line.clone(), Arc::clone(&seen)));
                assert!(before.is_none_or(|before| before.0 == line && Arc::ptr_eq(&before.1, &seen)));
            }
        }
    }

    #[tokio::test]
    async fn watchers_that_come_to_a_view_that_is_not_kept_get_it_whole() {
        let mut state = State::new();
        let model = state.add_model("admin", "prod");
        let of = ViewOf { model, agent: AgentName::new("one").unwrap() };
        let frames = Frames::new(&of, Encoder::default());
        let (whole, first) = frames.to(None, &published(&state.root, 1), || Audience::Several).await.unwrap();
        let later = published(&state.root, 2);
        let (_, still) = frames.to(Some(&first), &later, || Audience::Several).await.unwrap();
        let (again, same) = frames.to(None, &later, || Audience::Several).await.unwrap();
        assert!(Arc::ptr_eq(&still, &same));
        assert_eq!(frame(&again).puts, frame(&whole).puts);
    }
}
