//! Guests that write too much, a little at a time.

use periapt_sdk::{Config, FromConfig, Later, Result, Status, Unit, info, tool};
use std::time::Duration;

/// A line, long enough to fill a megabyte soon.
const LINE: &str = "all work and no play makes jack a dull boy, all work and no play makes jack a dull boy";

/// Writes lines past the log's bound. The hook succeeds, because a flooded log is no failure.
pub(crate) fn log_flood(_: &Unit) -> Result {
    for number in 0..100_000 {
        info!("{number} {LINE}");
    }
    Ok(())
}

/// Writes as `log_flood`, to standard output.
pub(crate) fn stdout_flood(_: &Unit) -> Result {
    for number in 0..100_000 {
        println!("{number} {LINE}");
    }
    Ok(())
}

/// Writes as `log_flood`, to standard error.
pub(crate) fn stderr_flood(_: &Unit) -> Result {
    for number in 0..100_000 {
        eprintln!("{number} {LINE}");
    }
    Ok(())
}

/// Sets statuses without end. Statuses leave a hook at once, so each costs the host work.
pub(crate) fn status_flood(unit: &Unit) -> Result {
    for number in 0_u64.. {
        unit.set_status(&Status::active(format!("{number}")))?;
    }
    Ok(())
}

/// Asks for custom events without end. The unit waits for each of them until it is due.
pub(crate) fn event_flood(unit: &Unit) -> Result {
    for number in 0_u64.. {
        unit.emit(Later::new(&format!("event-{number}")).after(Duration::from_secs(3_600)))?;
    }
    Ok(())
}

/// Makes cheap calls without end. The bound of calls or of CPU time must end the hook.
pub(crate) fn host_call_flood(unit: &Unit) -> Result {
    struct Nothing;
    impl FromConfig for Nothing {
        fn from_config(config: &Config) -> Result<Self> {
            config.get::<Option<String>>("mode").map(|_| Self)
        }
    }
    loop {
        let Nothing = unit.config()?;
    }
}

/// Calls hook tools without end. Each call parses text.
pub(crate) fn tool_flood(_: &Unit) -> Result {
    loop {
        std::hint::black_box(tool("config-get", ["--format=json", "--all"]));
    }
}
