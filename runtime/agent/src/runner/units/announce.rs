//! Announcements of hooks to the keeper, in order and without loss: hooks in flight are suspects when the runner
//! dies.

use tokio::sync::{Mutex, mpsc, oneshot};

use crate::{protocol::ToKeeper, runner::link::Link};

type Announcement = (ToKeeper, Option<oneshot::Sender<()>>);

/// The queue of announcements. A unit's next hook waits for its announcement, so the queue holds only a few for each
/// unit.
pub(super) struct Announcements {
    queue: mpsc::UnboundedSender<Announcement>,
    queued: Mutex<mpsc::UnboundedReceiver<Announcement>>,
}

impl Announcements {
    pub(super) fn new() -> Self {
        let (queue, queued) = mpsc::unbounded_channel();
        Self { queue, queued: Mutex::new(queued) }
    }

    /// Queues an announcement. The receiver is notified when it is on its way.
    pub(super) fn make(&self, message: ToKeeper) -> oneshot::Receiver<()> {
        let (told, heard) = oneshot::channel();
        // The receiver lives as long as this value.
        let _ = self.queue.send((message, Some(told)));
        heard
    }

    /// Queues an announcement.
    pub(super) fn try_send(&self, message: ToKeeper) {
        let _ = self.queue.send((message, None));
    }

    /// Sends the announcements, for ever.
    pub(super) async fn forward(&self, link: &Link) {
        let mut queued = self.queued.lock().await;
        while let Some((message, told)) = queued.recv().await {
            link.send(message).await;
            if let Some(told) = told {
                // The waiting task may have been aborted.
                let _ = told.send(());
            }
        }
    }
}
