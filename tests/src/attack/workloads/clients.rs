//! The honest clients.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle, sleep},
    time::{Duration, Instant},
};

use anyhow::ensure;

use super::{ADDRESS, HONEST};

/// The time for an answer, on a machine that others use.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// Asks for a page over a connection of its own, and returns how long that took.
pub(super) fn asked(port: u16) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let address = SocketAddr::from((ADDRESS, port));
    let mut stream = TcpStream::connect_timeout(&address, ANSWERS_WITHIN)?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(began.elapsed())
}

/// The honest clients.
pub(super) struct Clients {
    asking: JoinHandle<anyhow::Result<Vec<Duration>>>,
    enough: Arc<AtomicBool>,
}

impl Clients {
    pub(super) fn begin(calls: usize) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&enough);
        let asking = thread::spawn(move || {
            let mut times = Vec::new();
            while times.len() < calls || !told.load(Ordering::Relaxed) {
                times.push(asked(HONEST)?);
                sleep(Duration::from_millis(5));
            }
            times.sort_unstable();
            Ok(times)
        });
        Self { asking, enough }
    }

    pub(super) fn end(self) -> anyhow::Result<Vec<Duration>> {
        self.enough.store(true, Ordering::Relaxed);
        self.asking.join().map_err(|_| anyhow::anyhow!("the honest client panicked"))?
    }
}
