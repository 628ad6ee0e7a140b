//! The execution of an executor's commands. Work that takes time runs in a task, and its result becomes an
//! input.

use std::{collections::VecDeque, future::Future, pin::Pin, sync::Arc};

use futures_util::FutureExt as _;
use periapt_host_api::{Digest, OperationId, Timestamp, UnitName, agent::RunnerCommand, trace::TraceContext};
use periapt_uniter::{
    Jitter,
    executor::{
        CharmAnswer, ExecutorCommand, ExecutorInput, Now, Run, RunKind, SendOutcome, TrialEnd, Turn, Wake,
    },
};
use tokio::{sync::oneshot, task::AbortHandle};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::{State, Unit, Units, early::EarlySender, spans};
use crate::{
    clock,
    protocol::{Call, CallOutcome, RunFigures, ToKeeper},
    runner::{RunnerContext, RunnerError, admission::HookPermit, charms::NotReady, exec, hook},
};

type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// One unit's commands in progress.
#[derive(Default)]
pub(super) struct UnitCommands {
    charm: Option<OpenRequest>,
    turn: Option<TurnState>,
    /// The notification that the next hook is announced.
    announced: Option<oneshot::Receiver<()>>,
    interrupt: CancellationToken,
    wake: Wake,
    tried: Option<oneshot::Sender<TrialEnd>>,
    /// The figures of the present operation's run, until the operation ends.
    figures: Option<Box<RunFigures>>,
    /// The number of the last request.
    asked: u64,
}

/// A request without an answer, whose work is aborted on drop.
struct OpenRequest {
    number: u64,
    work: AbortHandle,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// A turn, or the wait for one.
enum TurnState {
    Waits(OpenRequest),
    Has { _turn: HeldTurn },
}

/// A turn among the running hooks, released on drop. Without a group, the hook runs beside all others.
type HeldTurn = (Option<tokio::sync::OwnedMutexGuard<()>>, Option<HookPermit>);

impl Units {
    /// Passes an input to a unit's executor, and carries out its commands.
    pub(crate) fn feed(self: &Arc<Self>, unit: &Arc<Unit>, input: ExecutorInput) {
        let mut state = unit.state();
        self.handle(unit, &mut state, input);
    }

    /// Tells a unit's executor that it is woken, and by which step of a trace.
    pub(super) fn wake(
        self: &Arc<Self>,
        unit: &Arc<Unit>,
        input: ExecutorInput,
        cause: Option<TraceContext>,
    ) {
        let mut state = unit.state();
        state.spans.woken_by(cause);
        self.handle(unit, &mut state, input);
    }

    fn handle(self: &Arc<Self>, unit: &Arc<Unit>, state: &mut State, input: ExecutorInput) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let view = self.runner.mirror.view();
            for command in state.executor.handle(input, &view, self.now()) {
                if matches!(command, ExecutorCommand::Depend(_))
                    && self.runner.mirror.revision() != view.revision
                {
                    // A concurrent frame may have changed an input on which the unit was not yet known to
                    // depend.
                    inputs.push_back(ExecutorInput::DependenciesChanged);
                }
                inputs.extend(self.carry_out(unit, state, command));
            }
        }
        let rest = state.executor.rests_until();
        if rest.is_some() {
            state.spans.rest();
        }
        if rest != state.rest {
            state.rest = rest;
            self.changed();
        }
    }

    /// Returns the time for all units.
    pub(super) fn now(&self) -> Now {
        Now {
            wall: Timestamp::now(),
            timer: clock::timer_now(self.runner.start.timeline),
            steady: self.since.elapsed(),
        }
    }

    /// Carries out a command. Returns its input if there is one at once.
    fn carry_out(
        self: &Arc<Self>,
        unit: &Arc<Unit>,
        state: &mut State,
        command: ExecutorCommand,
    ) -> Option<ExecutorInput> {
        let State { busy, spans, .. } = state;
        match command {
            ExecutorCommand::FetchCharm(digest) => {
                spans.act(&unit.name);
                return self.fetch_charm(unit, busy, digest);
            }
            ExecutorCommand::ForgetCharm => busy.charm = None,
            ExecutorCommand::TakeTurn(turn) => {
                spans.act(&unit.name);
                return self.take_turn(unit, busy, turn);
            }
            ExecutorCommand::LeaveTurn => busy.turn = None,
            ExecutorCommand::Started(operation) => {
                spans.begin(&unit.name, operation);
                let started = ToKeeper::HookStarted { unit: unit.name.clone(), operation };
                busy.announced = Some(self.announcements.make(started));
            }
            ExecutorCommand::Ended(operation) => {
                spans.end();
                self.announce_end(&unit.name, operation, busy.figures.take());
            }
            ExecutorCommand::Run(run) => {
                let span = spans.hook(&run.run);
                self.run(unit, busy, *run, span);
            }
            ExecutorCommand::Interrupt => busy.interrupt.cancel(),
            ExecutorCommand::Commit(commit) => {
                spans.act(&unit.name);
                let command = RunnerCommand::Commit(commit);
                self.call(unit, Box::new(command), spans.context(), ExecutorInput::CommitAnswered);
            }
            ExecutorCommand::SendEarly(items) => {
                let (name, incarnation) = (unit.name.clone(), self.runner.incarnation);
                let command = RunnerCommand::Early { unit: name, incarnation, items };
                self.call(unit, Box::new(command), spans.context(), ExecutorInput::EarlyAnswered);
            }
            ExecutorCommand::Note(items) => {
                self.runner.link.try_send(ToKeeper::Noted { unit: unit.name.clone(), items });
            }
            ExecutorCommand::WakeAt(wake) => {
                self.timers.set(&unit.name, busy.wake, wake);
                busy.wake = wake;
            }
            ExecutorCommand::Depend(change) => self.dependents.lock().change(&unit.name, change),
            ExecutorCommand::Tried(tried) => {
                if let Some(told) = busy.tried.take() {
                    // If the receiver is gone, the runner is ending.
                    let _ = told.send(tried);
                }
            }
            ExecutorCommand::Stop => self.remove(&unit.name),
            ExecutorCommand::Revoked => self.fail(RunnerError::Revoked),
        }
        None
    }

    pub(crate) fn announce_end(
        &self,
        unit: &UnitName,
        operation: OperationId,
        figures: Option<Box<RunFigures>>,
    ) {
        self.announcements.try_send(ToKeeper::HookEnded { unit: unit.clone(), operation, figures });
    }

    /// Tries a suspect and returns the result.
    pub(crate) async fn try_suspect(
        self: &Arc<Self>,
        unit: &Arc<Unit>,
        operation: OperationId,
        deaths: u32,
    ) -> Option<TrialEnd> {
        let (told, tried) = oneshot::channel();
        {
            let mut state = unit.state();
            state.busy.tried = Some(told);
            self.handle(unit, &mut state, ExecutorInput::Try { operation, deaths });
        }
        tried.await.ok()
    }

    fn fetch_charm(
        self: &Arc<Self>,
        unit: &Arc<Unit>,
        busy: &mut UnitCommands,
        digest: Digest,
    ) -> Option<ExecutorInput> {
        let runner = Arc::clone(&self.runner);
        let mut asks: Pending<CharmAnswer> = Box::pin(async move {
            match runner.charms.ask(digest).await {
                Ok(_loaded) => CharmAnswer::Ready,
                Err(NotReady::Unusable(error)) => {
                    CharmAnswer::Unusable { message: error.to_string(), jitter: jitter() }
                }
                Err(NotReady::Away(reason)) => CharmAnswer::Away(reason),
            }
        });
        if let Some(answer) = (&mut asks).now_or_never() {
            return Some(ExecutorInput::Charm(answer));
        }
        busy.asked += 1;
        let (units, asker, number) = (Arc::clone(self), Arc::clone(unit), busy.asked);
        let work = self.spawn(async move {
            let answer = asks.await;
            let mut state = asker.state();
            // A newer request for the same charm may exist.
            if state.busy.charm.as_ref().is_some_and(|asked| asked.number == number) {
                state.busy.charm = None;
                units.handle(&asker, &mut state, ExecutorInput::Charm(answer));
            }
        });
        busy.charm = Some(OpenRequest { number, work });
        None
    }

    fn take_turn(
        self: &Arc<Self>,
        unit: &Arc<Unit>,
        busy: &mut UnitCommands,
        turn: Turn,
    ) -> Option<ExecutorInput> {
        let Turn { group, memory } = turn;
        let runner = Arc::clone(&self.runner);
        let mut waits: Pending<HeldTurn> = Box::pin(async move {
            let group = match &group {
                Some((machine, group)) => Some(runner.groups.enter(*machine, group).await),
                None => None,
            };
            (group, runner.hooks.admit(memory).await)
        });
        if let Some(turn) = (&mut waits).now_or_never() {
            busy.turn = Some(TurnState::Has { _turn: turn });
            return Some(ExecutorInput::Turn);
        }
        busy.asked += 1;
        let (units, waiter, number) = (Arc::clone(self), Arc::clone(unit), busy.asked);
        let work = self.spawn(async move {
            let turn = waits.await;
            let mut state = waiter.state();
            // The unit may have left the queue.
            if matches!(&state.busy.turn, Some(TurnState::Waits(asked)) if asked.number == number) {
                state.busy.turn = Some(TurnState::Has { _turn: turn });
                units.handle(&waiter, &mut state, ExecutorInput::Turn);
            }
        });
        busy.turn = Some(TurnState::Waits(OpenRequest { number, work }));
        None
    }

    fn run(self: &Arc<Self>, unit: &Arc<Unit>, busy: &mut UnitCommands, run: Run, span: Span) {
        busy.interrupt = CancellationToken::new();
        let told = busy.announced.take();
        let early = EarlySender { units: Arc::clone(self), unit: Arc::clone(unit) };
        let interrupt = busy.interrupt.clone();
        let (units, runner) = (Arc::clone(self), Arc::clone(unit));
        self.spawn(async move {
            if let Some(told) = told {
                // An error means that the runner is ending.
                let _ = told.await;
            }
            let Run { run, view, kind } = run;
            tracing::debug!(unit = %run.unit, hook = %run.event, attempt = run.attempt, "running a hook");
            let report = match kind {
                RunKind::Hook | RunKind::Action => {
                    hook::run(&units.runner, view, &run, &early, &interrupt).await
                }
                RunKind::Script => exec::execute(&units.runner, view, &run, &early, &interrupt).await,
            };
            let figures = RunFigures::of(&run, &report);
            spans::ended(&span, &figures);
            drop(span);
            let mut state = runner.state();
            state.busy.figures = Some(Box::new(figures));
            units.handle(
                &runner,
                &mut state,
                ExecutorInput::Ended { report: Box::new(report), jitter: jitter() },
            );
        });
    }

    fn call(
        self: &Arc<Self>,
        unit: &Arc<Unit>,
        command: Box<RunnerCommand>,
        trace: Option<TraceContext>,
        answered: impl FnOnce(SendOutcome) -> ExecutorInput + Send + 'static,
    ) {
        let (units, caller) = (Arc::clone(self), Arc::clone(unit));
        self.spawn(async move {
            let answer = send(&units.runner, &caller.name, command, trace).await;
            units.feed(&caller, answered(answer));
        });
    }
}

async fn send(
    runner: &RunnerContext,
    unit: &UnitName,
    command: Box<RunnerCommand>,
    trace: Option<TraceContext>,
) -> SendOutcome {
    match runner.link.traced_call(Call::Command(command), trace).await {
        CallOutcome::Answered { .. } => SendOutcome::Accepted,
        CallOutcome::Refused(refusal) => {
            tracing::warn!(%unit, %refusal, "the controller refused a unit's message");
            SendOutcome::Refused(refusal)
        }
        CallOutcome::Away { message } => {
            tracing::debug!(%unit, message, "a unit's message has no answer yet");
            SendOutcome::Unreachable
        }
        CallOutcome::Charm(_)
        | CallOutcome::Secret(_)
        | CallOutcome::Resource(_)
        | CallOutcome::Stream(_) => SendOutcome::Unreachable,
    }
}

/// Returns a random jitter for waits. It is no secret, so a system without random numbers gets none.
fn jitter() -> Jitter {
    getrandom::u64().map_or(Jitter::NONE, Jitter::from_random)
}
