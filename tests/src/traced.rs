//! One `config` command on a traced installation, and its trace to the last hook that it caused.

use anyhow::Context as _;

use crate::{Collected, Collector, Installation, TraceTree};

/// The number of units that the command concerns.
const CONFIGURED_UNITS: usize = 2;

/// An installation whose processes send their spans to a collector.
#[derive(Debug)]
pub struct TracedInstallation {
    /// The installation, with a controller `local`, an agent `first` and a model `test`.
    pub periapt: Installation,
    /// The collector.
    pub collector: Collector,
}

impl TracedInstallation {
    /// Bootstraps a controller and an agent.
    pub fn bootstrapped() -> anyhow::Result<Self> {
        let collector = Collector::start()?;
        let periapt = Installation::empty()?.with_environment(collector.environment());
        periapt.ok(["bootstrap", "local", "--agent-name", "first"])?;
        periapt.ok(["add-model", "test"])?;
        Ok(Self { periapt, collector })
    }

    /// Deploys two units of `wordpress` with their database, and waits until they are settled.
    pub fn deploy(&self) -> anyhow::Result<()> {
        self.periapt.deploy("mysql", [])?;
        self.periapt.deploy("wordpress", ["-n", "2"])?;
        self.periapt.ok(["integrate", "wordpress", "mysql"])?;
        self.periapt.wait_for(["model"])
    }

    /// Changes the configuration of `wordpress`, waits until its units are settled, and returns the command's trace.
    ///
    /// Each unit runs `config-changed`, and writes to the bag of its peers; so each runs the hook of that change, too.
    pub fn configure(&self) -> anyhow::Result<TraceTree> {
        self.periapt.ok(["config", "wordpress", "blog-title=Traced", "port=8080"])?;
        self.periapt.wait_for(["model"])?;
        let spans = self.collector.wait_for(|spans| whole(spans).is_some())?;
        whole(&spans).context("it was there")
    }
}

/// Returns the trace of the command `config` once all its spans are there: a process exports a span when it has ended,
/// so a span whose parent is missing tells that more will come.
fn whole(spans: &[Collected]) -> Option<TraceTree> {
    let verb = spans.iter().find(|span| span.name == "verb" && span.attribute("verb") == "config")?;
    let [tree] = <[TraceTree; 1]>::try_from(TraceTree::of(spans, verb.trace)).ok()?;
    let hooks = tree.all_named("hook");
    let of = |event: &str| hooks.iter().filter(|hook| hook.span.attribute("event") == event).count();
    let operations = tree.all_named("operation");
    let is_committed = |operation: &&TraceTree| operation.at(&["command"]).is_some();
    let complete = of("config-changed") == CONFIGURED_UNITS
        && hooks.len() > CONFIGURED_UNITS
        && operations.len() == hooks.len()
        && operations.iter().all(is_committed);
    complete.then_some(tree)
}
