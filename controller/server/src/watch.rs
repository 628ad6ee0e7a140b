//! A watch: the frames that keep one runner's mirror equal to its view (`design.md` section 3, item 3).

use std::time::Duration;

use periapt_host_api::{
    ModelUuid, StoreId,
    api::{HEARTBEAT_SECONDS, WatchPosition},
    command::Caller,
    view::{Frame, View},
};
use periapt_model::{Root, view};
use tokio_util::sync::CancellationToken;

use crate::published::{Published, Subscription};

const HEARTBEAT: Duration = Duration::from_secs(HEARTBEAT_SECONDS);

/// One runner's watch. It holds the view that was sent last and nothing else: a frame is made when the one
/// before was handed over, so a slow reader gets fewer and wider ones.
pub(crate) struct Watch {
    state: Subscription,
    caller: Caller,
    model: ModelUuid,
    progress: Progress,
}

enum Progress {
    /// Nothing was sent; the watcher says that it is here.
    Asked(Option<WatchPosition>),
    /// This was sent.
    Sent(Box<Sent>),
}

struct Sent {
    store: StoreId,
    view: View,
    /// What the view was made from, to see cheaply that nothing differs. Renewed with every heartbeat, so that
    /// no watch keeps old states alive.
    root: Root,
}

impl Watch {
    pub(crate) fn new(
        state: Subscription,
        caller: Caller,
        model: ModelUuid,
        position: Option<WatchPosition>,
    ) -> Self {
        Self { state, caller, model, progress: Progress::Asked(position) }
    }

    /// The next frame: the first at once, then whenever the model was written, else a heartbeat. None when the
    /// watch is over.
    pub(crate) async fn next(&mut self, stop: &CancellationToken) -> Option<Frame> {
        let heartbeat = tokio::time::sleep(HEARTBEAT);
        tokio::pin!(heartbeat);
        loop {
            let published = self.state.seen();
            if let Some(frame) = self.step(&published) {
                return Some(frame);
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                alive = self.state.changed() => if !alive { return None },
                () = &mut heartbeat => return Some(self.advance(&published)),
            }
        }
    }

    /// The frame that is due at a state, if one is.
    fn step(&mut self, published: &Published) -> Option<Frame> {
        match &self.progress {
            Progress::Asked(position) => {
                let known = position.and_then(|position| {
                    let root = self.state.at(position.store, position.revision)?;
                    Some(Sent { store: position.store, view: view(&root, &self.caller), root })
                });
                match known.filter(|known| continues(known, published)) {
                    None => Some(self.replace(published)),
                    Some(known) => {
                        self.progress = Progress::Sent(Box::new(known));
                        Some(self.advance(published))
                    }
                }
            }
            Progress::Sent(sent) if !continues(sent, published) => Some(self.replace(published)),
            // A frame without content, too, tells that a revision is reached: who committed waits for it.
            Progress::Sent(sent) => {
                (published.changed.model(&self.model) > sent.view.revision).then(|| self.advance(published))
            }
        }
    }

    /// From what was sent to a state.
    fn advance(&mut self, published: &Published) -> Frame {
        let Progress::Sent(sent) = &mut self.progress else { return self.replace(published) };
        let next = match sent.root.looks_the_same(&published.root, &self.caller, &self.model) {
            true => View { revision: published.revision(), ..sent.view.clone() },
            false => view(&published.root, &self.caller),
        };
        let frame = sent.view.frame_to(&next, published.store);
        sent.view = next;
        sent.root = published.root.clone();
        frame
    }

    /// From nothing to a state.
    fn replace(&mut self, published: &Published) -> Frame {
        let sent = Sent {
            store: published.store,
            view: view(&published.root, &self.caller),
            root: published.root.clone(),
        };
        let frame = sent.view.full_frame(sent.store);
        self.progress = Progress::Sent(Box::new(sent));
        frame
    }
}

/// Whether a state is a later one of the same history.
fn continues(sent: &Sent, published: &Published) -> bool {
    sent.store == published.store && sent.view.revision <= published.revision()
}
