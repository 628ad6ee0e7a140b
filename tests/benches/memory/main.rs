//! Memory and disk of charms in Python: of runner, keeper and controller, in total and per charm.
//!
//! Run by `tools/bench memory`; docs/performance.md explains the rows. `PERIAPT_BENCH_CHARMS` is the number of charms,
//! `PERIAPT_BENCH_UNITS` the number of additional units of one of them.
#![expect(clippy::print_stdout, reason = "the figures are its output")]

mod archives;

use std::{
    env,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, MemoryUse, on_disk};
use serde_json::Value;

const CHARMS: usize = 12;
const UNITS: usize = 20;

/// The idle time before the third row: shorter than the minute after which an idle runner ends.
const RESTED: Duration = Duration::from_secs(45);

/// The timeout of each wait.
const SETTLED: Duration = Duration::from_secs(600);

fn main() -> anyhow::Result<()> {
    let (charms, units) = (number("PERIAPT_BENCH_CHARMS", CHARMS)?, number("PERIAPT_BENCH_UNITS", UNITS)?);
    let periapt = Installation::below(Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    periapt.ok(["bootstrap", "local", "--agent-name", "first"])?;
    periapt.ok(["add-model", "test"])?;
    // The modules that all charms share are compiled before the first row.
    let mut archives = archives::Archives::of(["python-portal", "python-accounts"], periapt.path())?;
    deploy(&periapt, &archives.next()?, "first")?;
    settle(&periapt, 1)?;
    let disk = |periapt: &Installation| Disk::of(&periapt.path().join("data"));
    let (before, disk_before) = (MemoryUse::by(&periapt)?, disk(&periapt)?);
    println!("{before}: one charm, settled");

    for charm in 0..charms {
        deploy(&periapt, &archives.next()?, &format!("charm{charm}"))?;
    }
    settle(&periapt, charms + 1)?;
    let settled = MemoryUse::by(&periapt)?;
    println!("{settled}: {charms} charms more, settled");
    let rested = rest(&periapt)?;
    println!("{rested}: the same, of which one had a hook every 5 s and the others none for 45 s");
    let disk_after = disk(&periapt)?;

    periapt.ok(["add-unit", "charm0", "-n", &units.to_string()])?;
    settle(&periapt, charms + 1 + units)?;
    let more = rest(&periapt)?;
    println!("{more}: the same with {units} units more of one charm");

    println!();
    let each = |after: u64, before: u64, of: usize| {
        let bytes = i128::from(after) - i128::from(before);
        bytes as f64 / of as f64 / f64::from(1 << 20)
    };
    println!("memory of a charm, settled\t{:.1}\tMiB", each(settled.all(), before.all(), charms));
    println!("memory of a charm, idle\t{:.1}\tMiB", each(rested.all(), before.all(), charms));
    println!("memory of a unit, idle\t{:.2}\tMiB", each(more.all(), rested.all(), units));
    println!("disk of a charm, agent\t{:.1}\tMiB", each(disk_after.agent, disk_before.agent, charms));
    println!(
        "disk of a charm, controller\t{:.1}\tMiB",
        each(disk_after.controller, disk_before.controller, charms)
    );
    Ok(())
}

fn number(variable: &str, usual: usize) -> anyhow::Result<usize> {
    match env::var(variable) {
        Ok(text) => text.parse().with_context(|| format!("{variable} must be a number")),
        Err(_) => Ok(usual),
    }
}

fn deploy(periapt: &Installation, archive: &Path, application: &str) -> anyhow::Result<()> {
    let archive = archive.to_str().context("the archive's path")?;
    periapt.ok(["deploy", archive, application])?;
    // The controller has the archive; this copy must not count as disk space.
    Ok(std::fs::remove_file(archive)?)
}

/// Waits until this many units are idle.
fn settle(periapt: &Installation, units: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let status = periapt.json(["status"])?;
        if idle(&status) == units {
            return Ok(());
        }
        ensure!(began.elapsed() < SETTLED, "not settled: {status:#}");
        sleep(Duration::from_millis(500));
    }
}

fn idle(status: &Value) -> usize {
    let applications = status["applications"].as_object().into_iter().flat_map(|all| all.values());
    let units =
        applications.filter_map(|application| application["units"].as_object()).flat_map(|all| all.values());
    units.filter(|unit| unit.pointer("/juju-status/current").is_some_and(|current| current == "idle")).count()
}

/// Measures memory after all charms except one were idle for a while. The hooks of that one keep the runner alive.
fn rest(periapt: &Installation) -> anyhow::Result<MemoryUse> {
    let began = Instant::now();
    let mut number = 0;
    while began.elapsed() < RESTED {
        number += 1;
        periapt.ok(["config", "first", &format!("title=number {number}")])?;
        sleep(Duration::from_secs(5));
    }
    MemoryUse::by(periapt)
}

/// The disk space that agent and controller use, in bytes.
struct Disk {
    agent: u64,
    controller: u64,
}

impl Disk {
    fn of(data: &Path) -> anyhow::Result<Self> {
        let controllers: Vec<PathBuf> = std::fs::read_dir(data.join("controllers"))?
            .map(|entry| Ok(entry?.path()))
            .collect::<anyhow::Result<_>>()?;
        let [controller] = controllers.as_slice() else { anyhow::bail!("one controller: {controllers:?}") };
        let agent = on_disk(&controller.join("agent"))?;
        Ok(Self { agent, controller: on_disk(controller)?.saturating_sub(agent) })
    }
}
