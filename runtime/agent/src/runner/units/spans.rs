//! The spans of a unit: which step of a trace made it act, and what it does about that.

use periapt_host_api::{
    ModelUuid, OperationId, UnitName,
    trace::{RevisionTrace, TraceContext},
};
use periapt_telemetry::{context, export, span, spans};
use periapt_uniter::HookRun;
use tracing::{Span, field};

use crate::protocol::RunFigures;

/// The most steps that are kept for a unit until it acts: the newest. More than a few come only while it is busy.
const MAX_CAUSES: usize = 8;

/// The spans of one unit. None is open while it rests, or where spans are not exported.
#[derive(Debug, Default)]
pub(super) struct UnitSpans {
    /// The steps that woke the unit since it last chose what to do, the newest last.
    causes: Vec<TraceContext>,
    /// From the first thing that it does until it rests.
    unit: Option<Span>,
    /// One run of a hook or an action, until its commit is settled.
    operation: Option<Span>,
    /// Whether the operation is over that the span of the unit began with.
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

    /// The unit does something: it has a span from now on, if it has none. After an operation, what happened elsewhere
    /// meanwhile is the cause of the next, rather than the unit's own commit.
    pub(super) fn act(&mut self, unit: &UnitName) {
        if !export::is_on() || self.operation.is_some() || (self.unit.is_some() && !self.is_over) {
            return;
        }
        self.is_over = false;
        let causes = std::mem::take(&mut self.causes);
        let present = self.unit.as_ref().and_then(context::of).map(|context| context.trace);
        let cause = causes.iter().rev().find(|cause| Some(cause.trace) != present);
        if self.unit.is_some() && cause.is_none() {
            return;
        }
        let span = span!(parent: None, spans::UNIT, %unit);
        context::continue_from(&span, cause);
        causes.iter().filter(|other| Some(*other) != cause).for_each(|other| context::link(&span, other));
        self.unit = Some(span);
    }

    /// A hook or an action is about to run.
    pub(super) fn begin(&mut self, unit: &UnitName, operation: OperationId) {
        self.act(unit);
        self.operation = self
            .unit
            .as_ref()
            .map(|parent| span!(parent: parent, spans::OPERATION, %unit, operation = operation.0));
    }

    /// It was committed or dropped.
    pub(super) fn end(&mut self) {
        self.operation = None;
        self.is_over = true;
    }

    /// Nothing is due.
    pub(super) fn rest(&mut self) {
        *self = Self::default();
    }

    /// Returns the span of a run of the present operation.
    pub(super) fn hook(&self, run: &HookRun) -> Span {
        let Some(parent) = &self.operation else { return Span::none() };
        span!(
            parent: parent, spans::HOOK, unit = %run.unit, event = %run.event, attempt = run.attempt,
            revision = run.snapshot.0, outcome = field::Empty, fuel = field::Empty, memory = field::Empty,
            wall_us = field::Empty,
        )
    }

    /// Returns the step that the unit's requests belong to.
    pub(super) fn context(&self) -> Option<TraceContext> {
        context::of(self.operation.as_ref().or(self.unit.as_ref())?)
    }
}

/// Returns the span of a runner that takes in frames, and the step that it is. The newest revision is the cause of all that
/// follows; the others are linked.
pub(super) fn runner(model: &ModelUuid, traces: &[RevisionTrace]) -> (Span, Option<TraceContext>) {
    let Some((newest, others)) = traces.split_last() else { return (Span::none(), None) };
    let span = span!(parent: None, spans::RUNNER, %model, revision = newest.revision.0);
    context::continue_from(&span, Some(&newest.context));
    others.iter().for_each(|other| context::link(&span, &other.context));
    let context = context::of(&span);
    (span, context)
}

/// Records how a run ended.
pub(super) fn ended(span: &Span, figures: &RunFigures) {
    if !span.is_disabled() {
        span.record("outcome", figures.outcome.name());
        span.record("fuel", figures.fuel);
        span.record("memory", figures.memory);
        span.record("wall_us", figures.wall_us);
    }
}
