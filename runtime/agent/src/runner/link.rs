//! The runner's end of the link to its keeper.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use periapt_host_api::{ErrorCode, Refusal};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
};

use crate::protocol::{CALLS_OUTSTANDING, Call, CallId, CallOutcome, LinkError, Outgoing, ToKeeper};

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
    open: Mutex<BTreeMap<CallId, OpenCall>>,
    /// As many as the keeper takes at a time.
    places: Arc<Semaphore>,
}

/// A call that the keeper has, or is about to get. Its place is free once it was answered, whether somebody still
/// waits or not: the keeper counts calls, and ends a runner that has too many.
#[derive(Debug)]
struct OpenCall {
    caller: oneshot::Sender<CallOutcome>,
    _place: OwnedSemaphorePermit,
}

/// A message, and who waits until it is written.
#[derive(Debug)]
struct Message(ToKeeper, Option<oneshot::Sender<()>>);

impl Link {
    /// A link, and the work of writing, which ends when the socket does.
    pub(crate) fn new(mut outgoing: Outgoing<ToKeeper>) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, mut queued) = mpsc::channel::<Message>(QUEUE);
        let calls = Arc::new(Calls {
            next: AtomicU64::new(0),
            open: Mutex::default(),
            places: Arc::new(Semaphore::new(CALLS_OUTSTANDING)),
        });
        let open = Arc::clone(&calls);
        let writer = async move {
            while let Some(Message(message, written)) = queued.recv().await {
                match outgoing.send(&message).await {
                    Ok(()) => {}
                    // What a charm said is in it: no reason to end what all units of the model live from.
                    Err(error @ LinkError::TooLarge { .. }) => open.too_large(&message, &error),
                    Err(error) => {
                        tracing::debug!(%error, "the keeper cannot be written to");
                        return;
                    }
                }
                if let Some(written) = written {
                    // Whoever waited has given up.
                    let _ = written.send(());
                }
            }
        };
        (Self { queue, calls }, writer)
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
        let place = Arc::clone(&self.calls.places).acquire_owned().await;
        // From here on nothing waits until the call is on its way: who stops waiting leaves no half of one.
        let (Ok(place), Ok(room)) = (place, self.queue.reserve().await) else {
            return std::future::pending().await;
        };
        let id = CallId(self.calls.next.fetch_add(1, Ordering::Relaxed));
        let (caller, answered) = oneshot::channel();
        self.calls.open().insert(id, OpenCall { caller, _place: place });
        room.send(Message(ToKeeper::Call { id, call }, None));
        match answered.await {
            Ok(outcome) => outcome,
            Err(_) => std::future::pending().await,
        }
    }

    /// The keeper answered a call.
    pub(crate) fn answered(&self, id: CallId, outcome: CallOutcome) {
        self.calls.answered(id, outcome);
    }
}

impl Calls {
    fn open(&self) -> MutexGuard<'_, BTreeMap<CallId, OpenCall>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self, id: CallId, outcome: CallOutcome) {
        let open = self.open().remove(&id);
        if let Some(open) = open {
            // A caller that waits no more has no use for it.
            let _ = open.caller.send(outcome);
        }
    }

    /// A message that cannot be sent: a call is refused, anything else may be lost.
    fn too_large(&self, message: &ToKeeper, error: &LinkError) {
        tracing::warn!(%error, "a message to the keeper was dropped");
        if let ToKeeper::Call { id, .. } = message {
            let refusal = Refusal::new(ErrorCode::QuotaExceeded, error.to_string());
            self.answered(*id, CallOutcome::Refused(refusal));
        }
    }
}
