//! Guests that say too much in one piece. Each returns the host's refusal, if it was one.

use periapt_sdk::bindings::periapt::charm::{config, log};
use periapt_sdk::{Context, Error, Level, Relation, Result, Status, Unit, tool};

/// More than any bound on one value, and less than a hook's memory.
const HUGE: usize = 20 << 20;

fn huge() -> String {
    "x".repeat(HUGE)
}

fn peers(unit: &Unit) -> Result<Relation> {
    unit.relation("peer").context("this mode needs the peer relation")
}

/// One value beyond what a commit may carry.
pub(crate) fn oversized_value(unit: &Unit) -> Result {
    peers(unit)?.unit_bag().set("value", huge())?;
    Err(Error::new("escaped: a value of 20 MiB was taken"))
}

/// Values that are small each, and too much together.
pub(crate) fn oversized_effects(unit: &Unit) -> Result {
    let bag = peers(unit)?.unit_bag();
    for number in 0..100_000 {
        bag.set(&format!("key-{number}"), "x".repeat(1000))?;
    }
    Err(Error::new("escaped: 100 MB of changes were taken"))
}

/// A key to look up, which the host must copy before it can say no.
pub(crate) fn oversized_key(_: &Unit) -> Result {
    match config::get(&huge()) {
        None => Ok(()),
        Some(_) => Err(Error::new("escaped: there is such an option")),
    }
}

/// A million arguments of nothing.
pub(crate) fn oversized_tool_arguments(_: &Unit) -> Result {
    let output = tool("relation-set", std::iter::repeat_n("", 1_000_000));
    output.success().map(|_| ())
}

/// One line that is longer than the whole log may be.
pub(crate) fn oversized_log_line(_: &Unit) -> Result {
    log::write(Level::Info, &huge());
    Ok(())
}

/// A status is shown in a table; 20 MiB are no status.
pub(crate) fn oversized_status(unit: &Unit) -> Result {
    unit.set_status(&Status::active(huge()))
}

/// What a guest returns is its last word, and must be bounded like the others.
pub(crate) fn oversized_failure(_: &Unit) -> Result {
    Err(Error::new(huge()))
}
