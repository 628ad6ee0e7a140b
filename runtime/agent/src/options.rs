//! What an agent is started with.

use std::{collections::BTreeSet, ffi::OsString, num::NonZeroUsize, path::PathBuf, time::Duration};

use periapt_host_api::{AgentName, TagName};

use crate::host;

/// How an agent is set up. Nothing else is read from the environment.
#[derive(Debug, Clone)]
pub struct Options {
    /// The controller's URL, such as `http://127.0.0.1:17070`.
    pub controller: String,
    /// The agent's name, unique in its controller.
    pub name: AgentName,
    /// The agent's own directory (`Directories` says what lies in it); made if it is missing. One agent at a time
    /// uses it.
    pub data: PathBuf,
    /// Addresses by which other machines reach this host, the preferred first; none: those of its interfaces.
    pub addresses: Vec<String>,
    /// Where the host stands; may be empty.
    pub availability_zone: String,
    /// Words by which units are placed on it.
    pub tags: BTreeSet<TagName>,
    /// How the other processes are started.
    pub program: ChildProgram,
    /// How many hooks of one model may run at the same time on this agent.
    pub hooks: HookPlaces,
    /// After how long without anything due a runner ends, to be started again when something is.
    pub idle_after: Duration,
    /// The fences around compiling one component.
    pub compiling: CompileLimits,
    /// What all storage on its disk may be large together, in mebibytes; none: what the disk has room for.
    pub storage_limit: Option<u64>,
}

/// How many hooks of one model may be in flight. One that waits keeps its memory and therefore its place, so it is
/// memory that bounds them; those that compute share the cores by turns, however many they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookPlaces {
    /// The most instances, whatever they may use.
    pub hooks: NonZeroUsize,
    /// The most that their budgets of memory may add up to, in bytes. A hook that may use more than this runs alone.
    pub memory: u64,
}

impl Default for HookPlaces {
    /// Without looking at the host: four hooks of the usual budget.
    fn default() -> Self {
        Self { hooks: MAX_INSTANCES, memory: LEAST_MEMORY }
    }
}

/// An engine's pool of this size takes some hundred GiB of addresses, of 128 TiB; more hooks in flight would only
/// take longer each.
const MAX_INSTANCES: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Four hooks of the usual budget: most use a hundredth of it, and on a small machine slow hooks are not to hold all
/// others up.
const LEAST_MEMORY: u64 = 1 << 30;

impl HookPlaces {
    /// Three quarters of what memory this process may use, the rest being for all that is no hook.
    pub fn of_this_host() -> Self {
        Self { memory: (host::memory() / 4 * 3).max(LEAST_MEMORY), ..Self::default() }
    }
}

/// How a runner and a compile helper are started: a program that calls [`crate::run_runner`] or
/// [`crate::run_compile_helper`] when it is given these arguments.
#[derive(Debug, Clone)]
pub struct ChildProgram {
    /// The executable.
    pub path: PathBuf,
    /// Arguments that make it a runner.
    pub runner: Vec<OsString>,
    /// Arguments that make it a compile helper.
    pub compile_helper: Vec<OsString>,
    /// The whole environment of both; what else the agent was given is not theirs to see.
    pub environment: Vec<(OsString, OsString)>,
}

/// The fences around compiling one charm's component, which is a stranger's and has no limit of its own. Modules that it
/// shares with others are compiled by themselves; they share what is limited of time and of output with the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Private memory of compiling one part, in bytes.
    pub memory: u64,
    /// Processor time of one part over all threads, in seconds.
    pub cpu_seconds: u64,
    /// From start to end, of all parts together.
    pub deadline: Duration,
    /// The most bytes of a component.
    pub component: u64,
    /// The most bytes of what it compiles to, with all parts.
    pub output: u64,
}

impl Default for CompileLimits {
    /// A Python interpreter, the largest component known (40 MB), takes 9 s on two loaded cores, and compiles to
    /// three times its size; this leaves room for one three times as large.
    fn default() -> Self {
        Self {
            memory: 4 << 30,
            cpu_seconds: 300,
            deadline: Duration::from_secs(300),
            component: 128 << 20,
            output: 512 << 20,
        }
    }
}

impl Options {
    /// The usual settings of an agent of that name.
    pub fn new(controller: impl Into<String>, name: AgentName, data: PathBuf, program: ChildProgram) -> Self {
        Self {
            controller: controller.into(),
            name,
            data,
            addresses: Vec::new(),
            availability_zone: String::new(),
            tags: BTreeSet::new(),
            program,
            hooks: HookPlaces::of_this_host(),
            idle_after: Duration::from_secs(60),
            compiling: CompileLimits::default(),
            storage_limit: None,
        }
    }
}
