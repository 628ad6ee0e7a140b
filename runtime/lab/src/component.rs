//! Charms that are components: the sandbox of production, on the laboratory's time and seeds.

use std::{
    fmt,
    future::{Future, poll_fn},
    path::Path,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use periapt_hook::{CallError, CallTime, Gathered, HookContext, LeaseState};
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
        let desk = Desk::new(host.now());
        let inputs = RunInputs {
            context,
            seed: Seed(host.seed()),
            budgets: self.budgets.clone(),
            // Components in a laboratory have no disk.
            storage: Vec::new(),
            services: Arc::new(desk.clone()),
        };
        let report = self.runtime.block_on(async {
            let mut hook = pin!(self.sandbox.run_hook(&self.prepared, inputs));
            poll_fn(|task| {
                let polled = hook.as_mut().poll(task);
                desk.serve(host);
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

fn nothing() -> Gathered {
    Gathered {
        effects: HookEffects::default(),
        leader_term: None,
        status_set: false,
        action: None,
        early: Vec::new(),
        calls: RecordedCalls::default(),
        log_bytes: 0,
    }
}

/// The requests of a hook, which the laboratory serves between two polls of it. Both are on one thread, but the
/// hook's side must be `Send`.
#[derive(Clone)]
struct Desk(Arc<Mutex<Slips>>);

struct Slips {
    now: CallTime,
    early: Vec<(Timestamp, EarlyEffect)>,
    lease: Wish<LeaseState>,
    secret: Wish<Result<SecretData, CallError>>,
    wanted: Option<SecretKey>,
    sleep: Duration,
    sleeper: Wish<()>,
}

/// A request that the hook waits for.
enum Wish<T> {
    None,
    Wanted(Waker),
    Granted(T),
}

impl<T> Wish<T> {
    /// Makes the request, or takes its answer. For the hook's side.
    fn poll(&mut self, task: &Context<'_>) -> Poll<T> {
        match std::mem::replace(self, Self::None) {
            Self::Granted(value) => Poll::Ready(value),
            Self::None | Self::Wanted(_) => {
                *self = Self::Wanted(task.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Answers a pending request. For the laboratory's side.
    fn grant(&mut self, value: impl FnOnce() -> T) {
        if let Self::Wanted(waker) = std::mem::replace(self, Self::None) {
            *self = Self::Granted(value());
            waker.wake();
        }
    }
}

impl Desk {
    fn new(now: CallTime) -> Self {
        let slips = Slips {
            now,
            early: Vec::new(),
            lease: Wish::None,
            secret: Wish::None,
            wanted: None,
            sleep: Duration::ZERO,
            sleeper: Wish::None,
        };
        Self(Arc::new(Mutex::new(slips)))
    }

    fn slips(&self) -> MutexGuard<'_, Slips> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves the requests since the last time.
    fn serve(&self, host: &mut dyn HookHost) {
        let mut slips = self.slips();
        let early = std::mem::take(&mut slips.early);
        if !early.is_empty() {
            host.early(early);
        }
        let sleep = std::mem::take(&mut slips.sleep);
        if !sleep.is_zero() {
            host.sleep(sleep);
        }
        slips.sleeper.grant(|| ());
        slips.lease.grant(|| host.renew_lease());
        if let Some(key) = slips.wanted.take() {
            slips.secret.grant(|| host.fetch_secret(key));
        }
        slips.now = host.now();
    }
}

impl HookServices for Desk {
    fn now(&self) -> CallTime {
        self.slips().now
    }

    fn renew_lease(&self) -> BoxFuture<'_, LeaseState> {
        Box::pin(poll_fn(|task| self.slips().lease.poll(task)))
    }

    fn fetch_secret(&self, key: SecretKey) -> BoxFuture<'_, Result<SecretData, CallError>> {
        self.slips().wanted = Some(key);
        Box::pin(poll_fn(|task| self.slips().secret.poll(task)))
    }

    fn early(&self, items: Vec<(Timestamp, EarlyEffect)>) {
        self.slips().early.extend(items);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let desk = self.clone();
        let mut wanted = Some(duration);
        Box::pin(poll_fn(move |task| {
            let mut slips = desk.slips();
            if let Some(duration) = wanted.take() {
                slips.sleep = slips.sleep.saturating_add(duration);
            }
            slips.sleeper.poll(task)
        }))
    }
}
