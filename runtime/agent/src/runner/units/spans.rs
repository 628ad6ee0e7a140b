//! The spans of a unit: which step of a trace made it act, and what it does about that.

use std::num::NonZeroU128;

use periapt_host_api::{
    ModelUuid, OperationId, UnitName,
    trace::{RevisionTrace, TraceContext},
};
use periapt_telemetry::{
    context, export, span,
    spans::{self, number},
};
use periapt_uniter::HookRun;
use tracing::{Span, field};

use crate::protocol::RunFigures;

/// The most causes that are kept for a busy unit: the newest.
const MAX_CAUSES: usize = 8;

/// The spans of one unit. None is open while it rests, or where spans are not exported.
#[derive(Debug, Default)]
pub(super) struct UnitSpans {
    /// The steps that woke the unit since it last chose an operation, the newest last.
    causes: Vec<TraceContext>,
    /// From the unit's first action until it rests.
    unit: Option<Span>,
    /// One run of a hook or an action, until its commit is settled.
    operation: Option<Span>,
    /// True from the end of an operation until the unit acts again.
    is_over: bool,
}

impl UnitSpans {
    /// Notes the step that wakes the unit.
    pub(super) fn woken_by(&mut self, cause: Option<TraceContext>) {
        if let Some(cause) = cause {
            if self.causes.len() == MAX_CAUSES {
                self.causes.remove(0);
            }
            self.causes.push(cause);
        }
    }

    /// Opens the unit's span if it has none, or if another step causes its next operation.
    pub(super) fn act(&mut self, unit: &UnitName) {
        if !export::is_on() || self.operation.is_some() || (self.unit.is_some() && !self.is_over) {
            return;
        }
        self.is_over = false;
        let causes = std::mem::take(&mut self.causes);
        let cause = match &self.unit {
            None => causes.last(),
            Some(present) => match next_cause(&causes, Self::trace_of(present)) {
                Some(cause) => Some(cause),
                None => return,
            },
        };
        let span = span!(parent: None, spans::UNIT, %unit);
        context::continue_from(&span, cause);
        causes.iter().filter(|other| Some(*other) != cause).for_each(|other| context::link(&span, other));
        self.unit = Some(span);
    }

    /// Opens the span of an operation, which is about to run.
    pub(super) fn begin(&mut self, unit: &UnitName, operation: OperationId) {
        self.act(unit);
        self.operation = self
            .unit
            .as_ref()
            .map(|parent| span!(parent: parent, spans::OPERATION, %unit, operation = number(operation.0)));
        // What its own trace caused up to now is in its snapshot.
        let present = self.unit.as_ref().and_then(Self::trace_of);
        self.causes.retain(|cause| Some(cause.trace) != present);
    }

    /// Closes the span of the operation, which was committed or dropped.
    pub(super) fn end(&mut self) {
        self.operation = None;
        self.is_over = true;
    }

    /// Closes all spans, as nothing is due.
    pub(super) fn rest(&mut self) {
        *self = Self::default();
    }

    /// Returns the span of a run of the present operation.
    pub(super) fn hook(&self, run: &HookRun) -> Span {
        let Some(parent) = &self.operation else { return Span::none() };
        span!(
            parent: parent, spans::HOOK, unit = %run.unit, event = %run.event, attempt = number(run.attempt),
            revision = number(run.snapshot.0), outcome = field::Empty, fuel = field::Empty, memory = field::Empty,
            wall_us = field::Empty,
        )
    }

    /// Returns the step that the unit's requests belong to.
    pub(super) fn context(&self) -> Option<TraceContext> {
        context::of(self.operation.as_ref().or(self.unit.as_ref())?)
    }

    fn trace_of(span: &Span) -> Option<NonZeroU128> {
        context::of(span).map(|context| context.trace)
    }
}

/// Returns the cause of the operation after one of a trace: the newest step of another trace, or else the newest step
/// before the last. The last step is the unit's own commit, which lets the unit go on.
fn next_cause(causes: &[TraceContext], present: Option<NonZeroU128>) -> Option<&TraceContext> {
    let (_own_commit, others) = causes.split_last()?;
    causes.iter().rev().find(|cause| Some(cause.trace) != present).or(others.last())
}

/// Returns the span of a runner that applies frames, and its context. The newest revision is the cause of all that
/// follows; the others are linked.
pub(super) fn runner(model: &ModelUuid, traces: &[RevisionTrace]) -> (Span, Option<TraceContext>) {
    let Some((newest, others)) = traces.split_last() else { return (Span::none(), None) };
    let span = span!(parent: None, spans::RUNNER, %model, revision = number(newest.revision.0));
    context::continue_from(&span, Some(&newest.context));
    others.iter().for_each(|other| context::link(&span, &other.context));
    let context = context::of(&span);
    (span, context)
}

/// Records how a run ended.
pub(super) fn ended(span: &Span, figures: &RunFigures) {
    if !span.is_disabled() {
        span.record("outcome", figures.outcome.name());
        span.record("fuel", number(figures.fuel));
        span.record("memory", number(figures.memory));
        span.record("wall_us", number(figures.wall_us));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(trace: u128, span: u64) -> TraceContext {
        TraceContext { trace: trace.try_into().unwrap(), span: span.try_into().unwrap(), is_sampled: true }
    }

    #[test]
    fn the_cause_of_the_next_operation_is_no_commit_of_the_units_own() {
        let present = Some(NonZeroU128::MIN);
        for (causes, expected) in [
            (&[][..], None),
            (&[(1, 9)], None),
            (&[(2, 5), (1, 9)], Some((2, 5))),
            (&[(2, 5), (3, 6), (1, 9)], Some((3, 6))),
            // Of the same trace: another unit's commit came before the own one.
            (&[(1, 7), (1, 9)], Some((1, 7))),
            // Both are in one frame, whose newest revision is the other's.
            (&[(2, 5)], Some((2, 5))),
        ] {
            let causes: Vec<_> = causes.iter().map(|(trace, span)| step(*trace, *span)).collect();
            let expected = expected.map(|(trace, span)| step(trace, span));
            assert_eq!(next_cause(&causes, present).copied(), expected, "{causes:?}");
        }
    }

    #[test]
    fn a_busy_unit_keeps_the_newest_causes() {
        let mut spans = UnitSpans::default();
        (1..20).for_each(|number| spans.woken_by(Some(step(1, number))));
        assert_eq!(spans.causes, (12..20).map(|number| step(1, number)).collect::<Vec<_>>());
    }
}
