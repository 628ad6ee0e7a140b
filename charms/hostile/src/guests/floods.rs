//! Guests that say too much, a little at a time.

use periapt_sdk::{Config, FromConfig, Result, Status, Unit, info, tool};

/// One line; long enough that a megabyte is soon full.
const LINE: &str = "all work and no play makes jack a dull boy, all work and no play makes jack a dull boy";

/// Lines past the log's bound; ends by itself, because a flooded log is no failure.
pub(crate) fn log_flood(_: &Unit) -> Result {
    for number in 0..100_000 {
        info!("{number} {LINE}");
    }
    Ok(())
}

/// As `log_flood`, through standard output.
pub(crate) fn stdout_flood(_: &Unit) -> Result {
    for number in 0..100_000 {
        println!("{number} {LINE}");
    }
    Ok(())
}

/// As `log_flood`, through standard error.
pub(crate) fn stderr_flood(_: &Unit) -> Result {
    for number in 0..100_000 {
        eprintln!("{number} {LINE}");
    }
    Ok(())
}

/// Statuses leave a hook at once, so each costs the host something.
pub(crate) fn status_flood(unit: &Unit) -> Result {
    for number in 0_u64.. {
        unit.set_status(&Status::active(format!("{number}")))?;
    }
    Ok(())
}

/// Cheap calls without end: must end at the bound of calls, or of CPU.
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

/// As `host_call_flood`, through the argv door, whose every call parses text.
pub(crate) fn tool_flood(_: &Unit) -> Result {
    loop {
        std::hint::black_box(tool("config-get", ["--format=json", "--all"]));
    }
}
