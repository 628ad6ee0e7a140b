//! The run of one hook or action in the sandbox, and its report.

use std::{fs::File, os::unix::net::UnixStream, sync::Arc, time::Duration};

use periapt_hook::{
    ActionResults, CallError, CallTime, ContextError, HookContext, HookInputs, HookLimits, HookResults,
    LeaseState, WorkloadTarget,
};
use periapt_host_api::{
    Timestamp, UnitName,
    action::TaskResults,
    commit::EarlyEffect,
    event::Event,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
    view::View,
};
use periapt_sandbox::{
    BoxFuture, Budgets, HandlerOutcome, HookErrorKind, HookReport, HookServices, RunInputs, Seed,
};
use periapt_uniter::{
    HookRun,
    executor::{Returned, RunReport},
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{RunnerContext, charms::Unusable, storage::MountError, units::EarlySender};
use crate::clock::BootTime;

/// The wait before a hook that found a full pool tries again.
const BUSY: Duration = Duration::from_millis(5);

/// The answer to a hook that began before any workload of its unit listened. Its beginning is not on record, so nobody
/// would know what it changed if it were cut short.
const STARTED_SINCE: &str = "nobody listened when this hook began: its unit's next hook reaches the workload";

/// The reason why a hook or script could not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotBegun {
    /// The operating system's random source failed.
    #[error("the host gives no random bytes: {0}")]
    Random(getrandom::Error),
    /// The charm cannot be used.
    #[error(transparent)]
    Charm(#[from] Unusable),
    /// The unit's storage cannot be mounted.
    #[error(transparent)]
    Storage(#[from] MountError),
    /// The view lacks the subject of the hook.
    #[error(transparent)]
    Context(#[from] ContextError),
}

/// The runner's services for a hook.
pub(super) struct Services {
    runner: Arc<RunnerContext>,
    unit: UnitName,
    early: EarlySender,
    interrupt: CancellationToken,
    may_reach_workloads: bool,
}

impl Services {
    pub(super) fn new(
        runner: &Arc<RunnerContext>,
        run: &HookRun,
        early: &EarlySender,
        interrupt: &CancellationToken,
    ) -> Self {
        Self {
            runner: Arc::clone(runner),
            unit: run.unit.clone(),
            early: early.clone(),
            interrupt: interrupt.clone(),
            may_reach_workloads: run.may_reach_workloads(),
        }
    }
}

impl HookServices for Services {
    fn now(&self) -> CallTime {
        CallTime { at: Timestamp::now(), boot_ms: BootTime::now().0 }
    }

    fn renew_lease(&self) -> BoxFuture<'_, LeaseState> {
        Box::pin(self.runner.leases.renew(&self.runner.link, &self.unit))
    }

    fn fetch_secret(&self, key: SecretKey) -> BoxFuture<'_, Result<SecretData, CallError>> {
        Box::pin(self.runner.fetch.secret(&self.unit, key))
    }

    fn fetch_resource(&self, key: ResourceKey) -> BoxFuture<'_, Result<File, CallError>> {
        Box::pin(self.runner.fetch.resource(&self.unit, key))
    }

    fn connect(&self, target: WorkloadTarget) -> BoxFuture<'_, Result<UnixStream, CallError>> {
        Box::pin(async move {
            // The keeper is asked in any case: it knows the reason why nobody listens.
            let stream = self.runner.fetch.stream(&self.unit, target).await?;
            match self.may_reach_workloads {
                true => Ok(stream),
                false => Err(CallError::NotReady(STARTED_SINCE.to_owned())),
            }
        })
    }

    fn early(&self, items: Vec<(Timestamp, EarlyEffect)>) {
        self.early.push(items);
    }

    fn interrupted(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.interrupt.cancelled())
    }
}

/// Runs a handler on one view, and reports the outcome.
pub(crate) async fn run(
    runner: &Arc<RunnerContext>,
    view: View,
    run: &HookRun,
    early: &EarlySender,
    interrupt: &CancellationToken,
) -> RunReport {
    let mut report = RunReport::of(Returned::Handled, Timestamp::now());
    let ran = attempt(runner, view, run, early, interrupt, &mut report).await;
    let HookReport { outcome, mut gathered, costs, started_at } = match ran {
        Ok(ran) => ran,
        Err(error) => {
            report.returned = Returned::Failed { code: 1, message: error.to_string() };
            return report;
        }
    };
    early.push(std::mem::take(&mut gathered.early));
    report.started_at = started_at;
    report.costs = costs;
    report.returned = returned(outcome, &run.event);
    gathered_by(&mut report, gathered);
    report
}

/// Adds the effects of a run to its report.
pub(super) fn gathered_by(report: &mut RunReport, gathered: HookResults) {
    let ActionResults { values, failed, stdout, stderr } = gathered.action.unwrap_or_default();
    report.results = TaskResults { return_code: 0, stdout, stderr, values };
    report.said_failed = failed;
    report.status_set = gathered.status_set;
    report.effects = gathered.effects;
    report.leader_term = gathered.leader_term;
    report.calls = gathered.calls;
}

fn returned(outcome: HandlerOutcome, event: &Event) -> Returned {
    match outcome {
        HandlerOutcome::Handled => Returned::Handled,
        HandlerOutcome::Unhandled => Returned::Unhandled,
        HandlerOutcome::Failed(error) if error.kind == HookErrorKind::Interrupted => Returned::Stopped,
        HandlerOutcome::Failed(error) => {
            // A failed handler with exit code 0 has failed, too.
            let code = if error.code == 0 { 1 } else { error.code };
            // An action's result has only the charm's message; a hook's status also names the kind of failure.
            let message = if event.task().is_some() { error.message } else { error.to_string() };
            Returned::Failed { code, message }
        }
    }
}

/// Runs a handler in the sandbox. The error is the reason why it could not start.
async fn attempt(
    runner: &Arc<RunnerContext>,
    view: View,
    run: &HookRun,
    early: &EarlySender,
    interrupt: &CancellationToken,
    report: &mut RunReport,
) -> Result<HookReport, NotBegun> {
    let seed = random::<32>()?;
    report.seed = hex(&seed);
    let budgets = budgets(&view, &run.unit, &run.event);
    let loaded = runner.charms.get(run.charm.digest).await?;
    report.component = Some(loaded.component);
    let storage = runner.storages.mounts(&view, &run.unit).await?;
    loop {
        let inputs = RunInputs {
            context: context(runner, &view, run, Seed(seed))?,
            seed: Seed(seed),
            budgets: budgets.clone(),
            storage: storage.clone(),
            services: Arc::new(Services::new(runner, run, early, interrupt)),
        };
        match runner.sandbox.run_hook(&loaded.prepared, inputs).await {
            Ok(report) => return Ok(report),
            // The pool is full, and nothing of this hook has run: wait for another hook to end.
            Err(_busy) => sleep(BUSY).await,
        }
    }
}

/// Returns the budgets of a unit's hook or action.
pub(crate) fn budgets(view: &View, unit: &UnitName, event: &Event) -> Budgets {
    let settings = view.budgets(unit.application());
    match event.task() {
        Some(_) => Budgets::of_action(&settings),
        None => Budgets::of_hook(&settings),
    }
}

pub(super) fn context(
    runner: &RunnerContext,
    view: &View,
    run: &HookRun,
    seed: Seed,
) -> Result<HookContext, NotBegun> {
    let inputs = HookInputs {
        view: view.clone(),
        unit: run.unit.clone(),
        event: run.event.clone(),
        attempt: run.attempt,
        lease: runner.leases.state(&run.unit),
        context_id: hex(&random::<16>()?),
        ids: seed.ids(),
        api_addresses: runner.start.api_addresses.clone(),
        limits: HookLimits::of_hook(view, &run.unit),
    };
    Ok(HookContext::new(inputs)?)
}

/// Returns random bytes of the operating system, which are derived from nothing
/// (`docs/design/sandbox.md`).
pub(super) fn random<const N: usize>() -> Result<[u8; N], NotBegun> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(NotBegun::Random)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
