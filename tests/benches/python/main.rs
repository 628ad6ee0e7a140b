//! A benchmark of a hook on the ops framework: CPU time in the sandbox, compared with a process per hook.
//!
//! `make bench` runs it; docs/performance.md explains the row.
#![expect(clippy::print_stdout, reason = "the figures are its output")]

#[path = "../figures/cpu.rs"]
mod cpu;
#[path = "../figures/figures.rs"]
mod figures;
mod native;
#[path = "../figures/processes.rs"]
mod processes;

use std::{error::Error, path::Path};

use anyhow::{Context as _, bail};
use periapt_trial::{CompiledCache, Scene, Trial, TrialOutcome};

use figures::Figure;
use native::Native;

/// The hooks of one sample, which is their mean.
const SANDBOXED: u32 = 40;
const PROCESSES: u32 = 4;

/// The scene of both sides: a hook of the consumer in normal operation, related, with an account and its secret.
const SCENE: &str = include_str!("scene.json");

fn main() -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let archive = std::fs::read(periapt_tests::packed("python-portal", place.path())?)?;
    let cache = CompiledCache::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"))?;
    let trial = Trial::open(&archive, &cache)?;
    let scene: Scene = serde_json::from_str(SCENE)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut native = Native::new(&archive)?;
    let figure = Figure { name: "a Python hook: relation-changed, on ops", unit: "ms CPU", rounds: 15 };
    figure.measure(
        || {
            let hooks = || {
                (0..SANDBOXED).try_for_each(|_| match runtime.block_on(trial.run(&scene))?.outcome {
                    TrialOutcome::Handled => anyhow::Ok(()),
                    other => bail!("the hook was not handled: {other:?}"),
                })
            };
            Ok(cpu::seconds(hooks)? * 1e3 / f64::from(SANDBOXED))
        },
        || {
            let hooks = || {
                (0..PROCESSES)
                    .try_for_each(|_| native.hook(trial.context(&scene)?).context("the native hook"))
            };
            Ok(cpu::seconds(hooks)? * 1e3 / f64::from(PROCESSES))
        },
    )
}
