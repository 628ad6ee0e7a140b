//! Bounds on everything that a client or a workload can make grow.

use std::time::Duration;

/// The bounds of a pod's state. Every byte of a request and of a workload's output is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodLimits {
    /// Bytes of one layer's YAML. Public charms' layers take at most a few tens of KiB.
    pub layer: usize,
    /// Bytes of all layers together, written as JSON: layers that are combined again and again can grow.
    pub stack: usize,
    /// Layers in the stack.
    pub layers: usize,
    /// Services in the plan; each is at most one process.
    pub services: usize,
    /// Checks in the plan.
    pub checks: usize,
    /// Log targets in the plan.
    pub log_targets: usize,
    /// Log targets that have services. Each of them may have lines on their way, some hundred KiB at most.
    pub used_log_targets: usize,
    /// Labels of a log target. Loki takes 15.
    pub labels: usize,
    /// Bytes of a label's value, before and after its variables have their values. Loki takes as many.
    pub label: usize,
    /// Bytes of a label, a name or a notice's key.
    pub name: usize,
    /// Changes that are kept. Changes in progress are not dropped, and no new ones begin above it.
    pub changes: usize,
    /// Tasks of all changes together, each with a log of some KiB at most. Ready changes above it are dropped, and no
    /// new ones begin while as many tasks are in progress.
    pub tasks: usize,
    /// The time for which a change is kept once it is ready.
    pub change_age: Duration,
    /// Lines of a task's log, of at most `log_line` bytes each.
    pub task_log: usize,
    /// Notices that are kept; the one that occurred the longest ago is dropped for a new one.
    pub notices: usize,
    /// Bytes of a notice's data, keys and values together.
    pub notice_data: usize,
    /// The time for which a notice is kept.
    pub notice_age: Duration,
    /// Identities.
    pub identities: usize,
    /// Warnings that are kept.
    pub warnings: usize,
    /// Requests that wait for a change or a notice.
    pub waiters: usize,
    /// Commands of `exec` that are open at once.
    pub execs: usize,
    /// Bytes of an exec's command, environment and directory together.
    pub exec: usize,
    /// Bytes of output that are kept for each service.
    pub log_ring: usize,
    /// Bytes of a line of output; a longer line is split.
    pub log_line: usize,
    /// The shortest period of a check and the shortest pause before a restart: below it they would only burn time.
    pub shortest_pause: Duration,
}

impl Default for PodLimits {
    fn default() -> Self {
        const DAY: u64 = 24 * 3_600;
        Self {
            layer: 1 << 20,
            stack: 4 << 20,
            layers: 100,
            services: 200,
            checks: 200,
            log_targets: 100,
            used_log_targets: 16,
            labels: 32,
            label: 2 << 10,
            name: 255,
            changes: 1_000,
            tasks: 4_000,
            change_age: Duration::from_secs(7 * DAY),
            task_log: 10,
            notices: 2_000,
            notice_data: 4 << 10,
            notice_age: Duration::from_secs(7 * DAY),
            identities: 200,
            warnings: 100,
            waiters: 200,
            execs: 64,
            exec: 512 << 10,
            log_ring: 100 << 10,
            log_line: 4 << 10,
            shortest_pause: Duration::from_millis(10),
        }
    }
}
