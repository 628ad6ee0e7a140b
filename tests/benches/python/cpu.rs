//! Processor time of this process and of its children that have ended.

use std::fs;

use anyhow::Context as _;

/// What the kernel counts in, everywhere that Linux runs today.
const TICKS_PER_SECOND: f64 = 100.0;

/// How much processor time something took, in seconds; to a hundredth.
pub(crate) fn seconds(act: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let before = used()?;
    act()?;
    Ok(used()? - before)
}

fn used() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The second field is the program's name in parentheses, which may hold anything.
    let (_, fields) = stat.rsplit_once(')').context("a process has a name")?;
    // utime, stime, cutime, cstime: the 14th to 17th of all, the 12th of those behind the name.
    let ticks: f64 =
        fields.split_whitespace().skip(11).take(4).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Ok(ticks / TICKS_PER_SECOND)
}
