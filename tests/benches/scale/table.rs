//! The tables that the benchmark prints.

use periapt_tests::MemoryUse;

use crate::site::Taken;

/// The memory and disk space of a unit, in bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) controller: f64,
    pub(crate) runner: f64,
    pub(crate) disk: f64,
    /// The CPU time of an idle unit, in seconds per second.
    pub(crate) rest: f64,
    /// The controller's memory per unit after the removal of all units.
    pub(crate) removed: f64,
}

/// The result for one size of model.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) units: usize,
    pub(crate) phases: [Taken; 4],
    pub(crate) hold: Row,
}

/// Prints the CPU time per hook by size, with its ratio to the first size, and the memory and disk
/// space per unit.
pub(crate) fn sizes(phases: &[&str; 4], sizes: &[Size]) {
    let Some(first) = sizes.first() else { return };
    println!(
        "| phase | units | hooks | ms CPU a hook | controller | keeper | runner | beside {} units |",
        first.units
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (number, phase) in phases.iter().enumerate() {
        let base = first.phases.get(number).map_or(f64::NAN, |taken| each(taken, taken.cpu.all()));
        for size in sizes {
            let Some(taken) = size.phases.get(number).filter(|taken| taken.hooks > 0) else { continue };
            let all = each(taken, taken.cpu.all());
            println!(
                "| {phase} | {} | {} | {all:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
                size.units,
                taken.hooks,
                each(taken, taken.cpu.controller),
                each(taken, taken.cpu.keeper),
                each(taken, taken.cpu.runner),
                all / base,
            );
        }
    }
    println!();
    println!(
        "| units | KiB a unit: controller | controller, all removed | runner | disk | µs CPU a second, at rest |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    for Size { units, hold, .. } in sizes {
        let kib = |bytes: f64| bytes / 1024.0;
        println!(
            "| {units} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
            kib(hold.controller),
            kib(hold.removed),
            kib(hold.runner),
            kib(hold.disk),
            hold.rest * 1e6,
        );
    }
}

/// Returns milliseconds per hook.
fn each(taken: &Taken, seconds: f64) -> f64 {
    seconds * 1_000.0 / taken.hooks as f64
}

/// Prints the comparison of one model of many units with many models of one unit.
pub(crate) fn models(count: usize, one: &(Taken, MemoryUse), many: &(Taken, MemoryUse)) {
    println!();
    println!(
        "| start-up | hooks | ms CPU a hook | controller | keeper | runner | MiB: controller | runners | beside |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let base = each(&one.0, one.0.cpu.all());
    let rows = [(format!("one model of {count} units"), one), (format!("{count} models of one unit"), many)];
    for (name, (taken, held)) in rows {
        let all = each(taken, taken.cpu.all());
        println!(
            "| {name} | {} | {all:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} | {:.2} |",
            taken.hooks,
            each(taken, taken.cpu.controller),
            each(taken, taken.cpu.keeper),
            each(taken, taken.cpu.runner),
            held.controller() as f64 / f64::from(1 << 20),
            held.runners() as f64 / f64::from(1 << 20),
            all / base,
        );
    }
}
