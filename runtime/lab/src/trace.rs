//! The trace: hooks that ran, in order, with their states.

use std::fmt;

use periapt_hook::ToolOutput;
use periapt_host_api::{OperationId, Revision, Timestamp, UnitName, event::Event};

use crate::{Ending, ToolCall};

/// One hook run, or one hook that was skipped.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// The time of its start.
    pub at: Timestamp,
    /// The unit.
    pub unit: UnitName,
    /// The event.
    pub event: Event,
    /// The number of the attempt, from 1; 0 if it did not run.
    pub attempt: u32,
    /// The run's id; a repetition after a loss has the same.
    pub operation: OperationId,
    /// The revision of the snapshot that it read.
    pub snapshot: Revision,
    /// The end of the charm's handler; none if it did not run.
    pub ending: Option<Ending>,
    /// The state of the run.
    pub state: HookRunState,
    /// The start of the container that the event is about, if it is about one. A pebble-ready that is tried again after
    /// the container has ended tells of the start before.
    pub boot_id: Option<String>,
    /// The changes that it absorbed, for people.
    pub coalesced: Vec<String>,
    /// The hook tools that a script ran in it, in order.
    pub tools: Vec<ToolCall>,
}

/// The state of a hook run, up to its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookRunState {
    /// The commit is not decided yet.
    InFlight,
    /// The effects are in the model, and the unit went on.
    Committed,
    /// The hook failed, and its failure is in the unit's record. If the handler itself ended well, the commit was
    /// refused (C-3).
    Failed,
    /// The hook did not run, and counts as committed: `resolved --no-retry`.
    PassedOver,
    /// The hook did not run, because it had lost its subject.
    Moot,
    /// The commit was refused, and its failure is not in the unit's record yet.
    Refused,
    /// The commit was stale: the unit had gone on elsewhere.
    Stale,
    /// The runner died before the commit: the hook runs again.
    Lost,
}

impl Traced {
    /// Returns true if the unit goes on as after the hook: it was committed or skipped.
    pub fn is_concluded(&self) -> bool {
        matches!(self.state, HookRunState::Committed | HookRunState::PassedOver | HookRunState::Moot)
    }

    /// Returns the output of a tool that the script ran, by the last call with that name.
    pub fn output_of(&self, tool: &str) -> Option<&ToolOutput> {
        let mut calls = self.tools.iter().rev();
        calls.find(|call| call.argv.first().is_some_and(|name| name == tool)).map(|call| &call.output)
    }
}

/// The hook's name and subject: `db-relation-joined b/0`; for a batch its joined, changed and departed units,
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

/// All hooks that ran.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace(Vec<Traced>);

/// The position of a hook in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceId(usize);

impl Trace {
    pub(crate) fn push(&mut self, traced: Traced) -> TraceId {
        self.0.push(traced);
        TraceId(self.0.len() - 1)
    }

    pub(crate) fn decide(&mut self, id: TraceId, state: HookRunState) {
        if let Some(traced) = self.0.get_mut(id.0) {
            traced.state = state;
        }
    }

    pub(crate) fn all(&self) -> &[Traced] {
        &self.0
    }

    /// Returns the last few hooks, for an error's text.
    pub(crate) fn last(&self, count: usize) -> Vec<String> {
        let skipped = self.0.len().saturating_sub(count);
        self.0
            .iter()
            .skip(skipped)
            .map(|traced| format!("{} {traced} {:?}", traced.unit, traced.state))
            .collect()
    }
}
