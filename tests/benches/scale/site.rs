//! The installation under measurement.

use std::{
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, InstallationGuard};
use serde_json::Value;

use crate::cpu::Cpu;

/// The timeout of each phase.
const SETTLED: Duration = Duration::from_secs(1_800);

/// The length of a measurement that decides if processes are idle.
const WINDOW: Duration = Duration::from_millis(500);

/// The most CPU time of idle processes in a window, in seconds; heartbeats take some.
const REST: f64 = 0.05;

/// A controller and an agent, with an archive to deploy.
pub(crate) struct Site {
    // Before the installation, which ends its own processes.
    _guard: InstallationGuard,
    periapt: Installation,
    archive: PathBuf,
}

/// The cost of a phase.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Taken {
    /// The number of hooks.
    pub(crate) hooks: u64,
    /// The CPU time, without that of status requests.
    pub(crate) cpu: Cpu,
}

impl Site {
    /// Bootstraps a controller in a new directory below `parent`.
    pub(crate) fn below(parent: &Path) -> anyhow::Result<Self> {
        let periapt = Installation::below(parent)?;
        let guard = InstallationGuard::of(&periapt)?;
        periapt.ok(["bootstrap", "local", "--agent-name", "first"])?;
        Ok(Self { _guard: guard, archive: parent.join("bench-scale.charm"), periapt })
    }

    /// Creates the charm of `init --language rust` with two endpoints, and packs it for all sites.
    pub(crate) fn pack(parent: &Path) -> anyhow::Result<()> {
        let periapt = Installation::below(parent)?;
        periapt.ok(["init", "greeter", "--language", "rust"])?;
        let metadata = periapt.path().join("greeter/charmcraft.yaml");
        let endpoints =
            "provides:\n  out:\n    interface: greeting\nrequires:\n  in:\n    interface: greeting\n";
        let text = std::fs::read_to_string(&metadata)?;
        std::fs::write(&metadata, format!("{text}{endpoints}"))?;
        let archive = parent.join("bench-scale.charm");
        let archive = archive.to_str().context("the archive's path")?;
        let mut pack = periapt.command(["pack", "greeter", "-o", archive]);
        // The packer's cargo gets its own target directory: the lock of this benchmark's build may be held.
        pack.env("CARGO_TARGET_DIR", parent.join("bench-scale-charm"));
        let done = Installation::finished(pack)?;
        ensure!(done.code == Some(0), "the charm cannot be packed: {done:?}");
        Ok(())
    }

    pub(crate) fn periapt(&self) -> &Installation {
        &self.periapt
    }

    /// Runs a verb of the command line.
    pub(crate) fn ok(&self, words: &[&str]) -> anyhow::Result<()> {
        self.periapt.ok(words).map(drop)
    }

    /// Deploys the charm in a model, with several commands if it has very many units.
    pub(crate) fn deploy(&self, model: &str, application: &str, units: usize) -> anyhow::Result<()> {
        let archive = self.archive.to_str().context("the archive's path")?;
        let first = units.min(MOST_AT_ONCE);
        self.ok(&["deploy", "-m", model, archive, application, "-n", &first.to_string()])?;
        let mut made = first;
        while made < units {
            let more = (units - made).min(MOST_AT_ONCE);
            self.ok(&["add-unit", "-m", model, application, "-n", &more.to_string()])?;
            made += more;
        }
        Ok(())
    }

    /// Runs an action, waits until all processes are idle and the models satisfy `wanted`, and returns the cost.
    pub(crate) fn measure(
        &self,
        models: &[String],
        act: impl FnOnce(&Self) -> anyhow::Result<()>,
        wanted: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Taken> {
        let hooks = self.hooks(models)?;
        let began = Cpu::of(&self.periapt)?;
        act(self)?;
        let cpu = self.settle(models, wanted)?;
        Ok(Taken { hooks: self.hooks(models)? - hooks, cpu: cpu - began })
    }

    /// Waits until all processes are idle and the models satisfy `wanted`. Returns the CPU time up to then, without
    /// that of status requests.
    pub(crate) fn settle(&self, models: &[String], wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Cpu> {
        let began = Instant::now();
        let mut looking = Cpu::default();
        loop {
            let rested = self.rest(began)?;
            let mut all = true;
            for model in models {
                all = all && wanted(&self.periapt.json(["status", "-m", model])?);
            }
            if all {
                return Ok(rested - looking);
            }
            looking += Cpu::of(&self.periapt)? - rested;
            ensure!(began.elapsed() < SETTLED, "not settled: {models:?}");
        }
    }

    /// Waits until all processes are idle.
    fn rest(&self, began: Instant) -> anyhow::Result<Cpu> {
        let mut before = Cpu::of(&self.periapt)?;
        loop {
            sleep(WINDOW);
            let now = Cpu::of(&self.periapt)?;
            if (now - before).all() <= REST {
                return Ok(now);
            }
            ensure!(began.elapsed() < SETTLED, "the processes do not rest");
            before = now;
        }
    }

    /// Returns the number of hooks in some models, including those of removed units.
    fn hooks(&self, models: &[String]) -> anyhow::Result<u64> {
        let mut hooks = 0;
        for model in models {
            let usage = self.periapt.json(["usage", "-m", model])?;
            let total = usage.pointer("/total/hooks").and_then(Value::as_u64);
            hooks += total.with_context(|| format!("no hooks in {usage}"))?;
        }
        Ok(hooks)
    }
}

/// The most units of one command.
const MOST_AT_ONCE: usize = 10_000;

/// Returns true if an application has this many units, all idle and with this message.
pub(crate) fn is_idle(status: &Value, application: &str, units: usize, message: &str) -> bool {
    let found = status.pointer(&format!("/applications/{application}/units")).and_then(Value::as_object);
    let says = |unit: &Value, at: &str, wanted: &str| {
        unit.pointer(at).and_then(Value::as_str).is_some_and(|text| text == wanted)
    };
    let is = |unit: &Value| {
        says(unit, "/juju-status/current", "idle") && says(unit, "/workload-status/message", message)
    };
    found.map_or(0, |found| found.values().filter(|unit| is(unit)).count()) == units
}
