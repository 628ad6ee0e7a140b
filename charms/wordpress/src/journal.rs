//! A unit's log, line by line: in Periapt's log, and in its own bag for charms that ship logs (`charms/log-shipper`).

use periapt_sdk::{Result, Unit, info};

/// The number of lines that are kept for a slow reader.
const KEPT: usize = 20;

/// The longest line, in characters. The rest is dropped.
const LONGEST: usize = 200;

/// Writes a line.
pub(crate) fn tell(unit: &Unit, line: &str) -> Result {
    info!("{line}");
    let state = unit.state();
    let number = state.get("log-last").and_then(|text| text.parse().ok()).unwrap_or(0_u64) + 1;
    let log = state.get("log").unwrap_or_default();
    let line: String = line.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect();
    let mut lines: Vec<&str> = log.lines().collect();
    lines.push(&line);
    let kept = lines.split_off(lines.len().saturating_sub(KEPT));
    state.set_all([("log-last", number.to_string()), ("log", kept.join("\n"))])?;
    publish(unit)
}

/// Publishes the newest lines, and the number of the last of them, in the bags of the log relations.
pub(crate) fn publish(unit: &Unit) -> Result {
    let (Some(last), Some(log)) = (unit.state().get("log-last"), unit.state().get("log")) else {
        return Ok(());
    };
    for relation in unit.relations("logs") {
        relation.unit_bag().set_all([("log-last", &last), ("log", &log)])?;
    }
    Ok(())
}
