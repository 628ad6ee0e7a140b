//! Benchmarks of commits: the cost of a hook with its commit, compared with the same hook as a shell script, and the
//! number of durable commits a second, compared with the bare database.
//!
//! `make bench` runs them; docs/performance.md explains the rows.
#![expect(clippy::print_stdout, reason = "the figures are its output")]

mod controller;
#[path = "../figures/cpu.rs"]
mod cpu;
#[path = "../figures/figures.rs"]
mod figures;
mod model;
#[path = "../figures/processes.rs"]
mod processes;
mod sandboxed;
mod shell;
mod store;
mod storm;
#[path = "../figures/wall.rs"]
mod wall;

use std::{cell::RefCell, error::Error, path::PathBuf, time::Duration};

use periapt_store_rocksdb::BaselineDatabase;
use tempfile::TempDir;

use controller::{Controller, Transport};
use figures::Figure;
use sandboxed::Sandboxed;
use shell::Shell;
use storm::Storm;
use wall::seconds;

/// The hooks of one sample, which is their mean.
const SANDBOXED: u32 = 40;
const SCRIPTS: u32 = 8;

/// The number of concurrent clients, and the duration of a burst.
const CLIENTS: u32 = 64;
const BURST: Duration = Duration::from_millis(400);

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    // The build directory is on a disk. The system's temporary directory may be in memory, where a sync does
    // nothing.
    let place = tempfile::Builder::new().prefix("bench-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let controller = runtime.block_on(Controller::start(&directory(&place, "plain")?, Transport::Plain))?;

    let mut ours = Sandboxed::new(runtime.block_on(controller.model("sandboxed", 2))?)?;
    let mut script = Shell::new(runtime.block_on(controller.model("shell", 2))?)?;
    let hook = Figure { name: "a hook: 10 relation-get, 1 relation-set, committed", unit: "ms", rounds: 15 };
    hook.measure(
        || {
            let hooks = async {
                for _ in 0..SANDBOXED {
                    ours.hook().await?;
                }
                anyhow::Ok(())
            };
            Ok(seconds(|| runtime.block_on(hooks))? * 1e3 / f64::from(SANDBOXED))
        },
        || {
            let hooks = || (0..SCRIPTS).try_for_each(|_| script.hook(&runtime));
            Ok(seconds(hooks)? * 1e3 / f64::from(SCRIPTS))
        },
    )?;
    let journal = ours.journal()?;

    let model = runtime.block_on(controller.model("storm", CLIENTS))?;
    let storm = RefCell::new(Storm::new(&controller, model, &journal)?);
    let mut bare = BaselineDatabase::open(&place.path().join("bare"))?;
    let commits = Figure { name: "durable commits, 64 clients at once", unit: "commits/s", rounds: 15 };
    commits.measure(
        || {
            let mut storm = storm.borrow_mut();
            controller.batches.record();
            let took = seconds(|| runtime.block_on(storm.burst(BURST)))?;
            Ok(storm.committed() / took)
        },
        || {
            // The baseline writes the writer's own batches, with the same keys and values, and syncs each.
            let batches = controller.batches.take();
            let took = seconds(|| batches.iter().try_for_each(|batch| bare.write(batch)))?;
            Ok(storm.borrow().committed() / took)
        },
    )?;
    let secure = runtime.block_on(Controller::start(&directory(&place, "tls")?, Transport::Tls))?;
    let model = runtime.block_on(secure.model("storm", CLIENTS))?;
    let mut over_tls = Storm::new(&secure, model, &journal)?;
    let name = "a commit over TLS, 64 clients at once, beside one without";
    let commits = Figure { name, unit: "ms CPU", rounds: 25 };
    // The time of client and controller, without the waits for the disk.
    let burst = |storm: &mut Storm| {
        let took = cpu::seconds(|| runtime.block_on(storm.burst(BURST)))?;
        Ok(took * 1e3 / storm.committed())
    };
    commits.measure(|| burst(&mut over_tls), || burst(&mut storm.borrow_mut()))?;
    runtime.block_on(secure.stop())?;
    runtime.block_on(controller.stop())?;
    Ok(())
}

/// Makes a directory for a controller.
fn directory(place: &TempDir, name: &str) -> std::io::Result<PathBuf> {
    let directory = place.path().join(name);
    std::fs::create_dir(&directory)?;
    Ok(directory)
}
