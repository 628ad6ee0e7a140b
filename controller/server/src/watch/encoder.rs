//! The encoding of answers for watchers: once for each group, counted, and on separate threads if it is large.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use periapt_host_api::{api::FRAME_LINE_BYTES, view::Frame};
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::metrics::metrics;

/// The number of large encodings at a time. Their threads also write the store, and must not run out.
const AT_A_TIME: usize = 4;

/// The encoder of answers for watchers. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Encoder(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    permits: Semaphore,
    encoded: AtomicU64,
}

impl Default for Encoder {
    fn default() -> Self {
        Self(Arc::new(Shared { permits: Semaphore::new(AT_A_TIME), encoded: AtomicU64::new(0) }))
    }
}

impl Encoder {
    /// Runs large work on threads that answer no requests. Returns none if it panicked: a defect.
    pub(crate) async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let _permit = self.0.permits.acquire().await.ok()?;
        let done = tokio::task::spawn_blocking(work).await;
        done.inspect_err(|error| tracing::error!(%error, "work for watchers did not end")).ok()
    }

    /// Returns a value as a line.
    pub(crate) fn line<T: Serialize>(&self, value: &T) -> Bytes {
        self.0.encoded.fetch_add(1, Ordering::Relaxed);
        metrics().encoded.inc(&[]);
        let mut line = Vec::new();
        write(&mut line, value);
        whole(line)
    }

    /// Returns a frame as a line, or as several lines if it is too large for one.
    pub(crate) fn frame(&self, frame: Frame) -> Bytes {
        self.0.encoded.fetch_add(1, Ordering::Relaxed);
        metrics().encoded.inc(&[]);
        let mut lines = Vec::new();
        write(&mut lines, &frame);
        if lines.len() > FRAME_LINE_BYTES {
            lines.clear();
            for line in frame.into_lines(FRAME_LINE_BYTES) {
                write(&mut lines, &line);
            }
        }
        whole(lines)
    }

    /// Returns the number of encoded values so far.
    #[cfg(test)]
    pub(crate) fn encoded(&self) -> u64 {
        self.0.encoded.load(Ordering::Relaxed)
    }
}

/// Returns what was written, without the room for more.
fn whole(lines: Vec<u8>) -> Bytes {
    lines.into_boxed_slice().into()
}

/// Appends a value as a line.
fn write<T: Serialize>(lines: &mut Vec<u8>, value: &T) {
    let before = lines.len();
    if let Err(error) = serde_json::to_writer(&mut *lines, value) {
        tracing::error!(%error, "a value of a stream cannot be written");
        lines.truncate(before);
        return;
    }
    lines.push(b'\n');
}
