//! Counts of a unit's own hooks. A hook that runs twice and commits once counts once.

use periapt_sdk::{Event, Result, Unit};

/// The most entries of a ledger. The newest are kept, so that the bag stays small.
const ENTRIES: usize = 200;

/// Counts this hook in the unit's own bag.
pub(crate) fn count(unit: &Unit) -> Result {
    let Some(peers) = unit.relation("peer") else { return Ok(()) };
    let hooks: u64 = peers.unit_bag().get("hooks")?.unwrap_or_default();
    peers.unit_bag().set("hooks", hooks + 1)
}

/// Counts this hook in the unit's own bag of the relation `tally`, and enters it in the ledger that its peers see.
///
/// Hooks about a peer's ledger are counted and not entered: units that answered each entry with an entry would never
/// settle. For the same reason no unit should see the tally.
pub(crate) fn enter(unit: &Unit, event: &Event) -> Result {
    let Some(tally) = unit.relation("tally") else { return Ok(()) };
    let hooks = tally.unit_bag().get::<u64>("hooks")?.unwrap_or_default() + 1;
    tally.unit_bag().set("hooks", hooks)?;
    let Some(peers) = unit.relation("peer") else { return Ok(()) };
    if matches!(event, Event::RelationChanged(_)) && event.relation() == Some(&peers) {
        return Ok(());
    }
    let ledger: String = peers.unit_bag().get("ledger")?.unwrap_or_default();
    let mut entries: Vec<_> = ledger.lines().map(str::to_owned).collect();
    entries.push(format!("{hooks} {}", event.hook_name()));
    let newest = entries.split_off(entries.len().saturating_sub(ENTRIES));
    peers.unit_bag().set("ledger", newest.join("\n"))
}
