//! The open streams of a hook to its unit's workloads. The runner gets them connected: the sandbox neither makes nor
//! names a socket.

use std::{
    collections::BTreeMap, future::Future, io, os::unix::net::UnixStream as Connected, time::Duration,
};

use bytes::{Buf as _, Bytes, BytesMut};
use periapt_hook::{CallError, Received};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::AbortHandle,
    time::timeout,
};

/// The most streams that a hook has open at a time. A command of `exec` takes three, and the request that waits for
/// its end one more.
const MAX_OPEN: usize = 16;

/// The bytes of a piece that is read ahead.
const PIECE: usize = 64 << 10;

/// The pieces of a stream that are read ahead. With those on their way, all streams of a hook take 18 MiB of the runner at
/// most.
/// Reading ahead keeps a peer going that sends on one stream while the hook waits on another.
const PIECES: usize = 16;

/// The most bytes of one call: as many as a guest may pass.
const MAX_CALL: usize = 1 << 20;

/// The streams of a hook. They end with it.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: BTreeMap<u32, Connection>,
    last: u32,
}

/// One stream, whose peer is read ahead by a task.
#[derive(Debug)]
pub(crate) struct Connection {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    rest: Bytes,
    /// The error that ended the reading.
    broken: Option<String>,
    writer: OwnedWriteHalf,
    reader: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Connections {
    /// Fails if no more streams may be opened.
    pub(crate) fn check_room(&self) -> Result<(), CallError> {
        match self.open.len() < MAX_OPEN {
            true => Ok(()),
            false => {
                Err(CallError::LimitExceeded(format!("more than {MAX_OPEN} streams are open at a time")))
            }
        }
    }

    /// Takes a connected stream, and returns its number, which no other stream of the hook has or had.
    pub(crate) fn add(&mut self, connected: Connected) -> Result<u32, CallError> {
        self.check_room()?;
        let failed = |error: io::Error| CallError::Failed(format!("the stream cannot be used: {error}"));
        connected.set_nonblocking(true).map_err(failed)?;
        let (half, writer) = UnixStream::from_std(connected).map_err(failed)?.into_split();
        let (sender, pieces) = mpsc::channel(PIECES);
        let reader = tokio::spawn(read_ahead(half, sender)).abort_handle();
        self.last = self.last.wrapping_add(1);
        let connection = Connection { pieces, rest: Bytes::new(), broken: None, writer, reader };
        self.open.insert(self.last, connection);
        Ok(self.last)
    }

    /// Takes a stream out for a call that waits. [`Self::put_back`] returns it.
    pub(crate) fn take(&mut self, number: u32) -> Result<Connection, CallError> {
        self.open.remove(&number).ok_or_else(|| CallError::NotFound(format!("stream {number} is not open")))
    }

    /// Returns a stream after a call.
    pub(crate) fn put_back(&mut self, number: u32, connection: Connection) {
        self.open.insert(number, connection);
    }

    /// Ends a stream, if it is open.
    pub(crate) fn close(&mut self, number: u32) {
        self.open.remove(&number);
    }
}

impl Connection {
    /// Waits for bytes, at most `most`, for a time in milliseconds.
    pub(crate) async fn read(&mut self, most: u32, milliseconds: Option<u32>) -> Result<Received, CallError> {
        if most == 0 {
            return Err(CallError::InvalidArgument("a read takes one byte at least".to_owned()));
        }
        if self.rest.is_empty() {
            if let Some(error) = &self.broken {
                return Err(CallError::Failed(error.clone()));
            }
            match within(milliseconds, self.pieces.recv()).await {
                None => return Ok(Received::Nothing),
                Some(None) => return Ok(Received::End),
                Some(Some(Ok(piece))) => self.rest = piece,
                Some(Some(Err(error))) => {
                    let text = format!("the stream broke: {error}");
                    self.broken = Some(text.clone());
                    return Err(CallError::Failed(text));
                }
            }
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(MAX_CALL).min(self.rest.len());
        let bytes = self.rest.get(..most).unwrap_or_default().to_vec();
        self.rest.advance(most);
        Ok(Received::Bytes(bytes))
    }

    /// Sends as many bytes as the peer takes, for a time in milliseconds, and returns their number.
    pub(crate) async fn write(&mut self, bytes: &[u8], milliseconds: Option<u32>) -> Result<u32, CallError> {
        if bytes.is_empty() {
            return Ok(0);
        }
        match within(milliseconds, self.writer.write(bytes)).await {
            None => Ok(0),
            Some(Ok(0)) => Err(CallError::Failed("the stream takes no bytes".to_owned())),
            Some(Ok(written)) => Ok(u32::try_from(written).unwrap_or(u32::MAX)),
            Some(Err(error)) => Err(CallError::Failed(format!("the stream broke: {error}"))),
        }
    }

    /// Ends the writing.
    pub(crate) async fn shutdown(&mut self) -> Result<(), CallError> {
        let ended = self.writer.shutdown().await;
        ended.map_err(|error| CallError::Failed(format!("the stream broke: {error}")))
    }
}

/// Waits for a time in milliseconds, or as long as it takes. The wall budget ends longer waits.
async fn within<T>(milliseconds: Option<u32>, work: impl Future<Output = T>) -> Option<T> {
    match milliseconds {
        None => Some(work.await),
        Some(milliseconds) => timeout(Duration::from_millis(milliseconds.into()), work).await.ok(),
    }
}

async fn read_ahead(mut half: OwnedReadHalf, pieces: mpsc::Sender<io::Result<Bytes>>) {
    loop {
        let mut piece = BytesMut::with_capacity(PIECE);
        let read = half.read_buf(&mut piece).await;
        let piece = match read {
            Ok(0) => return,
            Ok(_) => Ok(piece.freeze()),
            Err(error) => Err(error),
        };
        let failed = piece.is_err();
        if pieces.send(piece).await.is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    fn open(connections: &mut Connections) -> (u32, Connected) {
        let (ours, theirs) = Connected::pair().unwrap();
        (connections.add(ours).unwrap(), theirs)
    }

    #[tokio::test]
    async fn bytes_come_in_order_and_the_end_after_them() {
        let mut connections = Connections::default();
        let (number, mut peer) = open(&mut connections);
        let mut connection = connections.take(number).unwrap();
        assert_eq!(connection.read(9, Some(1)).await, Ok(Received::Nothing));
        peer.write_all(b"hello").unwrap();
        assert_eq!(connection.read(2, None).await, Ok(Received::Bytes(b"he".to_vec())));
        drop(peer);
        assert_eq!(connection.read(u32::MAX, None).await, Ok(Received::Bytes(b"llo".to_vec())));
        assert_eq!(connection.read(1, None).await, Ok(Received::End));
        assert_eq!(connection.read(1, None).await, Ok(Received::End));
        connections.take(number).unwrap_err();
    }

    #[tokio::test]
    async fn writing_ends_apart_from_reading_and_a_peer_that_takes_nothing_is_waited_for() {
        let mut connections = Connections::default();
        let (number, mut peer) = open(&mut connections);
        let mut connection = connections.take(number).unwrap();
        assert_eq!(connection.write(b"question", None).await, Ok(8));
        connection.shutdown().await.unwrap();
        let mut question = String::new();
        peer.read_to_string(&mut question).unwrap();
        assert_eq!(question, "question");
        peer.write_all(b"answer").unwrap();
        assert_eq!(connection.read(100, None).await, Ok(Received::Bytes(b"answer".to_vec())));

        let (number, _silent) = open(&mut connections);
        let mut connection = connections.take(number).unwrap();
        let much = vec![0; MAX_CALL];
        while connection.write(&much, Some(20)).await.unwrap() > 0 {}
        assert_eq!(connection.write(&much, Some(1)).await, Ok(0));
    }

    #[tokio::test]
    async fn a_peer_that_sends_without_end_is_read_ahead_within_bounds() {
        let mut connections = Connections::default();
        let (number, mut peer) = open(&mut connections);
        peer.set_nonblocking(true).unwrap();
        let mut sent = 0;
        let much = vec![7; PIECE];
        let mut idle = 0;
        while idle < 20 {
            match peer.write(&much) {
                Ok(written) => (sent, idle) = (sent + written, 0),
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    idle += 1;
                }
            }
        }
        assert!(sent < 4 << 20, "{sent} bytes were taken");
        let mut connection = connections.take(number).unwrap();
        assert!(matches!(connection.read(10, None).await, Ok(Received::Bytes(_))));
    }

    #[tokio::test]
    async fn a_hook_has_a_bounded_number_of_streams() {
        let mut connections = Connections::default();
        let mut peers: Vec<_> = (0..MAX_OPEN).map(|_| open(&mut connections)).collect();
        let (ours, _theirs) = Connected::pair().unwrap();
        assert!(matches!(connections.add(ours), Err(CallError::LimitExceeded(_))));
        connections.close(peers.pop().unwrap().0);
        open(&mut connections);
    }
}
