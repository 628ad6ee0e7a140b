//! Guests that write too much in one call. Each returns the host's refusal, if there is one.

use periapt_sdk::bindings::periapt::charm::{config, log};
use periapt_sdk::{Context, Error, Level, Relation, Result, Status, Unit, tool};

/// A size above any bound on one value, and below a hook's memory, in bytes.
const HUGE: usize = 20 << 20;

fn huge() -> String {
    "x".repeat(HUGE)
}

fn peers(unit: &Unit) -> Result<Relation> {
    unit.relation("peer").context("this mode needs the peer relation")
}

/// Sets one value that is larger than a commit.
pub(crate) fn oversized_value(unit: &Unit) -> Result {
    peers(unit)?.unit_bag().set("value", huge())?;
    Err(Error::new("escaped: a value of 20 MiB was taken"))
}

/// Sets values that are small each, and together larger than a commit.
pub(crate) fn oversized_effects(unit: &Unit) -> Result {
    let bag = peers(unit)?.unit_bag();
    for number in 0..100_000 {
        bag.set(&format!("key-{number}"), "x".repeat(1000))?;
    }
    Err(Error::new("escaped: 100 MB of changes were taken"))
}

/// Looks up a huge key, which the host must copy before it can refuse it.
pub(crate) fn oversized_key(_: &Unit) -> Result {
    match config::get(&huge()) {
        None => Ok(()),
        Some(_) => Err(Error::new("escaped: there is such an option")),
    }
}

/// Calls a hook tool with a million empty arguments.
pub(crate) fn oversized_tool_arguments(_: &Unit) -> Result {
    let output = tool("relation-set", std::iter::repeat_n("", 1_000_000));
    output.success().map(|_| ())
}

/// Writes one line that is longer than the whole log may be.
pub(crate) fn oversized_log_line(_: &Unit) -> Result {
    log::write(Level::Info, &huge());
    Ok(())
}

/// Sets a status message of 20 MiB.
pub(crate) fn oversized_status(unit: &Unit) -> Result {
    unit.set_status(&Status::active(huge()))
}

/// Returns a huge failure, which must be bounded like other output.
pub(crate) fn oversized_failure(_: &Unit) -> Result {
    Err(Error::new(huge()))
}
