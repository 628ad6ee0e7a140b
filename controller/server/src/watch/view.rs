//! What all watchers of one runner's view share: the views that they were sent last, and the frames between these and
//! the newest, each made once.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use periapt_host_api::{
    AgentName, ModelUuid, Revision, StoreId, command::Caller, timing::HEARTBEAT, view::View,
};
use periapt_model::{Root, follow, view};
use tokio::sync::Mutex;

use super::{Encoder, Topic};
use crate::published::Published;

/// How many views that somebody came back with are remembered, and how many frames to the newest: after a restart, a
/// whole host's watchers come back with the same few.
const REMEMBERED: usize = 4;
/// A view of more entries is worked on apart: one step of a smaller one takes less time than to hand it over.
const LARGE: usize = 256;

/// One runner's view of its model: who watches it sees alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ViewOf {
    pub(crate) model: ModelUuid,
    pub(crate) agent: AgentName,
}

impl Topic for ViewOf {
    type Shared = Frames;

    const PACE: Duration = Duration::ZERO;
    /// The heartbeat also renews what watchers hold, so that none keeps old states alive.
    const AGAIN: Option<Duration> = Some(HEARTBEAT);
    const OF_ALL: bool = false;

    fn model(&self) -> ModelUuid {
        self.model
    }

    /// A frame without content, too, tells that a revision is reached: who committed waits for it.
    fn differs(&self, before: &Published, after: &Published) -> bool {
        let continues = before.store == after.store && before.revision() <= after.revision();
        !continues || after.changed.model(&self.model) > before.changed.model(&self.model)
    }
}

/// A view that was sent.
#[derive(Debug)]
pub(crate) struct Seen {
    store: StoreId,
    view: View,
    /// What the view was made from: the next is found by what differs from it.
    root: Root,
}

impl Seen {
    fn at(root: Root, store: StoreId, caller: &Caller) -> Self {
        Self { store, view: view(&root, caller), root }
    }

    /// Whether a state is a later one of the same history.
    pub(crate) fn continues_to(&self, published: &Published) -> bool {
        self.store == published.store && self.view.revision <= published.revision()
    }

    fn is_at(&self, store: StoreId, revision: Revision) -> bool {
        self.store == store && self.view.revision == revision
    }

    fn is_large(&self) -> bool {
        self.view.entries() > LARGE
    }
}

/// A frame as it is sent, and the view that it leads to.
pub(crate) type Sent = (Bytes, Arc<Seen>);

/// The frames of one view.
#[derive(Debug)]
pub(crate) struct Frames {
    caller: Caller,
    encoder: Encoder,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    newest: Option<(Arc<Published>, Arc<Seen>)>,
    /// Frames to the newest view, by the view that they start from.
    frames: VecDeque<(Option<Arc<Seen>>, Bytes)>,
    /// Views that watchers came back with.
    resumed: VecDeque<Arc<Seen>>,
}

impl Frames {
    pub(crate) fn new(of: &ViewOf, encoder: Encoder) -> Self {
        let caller = Caller::Runner { agent: of.agent.clone(), model: of.model };
        Self { caller, encoder, memory: Mutex::default() }
    }

    /// The frame from a view, or from nothing, to a state. None if it could not be made.
    pub(crate) async fn to(&self, from: Option<&Arc<Seen>>, to: &Arc<Published>) -> Option<Sent> {
        // Held while a frame is made: whoever wants the same waits for it.
        let mut memory = self.memory.lock().await;
        // What changed since the last step fits a commit or a few; all that there is, or was missed, may be anything.
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
            // What the others saw last is nearer than what this one did.
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

    /// The view at a position that somebody came back with.
    pub(crate) async fn seen_at(&self, store: StoreId, root: Root) -> Option<Arc<Seen>> {
        let mut memory = self.memory.lock().await;
        let revision = root.revision();
        let newest = memory.newest.iter().map(|(_, seen)| seen);
        if let Some(known) = newest.chain(&memory.resumed).find(|seen| seen.is_at(store, revision)) {
            return Some(Arc::clone(known));
        }
        let caller = self.caller.clone();
        let seen = Arc::new(self.encoder.apart(move || Seen::at(root, store, &caller)).await?);
        memory.resumed.push_back(Arc::clone(&seen));
        if memory.resumed.len() > REMEMBERED {
            memory.resumed.pop_front();
        }
        Some(seen)
    }
}

impl Memory {
    fn frame_from(&self, from: Option<&Arc<Seen>>) -> Option<Bytes> {
        let same = |known: &Option<Arc<Seen>>| match (known, from) {
            (Some(known), Some(from)) => Arc::ptr_eq(known, from),
            (None, None) => true,
            _ => false,
        };
        self.frames.iter().find(|(known, _)| same(known)).map(|(_, frame)| frame.clone())
    }

    fn remember(&mut self, from: Option<&Arc<Seen>>, to: &Arc<Published>, (frame, seen): &Sent) {
        if !self.newest.as_ref().is_some_and(|(at, _)| Arc::ptr_eq(at, to)) {
            self.frames.clear();
            // Nobody's old states outlive the second target after it came back.
            self.resumed.retain(|seen| from.is_some_and(|from| Arc::ptr_eq(seen, from)));
            self.newest = Some((Arc::clone(to), Arc::clone(seen)));
        }
        self.frames.push_back((from.cloned(), frame.clone()));
        if self.frames.len() > REMEMBERED {
            self.frames.pop_front();
        }
    }
}

/// Makes a frame. `base` is a view to find the next one from, `ready` that next one if it is known already.
fn make(
    from: Option<&Seen>,
    base: Option<&Seen>,
    ready: Option<Arc<Seen>>,
    to: &Published,
    caller: &Caller,
    encoder: &Encoder,
) -> Sent {
    let seen = ready.unwrap_or_else(|| {
        Arc::new(match base {
            Some(base) => Seen {
                store: to.store,
                view: follow(&base.root, &base.view, &to.root, caller),
                root: to.root.clone(),
            },
            None => Seen::at(to.root.clone(), to.store, caller),
        })
    });
    let frame = match from {
        Some(from) => from.view.frame_to(&seen.view, to.store),
        None => seen.view.full_frame(to.store),
    };
    (encoder.frame(frame), seen)
}
