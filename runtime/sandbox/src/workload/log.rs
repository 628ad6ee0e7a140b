//! The standard streams of a workload. What it writes goes to one bounded queue: a server's output in whole lines, so
//! that lines of instances at the same time do not mix. A workload that writes faster than its log is read waits.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::{io::AsyncWrite, sync::mpsc};
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamError, StreamResult},
};

/// The most bytes of a line that are kept back for its end.
const MAX_LINE: usize = 16 << 10;

/// The most bytes of one write.
const MAX_WRITE: usize = 64 << 10;

/// The chunks in the queue: with the largest writes, a few megabytes.
const QUEUE: usize = 64;

/// The form in which a stream goes to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Whole lines, because instances at the same time share the log.
    Lines,
    /// The bytes as they are written: a command's output may be the content of a file, or a question on one line.
    Bytes,
}

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    /// The stream.
    pub stream: WorkloadStream,
    /// Whole lines, except for lines that are too long.
    pub bytes: Bytes,
}

/// The sender of a workload's log.
#[derive(Debug, Clone)]
pub struct WorkloadLog(mpsc::Sender<LogChunk>);

impl WorkloadLog {
    /// Creates a bounded queue. When the receiver is gone, what a workload writes is dropped.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<LogChunk>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), receiver)
    }

    /// Logs a line of the host, unless the queue is full.
    pub fn note(&self, line: &str) {
        let bytes = Bytes::from(format!("{line}\n"));
        let _ = self.0.try_send(LogChunk { stream: WorkloadStream::Stderr, bytes });
    }
}

/// One standard stream of an instance.
#[derive(Clone)]
pub(super) struct Output {
    stream: WorkloadStream,
    form: Form,
    log: WorkloadLog,
    text: Arc<Mutex<Text>>,
}

#[derive(Default)]
struct Text {
    /// The begin of a line.
    line: Vec<u8>,
    /// Lines that the queue had no room for.
    waiting: Option<Bytes>,
}

impl Output {
    pub(super) fn new(stream: WorkloadStream, form: Form, log: &WorkloadLog) -> Self {
        Self { stream, form, log: log.clone(), text: Arc::default() }
    }

    /// Sends what is left, a last line with an end of line. Waits for room.
    pub(super) async fn finish(&self) {
        self.drained().await;
        let mut line = std::mem::take(&mut self.text().line);
        if !line.is_empty() {
            line.push(b'\n');
            // Without a receiver nobody misses it.
            let _ = self.log.0.send(LogChunk { stream: self.stream, bytes: line.into() }).await;
        }
    }

    /// Waits until nothing waits for room.
    async fn drained(&self) {
        if self.text().waiting.is_none() {
            return;
        }
        let permit = self.log.0.reserve().await;
        let Some(bytes) = self.text().waiting.take() else { return };
        if let Ok(permit) = permit {
            permit.send(LogChunk { stream: self.stream, bytes });
        }
    }

    fn push(&self, bytes: &[u8]) -> Result<(), WroteTooMuch> {
        let mut text = self.text();
        if text.waiting.is_some() || bytes.len() > MAX_WRITE {
            return Err(WroteTooMuch);
        }
        let bytes = match self.form {
            Form::Lines => text.push(bytes),
            Form::Bytes => (!bytes.is_empty()).then(|| Bytes::copy_from_slice(bytes)),
        };
        let Some(bytes) = bytes else { return Ok(()) };
        match self.log.0.try_send(LogChunk { stream: self.stream, bytes }) {
            Err(mpsc::error::TrySendError::Full(chunk)) => text.waiting = Some(chunk.bytes),
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
        }
        Ok(())
    }

    fn text(&self) -> MutexGuard<'_, Text> {
        self.text.lock()
    }
}

impl Text {
    /// Adds output, and returns all complete lines.
    fn push(&mut self, bytes: &[u8]) -> Option<Bytes> {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (lines, rest) = bytes.split_at_checked(end)?;
        let mut complete = Vec::new();
        if !lines.is_empty() {
            complete = std::mem::take(&mut self.line);
            complete.extend_from_slice(lines);
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > MAX_LINE {
            complete.append(&mut self.line);
        }
        (!complete.is_empty()).then(|| complete.into())
    }
}

/// A guest that writes more than it was told that it may.
#[derive(Debug, thiserror::Error)]
#[error("it wrote more than the stream permitted")]
struct WroteTooMuch;

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes).map_err(|error| StreamError::Trap(error.into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(if self.text().waiting.is_some() { 0 } else { MAX_WRITE })
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {
        self.drained().await;
    }
}

/// The trait demands this for interfaces of other WASI releases. None of these is linked.
impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.push(bytes).map(|()| bytes.len()).map_err(io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn all(receiver: &mut mpsc::Receiver<LogChunk>) -> Vec<u8> {
        let mut all = Vec::new();
        while let Ok(chunk) = receiver.try_recv() {
            all.extend_from_slice(&chunk.bytes);
        }
        all
    }

    #[tokio::test]
    async fn lines_arrive_whole_and_the_last_one_gets_its_end() {
        let (log, mut receiver) = WorkloadLog::new();
        let output = Output::new(WorkloadStream::Stdout, Form::Lines, &log);
        output.push(b"one\ntw").unwrap();
        assert_eq!(all(&mut receiver), b"one\n");
        output.push(b"o\n").unwrap();
        output.push(b"three").unwrap();
        assert_eq!(all(&mut receiver), b"two\n");
        output.finish().await;
        assert_eq!(all(&mut receiver), b"three\n");
    }

    #[tokio::test]
    async fn the_output_of_a_command_stays_as_it_is() {
        let (log, mut receiver) = WorkloadLog::new();
        let output = Output::new(WorkloadStream::Stdout, Form::Bytes, &log);
        output.push(b"name? ").unwrap();
        assert_eq!(all(&mut receiver), b"name? ", "a question has no end of line");
        output.push(b"no end").unwrap();
        output.finish().await;
        assert_eq!(all(&mut receiver), b"no end");
    }

    #[tokio::test]
    async fn a_line_without_end_is_cut() {
        let (log, mut receiver) = WorkloadLog::new();
        let output = Output::new(WorkloadStream::Stdout, Form::Lines, &log);
        output.push(&vec![b'x'; MAX_LINE + 1]).unwrap();
        assert_eq!(all(&mut receiver).len(), MAX_LINE + 1);
        assert!(output.text().line.is_empty());
    }

    #[tokio::test]
    async fn a_log_that_is_not_read_holds_its_writer_back() {
        let (log, mut receiver) = WorkloadLog::new();
        let mut output = Output::new(WorkloadStream::Stderr, Form::Lines, &log);
        for _ in 0..QUEUE {
            assert_eq!(output.check_write().unwrap(), MAX_WRITE);
            output.push(b"line\n").unwrap();
        }
        output.push(b"line\n").unwrap();
        assert_eq!(output.check_write().unwrap(), 0);
        output.push(b"line\n").unwrap_err();
        assert!(timeout(Duration::from_millis(10), output.ready()).await.is_err());
        receiver.recv().await.unwrap();
        output.ready().await;
        assert_eq!(output.check_write().unwrap(), MAX_WRITE);
        assert_eq!(all(&mut receiver).len(), QUEUE * 5);
        drop(receiver);
        for _ in 0..=QUEUE {
            output.push(b"line\n").unwrap();
        }
    }
}
