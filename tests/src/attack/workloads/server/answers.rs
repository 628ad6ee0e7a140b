//! The clients of a hostile server, and what they see of its answers.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::anyhow;

use super::{super::ADDRESS, SERVER};

/// The time in which a request has ended, on a machine that others use: it may wait 10 s and take 60 s.
pub(super) const ENDS_WITHIN: Duration = Duration::from_secs(180);

/// The bytes of an answer that are kept.
const KEPT: usize = 4 << 10;

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerEnd {
    /// The connection was closed in order.
    Closed,
    /// The connection was reset.
    Reset,
    /// It has not ended in [`ENDS_WITHIN`].
    None,
}

/// The part of an answer that a client saw.
#[derive(Debug)]
pub(super) struct Seen {
    /// The status; none if there was no answer.
    pub(super) status: Option<u16>,
    /// The bytes that were read, head included.
    pub(super) read: usize,
    /// The first of these.
    pub(super) text: String,
    /// The end.
    pub(super) end: AnswerEnd,
}

impl Seen {
    /// Returns true if the host ended the request, which did not succeed.
    pub(super) fn is_stopped(&self) -> bool {
        self.end != AnswerEnd::None && self.status.is_none_or(|status| status >= 400)
    }

    pub(super) fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").map_or("", |(_, body)| body).trim()
    }
}

pub(super) fn connect() -> std::io::Result<TcpStream> {
    let address = SocketAddr::from((ADDRESS, SERVER));
    TcpStream::connect_timeout(&address, ENDS_WITHIN)
}

/// Reads an answer to its end.
pub(super) fn seen(mut stream: &TcpStream) -> anyhow::Result<Seen> {
    let began = Instant::now();
    stream.set_read_timeout(Some(ENDS_WITHIN))?;
    let (mut kept, mut read, mut piece) = (Vec::<u8>::new(), 0, vec![0; 64 << 10]);
    let end = loop {
        if began.elapsed() > ENDS_WITHIN {
            break AnswerEnd::None;
        }
        match stream.read(&mut piece) {
            Ok(0) => break AnswerEnd::Closed,
            Ok(length) => {
                read += length;
                kept.extend(piece.iter().take(length.min(KEPT.saturating_sub(kept.len()))));
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break AnswerEnd::None;
            }
            Err(_) => break AnswerEnd::Reset,
        }
    };
    let text = String::from_utf8_lossy(&kept).into_owned();
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    Ok(Seen { status, read, text, end })
}

pub(super) fn get(path: &str) -> anyhow::Result<Seen> {
    let mut stream = connect()?;
    // A connection that was reset is seen when it is read.
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    seen(&stream)
}

/// Lets so many clients do the same.
pub(super) fn at_once<T: Send>(
    clients: usize,
    each: impl Fn() -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let each = &each;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(each)).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|ended| ended.map_err(|_| anyhow!("a client panicked"))?).collect()
    })
}
