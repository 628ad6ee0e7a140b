//! One hook: from its decision to what is to be committed.

use std::{fs::File, sync::Arc, time::Duration};

use periapt_hook::{CallError, CallTime, Gathered, HookContext, HookInputs, LeaseState, Limits};
use periapt_host_api::{
    CharmDigest, TaskId, Timestamp, UnitName,
    budget::BudgetKey,
    commit::EarlyEffect,
    event::Event,
    journal::{HookCosts, HookOutcome, JournalRecord, RecordedCalls},
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
    view::View,
};
use periapt_sandbox::{BoxFuture, Budgets, HookReport, HookServices, Outcome as RunOutcome, RunInputs, Seed};
use periapt_uniter::{HookEnd, HookRun};
use tokio::time::sleep;

use super::{World, action, commit::Outcome, outbox::Outbox};
use crate::clock::BootTime;

/// How long a hook that found the pool exhausted waits before it tries again.
const BUSY: Duration = Duration::from_millis(5);

/// A hook that ran.
#[derive(Debug)]
pub(crate) struct Ran {
    /// How it ended, for the unit's record.
    pub(crate) end: HookEnd,
    /// What is committed if its end is a success.
    pub(crate) outcome: Outcome,
}

/// What the host answers to a hook.
pub(super) struct Services {
    world: Arc<World>,
    unit: UnitName,
    /// The task that an action runs.
    task: Option<TaskId>,
    outbox: Arc<Outbox>,
}

impl Services {
    pub(super) fn new(world: &Arc<World>, run: &HookRun, outbox: &Arc<Outbox>) -> Self {
        Self {
            world: Arc::clone(world),
            unit: run.unit.clone(),
            task: run.event.task(),
            outbox: Arc::clone(outbox),
        }
    }
}

impl HookServices for Services {
    fn now(&self) -> CallTime {
        CallTime { at: Timestamp::now(), boot_ms: BootTime::now().0 }
    }

    fn renew_lease(&self) -> BoxFuture<'_, LeaseState> {
        Box::pin(self.world.leases.renew(&self.world.link, &self.unit))
    }

    fn fetch_secret(&self, key: SecretKey) -> BoxFuture<'_, Result<SecretData, CallError>> {
        Box::pin(self.world.fetch.secret(&self.unit, key))
    }

    fn fetch_resource(&self, key: ResourceKey) -> BoxFuture<'_, Result<File, CallError>> {
        Box::pin(self.world.fetch.resource(&self.unit, key))
    }

    fn early(&self, items: Vec<(Timestamp, EarlyEffect)>) {
        self.outbox.push(items);
    }

    fn interrupted(&self) -> BoxFuture<'_, ()> {
        match self.task {
            Some(task) => Box::pin(action::to_stop(&self.world, task)),
            None => Box::pin(std::future::pending()),
        }
    }
}

/// A run in the sandbox that came to an end, however that was.
pub(crate) struct Attempt {
    /// Its record; how it ended is not in it yet.
    pub(crate) journal: Box<JournalRecord>,
    /// How it ended.
    pub(crate) outcome: RunOutcome,
    /// What it left; what left it early is on its way.
    pub(crate) gathered: Gathered,
}

/// Runs a handler on one snapshot. The error is why it could not run, with the record of that.
pub(crate) async fn attempt(
    world: &Arc<World>,
    view: View,
    run: &HookRun,
    outbox: &Arc<Outbox>,
) -> Result<Attempt, (Box<JournalRecord>, String)> {
    let started_at = Timestamp::now();
    let mut journal = Box::new(journal(run, started_at, HookOutcome::Skipped));
    let seed = match random::<32>() {
        Ok(seed) => seed,
        Err(message) => return Err((journal, message)),
    };
    journal.seed = hex(&seed);
    let budgets = budgets(&view, &run.unit, &run.event);
    let loaded = match world.charms.get(run.charm.digest).await {
        Ok(loaded) => loaded,
        Err(message) => return Err((journal, message)),
    };
    journal.component = loaded.component;
    let storage = match world.storages.mounts(&view, &run.unit).await {
        Ok(storage) => storage,
        Err(message) => return Err((journal, message)),
    };
    let report = loop {
        let context = match context(world, &view, run, Seed(seed)) {
            Ok(context) => context,
            Err(message) => return Err((journal, message)),
        };
        let inputs = RunInputs {
            context,
            seed: Seed(seed),
            budgets: budgets.clone(),
            storage: storage.clone(),
            services: Arc::new(Services::new(world, run, outbox)),
        };
        match world.sandbox.run_hook(&loaded.prepared, inputs).await {
            Ok(report) => break report,
            // More hooks than the pool has places: wait for one to end; nothing of this one ran.
            Err(_busy) => sleep(BUSY).await,
        }
    };
    let HookReport { outcome, mut gathered, costs, started_at } = report;
    journal.started_at = started_at;
    outbox.push(std::mem::take(&mut gathered.early));
    journal.costs = costs;
    journal.calls = std::mem::take(&mut gathered.calls);
    Ok(Attempt { journal, outcome, gathered })
}

/// Runs a hook on one snapshot. Every failure that is the charm's is a [`HookEnd::Failed`].
pub(crate) async fn run(world: &Arc<World>, view: View, run: &HookRun, outbox: &Arc<Outbox>) -> Ran {
    let Attempt { mut journal, outcome, gathered } = match attempt(world, view, run, outbox).await {
        Ok(attempt) => attempt,
        Err((journal, message)) => return ended_badly(*journal, message, false),
    };
    let status_set = gathered.status_set;
    let (end, recorded) = match outcome {
        RunOutcome::Handled => (HookEnd::Handled { status_set }, HookOutcome::Handled),
        RunOutcome::Unhandled => (HookEnd::Unhandled { status_set }, HookOutcome::Unhandled),
        RunOutcome::Failed(error) => return ended_badly(*journal, error.to_string(), status_set),
    };
    journal.outcome = recorded;
    let outcome = Outcome {
        effects: gathered.effects,
        leader_term: gathered.leader_term,
        journal: Some(*journal),
        ..Outcome::default()
    };
    Ran { end, outcome }
}

/// What a hook of a unit may use, or an action.
pub(crate) fn budgets(view: &View, unit: &UnitName, event: &Event) -> Budgets {
    let settings = view.budgets(unit.application());
    match event.task() {
        Some(_) => Budgets::of_action(&settings),
        None => Budgets::of_hook(&settings),
    }
}

/// How much memory each run of a unit may use, in bytes.
pub(crate) fn memory(view: &View, unit: &UnitName) -> u64 {
    view.budgets(unit.application()).value(BudgetKey::HookMemoryLimit)
}

/// The end of a hook that is not run, because it would only end badly.
pub(crate) fn failed(run: &HookRun, started_at: Timestamp, message: String) -> Ran {
    ended_badly(journal(run, started_at, HookOutcome::Skipped), message, false)
}

fn ended_badly(journal: JournalRecord, message: String, status_set: bool) -> Ran {
    let journal = JournalRecord { outcome: HookOutcome::Failed { message: message.clone() }, ..journal };
    let outcome = Outcome { journal: Some(journal), ..Outcome::default() };
    Ran { end: HookEnd::Failed { message, status_set }, outcome }
}

/// What becomes of a hook whose commit was refused: it failed (C-3). Its record is kept, without effects.
pub(crate) fn refused(outcome: Outcome, end: &HookEnd, message: String) -> Ran {
    let status_set = match end {
        HookEnd::Handled { status_set }
        | HookEnd::Unhandled { status_set }
        | HookEnd::Failed { status_set, .. } => *status_set,
    };
    let journal = outcome.journal.map(|journal| JournalRecord {
        outcome: HookOutcome::Failed { message: message.clone() },
        ..journal
    });
    Ran { end: HookEnd::Failed { message, status_set }, outcome: Outcome { journal, ..Outcome::default() } }
}

pub(super) fn journal(run: &HookRun, started_at: Timestamp, outcome: HookOutcome) -> JournalRecord {
    JournalRecord {
        seq: run.operation().0,
        event: run.event.clone(),
        attempt: run.attempt,
        snapshot: run.snapshot,
        charm: run.charm.digest,
        // Until it is known: the charm could not be loaded.
        component: CharmDigest::from_bytes([0; 32]),
        engine: periapt_sandbox::engine_version().to_owned(),
        started_at,
        outcome,
        costs: HookCosts::default(),
        coalesced: run.coalesced.clone(),
        calls: RecordedCalls::default(),
        seed: String::new(),
        sealed: None,
    }
}

pub(super) fn context(world: &World, view: &View, run: &HookRun, seed: Seed) -> Result<HookContext, String> {
    let inputs = HookInputs {
        view: view.clone(),
        unit: run.unit.clone(),
        event: run.event.clone(),
        attempt: run.attempt,
        lease: world.leases.state(&run.unit),
        context_id: hex(&random::<16>()?),
        ids: seed.ids(),
        api_addresses: world.start.api_addresses.clone(),
        limits: Limits::of_hook(view, &run.unit),
    };
    HookContext::new(inputs).map_err(|error| error.to_string())
}

/// Bytes from the operating system, never derived from anything (`design.md` section 9).
pub(super) fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(format!("the host gives no random bytes: {error}")),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
