//! CPU time of this process and of its ended children.

use anyhow::Context as _;
use periapt_tests::CpuTime;

/// Returns the CPU time of a call, in seconds with a precision of 10 ms.
pub(crate) fn seconds(act: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let before = used()?;
    act()?;
    Ok(used()? - before)
}

fn used() -> anyhow::Result<f64> {
    let CpuTime { own, children } = CpuTime::of(std::process::id()).context("/proc/self/stat")?;
    Ok(own + children)
}
