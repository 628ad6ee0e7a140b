//! The clients of exposed ports, each of which asks in a loop.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// The pause between two requests.
const PAUSE: Duration = Duration::from_millis(10);

/// The time in which a request is answered, on a machine that others use.
pub(super) const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// A client, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct Client {
    shared: Arc<Shared>,
    asking: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    enough: AtomicBool,
    seen: Mutex<Seen>,
}

/// The answers to a client since the last look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The time of the last answer.
    last: Instant,
    /// The longest time between two answers.
    longest: Duration,
    /// The number of answers.
    pub(super) answers: u64,
    /// The number of requests that were not answered, or not with the page.
    pub(super) failures: u64,
}

impl Seen {
    /// Returns the longest time without an answer.
    pub(super) fn gap(&self) -> Duration {
        self.longest.max(self.last.elapsed())
    }
}

impl Client {
    /// Begins to ask for a path.
    pub(super) fn begin(port: u16, path: &'static str) -> Self {
        let seen = Seen { last: Instant::now(), longest: Duration::ZERO, answers: 0, failures: 0 };
        let shared = Arc::new(Shared { enough: AtomicBool::new(false), seen: Mutex::new(seen) });
        let own = Arc::clone(&shared);
        let asking = thread::spawn(move || {
            while !own.enough.load(Ordering::Relaxed) {
                own.note(is_page(port, path));
                thread::sleep(PAUSE);
            }
        });
        Self { shared, asking: Some(asking) }
    }

    /// Returns what was seen since [`Self::forget`].
    pub(super) fn seen(&self) -> Seen {
        *self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to count anew.
    pub(super) fn forget(&self) {
        let mut seen = self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = Seen { longest: Duration::ZERO, answers: 0, failures: 0, ..*seen };
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.enough.store(true, Ordering::Relaxed);
        if let Some(asking) = self.asking.take() {
            let _ = asking.join();
        }
    }
}

impl Shared {
    fn note(&self, is_answered: bool) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if is_answered {
            let now = Instant::now();
            seen.longest = seen.longest.max(now - seen.last);
            seen.last = now;
            seen.answers += 1;
        } else {
            seen.failures += 1;
        }
    }
}

/// Returns true if a port answers a request for a path.
fn is_page(port: u16, path: &str) -> bool {
    let ask = || -> std::io::Result<Vec<u8>> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&address, ANSWERED_WITHIN)?;
        stream.set_read_timeout(Some(ANSWERED_WITHIN))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with(b"HTTP/1.1 200 ") || answer.starts_with(b"HTTP/1.0 200 "))
}
