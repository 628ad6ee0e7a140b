//! Websockets (RFC 6455) on streams to a Pebble, as far as commands need them.

use crate::{Context as _, Error, Result, WorkloadStream, http::Head, incoming::Incoming, workload::Arrived};

/// The key of each handshake, and the answer to it. A key keeps caches and proxies from mistaking answers: here are
/// none.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The most bytes of a frame that is read. Pebble sends some tens of KiB at once.
const MAX_FRAME: usize = 1 << 20;

/// The bytes of a frame that is sent.
const PIECE: usize = 32 << 10;

/// The message after which nothing follows.
const END: &str = r#"{"command":"end"}"#;

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;

/// A websocket of a command.
#[derive(Debug)]
pub(crate) struct Websocket {
    stream: WorkloadStream,
    /// The bytes of frames that are not whole yet.
    received: Vec<u8>,
    /// The kind of the message that the last frame began.
    message: u8,
    text: Vec<u8>,
    output: Vec<u8>,
    /// The most bytes of the output.
    most: usize,
    is_over: bool,
}

impl Websocket {
    /// Connects a websocket. Its output has at most `most` bytes.
    pub(crate) fn connect(mut stream: WorkloadStream, path: &str, most: usize) -> Result<Self> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
        );
        std::io::Write::write_all(&mut stream, request.as_bytes()).context("sending a request")?;
        let mut incoming = Incoming::new(stream);
        let head = Head::receive(&mut incoming)?;
        if head.status != 101 || head.accept != ACCEPT {
            return Err(Error::new(format!("{path} opens no websocket (status {})", head.status)));
        }
        let (stream, received) = incoming.into_parts();
        let mut websocket = Self {
            stream,
            received: Vec::new(),
            message: 0,
            text: Vec::new(),
            output: Vec::new(),
            most,
            is_over: false,
        };
        websocket.take(&received)?;
        Ok(websocket)
    }

    /// Returns true if nothing follows.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(crate) fn into_output(self) -> Vec<u8> {
        self.output
    }

    /// Sends bytes for at most a time in milliseconds. Returns how many went.
    pub(crate) fn send(&mut self, bytes: &[u8], milliseconds: u32) -> Result<usize> {
        self.stream.send(bytes, milliseconds)
    }

    /// Waits for bytes, for at most a time in milliseconds. Returns true if some came, or the end.
    pub(crate) fn receive(&mut self, milliseconds: u32) -> Result<bool> {
        match self.stream.receive(milliseconds)? {
            Arrived::Bytes(bytes) => self.take(&bytes)?,
            Arrived::End => self.is_over = true,
            Arrived::Nothing => return Ok(false),
        }
        Ok(true)
    }

    fn take(&mut self, bytes: &[u8]) -> Result {
        self.received.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(frame) = Frame::read(self.received.get(at..).unwrap_or_default())? {
            let (end, payload) = (at + frame.length, frame.payload.to_vec());
            let (kind, is_last) = (frame.kind, frame.is_last);
            self.frame(kind, is_last, &payload)?;
            at = end;
        }
        self.received.drain(..at);
        Ok(())
    }

    fn frame(&mut self, kind: u8, is_last: bool, payload: &[u8]) -> Result {
        match kind {
            CLOSE => self.is_over = true,
            // Pings and pongs.
            9.. => {}
            _ if self.is_over => {}
            _ => {
                // A frame of kind 0 continues the message.
                self.message = if kind == 0 { self.message } else { kind };
                let (into, most) = match self.message {
                    TEXT => (&mut self.text, MAX_FRAME),
                    _ => (&mut self.output, self.most),
                };
                if payload.len() > most.saturating_sub(into.len()) {
                    return Err(Error::new(format!("the command printed more than {most} bytes")));
                }
                into.extend_from_slice(payload);
                if self.message == TEXT && is_last {
                    let text: serde_json::Value = serde_json::from_slice(&self.text).unwrap_or_default();
                    self.is_over |= text.get("command").and_then(|it| it.as_str()) == Some("end");
                    self.text.clear();
                }
            }
        }
        Ok(())
    }
}

/// A frame that has come.
struct Frame<'a> {
    kind: u8,
    is_last: bool,
    payload: &'a [u8],
    /// The bytes with the head.
    length: usize,
}

impl<'a> Frame<'a> {
    /// Reads a frame; none if more bytes must come.
    fn read(bytes: &'a [u8]) -> Result<Option<Self>> {
        let [first, second, ..] = *bytes else { return Ok(None) };
        // Servers mask nothing, and extensions were not asked for.
        let is_known = matches!(first & 0x0f, 0..=2 | 8..=10);
        if first & 0x70 != 0 || second & 0x80 != 0 || !is_known {
            return Err(Error::new("a frame of the websocket is malformed"));
        }
        let (head, digits) = match second {
            127 => (10, bytes.get(2..10)),
            126 => (4, bytes.get(2..4)),
            _ => (2, bytes.get(1..2)),
        };
        let Some(digits) = digits else { return Ok(None) };
        let length = digits.iter().fold(0_u64, |length, digit| length << 8 | u64::from(*digit));
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_FRAME);
        let length = length
            .ok_or_else(|| Error::new(format!("a frame of the websocket has more than {MAX_FRAME} bytes")))?;
        let Some(payload) = bytes.get(head..head + length) else { return Ok(None) };
        Ok(Some(Self { kind: first & 0x0f, is_last: first & 0x80 != 0, payload, length: head + length }))
    }
}

/// Returns the frames of an input and of its end.
pub(crate) fn input(bytes: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    for piece in bytes.chunks(PIECE) {
        push(&mut frames, BINARY, piece);
    }
    push(&mut frames, TEXT, END.as_bytes());
    frames
}

/// Returns the frame of a text of at most 32 KiB.
pub(crate) fn text(text: &str) -> Vec<u8> {
    let mut frames = Vec::new();
    push(&mut frames, TEXT, text.as_bytes());
    frames
}

fn push(frames: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    frames.push(0x80 | kind);
    match u8::try_from(payload.len()) {
        Ok(length @ ..126) => frames.push(0x80 | length),
        _ => {
            frames.push(0x80 | 126);
            frames.extend(u16::try_from(payload.len()).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    // Clients mask what they send. This mask changes nothing: no proxy reads along that it would have to mislead.
    frames.extend([0; 4]);
    frames.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_whole_and_within_bounds() {
        let read = |bytes: &[u8]| {
            Frame::read(bytes).map(|it| it.map(|it| (it.kind, it.payload.to_vec(), it.length)))
        };
        assert_eq!(read(b"\x82\x03abc-").unwrap(), Some((2, b"abc".to_vec(), 5)));
        assert_eq!(read(b"\x82\x7e\x00\x03abc").unwrap(), Some((2, b"abc".to_vec(), 7)));
        for part in [&b""[..], b"\x82", b"\x82\x03ab", b"\x82\x7e\x00", b"\x82\x7f\0\0\0\0\0\0\x01"] {
            assert_eq!(read(part).unwrap(), None, "{part:?}");
        }
        for bad in [
            &b"\x82\x83\0\0\0\0abc"[..],
            b"\xc2\x00",
            b"\x83\x00",
            b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_input_is_frames_and_an_end() {
        assert_eq!(input(b""), [&b"\x81\x91\0\0\0\0"[..], END.as_bytes()].concat());
        let long = input(&[7; PIECE + 1]);
        assert_eq!(long[..8], *b"\x82\xfe\x80\x00\0\0\0\0");
        assert_eq!(long.len(), PIECE + 8 + 7 + 6 + END.len());
    }
}
