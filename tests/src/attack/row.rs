//! The result of one attack.

use std::{collections::BTreeMap, fmt, time::Duration};

use anyhow::ensure;

/// The most that the process may grow by during an attack, in bytes. A flood that it kept would take more.
const MAX_GROWTH: u64 = 96 << 20;

/// The longest that the honest caller may wait for half of its answers, on a machine that the attacker shares...
const MAX_MEDIAN: Duration = Duration::from_millis(500);
/// ... and for nearly all of them.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// The process that bears an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackedProcess {
    /// The controller.
    Controller,
    /// The agent's keeper.
    Agent,
}

impl fmt::Display for AttackedProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Controller => "the controller",
            Self::Agent => "the agent",
        })
    }
}

/// The result of an attack.
#[derive(Debug)]
pub struct AttackRow {
    /// The attack's name.
    pub name: &'static str,
    /// The process whose memory is watched.
    pub process: AttackedProcess,
    /// The fence that stopped it.
    pub stopped: StoppedBy,
    /// True if that is the fence that is there for it.
    pub is_stopped: bool,
    /// The process's resident memory before, in bytes.
    pub before: u64,
    /// The most resident memory during the attack.
    pub peak: u64,
    /// The process's resident memory afterwards.
    pub after: u64,
    /// The times that the honest caller waited for its answers, sorted.
    pub latencies: Vec<Duration>,
}

impl AttackRow {
    /// Checks that the attack was stopped, and that the process's memory stayed within its bound.
    ///
    /// # Errors
    /// It was not stopped as it should be, or the process grew.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(self.is_stopped, "{}: {}", self.name, self.stopped);
        let growth = self.peak.saturating_sub(self.before);
        ensure!(growth < MAX_GROWTH, "{}: {} grew by {growth} bytes", self.name, self.process);
        Ok(())
    }

    /// Checks that the honest caller did not wait for too long.
    ///
    /// # Errors
    /// It did.
    pub fn check_latency(&self) -> anyhow::Result<()> {
        let (median, last) = (self.latency(50), self.latency(99));
        ensure!(
            median < MAX_MEDIAN && last < MAX_WAIT,
            "{}: the honest caller waited for {median:?} at the median and {last:?} at most",
            self.name
        );
        Ok(())
    }

    fn latency(&self, percent: usize) -> Duration {
        let place = (self.latencies.len() * percent / 100).min(self.latencies.len().saturating_sub(1));
        self.latencies.get(place).copied().unwrap_or_default()
    }
}

/// The fence that stopped an attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoppedBy {
    /// There was no attack.
    Nothing,
    /// Its connection was closed, after it had sent so many frames.
    ConnectionClosed {
        /// The frames that were sent.
        after: usize,
        /// The reason of the frame GOAWAY; none if the connection was only closed.
        reason: Option<u32>,
    },
    /// Its streams were ended.
    StreamsEnded {
        /// The streams that were reset, by HTTP/2's reason.
        resets: BTreeMap<u32, usize>,
        /// The requests that were answered by a refusal.
        refusals: usize,
    },
    /// All its requests were answered by a refusal, so many.
    Refusals(usize),
    /// So many connections were closed.
    ConnectionsClosed(usize),
    /// A bound held, which this describes.
    Bound(String),
    /// The attack was not stopped; a description of what the attacker saw.
    Nobody(String),
}

impl fmt::Display for StoppedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("-"),
            Self::ConnectionClosed { after, reason: None } => write!(f, "closed after {after} frames"),
            Self::ConnectionClosed { after, reason: Some(reason) } => {
                write!(f, "closed after {after} frames: {}", reason_of(*reason))
            }
            Self::StreamsEnded { resets, refusals } => {
                let each = resets.iter().map(|(reason, count)| format!("{count} {}", reason_of(*reason)));
                let refused = (*refusals > 0).then(|| format!("{refusals} refused"));
                write!(f, "streams: {}", each.chain(refused).collect::<Vec<_>>().join(", "))
            }
            Self::Refusals(requests) => write!(f, "{requests} requests refused"),
            Self::ConnectionsClosed(connections) => write!(f, "{connections} connections closed"),
            Self::Bound(bound) => f.write_str(bound),
            Self::Nobody(seen) => write!(f, "NOT STOPPED: {seen}"),
        }
    }
}

/// Returns the name of a reason of RFC 9113.
fn reason_of(code: u32) -> String {
    let name = match code {
        0 => "NO_ERROR",
        1 => "PROTOCOL_ERROR",
        3 => "FLOW_CONTROL_ERROR",
        5 => "STREAM_CLOSED",
        6 => "FRAME_SIZE_ERROR",
        7 => "REFUSED_STREAM",
        8 => "CANCEL",
        9 => "COMPRESSION_ERROR",
        11 => "ENHANCE_YOUR_CALM",
        other => return format!("reason {other}"),
    };
    name.to_owned()
}

/// Writes rows as a table.
pub fn attack_table(rows: &[AttackRow]) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let mut text = format!(
        "{:<22} {:<52} {:>23} {:>6} {:>9} {:>9}\n",
        "attack", "stopped by", "MiB before/peak/after", "calls", "median ms", "p99 ms"
    );
    for row in rows {
        let memory = format!("{:.0}/{:.0}/{:.0}", mib(row.before), mib(row.peak), mib(row.after));
        text.push_str(&format!(
            "{:<22} {:<52} {:>23} {:>6} {:>9.1} {:>9.1}\n",
            row.name,
            row.stopped.to_string(),
            memory,
            row.latencies.len(),
            ms(row.latency(50)),
            ms(row.latency(99)),
        ));
    }
    text
}
