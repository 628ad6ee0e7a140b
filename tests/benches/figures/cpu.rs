//! CPU time of this process and of its ended children.

use std::fs;

use anyhow::Context as _;

/// The kernel's unit of CPU time: 100 Hz on all current Linux systems.
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the CPU time of a call, in seconds with a precision of 10 ms.
pub(crate) fn seconds(act: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let before = used()?;
    act()?;
    Ok(used()? - before)
}

fn used() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The second field is the program's name in parentheses, which may contain any characters.
    let (_, fields) = stat.rsplit_once(')').context("a process has a name")?;
    // utime, stime, cutime and cstime are fields 14 to 17, so 12 to 15 behind the name.
    let ticks: f64 =
        fields.split_whitespace().skip(11).take(4).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Ok(ticks / TICKS_PER_SECOND)
}
