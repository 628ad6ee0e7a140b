//! Tells the keeper of hooks that run, in order and without loss: what runs when the runner dies is suspected.

use tokio::sync::{Mutex, mpsc, oneshot};

use crate::{protocol::ToKeeper, runner::link::Link};

type Announcement = (ToKeeper, Option<oneshot::Sender<()>>);

/// What is to be told. A unit's next hook does not begin before it was told, so that there are no more than a few for
/// each.
pub(super) struct Announcements {
    queue: mpsc::UnboundedSender<Announcement>,
    queued: Mutex<mpsc::UnboundedReceiver<Announcement>>,
}

impl Announcements {
    pub(super) fn new() -> Self {
        let (queue, queued) = mpsc::unbounded_channel();
        Self { queue, queued: Mutex::new(queued) }
    }

    /// Tells something, and answers when it is on its way.
    pub(super) fn make(&self, message: ToKeeper) -> oneshot::Receiver<()> {
        let (told, heard) = oneshot::channel();
        // The receiver lives as long as this.
        let _ = self.queue.send((message, Some(told)));
        heard
    }

    /// Tells something.
    pub(super) fn mention(&self, message: ToKeeper) {
        let _ = self.queue.send((message, None));
    }

    /// Passes on what is told, for ever.
    pub(super) async fn forward(&self, link: &Link) {
        let mut queued = self.queued.lock().await;
        while let Some((message, told)) = queued.recv().await {
            link.tell(message).await;
            if let Some(told) = told {
                // Whoever waited was abandoned.
                let _ = told.send(());
            }
        }
    }
}
