//! The stream of what a task sends.

use futures_util::{Stream, stream};
use tokio::sync::mpsc;

/// Returns what arrives, until the sender is gone.
pub(crate) fn stream_of<T: Send + 'static>(
    receiver: mpsc::Receiver<T>,
) -> impl Stream<Item = T> + Send + 'static {
    stream::unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|item| (item, receiver)) })
}
