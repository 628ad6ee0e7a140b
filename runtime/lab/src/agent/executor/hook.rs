//! One hook: from its decision to what is to be committed.

use periapt_hook::{HookContext, HookInputs, IdSeed, LeaseState, Limits};
use periapt_host_api::{
    Timestamp,
    action::{TaskResults, TaskStatus},
    journal::{HookCosts, HookOutcome, JournalRecord, RecordedCalls},
    view::View,
};
use periapt_uniter::{ActionEnd, ActionReturn, ActionRun, HookEnd, HookRun};

use super::{About, Executor, Flight, Flown, Outcome, Step, World, jitter};
use crate::{
    Ending, LabError, Ran,
    chance::hex,
    charm::{HookHost, exec, play},
    host::Host,
    trace::{Fate, Traced},
};

impl Executor {
    /// Starts an action on the view that shows its beginning.
    pub(super) fn start_action(&mut self, world: &World<'_>, run: Box<ActionRun>) -> Step {
        let view = world.agent.view();
        match view.units.get(&self.name).map(|unit| unit.record.seq) {
            Some(seq) if seq < run.run.record.seq => {
                self.flight = Flight::Begun(run);
                Step::Rest { wake_at: None }
            }
            Some(seq) if seq == run.run.record.seq => {
                let mut run = run.run;
                run.snapshot = view.revision;
                self.leave(world.clock.now(), periapt_uniter::before_hook(&run));
                self.flight = Flight::Started { view: Box::new(view), run: Box::new(run) };
                Step::Acted
            }
            _ => Step::Acted,
        }
    }

    /// Runs a hook on the snapshot of its decision.
    pub(super) fn run(&mut self, world: &mut World<'_>, view: View, run: HookRun) -> Result<Step, LabError> {
        let started_at = world.clock.now();
        let context_id = hex(&world.chance.bytes::<16>());
        let seed = world.chance.bytes();
        let lease: LeaseState = world.agent.lease(&self.name);
        let limits = Limits::of_hook(&view, &self.name);
        let inputs = HookInputs {
            view,
            unit: self.name.clone(),
            event: run.event.clone(),
            attempt: run.attempt,
            lease,
            context_id,
            // Ids are hashed from it: nothing else that is drawn from the seed tells them.
            ids: IdSeed(seed),
            api_addresses: Vec::new(),
            limits,
        };
        let stopped = is_stopping(&inputs);
        let ran = match (HookContext::new(inputs), world.charms.get(&run.charm.digest)) {
            (Ok(_), Some(_)) if stopped => Err(STOPPED.to_owned()),
            (Ok(context), Some(charm)) => {
                let script = world.scripts.get(&(self.name.clone(), run.event.hook_name()));
                let mut host = Host {
                    clock: world.clock,
                    controller: world.controller,
                    agent: world.agent,
                    unit: &self.name,
                    outbox: &mut self.outbox,
                    seed,
                };
                let mut ran = match script {
                    _ if run.event.hook_name() == periapt_host_api::exec::ACTION => exec(context, &mut host),
                    Some(actions) => play(actions, context, &mut host),
                    None => charm.code().run(context, &mut host),
                };
                host.early(std::mem::take(&mut ran.gathered.early));
                Ok(ran)
            }
            (Err(error), _) => Err(error.to_string()),
            (Ok(_), None) => Err("no such archive".to_owned()),
        };
        let flown = self.fly(world, run, ran, started_at, hex(&seed));
        self.flight = Flight::Ran(Box::new(flown));
        Ok(Step::Acted)
    }

    /// What is known once a hook ran; of one that could not run, only why.
    fn fly(
        &self,
        world: &mut World<'_>,
        run: HookRun,
        ran: Result<Ran, String>,
        started_at: Timestamp,
        seed: String,
    ) -> Flown {
        let (ending, gathered, tools) = match ran {
            Ok(Ran { ending, gathered, tools }) => (ending, Some(gathered), tools),
            Err(message) => (Ending::Failed(message), None, Vec::new()),
        };
        let status_set = gathered.as_ref().is_some_and(|gathered| gathered.status_set);
        let action = run.event.task().map(|task| {
            let left = gathered.as_ref().and_then(|gathered| gathered.action.clone()).unwrap_or_default();
            let results =
                TaskResults { return_code: 0, stdout: left.stdout, stderr: left.stderr, values: left.values };
            let end = ActionEnd::of(&run.unit, returned(&ending), left.failed, results, status_set);
            (task, end)
        });
        let (end, recorded) = match &ending {
            Ending::Handled | Ending::Exited(_) => (HookEnd::Handled { status_set }, HookOutcome::Handled),
            Ending::Unhandled => (HookEnd::Unhandled { status_set }, HookOutcome::Unhandled),
            Ending::Failed(message) => (
                HookEnd::Failed { message: message.clone(), status_set },
                HookOutcome::Failed { message: message.clone() },
            ),
        };
        let traced = world.trace.push(Traced {
            at: started_at,
            unit: self.name.clone(),
            event: run.event.clone(),
            attempt: run.attempt,
            operation: run.operation(),
            snapshot: run.snapshot,
            ending: Some(ending),
            fate: Fate::InFlight,
            coalesced: run.coalesced.clone(),
            tools,
        });
        let calls = gathered.as_ref().map_or_else(RecordedCalls::default, |gathered| gathered.calls.clone());
        let journal = Some(JournalRecord {
            seq: run.operation().0,
            event: run.event.clone(),
            attempt: run.attempt,
            snapshot: run.snapshot,
            charm: run.charm.digest,
            component: run.charm.digest,
            engine: "laboratory".to_owned(),
            started_at,
            outcome: recorded,
            costs: HookCosts::default(),
            coalesced: run.coalesced.clone(),
            calls,
            seed,
            sealed: None,
        });
        let outcome = match gathered {
            Some(gathered) if may_commit(&end, action.is_some()) => {
                Outcome { effects: gathered.effects, leader_term: gathered.leader_term, journal }
            }
            // Of a hook that failed nothing is kept but its record.
            _ => Outcome { journal, ..Outcome::default() },
        };
        Flown { run, end, action, outcome, traced }
    }

    /// Asks what to commit.
    pub(super) fn conclude(&mut self, world: &mut World<'_>, flown: Flown) -> Result<Step, LabError> {
        if let Some((task, end)) = &flown.action {
            let progress = periapt_uniter::action_ended(&flown.run, *task, end.clone());
            let (seq, outcome) = (flown.run.record.seq, flown.outcome.clone());
            self.commit(world, seq, &progress, outcome, About::Hook(Box::new(flown)));
            return Ok(Step::Acted);
        }
        let jitter = jitter(world.chance);
        let progress = periapt_uniter::hook_ended(&flown.run, flown.end.clone(), world.timer_now(), jitter);
        if progress.only_rearms(&flown.run) && flown.outcome.effects.is_empty() {
            self.rearmed = Some((flown.run.record.seq, progress.record.update_status_due));
            world.trace.decide(flown.traced, Fate::Committed);
            return Ok(Step::Acted);
        }
        let (seq, outcome) = (flown.run.record.seq, flown.outcome.clone());
        self.commit(world, seq, &progress, outcome, About::Hook(Box::new(flown)));
        Ok(Step::Acted)
    }
}

/// How a run ends that is told to stop before it runs; in one that runs, no time passes for others here.
const STOPPED: &str = "it was stopped";

fn is_stopping(inputs: &HookInputs) -> bool {
    let task = inputs.event.task().and_then(|task| inputs.view.tasks.get(&task));
    task.is_some_and(|task| task.status == TaskStatus::Aborting)
}

fn returned(ending: &Ending) -> ActionReturn {
    match ending {
        Ending::Handled => ActionReturn::Handled,
        Ending::Exited(code) => ActionReturn::Exited { code: i32::from(*code) },
        Ending::Unhandled => ActionReturn::Unhandled,
        Ending::Failed(message) if message == STOPPED => ActionReturn::Stopped,
        Ending::Failed(message) => ActionReturn::Failed { code: 1, message: message.clone() },
    }
}

/// A hook without a handler is a success, an action without one a failure.
fn may_commit(end: &HookEnd, is_action: bool) -> bool {
    match end {
        HookEnd::Handled { .. } => true,
        HookEnd::Unhandled { .. } => !is_action,
        HookEnd::Failed { .. } => false,
    }
}
