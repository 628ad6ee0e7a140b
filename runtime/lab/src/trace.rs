//! What ran, in order, and what became of it.

use std::fmt;

use periapt_hook::{CallTime, ToolOutput};
use periapt_host_api::{OperationId, Revision, Timestamp, UnitName, event::Event};

use crate::Ending;

/// One hook run, or one hook that was passed over.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// When it began.
    pub at: Timestamp,
    /// The unit.
    pub unit: UnitName,
    /// What the charm was told.
    pub event: Event,
    /// 1 for the first attempt; 0 if it was not run.
    pub attempt: u32,
    /// The run's id: the same if it was lost and made again.
    pub operation: OperationId,
    /// The snapshot that it read.
    pub snapshot: Revision,
    /// How the charm ended; none if it was not run.
    pub ending: Option<Ending>,
    /// What became of it.
    pub fate: Fate,
    /// What it absorbed, for people.
    pub coalesced: Vec<String>,
    /// The hook tools that a script ran in it, in order.
    pub tools: Vec<ToolCall>,
}

/// What became of a hook run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Its commit is not decided yet.
    InFlight,
    /// Its effects are in the model, and the unit went on.
    Committed,
    /// It failed, and its failure is in the unit's record. If the handler itself ended well, the commit was refused
    /// (C-3).
    Failed,
    /// It was not run, and counts as committed: `resolved --no-retry`.
    PassedOver,
    /// It was not run, as it had lost its meaning: the unit was told nothing by it.
    Moot,
    /// Its commit was refused, and its failure is not in the unit's record yet.
    Refused,
    /// Its commit was stale: the unit had gone on elsewhere.
    Stale,
    /// Its runner died before the commit: it runs again.
    Lost,
}

impl Traced {
    /// Whether the unit goes on as if it had run: it was committed, or passed over.
    pub fn is_concluded(&self) -> bool {
        matches!(self.fate, Fate::Committed | Fate::PassedOver | Fate::Moot)
    }

    /// The output of a tool that the script ran, the last one of its name.
    pub fn output_of(&self, tool: &str) -> Option<&ToolOutput> {
        let mut calls = self.tools.iter().rev();
        calls.find(|call| call.argv.first().is_some_and(|name| name == tool)).map(|call| &call.output)
    }
}

/// The hook's name, and whom it is about: `db-relation-joined b/0`; of a batch who joined, changed and departed:
/// `db-relation-batch +b/0 ~b/1 -b/2`, with the application if its bag changed.
impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.event.fmt(f)?;
        if let Some(unit) = self.event.remote_unit() {
            write!(f, " {unit}")?;
        }
        if let Event::RelationBatch { relation, batch } = &self.event {
            if batch.application_changed {
                write!(f, " {}", relation.remote_application)?;
            }
            for (sign, units) in [('+', &batch.joined), ('~', &batch.changed), ('-', &batch.departed)] {
                units.iter().try_for_each(|unit| write!(f, " {sign}{unit}"))?;
            }
        }
        Ok(())
    }
}

/// One hook tool that a script ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// When, on both clocks.
    pub at: CallTime,
    /// Its name and arguments.
    pub argv: Vec<String>,
    /// What it left behind.
    pub output: ToolOutput,
}

/// All that ran.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace(Vec<Traced>);

/// Where a hook stands in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceId(usize);

impl Trace {
    pub(crate) fn push(&mut self, traced: Traced) -> TraceId {
        self.0.push(traced);
        TraceId(self.0.len() - 1)
    }

    pub(crate) fn decide(&mut self, id: TraceId, fate: Fate) {
        if let Some(traced) = self.0.get_mut(id.0) {
            traced.fate = fate;
        }
    }

    pub(crate) fn all(&self) -> &[Traced] {
        &self.0
    }

    /// The last few, for an error's text.
    pub(crate) fn last(&self, count: usize) -> Vec<String> {
        let skipped = self.0.len().saturating_sub(count);
        self.0
            .iter()
            .skip(skipped)
            .map(|traced| format!("{} {traced} {:?}", traced.unit, traced.fate))
            .collect()
    }
}
