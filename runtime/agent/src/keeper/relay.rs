//! The bytes of one connection in both directions, with bounds on time and memory.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split},
    net::TcpStream,
    time::{Instant, sleep_until, timeout},
};

/// The bytes of one direction that the keeper holds.
const BUFFER: usize = 16 << 10;

/// The time without a byte in either direction after which a connection ends: a client that was cut off from its network
/// says nothing.
const IDLE: Duration = Duration::from_secs(600);

/// The time in which a peer takes a buffer. One that takes nothing must not hold a unit's connections.
const STALLED: Duration = Duration::from_secs(120);

/// The time of the last byte of a connection.
struct LastByte {
    begun: Instant,
    /// Milliseconds after `begun`.
    at: AtomicU64,
}

impl LastByte {
    fn now() -> Self {
        Self { begun: Instant::now(), at: AtomicU64::new(0) }
    }

    fn came(&self) {
        let at = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.at.store(at, Ordering::Relaxed);
    }

    /// Waits until no byte has come for [`IDLE`].
    async fn long_ago(&self) {
        loop {
            let ends = self.begun + Duration::from_millis(self.at.load(Ordering::Relaxed)) + IDLE;
            if Instant::now() >= ends {
                return;
            }
            sleep_until(ends).await;
        }
    }
}

/// A TCP connection that is reset when it is dropped, as with the task that serves it: its peer must not take for whole
/// what was cut off. One that has ended in order is closed in order.
#[derive(Debug)]
pub(crate) struct ResetOnDrop {
    stream: TcpStream,
    in_order: bool,
}

impl ResetOnDrop {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, in_order: false }
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Records that both directions have ended.
    pub(crate) fn ended_in_order(&mut self) {
        self.in_order = true;
    }
}

impl Drop for ResetOnDrop {
    fn drop(&mut self) {
        if !self.in_order {
            // An error means that the peer has reset it.
            let _ = self.stream.set_zero_linger();
        }
    }
}

/// A callback that counts bytes.
pub(crate) type Count<'a> = &'a (dyn Fn(u64) + Sync);

/// Copies both directions until each has ended. An end of one direction is passed on, and the other one goes on. It ends
/// with an error when a bound of time is reached. `received` and `sent` are told of the workload's bytes.
pub(crate) async fn relay<C, W>(
    client: &mut C,
    workload: &mut W,
    received: Count<'_>,
    sent: Count<'_>,
) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite + Unpin,
    W: AsyncRead + AsyncWrite + Unpin,
{
    let last = LastByte::now();
    let (from_client, to_client) = split(client);
    let (from_workload, to_workload) = split(workload);
    let both = async {
        tokio::try_join!(
            copy(from_client, to_workload, &last, received),
            copy(from_workload, to_client, &last, sent)
        )
    };
    tokio::select! {
        copied = both => copied.map(|_| ()),
        () = last.long_ago() => Err(io::Error::new(io::ErrorKind::TimedOut, "no byte for too long")),
    }
}

/// Copies one direction until it ends, or until its reader takes no more: what that one has to say may still come.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    last: &LastByte,
    count: Count<'_>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = from.read(&mut buffer).await?;
        last.came();
        let written = match length {
            0 => to.shutdown().await,
            _ => {
                let all = async {
                    to.write_all(buffer.get(..length).unwrap_or_default()).await?;
                    to.flush().await
                };
                timeout(STALLED, all).await?
            }
        };
        last.came();
        match written {
            Ok(()) if length > 0 => count(length as u64),
            Ok(()) => return Ok(()),
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected
    )
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream, UnixStream};

    use super::*;

    /// A connection between a client and a workload, both played by the test.
    async fn connected() -> (TcpStream, TcpStream, UnixStream, UnixStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let (stream, workload) = UnixStream::pair().unwrap();
        (client, accepted, stream, workload)
    }

    fn nothing(_bytes: u64) {}

    #[tokio::test]
    async fn each_direction_ends_by_itself_and_all_bytes_are_counted() {
        let (mut client, mut accepted, mut stream, mut workload) = connected().await;
        let counts = [AtomicU64::new(0), AtomicU64::new(0)];
        let [received, sent] = &counts;
        let (received, sent) = (
            |bytes| _ = received.fetch_add(bytes, Ordering::Relaxed),
            |bytes| _ = sent.fetch_add(bytes, Ordering::Relaxed),
        );
        let text = vec![b'x'; 1 << 20];
        let answers = async {
            let mut asked = Vec::new();
            workload.read_to_end(&mut asked).await.unwrap();
            assert_eq!(asked, text, "the end of the request is seen");
            // The answer comes after the client's end.
            workload.write_all(&asked).await.unwrap();
            drop(workload);
        };
        let asks = async {
            client.write_all(&text).await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, text);
        };
        let (relayed, (), ()) =
            tokio::join!(relay(&mut accepted, &mut stream, &received, &sent), answers, asks);
        relayed.unwrap();
        assert_eq!(counts.map(AtomicU64::into_inner), [1 << 20; 2]);
    }

    #[tokio::test]
    async fn a_workload_that_stops_reading_still_answers() {
        let (mut client, mut accepted, mut stream, mut workload) = connected().await;
        let relayed =
            tokio::spawn(async move { relay(&mut accepted, &mut stream, &nothing, &nothing).await });
        workload.write_all(b"too large").await.unwrap();
        drop(workload);
        let mut answer = vec![0; 9];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, b"too large");
        // More than the workload has read comes to nothing.
        let _ = client.write_all(&vec![0; 1 << 20]).await;
        drop(client);
        // The client's end comes in order or as a reset.
        let _ = relayed.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_byte_ends() {
        let (client, mut accepted, mut stream, workload) = connected().await;
        let begun = Instant::now();
        let error = relay(&mut accepted, &mut stream, &nothing, &nothing).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= IDLE);
        drop((client, workload));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_cut_off() {
        let (client, mut accepted, mut stream, mut workload) = connected().await;
        let floods = tokio::spawn(async move {
            let chunk = vec![0; 64 << 10];
            while workload.write_all(&chunk).await.is_ok() {}
        });
        let begun = Instant::now();
        let error = relay(&mut accepted, &mut stream, &nothing, &nothing).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= STALLED && begun.elapsed() < IDLE);
        drop((client, accepted, stream));
        floods.await.unwrap();
    }
}
