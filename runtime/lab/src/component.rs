//! Charms that are components: the sandbox of production, on the laboratory's time and seeds.

use std::{
    fmt,
    future::{Future, poll_fn},
    path::Path,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use periapt_hook::{CallError, CallTime, HookContext, HookResults, LeaseState};
use periapt_host_api::{
    Timestamp,
    commit::{EarlyEffect, HookEffects},
    journal::RecordedCalls,
    secret::{SecretData, SecretKey},
};
use periapt_sandbox::{BoxFuture, Budgets, HandlerOutcome, HookServices, Prepared, RunInputs, Sandbox, Seed};
use tokio::runtime::{Builder, Runtime};

use crate::{CharmCode, Ending, HookHost, LabHookReport};

/// A component as the code of a charm.
pub struct Component {
    sandbox: Sandbox,
    prepared: Prepared,
    budgets: Budgets,
    runtime: Runtime,
}

/// The reason why a component makes no charm.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The component is invalid, or the engine does not support it.
    #[error(transparent)]
    Compile(#[from] periapt_sandbox::CompileError),
    /// The component imports an interface that a charm may not import.
    #[error(transparent)]
    Prepare(#[from] periapt_sandbox::PrepareError),
    /// The system cannot provide a runtime.
    #[error("nothing to run hooks with: {0}")]
    Runtime(#[from] std::io::Error),
}

impl Component {
    /// Compiles a trusted component. `files` is the charm's unpacked archive.
    ///
    /// # Errors
    /// [`ComponentError`].
    pub fn new(sandbox: &Sandbox, component: &[u8], files: Option<&Path>) -> Result<Self, ComponentError> {
        let loaded = sandbox.compile_in_process(component)?;
        Ok(Self {
            prepared: sandbox.prepare(&loaded, files)?,
            sandbox: sandbox.clone(),
            budgets: Budgets::default(),
            runtime: Builder::new_current_thread().enable_time().build()?,
        })
    }

    /// Returns the charm with other budgets.
    #[must_use]
    pub fn with_budgets(self, budgets: Budgets) -> Self {
        Self { budgets, ..self }
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Component").field("budgets", &self.budgets).finish_non_exhaustive()
    }
}

impl CharmCode for Component {
    fn run(&self, context: HookContext, host: &mut dyn HookHost) -> LabHookReport {
        let requests = HookRequests::new(host.now());
        let inputs = RunInputs {
            context,
            seed: Seed(host.seed()),
            budgets: self.budgets.clone(),
            // Components in a laboratory have no disk.
            storage: Vec::new(),
            services: Arc::new(requests.clone()),
        };
        let report = self.runtime.block_on(async {
            let mut hook = pin!(self.sandbox.run_hook(&self.prepared, inputs));
            poll_fn(|task| {
                let polled = hook.as_mut().poll(task);
                requests.serve(host);
                polled
            })
            .await
        });
        let (ending, gathered) = match report {
            Ok(report) => (ending(report.outcome), report.gathered),
            // A laboratory runs one hook at a time, so its pool is never exhausted unless it has no place at
            // all.
            Err(busy) => (Ending::Failed(busy.to_string()), nothing()),
        };
        LabHookReport { ending, gathered, tools: Vec::new() }
    }
}

fn ending(outcome: HandlerOutcome) -> Ending {
    match outcome {
        HandlerOutcome::Handled => Ending::Handled,
        HandlerOutcome::Unhandled => Ending::Unhandled,
        HandlerOutcome::Failed(error) => Ending::Failed(error.to_string()),
    }
}

fn nothing() -> HookResults {
    HookResults {
        effects: HookEffects::default(),
        leader_term: None,
        status_set: false,
        action: None,
        early: Vec::new(),
        calls: RecordedCalls::default(),
        replayed: None,
        log_bytes: 0,
    }
}

/// The requests of a hook, which the laboratory serves between two polls of it. Both are on one thread, but the
/// hook's side must be `Send`.
#[derive(Clone)]
struct HookRequests(Arc<Mutex<RequestState>>);

struct RequestState {
    now: CallTime,
    early: Vec<(Timestamp, EarlyEffect)>,
    lease: PendingRequest<LeaseState>,
    secret: PendingRequest<Result<SecretData, CallError>>,
    wanted: Option<SecretKey>,
    sleep: Duration,
    sleeper: PendingRequest<()>,
}

/// A request that the hook waits for.
enum PendingRequest<T> {
    None,
    Waiting(Waker),
    Answered(T),
}

impl<T> PendingRequest<T> {
    /// Makes the request, or takes its answer. For the hook's side.
    fn poll(&mut self, task: &Context<'_>) -> Poll<T> {
        match std::mem::replace(self, Self::None) {
            Self::Answered(value) => Poll::Ready(value),
            Self::None | Self::Waiting(_) => {
                *self = Self::Waiting(task.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Answers a pending request. For the laboratory's side.
    fn answer(&mut self, value: impl FnOnce() -> T) {
        if let Self::Waiting(waker) = std::mem::replace(self, Self::None) {
            *self = Self::Answered(value());
            waker.wake();
        }
    }
}

impl HookRequests {
    fn new(now: CallTime) -> Self {
        let state = RequestState {
            now,
            early: Vec::new(),
            lease: PendingRequest::None,
            secret: PendingRequest::None,
            wanted: None,
            sleep: Duration::ZERO,
            sleeper: PendingRequest::None,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, RequestState> {
        self.0.lock()
    }

    /// Serves the requests since the last time.
    fn serve(&self, host: &mut dyn HookHost) {
        let mut state = self.state();
        let early = std::mem::take(&mut state.early);
        if !early.is_empty() {
            host.early(early);
        }
        let sleep = std::mem::take(&mut state.sleep);
        if !sleep.is_zero() {
            host.sleep(sleep);
        }
        state.sleeper.answer(|| ());
        state.lease.answer(|| host.renew_lease());
        if let Some(key) = state.wanted.take() {
            state.secret.answer(|| host.fetch_secret(key));
        }
        state.now = host.now();
    }
}

impl HookServices for HookRequests {
    fn now(&self) -> CallTime {
        self.state().now
    }

    fn renew_lease(&self) -> BoxFuture<'_, LeaseState> {
        Box::pin(poll_fn(|task| self.state().lease.poll(task)))
    }

    fn fetch_secret(&self, key: SecretKey) -> BoxFuture<'_, Result<SecretData, CallError>> {
        self.state().wanted = Some(key);
        Box::pin(poll_fn(|task| self.state().secret.poll(task)))
    }

    fn early(&self, items: Vec<(Timestamp, EarlyEffect)>) {
        self.state().early.extend(items);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let requests = self.clone();
        let mut wanted = Some(duration);
        Box::pin(poll_fn(move |task| {
            let mut state = requests.state();
            if let Some(duration) = wanted.take() {
                state.sleep = state.sleep.saturating_add(duration);
            }
            state.sleeper.poll(task)
        }))
    }
}
