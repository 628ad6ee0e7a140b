//! The standard streams of a hook. Their lines go to the hook's log (`docs/hook-model.md` E-2).

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use periapt_hook::OutputStream as Stream;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamError, StreamResult},
};

use crate::{meter::Meter, state::ContextAccess};

/// The most bytes of a line. A longer line is logged in pieces, so that a stream buffers no more than
/// this.
const MAX_LINE: usize = 16 << 10;

/// The bytes at the end of stderr that are kept: after a trap they contain the panic message.
const TAIL: usize = 4 << 10;

/// The most bytes of one write.
const MAX_WRITE: usize = 64 << 10;

/// One standard stream of a hook.
#[derive(Clone)]
pub(crate) struct Output {
    stream: Stream,
    access: Arc<ContextAccess>,
    meter: Arc<Meter>,
    text: Arc<Mutex<Text>>,
}

#[derive(Default)]
struct Text {
    /// The start of a line that has not ended.
    line: Vec<u8>,
    /// The end of all output.
    tail: Vec<u8>,
}

impl Output {
    pub(crate) fn new(stream: Stream, access: &Arc<ContextAccess>, meter: &Arc<Meter>) -> Self {
        let (access, meter) = (Arc::clone(access), Arc::clone(meter));
        Self { stream, access, meter, text: Arc::default() }
    }

    /// Logs a last line without an end of line.
    pub(crate) fn finish(&self) {
        let line = std::mem::take(&mut self.text().line);
        if !line.is_empty() {
            self.log(&line);
        }
    }

    /// Returns the end of the output.
    pub(crate) fn tail(&self) -> String {
        String::from_utf8_lossy(&self.text().tail).into_owned()
    }

    fn push(&self, bytes: &[u8]) -> StreamResult<()> {
        self.meter.call(bytes.len() as u64).map_err(|error| StreamError::Trap(error.into()))?;
        self.access.call(|context, _| context.capture_output(self.stream, bytes));
        let lines = self.text().push(bytes);
        self.meter.lines(lines.len() as u64);
        for line in lines {
            self.log(&line);
        }
        Ok(())
    }

    fn log(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        self.access.call(|context, now| context.output_line(now, self.stream, &text));
    }

    fn text(&self) -> MutexGuard<'_, Text> {
        self.text.lock()
    }
}

impl Text {
    /// Adds output and returns the complete lines.
    fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.tail.extend_from_slice(bytes.get(bytes.len().saturating_sub(TAIL)..).unwrap_or_default());
        let surplus = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..surplus);

        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, ended) = match piece.strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            self.line.extend_from_slice(piece);
            while self.line.len() > MAX_LINE {
                let rest = self.line.split_off(MAX_LINE);
                lines.push(std::mem::replace(&mut self.line, rest));
            }
            if ended {
                lines.push(std::mem::take(&mut self.line));
            }
        }
        lines
    }
}

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
        self.push(&bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_WRITE)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {}
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
    use super::*;

    fn check(writes: &[&str], lines: &[&str], rest: &str) {
        let mut text = Text::default();
        let found: Vec<_> = writes.iter().flat_map(|write| text.push(write.as_bytes())).collect();
        let found: Vec<_> = found.iter().map(|line| String::from_utf8_lossy(line)).collect();
        assert_eq!(found, lines);
        assert_eq!(String::from_utf8_lossy(&text.line), rest);
    }

    #[test]
    fn lines_are_put_together_from_whatever_pieces_were_written() {
        check(&["one\ntwo\nth", "ree\n", "four"], &["one", "two", "three"], "four");
        check(&["\n\n"], &["", ""], "");
        check(&[""], &[], "");
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let long = "x".repeat(MAX_LINE + 1);
        check(&[&long], &[&long[..MAX_LINE]], "x");
    }

    #[test]
    fn only_the_end_is_kept() {
        let mut text = Text::default();
        text.push(&vec![b'a'; TAIL]);
        text.push(b"end");
        assert_eq!(text.tail.len(), TAIL);
        assert!(text.tail.ends_with(b"aend"));
    }
}
