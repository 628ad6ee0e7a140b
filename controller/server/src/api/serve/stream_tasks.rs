//! The tasks of HTTP/2 streams, each of which can be ended alone.
//!
//! A task whose answer waits for its caller's window does not poll the answer, so the answer itself cannot give up. When
//! the task is dropped instead, HTTP/2 resets its stream and forgets what was to be sent; the connection's other streams
//! go on.

use hyper::rt::Executor;
use tokio_util::sync::CancellationToken;

tokio::task_local! {
    /// Ends the task that polls this.
    static END: CancellationToken;
}

/// The executor of HTTP/2 streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamTasks;

impl<F> Executor<F> for StreamTasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let ended = CancellationToken::new();
        let task = END.scope(ended.clone(), async move {
            tokio::select! {
                () = stream => {}
                () = ended.cancelled() => {}
            }
        });
        drop(tokio::spawn(task));
    }
}

/// Returns the token that ends the current stream; none outside a stream's task, as with HTTP/1.1.
pub(super) fn current() -> Option<CancellationToken> {
    END.try_with(CancellationToken::clone).ok()
}
