//! What a hook of a charm on the ops framework costs in the sandbox, beside the same hook in a process of its own.
//!
//! Run by `make bench`; docs/performance.md says what the row means.
#![expect(clippy::print_stdout, reason = "the figures are its output")]

mod cpu;
#[path = "../figures/figures.rs"]
mod figures;
mod native;
#[path = "../figures/processes.rs"]
mod processes;

use std::{error::Error, path::Path};

use anyhow::{Context as _, bail};
use periapt_trial::{CompiledCache, Scene, Trial, TriedOutcome};

use figures::Figure;
use native::Native;

/// Hooks that one sample is the mean of.
const SANDBOXED: u32 = 40;
const PROCESSES: u32 = 4;

/// What both sides run: a hook of the consumer in its ordinary state, related, with an account and its secret.
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
                    TriedOutcome::Handled => anyhow::Ok(()),
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
