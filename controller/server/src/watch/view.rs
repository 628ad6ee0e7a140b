//! The data that all watchers of one runner's view share: the views that they were sent last, and the frames from
//! these to the newest, each made once.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use periapt_host_api::{
    AgentName, ModelUuid, Revision, StoreId, command::Caller, timing::HEARTBEAT, view::View,
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
    store: StoreId,
    view: View,
    /// The root of the view. The next view is computed from the difference to it.
    root: Root,
}

impl SentView {
    fn at(root: Root, store: StoreId, caller: &Caller) -> Self {
        Self { store, view: view(&root, caller), root }
    }

    /// Returns true if a state is a later one of the same history.
    pub(crate) fn continues_to(&self, published: &Published) -> bool {
        self.store == published.store && self.view.revision <= published.revision()
    }

    /// The revision of the view.
    pub(crate) fn revision(&self) -> Revision {
        self.view.revision
    }

    fn is_at(&self, store: StoreId, revision: Revision) -> bool {
        self.store == store && self.view.revision == revision
    }

    fn is_large(&self) -> bool {
        self.view.entries() > LARGE
    }
}

/// An encoded frame, and the view that it leads to.
pub(crate) type Sent = (Bytes, Arc<SentView>);

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
    /// Frames to the newest view, by the view that they start from.
    frames: VecDeque<(Option<Arc<SentView>>, Bytes)>,
    /// Views of reconnecting watchers.
    resumed: VecDeque<Arc<SentView>>,
}

impl Frames {
    pub(crate) fn new(of: &ViewOf, encoder: Encoder) -> Self {
        let caller = Caller::Runner { agent: of.agent.clone(), model: of.model };
        Self { caller, encoder, memory: Mutex::default() }
    }

    /// Returns the frame from a view, or from nothing, to a state. Returns none if making it failed.
    pub(crate) async fn to(&self, from: Option<&Arc<SentView>>, to: &Arc<Published>) -> Option<Sent> {
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
        memory.remember(from, to, &made);
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
        let seen = Arc::new(self.encoder.apart(move || SentView::at(root, store, &caller)).await?);
        memory.resumed.push_back(Arc::clone(&seen));
        if memory.resumed.len() > REMEMBERED {
            memory.resumed.pop_front();
        }
        Some(seen)
    }
}

impl Memory {
    fn frame_from(&self, from: Option<&Arc<SentView>>) -> Option<Bytes> {
        let same = |known: &Option<Arc<SentView>>| match (known, from) {
            (Some(known), Some(from)) => Arc::ptr_eq(known, from),
            (None, None) => true,
            _ => false,
        };
        self.frames.iter().find(|(known, _)| same(known)).map(|(_, frame)| frame.clone())
    }

    fn remember(&mut self, from: Option<&Arc<SentView>>, to: &Arc<Published>, (frame, seen): &Sent) {
        if !self.newest.as_ref().is_some_and(|(at, _)| Arc::ptr_eq(at, to)) {
            self.frames.clear();
            // Views of reconnecting watchers are dropped at the second state after their return, so that old states
            // do not stay alive.
            self.resumed.retain(|seen| from.is_some_and(|from| Arc::ptr_eq(seen, from)));
            self.newest = Some((Arc::clone(to), Arc::clone(seen)));
        }
        self.frames.push_back((from.cloned(), frame.clone()));
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
    to: &Published,
    caller: &Caller,
    encoder: &Encoder,
) -> Sent {
    let seen = ready.unwrap_or_else(|| {
        Arc::new(match base {
            Some(base) => SentView {
                store: to.store,
                view: follow(&base.root, &base.view, &to.root, caller),
                root: to.root.clone(),
            },
            None => SentView::at(to.root.clone(), to.store, caller),
        })
    });
    let mut frame = match from {
        Some(from) => from.view.frame_to(&seen.view, to.store),
        None => seen.view.full_frame(to.store),
    };
    if let Caller::Runner { model, .. } = caller {
        frame.traces = to.changed.traces(model, frame.from);
    }
    (encoder.frame(frame), seen)
}
