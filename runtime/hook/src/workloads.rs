//! Streams to the unit's workloads: the targets that a hook may open, and the record of what passed. The host moves the
//! bytes, and they take effect at once, outside of the hook's commit.

use std::time::Duration;

use periapt_host_api::{ContainerName, Digest};
use serde::{Deserialize, Serialize};

use crate::{CallError, context::HookContext};

/// The most characters of a container's name in an error.
const MAX_SHOWN: usize = 100;

/// The other end of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadTarget {
    /// The Pebble of a container.
    Pebble(ContainerName),
    /// A TCP port that a workload of the unit listens on.
    Port(u16),
}

/// The answer to a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// One byte or more.
    Bytes(Vec<u8>),
    /// The other end sends no more.
    End,
    /// Nothing came within the time.
    Nothing,
}

/// Bytes of a stream in the record: as text where they are text, for the record has a bound.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum RecordedBytes<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    End,
    Nothing,
}

impl<'a> RecordedBytes<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        std::str::from_utf8(bytes).map_or(Self::Bytes(bytes), Self::Text)
    }
}

/// The same, as a replay reads it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReplayedBytes {
    Text(String),
    Bytes(Vec<u8>),
    End,
    Nothing,
}

impl From<ReplayedBytes> for Received {
    fn from(bytes: ReplayedBytes) -> Self {
        match bytes {
            ReplayedBytes::Text(text) => Self::Bytes(text.into_bytes()),
            ReplayedBytes::Bytes(bytes) => Self::Bytes(bytes),
            ReplayedBytes::End => Self::End,
            ReplayedBytes::Nothing => Self::Nothing,
        }
    }
}

/// The recorded answer to a call of a stream, with the time that the call waited.
pub type ReplayedAnswer<T> = (Result<T, CallError>, Duration);

/// The functions of the calls in the record.
const CONNECT: &str = "workloads.connect";
const READ: &str = "workloads.read";
const WRITE: &str = "workloads.write";
const SHUTDOWN: &str = "workloads.shutdown";

impl HookContext {
    /// Finds the Pebble of a container that the unit's charm declares.
    ///
    /// # Errors
    /// [`CallError::NotFound`]
    pub fn pebble_target(&self, container: &str) -> Result<WorkloadTarget, CallError> {
        let declared = self.run.snapshot.meta().containers.keys().find(|name| name.as_str() == container);
        declared.map(|name| WorkloadTarget::Pebble(name.clone())).ok_or_else(|| {
            let shown: String = container.chars().take(MAX_SHOWN).collect();
            CallError::NotFound(format!("the charm declares no container {shown:?}"))
        })
    }

    /// Finds a port of the unit's workloads. A charm without containers has none.
    ///
    /// # Errors
    /// [`CallError::InvalidArgument`], [`CallError::NotReady`]
    pub fn port_target(&self, port: u16) -> Result<WorkloadTarget, CallError> {
        if port == 0 {
            return Err(CallError::InvalidArgument("no workload listens on port 0".to_owned()));
        }
        match self.run.snapshot.meta().containers.is_empty() {
            true => Err(CallError::NotReady(format!(
                "nobody listens on port {port}: the charm declares no containers"
            ))),
            false => Ok(WorkloadTarget::Port(port)),
        }
    }

    /// Notes where an open stream leads.
    pub fn workload_opened(&mut self, connection: u32, target: &WorkloadTarget) {
        let target = match target {
            WorkloadTarget::Pebble(container) => container.to_string(),
            WorkloadTarget::Port(port) => format!("port {port}"),
        };
        self.recorder.opened(connection, target);
    }

    /// Forgets a stream that was closed.
    pub fn workload_closed(&mut self, connection: u32) {
        self.recorder.closed(connection);
    }

    /// Records the opening of a stream. `target` is as the charm gave it.
    pub fn workload_connected(&mut self, target: &str, answer: &Result<u32, CallError>, waited: Duration) {
        self.recorder.record(CONNECT, &(target,), &(answer, milliseconds(waited)));
    }

    /// Records a read of at most `most` bytes. The bytes may be confidential, so they are sealed in the journal.
    pub fn workload_read(
        &mut self,
        (connection, most): (u32, u32),
        answer: &Result<Received, CallError>,
        waited: Duration,
    ) {
        let received = answer.as_ref().map(|received| match received {
            Received::Bytes(bytes) => RecordedBytes::of(bytes),
            Received::End => RecordedBytes::End,
            Received::Nothing => RecordedBytes::Nothing,
        });
        let shown = (received, milliseconds(waited));
        self.recorder.record_confidential(READ, &(connection, most), &shown);
        if let Ok(Received::Bytes(bytes)) = answer {
            self.recorder.carried(connection, bytes.len());
        }
    }

    /// Records a write. A replay needs of the bytes only whether they are the same.
    pub fn workload_written(
        &mut self,
        (connection, bytes): (u32, &[u8]),
        answer: &Result<u32, CallError>,
        waited: Duration,
    ) {
        let shown = (answer, milliseconds(waited));
        self.recorder.record(WRITE, &write(connection, bytes), &shown);
        if let Ok(written) = answer {
            self.recorder.carried(connection, usize::try_from(*written).unwrap_or(usize::MAX));
        }
    }

    /// Records the end of writing.
    pub fn workload_shut(&mut self, connection: u32, answer: &Result<(), CallError>) {
        self.recorder.record(SHUTDOWN, &(connection,), answer);
    }

    /// Returns the recorded opening of a stream. This and the next three return none if this is no replay, or the call is
    /// not the recorded one.
    pub fn replayed_connect(&mut self, target: &str) -> Option<ReplayedAnswer<u32>> {
        self.replayed(CONNECT, &(target,)).map(waited)
    }

    /// Returns the recorded answer to a read of at most `most` bytes.
    pub fn replayed_read(&mut self, (connection, most): (u32, u32)) -> Option<ReplayedAnswer<Received>> {
        let (answer, time): ReplayedAnswer<ReplayedBytes> = waited(self.replayed(READ, &(connection, most))?);
        Some((answer.map(Received::from), time))
    }

    /// Returns the recorded answer to a write.
    pub fn replayed_write(&mut self, (connection, bytes): (u32, &[u8])) -> Option<ReplayedAnswer<u32>> {
        self.replayed(WRITE, &write(connection, bytes)).map(waited)
    }

    /// Returns the recorded answer to the end of writing.
    pub fn replayed_shutdown(&mut self, connection: u32) -> Option<Result<(), CallError>> {
        self.replayed(SHUTDOWN, &(connection,))
    }
}

/// Returns the arguments of a write in the record.
fn write(connection: u32, bytes: &[u8]) -> (u32, Digest, usize) {
    (connection, Digest::of(bytes), bytes.len())
}

fn waited<T>((answer, milliseconds): (Result<T, CallError>, u64)) -> ReplayedAnswer<T> {
    (answer, Duration::from_millis(milliseconds))
}

fn milliseconds(waited: Duration) -> u64 {
    u64::try_from(waited.as_millis()).unwrap_or(u64::MAX)
}
