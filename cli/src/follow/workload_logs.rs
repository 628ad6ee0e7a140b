//! The output of containers' services, from several containers at once.

use futures_util::{StreamExt as _, stream};
use periapt_client::{ClientError, NdJson};
use periapt_host_api::{
    ContainerName, ErrorCode, Timestamp, UnitName,
    workload_log::{WorkloadLogLine, WorkloadLogQuery},
};

use super::merge::DatedLine;
use crate::{
    context::Model,
    error::{Failure, Result},
    output::note,
};

/// The most containers whose output one command reads. A controller serves 128 streams of a model.
pub(crate) const MAX_TARGETS: usize = 64;

/// The hint for a command that reads too many.
const FEWER: &str = "choose fewer units or containers, or wait until other readers have left";

/// The orders that wait for the answers of agents at a time.
const AT_ONCE: usize = 16;

/// A container of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogTarget {
    /// The unit.
    pub(crate) unit: UnitName,
    /// Its container.
    pub(crate) container: ContainerName,
}

/// The lines that are read of each container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedOutput {
    /// The services; all if it is empty.
    pub(crate) services: Vec<String>,
    /// The number of newest lines; none for all that are kept.
    pub(crate) tail: Option<u32>,
    /// True if new lines follow.
    pub(crate) follow: bool,
}

/// A line of a container's service, with its time.
#[derive(Debug)]
pub(crate) struct WorkloadLine {
    /// The time at which it was written; the epoch if the pod gives no time.
    pub(crate) at: Timestamp,
    /// The line.
    pub(crate) line: WorkloadLogLine,
}

impl DatedLine for WorkloadLine {
    fn time(&self) -> Timestamp {
        self.at
    }

    fn size(&self) -> usize {
        self.line.message.len()
    }
}

/// The open streams of some containers.
pub(crate) struct OpenedOutput {
    /// The streams.
    pub(crate) streams: Vec<(LogTarget, NdJson<WorkloadLine>)>,
    /// The containers that cannot be read, as those that do not run, with the reasons.
    pub(crate) failed: Vec<(LogTarget, Failure)>,
}

impl OpenedOutput {
    /// Opens the streams of all containers.
    ///
    /// # Errors
    /// There are too many, for this command or for one of their agents, or the user may not read them.
    pub(crate) async fn open(model: &Model, targets: Vec<LogTarget>, wanted: &WantedOutput) -> Result<Self> {
        if targets.len() > MAX_TARGETS {
            let text = format!(
                "{} containers are too many: the output of at most {MAX_TARGETS} is read at once",
                targets.len()
            );
            return Err(Failure::new(text).with_hint(FEWER));
        }
        let opens = targets.into_iter().map(|target| async move {
            let opened = open(model, &target, wanted).await;
            (target, opened)
        });
        let opened: Vec<_> = stream::iter(opens).buffered(AT_ONCE).collect().await;
        let (mut streams, mut failed) = (Vec::new(), Vec::new());
        for (target, opened) in opened {
            match opened {
                Ok(stream) => streams.push((target, stream)),
                Err(error) => match error.refusal().map(|refusal| refusal.code) {
                    Some(ErrorCode::TooManyRequests) => return Err(Failure::from(error).with_hint(FEWER)),
                    // What holds for the model holds for all containers.
                    Some(ErrorCode::PermissionDenied) => return Err(error.into()),
                    _ => failed.push((target, error.into())),
                },
            }
        }
        Ok(Self { streams, failed })
    }

    /// Refuses to go on without any stream.
    ///
    /// # Errors
    /// No container can be read: the reason of the first.
    pub(crate) fn with_any(mut self) -> Result<Self> {
        match self.streams.is_empty() && !self.failed.is_empty() {
            true => Err(self.failed.swap_remove(0).1),
            false => Ok(self),
        }
    }

    /// Notes the containers that are not read, with the reasons.
    pub(crate) fn note_failed(&self) {
        for (LogTarget { unit, container }, failure) in &self.failed {
            note(format_args!("ERROR container {container} of unit {unit}: {failure}"));
        }
    }
}

/// Notes that the stream of a container has ended before its reader.
pub(crate) fn note_end(LogTarget { unit, container }: &LogTarget) {
    note(format_args!("container {container} of unit {unit} has ended the stream of its logs"));
}

/// Opens one stream. If the unit's agent is connected to another controller of the same log, the client goes there.
async fn open(
    model: &Model,
    LogTarget { unit, container }: &LogTarget,
    wanted: &WantedOutput,
) -> Result<NdJson<WorkloadLine>, ClientError> {
    let WantedOutput { services, tail, follow } = wanted.clone();
    let query = WorkloadLogQuery { container: container.clone(), services, tail, follow };
    let lines = model.client().workload_logs(&model.selector, unit, &query).await?;
    Ok(Box::pin(lines.map(|line| line.map(dated))))
}

fn dated(line: WorkloadLogLine) -> WorkloadLine {
    WorkloadLine { at: line.time.parse().unwrap_or_default(), line }
}
