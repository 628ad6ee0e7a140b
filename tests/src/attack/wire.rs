//! HTTP/2 by hand: frames as a client would never send them.

use std::{collections::BTreeMap, io};

use anyhow::Context as _;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf},
    net::{TcpSocket, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{row::StoppedBy, target::AttackedController};

/// The kinds of frames, by their numbers in RFC 9113.
pub(super) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
    pub(crate) const UNKNOWN: u8 = 0x42;
}

/// The flags of frames.
pub(super) mod flag {
    pub(crate) const NONE: u8 = 0;
    pub(crate) const ACK: u8 = 1;
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;
}

/// The setting of a stream's first window.
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;

/// The stream of a flood's last request.
const LAST_STREAM: u32 = 0x7fff_ffff;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Returns a frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let [_, high, middle, low] = length;
    let mut bytes = vec![high, middle, low, kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Returns one setting as the payload of a frame.
pub(super) fn setting(name: u16, value: u32) -> Vec<u8> {
    [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// Appends a header that the peer shall not keep, without compression.
pub(super) fn header(block: &mut Vec<u8>, name: &str, value: &[u8]) {
    block.push(0);
    for text in [name.as_bytes(), value] {
        length(block, text.len());
        block.extend(text);
    }
}

/// Appends a text's length as HPACK has it, in seven bits and then seven more at a time.
pub(super) fn length(block: &mut Vec<u8>, length: usize) {
    const SEVEN_BITS: usize = 0x7f;
    let low = |number: usize| u8::try_from(number & SEVEN_BITS).unwrap_or_default();
    if length < SEVEN_BITS {
        block.push(low(length));
        return;
    }
    block.push(0x7f);
    let mut rest = length - SEVEN_BITS;
    while rest > SEVEN_BITS {
        block.push(low(rest) | 0x80);
        rest >>= 7;
    }
    block.push(low(rest));
}

/// Returns the headers of a request, with a token or without.
pub(super) fn request(method: &str, path: &str, target: &AttackedController, token: Option<&str>) -> Vec<u8> {
    let mut block = Vec::new();
    header(&mut block, ":method", method.as_bytes());
    header(&mut block, ":scheme", b"https");
    header(&mut block, ":authority", target.address.to_string().as_bytes());
    header(&mut block, ":path", path.as_bytes());
    if let Some(token) = token {
        header(&mut block, "authorization", format!("Bearer {token}").as_bytes());
    }
    if method == "POST" {
        header(&mut block, "content-type", b"application/json");
    }
    block
}

/// The writing side of a hostile connection.
pub(super) struct Writer {
    stream: WriteHalf<TlsStream<TcpStream>>,
    /// The frames that were sent.
    pub(super) frames: usize,
}

/// The reading side of a hostile connection.
pub(super) struct Reader {
    stream: ReadHalf<TlsStream<TcpStream>>,
    /// The frames that were read so far.
    pub(super) seen: Seen,
}

/// The frames that a controller sent to a hostile caller.
#[derive(Debug, Default, Clone)]
pub(super) struct Seen {
    /// The reason of the frame GOAWAY.
    pub(super) goaway: Option<u32>,
    /// The streams that were reset, by the reason.
    pub(super) resets: BTreeMap<u32, usize>,
    /// The streams that have ended with an answer.
    pub(super) ended: usize,
    /// The parts of answers that name the code of a refusal.
    pub(super) refusals: usize,
    /// The parts of other answers.
    pub(super) contents: usize,
    /// True once a flood's last request was answered.
    pub(super) last_is_answered: bool,
    /// The pings that the caller has not answered.
    pub(super) pings: Vec<[u8; 8]>,
    /// True once the connection was closed.
    pub(super) closed: bool,
}

/// Connects from an address, with TLS and nothing more.
pub(super) async fn connect(
    target: &AttackedController,
    from: std::net::SocketAddr,
) -> anyhow::Result<TlsStream<TcpStream>> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(from)?;
    let stream = socket.connect(target.address).await.context("connecting")?;
    let name = ServerName::from(target.address.ip());
    TlsConnector::from(target.config.clone()).connect(name, stream).await.context("TLS")
}

/// Opens a connection with these settings.
pub(super) async fn open(target: &AttackedController, settings: &[u8]) -> anyhow::Result<(Writer, Reader)> {
    let stream = connect(target, target.next_network()).await?;
    let (reader, writer) = tokio::io::split(stream);
    let mut writer = Writer { stream: writer, frames: 0 };
    writer.raw(PREFACE).await?;
    writer.send(&frame(kind::SETTINGS, flag::NONE, 0, settings), 1).await?;
    // Whatever holds an answer up shall not be the connection's window.
    writer.send(&frame(kind::WINDOW_UPDATE, flag::NONE, 0, &0x3fff_ffff_u32.to_be_bytes()), 1).await?;
    Ok((writer, Reader { stream: reader, seen: Seen::default() }))
}

impl Writer {
    async fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Sends bytes that hold so many frames.
    pub(super) async fn send(&mut self, bytes: &[u8], frames: usize) -> io::Result<()> {
        self.raw(bytes).await?;
        self.frames += frames;
        Ok(())
    }
}

impl Reader {
    /// Reads one frame, and notes it. Returns false once the connection is closed.
    pub(super) async fn next(&mut self) -> bool {
        if self.frame().await.is_err() {
            self.seen.closed = true;
        }
        !self.seen.closed
    }

    async fn frame(&mut self) -> io::Result<()> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await?;
        let [high, middle, low, kind, flags, stream @ ..] = head;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await?;
        let word = |at: usize| {
            let bytes = payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_be_bytes).unwrap_or_default()
        };
        let seen = &mut self.seen;
        seen.last_is_answered |= kind == kind::HEADERS && u32::from_be_bytes(stream) == LAST_STREAM;
        match kind {
            kind::RST_STREAM => *seen.resets.entry(word(0)).or_default() += 1,
            // The first of two only says that the connection will end.
            kind::GOAWAY => seen.goaway = Some(word(4)),
            kind::DATA if is_refusal(&payload) => seen.refusals += 1,
            kind::DATA if !payload.is_empty() => seen.contents += 1,
            kind::PING if flags & flag::ACK == 0 => seen.pings.extend(<[u8; 8]>::try_from(payload).ok()),
            _ => {}
        }
        if matches!(kind, kind::HEADERS | kind::DATA) && flags & flag::END_STREAM != 0 {
            seen.ended += 1;
        }
        Ok(())
    }

    /// Reads until the connection is closed.
    pub(super) async fn read_to_end(&mut self) {
        while self.next().await {}
    }
}

/// Returns true if an answer's body is a problem with a code.
fn is_refusal(body: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|problem| problem.get("code").is_some())
}

/// Sends what `next` returns until it returns nothing or the connection is closed, and then a request, while it reads.
/// Waits until the connection is closed. If the request was answered, nobody stopped the flood.
pub(super) async fn flood(
    target: &AttackedController,
    mut next: impl FnMut(usize) -> Option<(Vec<u8>, usize)>,
) -> anyhow::Result<StoppedBy> {
    let (mut writer, mut reader) = open(target, &[]).await?;
    let block = request("GET", "/v1/models", target, Some(&target.hostile.reveal()));
    let asked = frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, LAST_STREAM, &block);
    let send = async {
        let mut number = 0;
        while let Some((bytes, frames)) = next(number) {
            writer.send(&bytes, frames).await?;
            number += 1;
        }
        writer.raw(&asked).await
    };
    let read = async { while reader.next().await && !reader.seen.last_is_answered {} };
    // If the sender fails, the reader tells why.
    let _ = tokio::join!(send, read);
    Ok(match reader.seen {
        seen if seen.last_is_answered => StoppedBy::Nobody("a request after it was answered".to_owned()),
        seen => StoppedBy::ConnectionClosed { after: writer.frames, reason: seen.goaway },
    })
}
