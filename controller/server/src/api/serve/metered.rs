//! Connections whose HTTP/2 frames are counted. The HTTP library bounds what its streams hold, but answers any number of
//! settings, pings, resets and the like; a caller that sends nothing else would keep a processor busy.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

/// The first bytes of a client's HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The bytes of a frame's head: the length of its payload, its kind, its flags and its stream.
const HEAD: usize = 9;
/// The frames without a request's content that a caller may send at once. An agent that loses a thousand streams
/// cancels each of them.
const BURST: u64 = 2_000;
/// The number of such frames that a caller may send in a second besides.
const IN_A_SECOND: u64 = 200;
/// The bytes sent to a caller for which it may return one window update besides. Each line of a stream can be a frame of
/// its own, for which the caller updates two windows.
const BYTES_OF_UPDATE: u64 = 64;

/// The kinds of frames by their numbers in RFC 9113.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const WINDOW_UPDATE: u8 = 8;
/// The flag of a DATA frame that ends its stream.
const END_STREAM: u8 = 1;

/// A stream of bytes whose frames are counted. It fails once too many of them carry no request.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    position: Position,
    control: Allowance,
    updates: Allowance,
}

/// The place in the received bytes.
#[derive(Debug)]
enum Position {
    /// Within the preface, of which this many bytes have come.
    Preface(usize),
    /// Within a frame's head, of which this many bytes have come.
    Head([u8; HEAD], usize),
    /// Within a frame's payload, of which this many bytes are to come.
    Payload(usize),
    /// The connection speaks another protocol.
    Other,
}

/// The frames that a caller may still send.
#[derive(Debug)]
struct Allowance {
    left: u64,
    at: Instant,
}

impl Allowance {
    fn new(now: Instant) -> Self {
        Self { left: BURST, at: now }
    }

    /// Takes one frame from the allowance. Returns false if there is none left.
    fn take(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.at);
        let more = u64::try_from(since.as_millis()).unwrap_or(u64::MAX).saturating_mul(IN_A_SECOND) / 1_000;
        if more > 0 {
            self.add(more);
            self.at = now;
        }
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }

    fn add(&mut self, more: u64) {
        self.left = self.left.saturating_add(more).min(BURST);
    }
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S) -> Self {
        let now = Instant::now();
        Self {
            stream,
            position: Position::Preface(0),
            control: Allowance::new(now),
            updates: Allowance::new(now),
        }
    }

    /// Follows the frames in received bytes.
    fn count(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let [first, rest @ ..] = bytes {
            self.position = match self.position {
                Position::Other => return Ok(()),
                Position::Preface(have) if PREFACE.get(have) != Some(first) => Position::Other,
                Position::Preface(have) if have + 1 == PREFACE.len() => Position::Head([0; HEAD], 0),
                Position::Preface(have) => Position::Preface(have + 1),
                Position::Head(mut head, have) => {
                    if let Some(place) = head.get_mut(have) {
                        *place = *first;
                    }
                    if have + 1 == HEAD { self.frame(head)? } else { Position::Head(head, have + 1) }
                }
                Position::Payload(left) => {
                    let skipped = left.min(bytes.len());
                    bytes = bytes.get(skipped..).unwrap_or_default();
                    self.position = behind(left - skipped);
                    continue;
                }
            };
            bytes = rest;
        }
        Ok(())
    }

    /// Counts a frame. Returns the position behind its head.
    fn frame(&mut self, head: [u8; HEAD]) -> io::Result<Position> {
        let [high, middle, low, kind, flags, ..] = head;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        let is_allowed = match kind {
            HEADERS => true,
            DATA if length > 0 || flags & END_STREAM != 0 => true,
            WINDOW_UPDATE => self.updates.take(Instant::now()),
            _ => self.control.take(Instant::now()),
        };
        match is_allowed {
            true => Ok(behind(length)),
            false => Err(io::Error::other("the caller sends too many frames without a request")),
        }
    }
}

/// Returns the position in front of this many bytes of a payload.
fn behind(left: usize) -> Position {
    if left == 0 { Position::Head([0; HEAD], 0) } else { Position::Payload(left) }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = polled {
            self.count(buffer.filled().get(before..).unwrap_or_default())?;
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> Metered<S> {
    fn wrote(&mut self, polled: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = polled {
            self.updates.add((*bytes as u64).div_ceil(BYTES_OF_UPDATE));
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.wrote(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    const PING: u8 = 6;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    fn connected() -> (DuplexStream, Metered<DuplexStream>) {
        let (caller, controller) = duplex(1 << 20);
        (caller, Metered::new(controller))
    }

    /// Sends bytes in pieces of a size, and reads them.
    async fn sent(
        (caller, metered): &mut (DuplexStream, Metered<DuplexStream>),
        bytes: &[u8],
        size: usize,
    ) -> io::Result<()> {
        for piece in bytes.chunks(size) {
            caller.write_all(piece).await.unwrap();
            let mut read = vec![0; piece.len()];
            metered.read_exact(&mut read).await?;
            assert_eq!(read, piece);
        }
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn frames_without_a_request_are_counted_wherever_the_bytes_are_divided() {
        for size in [1, 7, 9, 17, 4096] {
            let mut ends = connected();
            sent(&mut ends, PREFACE, size).await.unwrap();
            for _ in 0..BURST {
                let request = [frame(HEADERS, 4, &[1; 40]), frame(DATA, 0, &[2; 20]), frame(DATA, 1, &[])];
                sent(&mut ends, &request.concat(), size).await.unwrap();
                sent(&mut ends, &frame(PING, 0, &[0; 8]), size).await.unwrap();
            }
            sent(&mut ends, &frame(HEADERS, 4, &[1; 40]), size).await.unwrap();
            assert!(sent(&mut ends, &frame(PING, 0, &[0; 8]), size).await.is_err(), "pieces of {size}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_sends_such_frames_now_and_then_may_go_on() {
        let mut ends = connected();
        sent(&mut ends, PREFACE, 100).await.unwrap();
        for _ in 0..10 * BURST {
            tokio::time::advance(Duration::from_millis(5)).await;
            sent(&mut ends, &frame(PING, 0, &[0; 8]), 100).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn window_updates_are_counted_beside_the_bytes_that_they_are_for() {
        let mut ends = connected();
        sent(&mut ends, PREFACE, 100).await.unwrap();
        let update = frame(WINDOW_UPDATE, 0, &[0, 0, 1, 0]);
        for _ in 0..5 * BURST {
            ends.1.write_all(&[0; 2 * BYTES_OF_UPDATE as usize]).await.unwrap();
            ends.0.read_exact(&mut [0; 2 * BYTES_OF_UPDATE as usize]).await.unwrap();
            sent(&mut ends, &[update.clone(), update.clone()].concat(), 100).await.unwrap();
        }
        // The last two were taken from the burst.
        for _ in 0..BURST - 2 {
            sent(&mut ends, &update, 100).await.unwrap();
        }
        assert!(sent(&mut ends, &update, 100).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn another_protocol_is_not_counted() {
        let mut ends = connected();
        sent(&mut ends, b"PRI /v1/models HTTP/1.1\r\n", 3).await.unwrap();
        for _ in 0..BURST + 1 {
            sent(&mut ends, &frame(PING, 0, &[0; 8]), 100).await.unwrap();
        }
    }
}
