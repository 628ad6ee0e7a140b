//! The runner's end of the link to its keeper.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};

use crate::protocol::{CALLS_OUTSTANDING, Call, CallId, CallOutcome, Outgoing, ToKeeper};

/// Messages that may wait for the socket. Whoever has one more waits with it.
const QUEUE: usize = 256;

/// How long the last message may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Speaks to the keeper. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    queue: mpsc::Sender<Message>,
    calls: Arc<Calls>,
}

#[derive(Debug)]
struct Calls {
    next: AtomicU64,
    open: Mutex<BTreeMap<CallId, oneshot::Sender<CallOutcome>>>,
    /// As many as the keeper takes at a time.
    places: Semaphore,
}

/// A message, and who waits until it is written.
#[derive(Debug)]
struct Message(ToKeeper, Option<oneshot::Sender<()>>);

impl Link {
    /// A link, and the work of writing, which ends when the socket does.
    pub(crate) fn new(mut outgoing: Outgoing<ToKeeper>) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, mut queued) = mpsc::channel::<Message>(QUEUE);
        let calls = Calls {
            next: AtomicU64::new(0),
            open: Mutex::default(),
            places: Semaphore::new(CALLS_OUTSTANDING),
        };
        let writer = async move {
            while let Some(Message(message, written)) = queued.recv().await {
                if let Err(error) = outgoing.send(&message).await {
                    tracing::debug!(%error, "the keeper cannot be written to");
                    return;
                }
                if let Some(written) = written {
                    // Whoever waited has given up.
                    let _ = written.send(());
                }
            }
        };
        (Self { queue, calls: Arc::new(calls) }, writer)
    }

    /// Tells the keeper something. Without a keeper nothing happens: the process is about to end.
    pub(crate) async fn tell(&self, message: ToKeeper) {
        let _ = self.queue.send(Message(message, None)).await;
    }

    /// Tells the keeper something that may be lost; never waits.
    pub(crate) fn mention(&self, message: ToKeeper) {
        let _ = self.queue.try_send(Message(message, None));
    }

    /// Tells the keeper something and waits, for a moment, until it is written.
    pub(crate) async fn last_words(&self, message: ToKeeper) {
        let (written, told) = oneshot::channel();
        let _ = timeout(LAST_WORDS, async {
            if self.queue.send(Message(message, Some(written))).await.is_ok() {
                let _ = told.await;
            }
        })
        .await;
    }

    /// Asks, and waits for the answer. Without a keeper it never comes: the process is about to end.
    pub(crate) async fn call(&self, call: Call) -> CallOutcome {
        let Ok(_place) = self.calls.places.acquire().await else { return std::future::pending().await };
        let id = CallId(self.calls.next.fetch_add(1, Ordering::Relaxed));
        let (answer, answered) = oneshot::channel();
        self.calls.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id, answer);
        self.tell(ToKeeper::Call { id, call }).await;
        match answered.await {
            Ok(outcome) => outcome,
            Err(_) => std::future::pending().await,
        }
    }

    /// The keeper answered a call.
    pub(crate) fn answered(&self, id: CallId, outcome: CallOutcome) {
        let open = self.calls.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(caller) = open {
            // A caller that waits no more has no use for it.
            let _ = caller.send(outcome);
        }
    }
}
