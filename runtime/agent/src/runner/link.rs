//! The runner's end of the link to its keeper.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{ErrorCode, Refusal, trace::TraceContext};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
};

use crate::protocol::{CALLS_OUTSTANDING, Call, CallId, CallOutcome, LinkError, Outgoing, ToKeeper};

/// The most messages that wait for the socket. Further senders wait, too.
const QUEUE: usize = 256;

/// The longest wait for the last message.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The sending end of the link. Clones are cheap.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    queue: mpsc::Sender<Message>,
    calls: Arc<Calls>,
}

#[derive(Debug)]
struct Calls {
    next: AtomicU64,
    open: Mutex<BTreeMap<CallId, OpenCall>>,
    /// The permits for calls: as many as the keeper accepts at a time.
    permits: Arc<Semaphore>,
}

/// A call that is not answered. Its permit lasts until the answer, even if the caller stops waiting: the keeper
/// counts calls, and ends a runner that makes too many.
#[derive(Debug)]
struct OpenCall {
    caller: oneshot::Sender<CallOutcome>,
    _permit: OwnedSemaphorePermit,
}

/// A message, with a notification for when it is written.
#[derive(Debug)]
struct Message(ToKeeper, Option<oneshot::Sender<()>>);

impl Link {
    /// Creates a link and its writer task, which ends with the socket.
    pub(crate) fn new(mut outgoing: Outgoing<ToKeeper>) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, mut queued) = mpsc::channel::<Message>(QUEUE);
        let calls = Arc::new(Calls {
            next: AtomicU64::new(0),
            open: Mutex::default(),
            permits: Arc::new(Semaphore::new(CALLS_OUTSTANDING)),
        });
        let open = Arc::clone(&calls);
        let writer = async move {
            while let Some(Message(message, written)) = queued.recv().await {
                match outgoing.send(&message).await {
                    Ok(()) => {}
                    // The size comes from a charm's data, so it must not end the link of all units.
                    Err(error @ LinkError::TooLarge { .. }) => open.too_large(&message, &error),
                    Err(error) => {
                        tracing::debug!(%error, "the keeper cannot be written to");
                        return;
                    }
                }
                if let Some(written) = written {
                    // The sender may have stopped waiting.
                    let _ = written.send(());
                }
            }
        };
        (Self { queue, calls }, writer)
    }

    /// Sends a message. Without a keeper it does nothing, as the process is about to end.
    pub(crate) async fn send(&self, message: ToKeeper) {
        let _ = self.queue.send(Message(message, None)).await;
    }

    /// Sends a message that may be lost, without waiting.
    pub(crate) fn try_send(&self, message: ToKeeper) {
        let _ = self.queue.try_send(Message(message, None));
    }

    /// Sends a message, and waits a short time until it is written.
    pub(crate) async fn last_words(&self, message: ToKeeper) {
        let (written, told) = oneshot::channel();
        let _ = timeout(LAST_WORDS, async {
            if self.queue.send(Message(message, Some(written))).await.is_ok() {
                let _ = told.await;
            }
        })
        .await;
    }

    /// Makes a call, and waits for the answer. Without a keeper it never comes, as the process is about to end.
    pub(crate) async fn call(&self, call: Call) -> CallOutcome {
        self.traced_call(call, None).await
    }

    /// Makes a call that is a step of a trace, and waits for the answer in the same way.
    pub(crate) async fn traced_call(&self, call: Call, trace: Option<TraceContext>) -> CallOutcome {
        let permit = Arc::clone(&self.calls.permits).acquire_owned().await;
        // There is no await between here and the sending, so cancellation leaves no partial call.
        let (Ok(permit), Ok(room)) = (permit, self.queue.reserve().await) else {
            return std::future::pending().await;
        };
        let id = CallId(self.calls.next.fetch_add(1, Ordering::Relaxed));
        let (caller, answered) = oneshot::channel();
        self.calls.open().insert(id, OpenCall { caller, _permit: permit });
        room.send(Message(ToKeeper::Call { id, call, trace }, None));
        match answered.await {
            Ok(outcome) => outcome,
            Err(_) => std::future::pending().await,
        }
    }

    /// Passes an answer to its caller.
    pub(crate) fn answered(&self, id: CallId, outcome: CallOutcome) {
        self.calls.answered(id, outcome);
    }
}

impl Calls {
    fn open(&self) -> MutexGuard<'_, BTreeMap<CallId, OpenCall>> {
        self.open.lock()
    }

    fn answered(&self, id: CallId, outcome: CallOutcome) {
        let open = self.open().remove(&id);
        if let Some(open) = open {
            // The caller may have stopped waiting.
            let _ = open.caller.send(outcome);
        }
    }

    /// Handles a message that is too large: refuses a call, and drops any other message.
    fn too_large(&self, message: &ToKeeper, error: &LinkError) {
        tracing::warn!(%error, "a message to the keeper was dropped");
        if let ToKeeper::Call { id, .. } = message {
            let refusal = Refusal::new(ErrorCode::QuotaExceeded, error.to_string());
            self.answered(*id, CallOutcome::Refused(refusal));
        }
    }
}
