//! The body of a workload's response.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;
use wasmtime_wasi_http::WasiBody;

use super::failure::RequestFailure;

/// A body that ends too early. The connection ends with it, so that nobody takes the part for the whole.
#[derive(Debug, thiserror::Error)]
pub enum BodyFailure {
    /// The guest failed, or gave its body up.
    #[error("the workload failed before the end of its response")]
    Guest,
    /// The body is larger than a response may be. Holds the limit, in bytes.
    #[error("the response has more than {0} bytes")]
    TooLarge(u64),
}

/// The mark of a guest that failed. Its body then ends as if it were whole.
#[derive(Debug, Clone, Default)]
pub(super) struct FailureMark(Arc<AtomicBool>);

impl FailureMark {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A guest at work, which ends with this handle.
#[derive(Debug)]
pub(super) struct Guest(pub(super) JoinHandle<Result<(), RequestFailure>>);

impl Guest {
    /// Waits for its end.
    pub(super) async fn ended(&mut self) -> Result<(), RequestFailure> {
        match (&mut self.0).await {
            Ok(ended) => ended,
            Err(error) => Err(RequestFailure::Failed(format!("the host failed: {error}"))),
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The body of a response. A guest whose client has gone ends with it.
#[derive(Debug)]
pub struct ResponseBody {
    body: WasiBody,
    failed: FailureMark,
    guest: Option<Guest>,
    limit: u64,
    left: u64,
    /// The bytes until the declared end, after which nobody asks for more; none if the response declares no length.
    until_end: Option<u64>,
}

impl ResponseBody {
    pub(super) fn new(
        body: WasiBody,
        failed: FailureMark,
        guest: Guest,
        limit: u64,
        declared: Option<u64>,
    ) -> Self {
        Self { body, failed, guest: Some(guest), limit, left: limit, until_end: declared }
    }

    /// Marks a body that no client reads, as after `HEAD`. The guest goes on without it.
    pub(super) fn without_content(mut self) -> Self {
        self.let_go();
        self
    }

    /// Lets the guest go on after the response, within its bounds.
    fn let_go(&mut self) {
        if let Some(guest) = self.guest.take() {
            tokio::spawn(async move {
                let mut guest = guest;
                let _ = guest.ended().await;
            });
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyFailure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFailure>>> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(_)) => return Poll::Ready(Some(Err(BodyFailure::Guest))),
            None if self.failed.is_set() => return Poll::Ready(Some(Err(BodyFailure::Guest))),
            None => {
                self.let_go();
                return Poll::Ready(None);
            }
        };
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        match self.left.checked_sub(length) {
            Some(left) => self.left = left,
            None => {
                self.guest = None;
                return Poll::Ready(Some(Err(BodyFailure::TooLarge(self.limit))));
            }
        }
        let is_last = match &mut self.until_end {
            Some(rest) => {
                *rest = rest.saturating_sub(length);
                *rest == 0
            }
            None => false,
        };
        // The connection drops a body after its declared end or its trailers, and asks for no end.
        if is_last || frame.is_trailers() {
            self.let_go();
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
