//! The agent's metrics: those of the keeper, and what runners report to it. No label names a model, an application or a
//! unit.

use periapt_host_api::event::EVENT_KINDS;
use periapt_telemetry::metrics::{BYTES, FUEL, Gauge, SECONDS};

use crate::protocol::{PoolUse, RunFigures, RunOutcome};

periapt_telemetry::metrics! {
    /// The metrics of an agent, over all its models.
    hooks: Counter = "periapt_agent_hooks_total", "runs",
        { event: &EVENT_KINDS, outcome: &RunOutcome::NAMES },
        "Runs of hooks and actions that ended, by the way in which the handler returned.";
    hook_seconds: Histogram(SECONDS) = "periapt_agent_hook_seconds", "seconds", { event: &EVENT_KINDS },
        "Wall time of a run in the sandbox.";
    hook_fuel: Histogram(FUEL) = "periapt_agent_hook_fuel", "fuel", {},
        "Fuel that a run used: about one unit for each WebAssembly instruction.";
    hook_memory: Histogram(BYTES) = "periapt_agent_hook_memory_bytes", "bytes", {},
        "The most linear memory that a run had.";
    hooks_in_flight: Gauge = "periapt_agent_hooks_in_flight", "runs", {},
        "Runs that have begun and are not committed yet.";
    suspects: Counter = "periapt_agent_suspects_total", "runs", {},
        "Runs that were in flight when their runner died.";
    compile_seconds: Histogram(SECONDS) = "periapt_agent_compile_seconds", "seconds",
        { outcome: &["ok", "failed"] }, "Time to compile one component, or one module that components share.";
    pool_instances: Gauge = "periapt_agent_pool_instances", "instances", {},
        "WebAssembly instances of runs in flight.";
    pool_warm_memories: Gauge = "periapt_agent_pool_warm_memories", "memories", {},
        "Memories that the pools keep for the next run of the same component.";
    pool_warm_bytes: Gauge = "periapt_agent_pool_warm_bytes", "bytes", {},
        "Bytes that stay resident in these memories.";
    retries: Counter = "periapt_agent_retries_total", "attempts", { of: &["stream", "commit", "hook"] },
        "Attempts after a failure: streams of the controller that broke, commits without an answer, failed hooks.";
    frames: Counter = "periapt_agent_frames_total", "frames", {},
        "Frames with changes that were passed to runners.";
    runners: Gauge = "periapt_agent_runners", "models", { state: &["running", "resting", "restarting"] },
        "Models by the state of their runner. One that rests has no process, and is started when something is due.";
    runner_deaths: Counter = "periapt_agent_runner_deaths_total", "processes", {},
        "Runners that died, or were killed because they hung.";
    listeners: Gauge = "periapt_agent_listeners", "sockets", { state: &["listening", "failed"] },
        "Ports on which the agent listens for units, and those on which it cannot listen and tries again.";
    connections: Counter = "periapt_agent_connections_total", "connections",
        { outcome: &["forwarded", "refused", "too-many", "unanswered"] },
        "Connections to these ports: led to a workload, refused by the unit's rules, too many at a time, or without a \
         workload that listens.";
    open_connections: Gauge = "periapt_agent_open_connections", "connections", {},
        "Connections to these ports that are open.";
    connection_bytes: Counter = "periapt_agent_connection_bytes_total", "bytes",
        { direction: &["received", "sent"] },
        "Bytes that workloads received from these connections and from other units', and sent on them.";
    firewall: Gauge = "periapt_agent_firewall", "tables", { state: &["written", "failed"] },
        "The agent's rules in the host's firewall, with `--firewall nftables`: as the model has them, or as they were \
         because they could not be written.";
    calls: Counter = "periapt_agent_calls_total", "calls",
        { outcome: &["connected", "refused", "too-many", "unanswered"] },
        "Calls of workloads on this host to other units and to hosts outside, and of units on other hosts to those on this \
         one: connected, refused because the other side may not be reached, too many at a time, or without an answer.";
}

/// Counts a run. Ignores an unknown kind of event: the runner that reports it may be under a charm's control.
pub(crate) fn ran(figures: &RunFigures) {
    let Some(event) = EVENT_KINDS.into_iter().find(|kind| *kind == figures.event) else { return };
    let metrics = metrics();
    metrics.hooks.inc(&[event, figures.outcome.name()]);
    metrics.hook_seconds.took(&[event], std::time::Duration::from_micros(figures.wall_us));
    #[expect(clippy::cast_precision_loss, reason = "a histogram's bounds are powers of ten")]
    let [fuel, memory] = [figures.fuel, figures.memory].map(|figure| figure as f64);
    metrics.hook_fuel.observe(&[], fuel);
    metrics.hook_memory.observe(&[], memory);
    if figures.attempt > 1 {
        metrics.retries.inc(&["hook"]);
    }
}

/// One model's share of a gauge, which is the sum over all models. Dropping the share subtracts it from the gauge.
#[derive(Debug)]
pub(crate) struct Share {
    gauge: &'static Gauge,
    value: u64,
}

impl Share {
    /// Creates a share of 0.
    pub(crate) fn of(gauge: &'static Gauge) -> Self {
        Self { gauge, value: 0 }
    }

    /// Sets the share. Larger values than a real one count as the largest, so that no sum overflows.
    pub(crate) fn set(&mut self, value: u64) {
        let value = value.min(MAX_SHARE);
        self.gauge.change(&[], value.cast_signed() - self.value.cast_signed());
        self.value = value;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A PiB: more than any figure of one runner.
const MAX_SHARE: u64 = 1 << 50;

/// The use of one runner's pool, as a share of the agent's gauges.
#[derive(Debug)]
pub(crate) struct PoolShare {
    instances: Share,
    warm_memories: Share,
    warm_bytes: Share,
}

impl Default for PoolShare {
    fn default() -> Self {
        let metrics = metrics();
        Self {
            instances: Share::of(&metrics.pool_instances),
            warm_memories: Share::of(&metrics.pool_warm_memories),
            warm_bytes: Share::of(&metrics.pool_warm_bytes),
        }
    }
}

impl PoolShare {
    /// Sets the pool's present use.
    pub(crate) fn set(&mut self, held: PoolUse) {
        self.instances.set(held.instances);
        self.warm_memories.set(held.warm_memories);
        self.warm_bytes.set(held.warm_bytes);
    }
}

/// The state of one thing, as its share of a gauge with the label `state`. Dropping it subtracts it from the gauge.
#[derive(Debug)]
struct StateShare {
    gauge: &'static Gauge,
    state: Option<&'static str>,
}

impl StateShare {
    fn of(gauge: &'static Gauge) -> Self {
        Self { gauge, state: None }
    }

    fn set(&mut self, state: Option<&'static str>) {
        let before = std::mem::replace(&mut self.state, state);
        before.into_iter().for_each(|state| self.gauge.change(&[state], -1));
        state.into_iter().for_each(|state| self.gauge.change(&[state], 1));
    }
}

impl Drop for StateShare {
    fn drop(&mut self) {
        self.set(None);
    }
}

/// The state of one model's runner.
#[derive(Debug)]
pub(crate) struct RunnerState(StateShare);

impl Default for RunnerState {
    fn default() -> Self {
        Self(StateShare::of(&metrics().runners))
    }
}

impl RunnerState {
    /// Records that the model's runner runs.
    pub(crate) fn running(&mut self) {
        self.0.set(Some("running"));
    }

    /// Records that nothing is due, and that the model has no runner process.
    pub(crate) fn resting(&mut self) {
        self.0.set(Some("resting"));
    }

    /// Records that the runner has ended, and that the keeper will start another.
    pub(crate) fn restarting(&mut self) {
        self.0.set(Some("restarting"));
    }
}

/// The state of one listener for a unit.
#[derive(Debug)]
pub(crate) struct ListenerState(StateShare);

impl Default for ListenerState {
    fn default() -> Self {
        Self(StateShare::of(&metrics().listeners))
    }
}

impl ListenerState {
    /// Records that the agent listens.
    pub(crate) fn listening(&mut self) {
        self.0.set(Some("listening"));
    }

    /// Records that the agent cannot listen, and will try again.
    pub(crate) fn failed(&mut self) {
        self.0.set(Some("failed"));
    }
}

/// The state of the agent's rules in the host's firewall.
#[derive(Debug)]
pub(crate) struct FirewallState(StateShare);

impl Default for FirewallState {
    fn default() -> Self {
        Self(StateShare::of(&metrics().firewall))
    }
}

impl FirewallState {
    /// Records that the rules are as the model has them.
    pub(crate) fn written(&mut self) {
        self.0.set(Some("written"));
    }

    /// Records that the rules could not be written, and that the agent will try again.
    pub(crate) fn failed(&mut self) {
        self.0.set(Some("failed"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(event: &str) -> RunFigures {
        RunFigures {
            event: event.to_owned(),
            outcome: RunOutcome::Handled,
            attempt: 2,
            wall_us: 1_500,
            fuel: u64::MAX,
            memory: 1 << 20,
        }
    }

    #[test]
    fn a_run_is_counted_by_its_event_and_outcome_and_none_of_an_unknown_event() {
        ran(&figures("config-changed"));
        let text = render();
        let has = |line: &str| assert!(text.lines().any(|one| one == line), "{line} is not in:\n{text}");
        has("periapt_agent_hooks_total{event=\"config-changed\",outcome=\"handled\"} 1");
        has("periapt_agent_hook_seconds_bucket{event=\"config-changed\",le=\"0.0025\"} 1");
        has("periapt_agent_hook_fuel_count 1");
        has("periapt_agent_hook_memory_bytes_bucket{le=\"1048576\"} 1");
        has("periapt_agent_retries_total{of=\"hook\"} 1");
        ran(&figures("x\" 1\nbank 7"));
        assert_eq!(render(), text);
    }

    #[test]
    fn a_gauge_is_the_sum_of_the_models_that_are_there() {
        let line = |name: &str| render().lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        let (mut one, mut other) = (PoolShare::default(), PoolShare::default());
        one.set(PoolUse { instances: 3, warm_memories: 1, warm_bytes: u64::MAX });
        other.set(PoolUse { instances: 2, ..PoolUse::default() });
        assert_eq!(line("periapt_agent_pool_instances "), "periapt_agent_pool_instances 5");
        drop(one);
        assert_eq!(line("periapt_agent_pool_instances "), "periapt_agent_pool_instances 2");
        assert_eq!(line("periapt_agent_pool_warm_bytes "), "periapt_agent_pool_warm_bytes 0");
        let mut state = RunnerState::default();
        state.running();
        state.resting();
        assert!(line("periapt_agent_runners{state=\"running\"}").ends_with(" 0"));
        assert!(line("periapt_agent_runners{state=\"resting\"}").ends_with(" 1"));
        drop(state);
        assert!(line("periapt_agent_runners{state=\"resting\"}").ends_with(" 0"));
    }
}
