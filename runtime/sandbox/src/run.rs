//! The run of one hook, from inputs to report.

use std::{sync::Arc, time::Instant};

use periapt_hook::{HookContext, HookResults, OutputStream, RecordedBudgets};
use periapt_host_api::{Timestamp, journal::HookCosts};
use wasmtime::{Store, UpdateDeadline, component::ResourceTable};

use crate::{
    Budgets, Busy, HookError, HookErrorKind, HookServices, Prepared, Sandbox, Seed,
    clock::HookClock,
    connections::Connections,
    contract::{self, types},
    diagnosis::{self, Diagnosis, Evidence},
    files::{Files, ResourcesMount, StorageMount},
    limits::{self, Limiter},
    meter::Meter,
    output::Output,
    state::{ContextAccess, HookState},
    wasi,
};

/// The inputs of a hook.
pub struct RunInputs {
    /// The context: event, view and lease.
    pub context: HookContext,
    /// The seed of its random numbers.
    pub seed: Seed,
    /// The budgets.
    pub budgets: Budgets,
    /// The unit's storage.
    pub storage: Vec<StorageMount>,
    /// The services of the runner.
    pub services: Arc<dyn HookServices>,
}

impl std::fmt::Debug for RunInputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunInputs").field("budgets", &self.budgets).finish_non_exhaustive()
    }
}

/// The outcome of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandlerOutcome {
    /// The handler returned success.
    Handled,
    /// The charm has no handler for the event.
    Unhandled,
    /// The hook failed. Only its early effects count.
    Failed(HookError),
}

/// The results of a hook.
#[derive(Debug)]
pub struct HookReport {
    /// The outcome.
    pub outcome: HandlerOutcome,
    /// The effects for the commit, and the remaining early effects.
    pub gathered: HookResults,
    /// The costs.
    pub costs: HookCosts,
    /// The start of the hook's clocks. The journal must record it, so that a replay sees the same times.
    pub started_at: Timestamp,
}

impl Sandbox {
    /// Runs one hook in a fresh instance. Dropping the future ends the hook at any point.
    ///
    /// # Errors
    /// [`Busy`] if the pool is full. The hook has not started; the caller tries again with a new context.
    pub async fn run_hook(&self, prepared: &Prepared, inputs: RunInputs) -> Result<HookReport, Busy> {
        let RunInputs { mut context, seed, mut budgets, storage, services } = inputs;
        let began = Instant::now();
        budgets.memory = budgets.memory.min(self.options().largest_memory);
        let environment = context.begin(&RecordedBudgets::from(&budgets));
        let invocation = contract::invocation(context.event(), context.attempt());
        let resources = ResourcesMount::of(&context);
        let access = ContextAccess::new(context, Arc::clone(&services));
        let meter = Arc::new(Meter::new(budgets.host_calls));
        let stdout = Output::new(OutputStream::Stdout, &access, &meter);
        let stderr = Output::new(OutputStream::Stderr, &access, &meter);
        let started_at = services.now().at;
        let clock = Arc::new(HookClock::new(started_at, budgets.fuel));
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits::MAX_RESOURCES);
        let state = HookState {
            access: Arc::clone(&access),
            services,
            limiter: Limiter::new(budgets.memory),
            files: Files::new(
                prepared.files.clone(),
                budgets.tmp_bytes,
                budgets.tmp_files,
                Arc::clone(&clock),
            )
            .with_storage(storage)
            .with_resources(resources),
            connections: Connections::default(),
            syncs: self.syncs(),
            clock,
            table,
            wasi: wasi::context(&environment, seed, &meter, stdout.clone(), stderr.clone()),
            meter: Arc::clone(&meter),
        };
        let mut store = Store::new(self.engine(), state);
        let ended = match configure(&mut store, &budgets) {
            Ok(()) => call(&mut store, prepared, &invocation, &budgets).await,
            Err(error) => Ended::Engine { error, started: false },
        };

        stdout.finish();
        stderr.finish();
        // The debt belongs to the costs. A hook that ends with more debt than fuel has exceeded its budget.
        let settled = meter.settle(&mut store);
        let fuel = budgets.fuel.saturating_sub(store.get_fuel().unwrap_or(0));
        let limiter = &store.data().limiter;
        let (memory, memory_limit) = (limiter.used(), limiter.limit());
        let tail = stderr.tail();
        let evidence = |started| Evidence {
            budgets: &budgets,
            memory_refused: limiter.refused(),
            memory_limit,
            stderr: &tail,
            started,
        };
        let diagnose = |error, started| match diagnosis::diagnose(&error, &evidence(started)) {
            Diagnosis::Failed(error) => Ok(HandlerOutcome::Failed(error)),
            Diagnosis::Busy => Err(Busy),
        };
        let outcome = match (ended, settled) {
            (Ended::Returned(Err(failure)), _) => HandlerOutcome::Failed(failure_of(&failure)),
            (Ended::Returned(Ok(_)), Err(error)) => diagnose(error, true)?,
            (Ended::Returned(Ok(types::Outcome::Handled)), Ok(())) => HandlerOutcome::Handled,
            (Ended::Returned(Ok(types::Outcome::Unhandled)), Ok(())) => HandlerOutcome::Unhandled,
            (Ended::Engine { error, started }, _) => diagnose(error, started)?,
            (Ended::Interrupted, _) => {
                HandlerOutcome::Failed(HookError::new(HookErrorKind::Interrupted, "it was stopped"))
            }
            (Ended::TimedOut, _) => HandlerOutcome::Failed(diagnosis::timed_out(&budgets)),
        };

        // The store and the streams hold the other references to the context.
        drop(store);
        drop((stdout, stderr));
        #[expect(
            clippy::expect_used,
            reason = "store and streams, which held the other references, are gone"
        )]
        let context = Arc::into_inner(access).expect("the last reference").into_context();
        let gathered = context.finish();
        let costs = HookCosts {
            fuel,
            memory,
            wall_us: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
            host_calls: meter.calls(),
            log_bytes: gathered.log_bytes,
        };
        Ok(HookReport { outcome, gathered, costs, started_at })
    }
}

/// The end of a run in the engine.
enum Ended {
    Returned(Result<types::Outcome, types::Failure>),
    Engine { error: wasmtime::Error, started: bool },
    TimedOut,
    Interrupted,
}

/// Sets all limits of the store.
fn configure(store: &mut Store<HookState>, budgets: &Budgets) -> wasmtime::Result<()> {
    limits::bound_store(store);
    store.limiter(|state| &mut state.limiter);
    store.set_fuel(budgets.fuel)?;
    // Epochs make hooks yield. At each tick, the meter also checks the debt of calls without access to the
    // store: a hook that spends its time in them must not exceed its budget.
    store.epoch_deadline_callback(|store| {
        store.data().meter.check(&store)?;
        Ok(UpdateDeadline::Yield(1))
    });
    store.set_epoch_deadline(1);
    Ok(())
}

/// Instantiates the charm and calls its handler, within the wall budget.
async fn call(
    store: &mut Store<HookState>,
    prepared: &Prepared,
    invocation: &types::Invocation,
    budgets: &Budgets,
) -> Ended {
    let mut started = false;
    let services = Arc::clone(&store.data().services);
    let run = async {
        let charm = prepared.charm.instantiate_async(&mut *store).await?;
        started = true;
        charm.periapt_charm_handler().call_handle(store, invocation).await
    };
    let within_budget = tokio::time::timeout(budgets.wall, run);
    let ended = tokio::select! {
        biased;
        ended = within_budget => ended,
        () = services.interrupted() => return Ended::Interrupted,
    };
    match ended {
        Ok(Ok(returned)) => Ended::Returned(returned),
        Ok(Err(error)) => Ended::Engine { error, started },
        Err(_) => Ended::TimedOut,
    }
}

/// Converts the handler's own failure.
fn failure_of(failure: &types::Failure) -> HookError {
    let message = match failure.message.trim() {
        "" => format!("failed with code {}", failure.code),
        message => {
            let end = message.floor_char_boundary(MAX_FAILURE);
            message.get(..end).unwrap_or_default().to_owned()
        }
    };
    HookError { code: failure.code, ..HookError::new(HookErrorKind::Failed, message) }
}

/// The most bytes of a failure's message, which a status shows.
const MAX_FAILURE: usize = 2 << 10;
