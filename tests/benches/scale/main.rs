//! A benchmark of models of different sizes: the CPU time per hook in controller, keeper and runner, and the memory and
//! disk space per unit.
//!
//! Run by `tools/bench scale`; docs/performance.md explains the rows. `PERIAPT_BENCH_SIZES` is a list of sizes in
//! units. `PERIAPT_BENCH_MODELS` is a list of numbers of models with one unit, each compared with one model of as many
//! units. `PERIAPT_BENCH_RELATED` is the largest size with a measured relation. `PERIAPT_BENCH_HOOKS` is the least number
//! of hooks in a phase.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "figures are its output, and how far it is")]

mod cpu;
mod site;
mod table;

use std::{
    env,
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use anyhow::Context as _;
use periapt_tests::{MemoryUse, on_disk};
use serde_json::Value;

use cpu::Cpu;
use site::{Site, Taken, is_idle};
use table::{Row, Size};

/// The time to wait for freed memory to return to the system: the controller checks every five seconds.
const GIVEN_BACK: Duration = Duration::from_secs(12);

/// The duration of the measurement of idle units.
const AT_REST: Duration = Duration::from_secs(20);

/// The phases, in order.
const PHASES: [&str; 4] = ["start-up", "configuration", "relation", "removal"];

fn main() -> anyhow::Result<()> {
    let sizes = numbers("PERIAPT_BENCH_SIZES", "100 1000 10000")?;
    let models = numbers("PERIAPT_BENCH_MODELS", "1000")?;
    let related = numbers("PERIAPT_BENCH_RELATED", "10000")?.into_iter().max().unwrap_or_default();
    let least = numbers("PERIAPT_BENCH_HOOKS", "2000")?.into_iter().max().unwrap_or_default();
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    Site::pack(parent)?;
    let mut rows = Vec::new();
    for size in sizes {
        rows.push(one_model(parent, size, size <= related, least)?);
    }
    table::sizes(&PHASES, &rows);
    for count in models {
        let (one, many) = (start_up(parent, 1, count)?, start_up(parent, count, 1)?);
        table::models(count, &one, &many);
    }
    Ok(())
}

/// Parses a variable with numbers between spaces, by default `usual`.
fn numbers(variable: &str, usual: &str) -> anyhow::Result<Vec<usize>> {
    let text = env::var(variable).unwrap_or_else(|_| usual.to_owned());
    let numbers = text.split_whitespace().map(str::parse).collect::<Result<_, _>>();
    numbers.with_context(|| format!("{variable} must be numbers with spaces between them, not {text:?}"))
}

/// Measures the four phases in a model of a size, and the memory and disk space of its units. Repeats the phases with
/// new units in the same model until each has had `least` hooks: the runner of a second model would end in between, at a
/// cost that is none of these units'.
fn one_model(parent: &Path, units: usize, related: bool, least: usize) -> anyhow::Result<Size> {
    let site = Site::below(parent)?;
    let mut size = Size { units, phases: [Taken::default(); 4], ..Size::default() };
    let model = "m".to_owned();
    site.ok(&["add-model", &model])?;
    // The costs of starting a runner and its first charm come before the measurement.
    site.deploy(&model, "hub", 1)?;
    let models = [model.clone()];
    site.settle(&models, |status| is_idle(status, "hub", 1, "says Hello"))?;
    for round in 0..least.div_ceil(units).max(1) {
        let before = (round == 0).then(|| MemoryUse::by(site.periapt())).transpose()?;
        let disk = (round == 0).then(|| Disk::of(&site)).transpose()?;
        let mut phase = |number: usize, taken: Taken| {
            eprintln!("{units} units: {}: {taken:?}", PHASES.get(number).unwrap_or(&""));
            if let Some(sum) = size.phases.get_mut(number) {
                sum.hooks += taken.hooks;
                sum.cpu += taken.cpu;
            }
        };

        let idle = |message: &'static str| {
            move |status: &Value| {
                is_idle(status, "app", units, message) && is_idle(status, "hub", 1, "says Hello")
            }
        };
        phase(0, site.measure(&models, |site| site.deploy(&model, "app", units), idle("says Hello"))?);
        let change = |site: &Site| site.ok(&["config", "-m", &model, "app", "greeting=Ahoy"]);
        phase(1, site.measure(&models, change, idle("says Ahoy"))?);
        // Only now, because units at rest have no code loaded, and few hooks would bear the cost of loading it.
        let hold = match (&before, &disk) {
            (Some(before), Some(disk)) => {
                sleep(GIVEN_BACK);
                let began = Cpu::of(site.periapt())?;
                sleep(AT_REST);
                let rest = Cpu::of(site.periapt())? - began;
                let (held, after) = (MemoryUse::by(site.periapt())?, Disk::of(&site)?);
                eprintln!("{held}: {units} units at rest");
                let each = |after: u64, before: u64| (after as f64 - before as f64) / units as f64;
                Some(Row {
                    controller: each(held.controller(), before.controller()),
                    runner: each(held.runners(), before.runners()),
                    disk: each(after.0, disk.0),
                    rest: rest.all() / AT_REST.as_secs_f64() / units as f64,
                    removed: 0.0,
                })
            }
            _ => None,
        };
        if related {
            let relate = |site: &Site| site.ok(&["integrate", "-m", &model, "app:out", "hub:in"]);
            phase(2, site.measure(&models, relate, idle("says Ahoy"))?);
        }
        let remove = |site: &Site| site.ok(&["remove-application", "-m", &model, "app", "--no-prompt"]);
        let gone = |status: &Value| {
            status.pointer("/applications/app").is_none() && is_idle(status, "hub", 1, "says Hello")
        };
        phase(3, site.measure(&models, remove, gone)?);
        if let (Some(mut hold), Some(before)) = (hold, before) {
            sleep(GIVEN_BACK);
            let held = MemoryUse::by(site.periapt())?;
            eprintln!("{held}: {units} units removed");
            hold.removed = (held.controller() as f64 - before.controller() as f64) / units as f64;
            size.hold = hold;
        }
    }
    Ok(size)
}

/// The disk space of a controller, in bytes.
struct Disk(u64);

impl Disk {
    fn of(site: &Site) -> anyhow::Result<Self> {
        let data: PathBuf = site.periapt().path().join("data/controllers");
        Ok(Self(on_disk(&data)?))
    }
}

/// Measures the start of some models with some units each.
fn start_up(parent: &Path, models: usize, units: usize) -> anyhow::Result<(Taken, MemoryUse)> {
    let site = Site::below(parent)?;
    site.ok(&["add-model", "first"])?;
    site.deploy("first", "hub", 1)?;
    site.settle(&["first".to_owned()], |status| is_idle(status, "hub", 1, "says Hello"))?;
    let names: Vec<String> = (0..models).map(|number| format!("m{number}")).collect();
    for name in &names {
        site.ok(&["add-model", name])?;
    }
    let act = |site: &Site| names.iter().try_for_each(|name| site.deploy(name, "app", units));
    let taken = site.measure(&names, act, |status| is_idle(status, "app", units, "says Hello"))?;
    sleep(GIVEN_BACK);
    Ok((taken, MemoryUse::by(site.periapt())?))
}
