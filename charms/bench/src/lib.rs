//! A charm whose hooks do a known amount of work, for comparison with the same work elsewhere.

use periapt_sdk::{Charm, Error, RelationChanged, RelationJoined, Result, Unit};

periapt_sdk::export!(Bench);

/// The number of calls in the joined hook.
const CALLS: usize = 1_000;

/// The keys of the other unit's bag; `hook.sh` in this charm has the same.
const KEYS: [&str; 9] =
    ["address", "database", "password", "port", "replicas", "role", "user", "version", "zone"];

#[derive(Default)]
struct Bench;

impl Charm for Bench {
    fn update_status(&mut self, _unit: &Unit) -> Result {
        Ok(())
    }

    fn relation_joined(&mut self, _unit: &Unit, event: &RelationJoined) -> Result {
        let theirs = event.relation.member_bag(&event.unit);
        for _ in 0..CALLS {
            theirs.require::<String>("address")?;
        }
        Ok(())
    }

    fn relation_changed(&mut self, _unit: &Unit, event: &RelationChanged) -> Result {
        let Some(other) = &event.unit else { return Ok(()) };
        let theirs = event.relation.member_bag(other);
        for key in KEYS {
            if theirs.require::<String>(key)?.is_empty() {
                return Err(Error::new(format!("{key} is empty")));
            }
        }
        let own = event.relation.unit_bag();
        let count: u64 = own.get("count")?.unwrap_or_default();
        own.set("count", count + 1)
    }
}

#[cfg(test)]
mod tests;
