//! The executors of the runner's units. An idle unit is an entry in a map, without a task or timer of its own. A frame
//! wakes the units whose decisions depend on its changes, and one timer wakes units that wait for a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{
    Timestamp, UnitName,
    trace::{RevisionTrace, TraceContext},
    view::View,
};
use periapt_uniter::executor::{
    ChangedDependencies, Dependency, Dependents, Executor, ExecutorInput, Options,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{RunnerContext, RunnerError, mirror::MirrorChanges};
use crate::{clock, protocol::ToKeeper};

mod announce;
mod commands;
mod early;
mod spans;
mod timers;
mod work;

use announce::Announcements;
use commands::UnitCommands;
pub(crate) use early::EarlySender;
use spans::UnitSpans;
use timers::Timers;
use work::Work;

/// A runner with work due this soon does not offer to exit: a restart costs more than the wait.
const SOON: Duration = Duration::from_secs(10);

/// The number of woken units after which other tasks run.
const AT_A_TIME: usize = 32;

/// A managed unit.
pub(crate) struct Unit {
    name: UnitName,
    state: Mutex<State>,
}

/// One unit's executor, and its commands in progress.
struct State {
    executor: Executor,
    busy: UnitCommands,
    spans: UnitSpans,
    /// The time until which the unit rests; none while it is active.
    rest: Option<Option<Timestamp>>,
}

impl Unit {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The runner's units. Code that locks several of these locks a unit first.
pub(crate) struct Units {
    pub(super) runner: Arc<RunnerContext>,
    managed: Mutex<BTreeMap<UnitName, Arc<Unit>>>,
    /// Units that are not managed any more, while the view still shows them.
    stopped: Mutex<BTreeSet<UnitName>>,
    dependents: Mutex<Dependents>,
    timers: Timers,
    announcements: Announcements,
    work: Work,
    /// True once units start as soon as the view shows them, which is after the suspects are tried.
    begun: AtomicBool,
    /// The origin of the monotonic clock.
    since: Instant,
    /// The last time at which a unit came to rest or left it.
    changed_at: Mutex<Instant>,
    failed: mpsc::Sender<RunnerError>,
    /// The number of executors that frames have woken.
    woken: AtomicU64,
}

/// A guard that ends the units' work on drop.
struct WorkGuard(Arc<Units>);

impl Drop for WorkGuard {
    fn drop(&mut self) {
        self.0.work.abandon();
        self.0.managed.lock().clear();
    }
}

/// Yields to other tasks after each [`AT_A_TIME`] units. `count` is the number of units before this one.
async fn yield_after(count: usize) {
    if count % AT_A_TIME == AT_A_TIME - 1 {
        tokio::task::yield_now().await;
    }
}

/// Runs the units of the view, after trying the suspects among them.
pub(crate) async fn run(runner: Arc<RunnerContext>) -> Result<(), RunnerError> {
    // The units start from a view that contains all earlier changes.
    let news = runner.mirror.news();
    let mut traces = runner.start.woken_by.clone();
    traces.extend(news.into_iter().flat_map(|news| news.traces));
    let (units, mut failures) = Units::new(runner);
    let _ends = WorkGuard(Arc::clone(&units));
    let life = async {
        units.try_suspects().await;
        units.begin(&traces).await;
        units.offer_to_exit_when_idle().await;
    };
    tokio::select! {
        () = life => Ok(()),
        () = units.follow() => Ok(()),
        () = units.keep_time() => Ok(()),
        () = units.follow_workloads() => Ok(()),
        () = units.announcements.forward(&units.runner.link) => Ok(()),
        Some(error) = failures.recv() => Err(error),
    }
}

impl Units {
    pub(super) fn new(runner: Arc<RunnerContext>) -> (Arc<Self>, mpsc::Receiver<RunnerError>) {
        let (failed, failures) = mpsc::channel(1);
        let units = Arc::new(Self {
            runner,
            managed: Mutex::default(),
            stopped: Mutex::default(),
            dependents: Mutex::default(),
            timers: Timers::default(),
            announcements: Announcements::new(),
            work: Work::default(),
            begun: AtomicBool::new(false),
            since: Instant::now(),
            changed_at: Mutex::new(Instant::now()),
            failed,
            woken: AtomicU64::new(0),
        });
        (units, failures)
    }

    /// Starts the units in the view, and from now on those that appear in it.
    pub(super) async fn begin(self: &Arc<Self>, traces: &[RevisionTrace]) {
        self.begun.store(true, Ordering::SeqCst);
        let (_span, cause) = spans::runner(&self.runner.start.model, traces);
        for (count, unit) in self.all().iter().enumerate() {
            self.wake(unit, ExecutorInput::Begin, cause);
            yield_after(count).await;
        }
        for (count, name) in self.runner.mirror.view().units.keys().enumerate() {
            self.look_after(name, &self.runner.mirror.view(), cause);
            yield_after(count).await;
        }
    }

    /// Passes on the changes of frames, for ever.
    async fn follow(self: &Arc<Self>) {
        let mut changes = self.runner.mirror.changes();
        loop {
            // Earlier changes are in the mirror already.
            if let Some(news) = self.runner.mirror.news() {
                self.hear(news).await;
            }
            changes.next().await;
        }
    }

    /// Tells units of the workloads beside them, at each change, for ever.
    async fn follow_workloads(self: &Arc<Self>) {
        loop {
            let (changed, known) = self.runner.workloads.changes().await;
            for (count, name) in changed.iter().enumerate() {
                // A unit that is added later begins with what is known then.
                let unit = self.managed.lock().get(name).map(Arc::clone);
                if let Some(unit) = unit {
                    self.feed(&unit, ExecutorInput::Workloads(self.runner.workloads.of(name)));
                }
                yield_after(count).await;
            }
            self.runner.workloads.told_units(known);
        }
    }

    /// Wakes the units that changes concern.
    pub(super) async fn hear(
        self: &Arc<Self>,
        MirrorChanges { changed, another_store, traces }: MirrorChanges,
    ) {
        let view = self.runner.mirror.view();
        let names: BTreeSet<UnitName> = match &changed {
            ChangedDependencies::All => {
                self.stopped.lock().retain(|unit| view.units.contains_key(unit));
                let known: Vec<UnitName> = self.managed.lock().keys().cloned().collect();
                known.into_iter().chain(view.units.keys().cloned()).collect()
            }
            ChangedDependencies::These(these) => {
                for dependency in these {
                    if let Dependency::Unit(unit) = dependency
                        && !view.units.contains_key(unit)
                    {
                        self.stopped.lock().remove(unit);
                    }
                }
                self.dependents.lock().of(these)
            }
        };
        if names.is_empty() {
            return;
        }
        let (_span, cause) = spans::runner(&self.runner.start.model, &traces);
        for (count, name) in names.iter().enumerate() {
            let known = self.managed.lock().get(name).map(Arc::clone);
            match known {
                Some(unit) => {
                    self.woken.fetch_add(1, Ordering::Relaxed);
                    self.wake(
                        &unit,
                        if another_store {
                            ExecutorInput::StoreReplaced
                        } else {
                            ExecutorInput::DependenciesChanged
                        },
                        cause,
                    );
                }
                None if self.begun.load(Ordering::SeqCst) => self.look_after(name, &view, cause),
                None => {}
            }
            yield_after(count).await;
        }
    }

    /// Starts a unit that is in the view and not managed yet.
    fn look_after(self: &Arc<Self>, name: &UnitName, view: &View, cause: Option<TraceContext>) {
        let is_known = self.managed.lock().contains_key(name) || self.stopped.lock().contains(name);
        if !is_known && view.units.contains_key(name) {
            let unit = self.add(name, view);
            self.wake(&unit, ExecutorInput::Begin, cause);
        }
    }

    /// Returns the unit of a suspect, without starting it.
    pub(super) fn suspected(self: &Arc<Self>, name: &UnitName) -> Arc<Unit> {
        let known = self.managed.lock().get(name).map(Arc::clone);
        known.unwrap_or_else(|| self.add(name, &self.runner.mirror.view()))
    }

    /// Adds a unit at the step of its record.
    fn add(self: &Arc<Self>, name: &UnitName, view: &View) -> Arc<Unit> {
        let executor = Executor::new(Options {
            unit: name.clone(),
            incarnation: self.runner.incarnation,
            engine: Arc::clone(&self.runner.engine),
            last_number: view.units.get(name).map_or(0, |unit| unit.early_number),
        });
        let state = Mutex::new(State {
            executor,
            busy: UnitCommands::default(),
            spans: UnitSpans::default(),
            rest: None,
        });
        let unit = Arc::new(Unit { name: name.clone(), state });
        self.managed.lock().insert(name.clone(), Arc::clone(&unit));
        self.changed();
        // After the unit can be found: a change from now on reaches it, too. One may have come between the two steps.
        loop {
            let workloads = self.runner.workloads.of(name);
            self.feed(&unit, ExecutorInput::Workloads(workloads.clone()));
            if self.runner.workloads.of(name) == workloads {
                return unit;
            }
        }
    }

    /// Stops managing a unit.
    fn remove(&self, name: &UnitName) {
        self.managed.lock().remove(name);
        self.stopped.lock().insert(name.clone());
        self.changed();
    }

    fn all(&self) -> Vec<Arc<Unit>> {
        self.managed.lock().values().map(Arc::clone).collect()
    }

    fn changed(&self) {
        *self.changed_at.lock() = Instant::now();
    }

    /// Ends the runner with an error.
    fn fail(&self, error: RunnerError) {
        // The first error is the one to report.
        let _ = self.failed.try_send(error);
    }

    /// Ends the runner after a panic, which is a defect and must not leave a unit unmanaged.
    fn panicked(&self) {
        self.fail(RunnerError::NoKeeper(io::Error::other("a task of a unit panicked")));
    }

    /// Offers the keeper to exit whenever nothing was due for a while.
    async fn offer_to_exit_when_idle(&self) {
        let idle_after = Duration::from_millis(self.runner.start.idle_after_ms);
        let mut changes = self.runner.mirror.changes();
        let mut seen_at = Instant::now();
        loop {
            let quiet_at = |seen_at: Instant| seen_at.max(*self.changed_at.lock()) + idle_after;
            tokio::select! {
                () = changes.next() => {
                    changes.view();
                    seen_at = Instant::now();
                }
                () = sleep_until(quiet_at(seen_at)) => {
                    if quiet_at(seen_at) <= Instant::now() {
                        self.offer_to_exit().await;
                        seen_at = Instant::now();
                    }
                }
            }
        }
    }

    /// Offers the keeper to exit if nothing is due.
    async fn offer_to_exit(&self) {
        // Before the look at the units, which then have had this much.
        let workloads = self.runner.workloads.delivered();
        let (Some(wake_at), Some(position), true) =
            (self.at_rest(), self.runner.mirror.position(), self.runner.storages.at_rest())
        else {
            return;
        };
        let timeline = self.runner.start.timeline;
        if wake_at.is_none_or(|at| clock::until(timeline, at) >= SOON) {
            self.runner.link.send(ToKeeper::Idle { position, wake_at, workloads }).await;
        }
    }

    /// Returns the first time at which work is due; none unless all units rest and have sent their early effects.
    pub(super) fn at_rest(&self) -> Option<Option<Timestamp>> {
        let mut first: Option<Timestamp> = None;
        for unit in self.all() {
            let State { executor, .. } = &*unit.state();
            let wake_at = executor.rests_until().filter(|_| executor.has_sent_all())?;
            first = [first, wake_at].into_iter().flatten().min();
        }
        Some(first)
    }
}

#[cfg(test)]
impl Units {
    /// Returns the number of executors that frames have woken.
    pub(super) fn woken(&self) -> u64 {
        self.woken.load(Ordering::Relaxed)
    }

    /// Returns the number of running tasks of units.
    pub(super) fn under_way(&self) -> usize {
        self.work.len()
    }

    /// Returns the units that depend on these changes.
    pub(super) fn concerned(&self, changed: &BTreeSet<Dependency>) -> BTreeSet<UnitName> {
        self.dependents.lock().of(changed)
    }
}
