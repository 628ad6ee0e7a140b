//! Appends for a while, and their times.

use std::time::{Duration, Instant};

use bytes::Bytes;
use etcd_client::{Client, Compare, CompareOp, Txn, TxnOp};
use periapt_host_api::Revision;
use periapt_log::{Log, Term};

/// The figures of a phase: appends a second, and times in milliseconds.
pub(crate) struct Figures {
    pub(crate) rate: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) longest: f64,
}

impl Figures {
    fn of(mut times: Vec<Duration>, all: Duration) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let time = times.get(times.len().saturating_sub(1) * percent / 100);
            time.copied().unwrap_or_default().as_secs_f64() * 1e3
        };
        let rate = times.len() as f64 / all.as_secs_f64();
        Self { rate, p50: at(50), p99: at(99), longest: at(100) }
    }
}

/// The appends of a leader, one after the other.
pub(crate) struct Appends<'a, L> {
    log: &'a L,
    term: Term,
    entry: Bytes,
    end: u64,
}

impl<'a, L: Log> Appends<'a, L> {
    pub(crate) fn new(log: &'a L, term: Term, size: usize) -> Self {
        Self { log, term, entry: noise(size), end: 0 }
    }

    /// Appends for a while. After each append, the next one runs beside `also`, which is given the end.
    pub(crate) async fn run(
        &mut self,
        time: Duration,
        also: impl AsyncFn(u64) -> anyhow::Result<()>,
    ) -> anyhow::Result<Figures> {
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < time {
            let append = async {
                let sent = Instant::now();
                self.log.append(self.term, Revision(self.end + 1), self.entry.clone()).await?;
                anyhow::Ok(sent.elapsed())
            };
            let (appended, also) = tokio::join!(append, also(self.end));
            also?;
            times.push(appended?);
            self.end += 1;
        }
        Ok(Figures::of(times, begun.elapsed()))
    }
}

/// Puts values under new keys for a while, with no more than etcd's client.
pub(crate) async fn bare(client: &mut Client, size: usize, time: Duration) -> anyhow::Result<Figures> {
    let (begun, value, mut times) = (Instant::now(), noise(size), Vec::new());
    while begun.elapsed() < time {
        let key = format!("bare/{:020}", times.len());
        let put = Txn::new()
            .when([Compare::create_revision(key.clone(), CompareOp::Equal, 0)])
            .and_then([TxnOp::put(key, value.to_vec(), None)]);
        let sent = Instant::now();
        client.txn(put).await?;
        times.push(sent.elapsed());
    }
    Ok(Figures::of(times, begun.elapsed()))
}

/// Returns bytes that cannot be compressed, as those of a stored entry.
fn noise(size: usize) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        bytes.extend_from_slice(&next());
    }
    bytes.truncate(size);
    bytes.into()
}
