//! Runs one hook, and reports its end.

use std::collections::BTreeMap;

use periapt_hook::{ActionResults, ContextError, HookContext, HookInputs, HookLimits, IdSeed, LeaseState};
use periapt_host_api::{ContainerName, Timestamp, action::TaskResults, event::Event, record::WorkloadRecord};
use periapt_uniter::{
    HookRun,
    executor::{Returned, Run, RunKind, RunReport},
};

use super::{Driver, FinishedHook, Interrupt, World};
use crate::{
    Ending, LabError, LabHookReport,
    charm::{HookHost, exec, play},
    host::Host,
    random::hex,
    trace::{HookRunState, Traced},
};

/// The reason why a hook did not run.
#[derive(Debug, thiserror::Error)]
enum NotRun {
    /// It was stopped before it started. During a run no time passes for other units here.
    #[error("it was stopped")]
    Stopped,
    /// The view has not what the hook is about.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The laboratory has no charm of that digest.
    #[error("no such archive")]
    NoArchive,
}

impl Driver {
    /// Runs a hook on the snapshot of its decision.
    pub(super) fn run(
        &mut self,
        what: Box<Run>,
        interrupt: Interrupt,
        world: &mut World<'_>,
    ) -> Result<(), LabError> {
        let Run { run, view, kind } = &*what;
        self.keeps_its_turn(run)?;
        let started_at = world.clock.now();
        let context_id = hex(&world.random.bytes::<16>());
        let seed = world.random.bytes();
        let lease: LeaseState = world.agent.lease(self.name());
        let limits = HookLimits::of_hook(view, self.name());
        let inputs = HookInputs {
            view: view.clone(),
            unit: self.name().clone(),
            event: run.event.clone(),
            attempt: run.attempt,
            lease,
            context_id,
            // The ids are hashes of the seed, which no other draw reveals.
            ids: IdSeed(seed),
            api_addresses: Vec::new(),
            limits,
        };
        let (charms, scripts) = (world.charms, world.scripts);
        let ran = match (HookContext::new(inputs), charms.get(&run.charm.digest)) {
            (Ok(_), Some(_)) if interrupt == Interrupt::Requested => Err(NotRun::Stopped),
            (Ok(context), Some(charm)) => {
                let script = scripts.get(&(self.name().clone(), run.event.hook_name()));
                let mut host = Host { world, unit: self, seed };
                let mut ran = match script {
                    _ if *kind == RunKind::Script => exec(context, &mut host),
                    Some(actions) => play(actions, context, &mut host),
                    None => charm.code().run(context, &mut host),
                };
                host.early(std::mem::take(&mut ran.gathered.early));
                Ok(ran)
            }
            (Err(error), _) => Err(error.into()),
            (Ok(_), None) => Err(NotRun::NoArchive),
        };
        let report = self.report(run, ran, started_at, hex(&seed), world);
        self.finished = Some(FinishedHook { run: what, report: Box::new(report) });
        Ok(())
    }

    /// Checks two promises of an executor: no hook runs before the last one's commit is decided, or from a record that
    /// the unit has replaced.
    fn keeps_its_turn(&self, run: &HookRun) -> Result<(), LabError> {
        let (unit, event) = (self.name().clone(), run.event.to_string());
        if self.traced.is_some() {
            return Err(LabError::NotSerial { unit, event });
        }
        match run.record.seq < self.committed {
            true => Err(LabError::OldView { unit, event }),
            false => Ok(()),
        }
    }

    /// Builds the report of a hook that ran, or the failure of one that could not run.
    fn report(
        &mut self,
        run: &HookRun,
        ran: Result<LabHookReport, NotRun>,
        started_at: Timestamp,
        seed: String,
        world: &mut World<'_>,
    ) -> RunReport {
        let (returned, ending, gathered, tools) = match ran {
            Ok(LabHookReport { ending, gathered, tools }) => {
                (returned(&ending), ending, Some(gathered), tools)
            }
            Err(error) => {
                let ending = Ending::Failed(error.to_string());
                let returned = match error {
                    NotRun::Stopped => Returned::Stopped,
                    _ => returned(&ending),
                };
                (returned, ending, None, Vec::new())
            }
        };
        let component = Some(run.charm.digest);
        let mut report = RunReport { seed, component, ..RunReport::of(returned, started_at) };
        if let Some(gathered) = gathered {
            let ActionResults { values, failed, stdout, stderr } = gathered.action.unwrap_or_default();
            report.results = TaskResults { return_code: 0, stdout, stderr, values };
            report.said_failed = failed;
            report.status_set = gathered.status_set;
            report.effects = gathered.effects;
            report.leader_term = gathered.leader_term;
            report.calls = gathered.calls;
        }
        self.traced = Some(world.trace.push(Traced {
            at: started_at,
            unit: self.name().clone(),
            event: run.event.clone(),
            attempt: run.attempt,
            operation: run.operation(),
            snapshot: run.snapshot,
            ending: Some(ending),
            state: HookRunState::InFlight,
            boot_id: start_of(&run.event, &run.seen.workloads),
            coalesced: run.coalesced.clone(),
            tools,
        }));
        report
    }
}

/// Returns the start of the container that an event is about, of a unit that knows these workloads after the event.
pub(super) fn start_of(event: &Event, workloads: &BTreeMap<ContainerName, WorkloadRecord>) -> Option<String> {
    workloads.get(event.container()?).map(|told| told.boot_id.clone())
}

fn returned(ending: &Ending) -> Returned {
    match ending {
        Ending::Handled => Returned::Handled,
        Ending::Exited(code) => Returned::Exited { code: i32::from(*code) },
        Ending::Unhandled => Returned::Unhandled,
        Ending::Failed(message) => Returned::Failed { code: 1, message: message.clone() },
    }
}
