//! One entry for each reporting unit, in the aggregator's stored state.

use periapt_sdk::{Error, Relation, Result, State, Unit};
use sha2::{Digest, Sha256};
use std::fmt::Write;

pub(crate) struct Books(State);

/// Sums over all entries.
pub(crate) struct Sums {
    pub(crate) units: u64,
    pub(crate) lines: u64,
    pub(crate) missed: u64,
    /// The SHA-256 of the entries, in hex.
    pub(crate) digest: String,
}

/// The prefix of an entry's key.
const ENTRY: &str = "told-";

impl Books {
    pub(crate) fn of(unit: &Unit) -> Self {
        Self(unit.state())
    }

    /// Stores a unit's present report: `COUNT MISSED PRINCIPAL`, and a digest of its lines.
    pub(crate) fn enter(&self, relation: &Relation, member: &str) -> Result {
        let bag = relation.member_bag(member);
        // Another unit's bad data must not fail the hook: a text that is no number counts as 0.
        let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let (count, missed) = (number(bag.get("count")?), number(bag.get("missed")?));
        let principal = bag.get::<String>("principal")?.unwrap_or_else(|| member.to_owned());
        let lines = hex(&Sha256::digest(bag.get::<String>("lines")?.unwrap_or_default()));
        self.0.set(key(relation, member), format!("{count} {missed} {principal} {lines}"))
    }

    /// Deletes the entry of a unit that has left.
    pub(crate) fn strike(&self, relation: &Relation, member: &str) -> Result {
        self.0.delete(&key(relation, member))
    }

    /// Deletes the entries of all units of a relation.
    pub(crate) fn forget(&self, relation: &Relation) -> Result {
        let prefix = key(relation, "");
        let entries = self.0.all().into_keys().filter(|key| key.starts_with(&prefix));
        entries.collect::<Vec<_>>().iter().try_for_each(|key| self.0.delete(key))
    }

    /// Counts a batch that named so many units.
    pub(crate) fn count_batch(&self, told: usize) -> Result {
        let (batches, largest) = self.batches()?;
        let largest = largest.max(told.try_into()?);
        self.0.set_all([("batches", (batches + 1).to_string()), ("largest", largest.to_string())])
    }

    /// Returns the number of batches, and the number of units in the largest.
    pub(crate) fn batches(&self) -> Result<(u64, u64)> {
        let number = |key| self.0.get(key).map_or(Ok(0), |text| text.parse());
        Ok((number("batches")?, number("largest")?))
    }

    pub(crate) fn sums(&self) -> Result<Sums> {
        let mut sums = Sums { units: 0, lines: 0, missed: 0, digest: String::new() };
        let mut digest = Sha256::new();
        for (key, entry) in self.0.all() {
            if !key.starts_with(ENTRY) {
                continue;
            }
            let mut words = entry.split(' ').map(str::parse::<u64>);
            let (Some(Ok(count)), Some(Ok(missed))) = (words.next(), words.next()) else {
                return Err(Error::new(format!("the entry {key} is \"{entry}\"")));
            };
            sums.units += 1;
            sums.lines = sums.lines.saturating_add(count);
            sums.missed = sums.missed.saturating_add(missed);
            digest.update(format!("{key} {entry}\n"));
        }
        sums.digest = hex(&digest.finalize());
        Ok(sums)
    }
}

fn key(relation: &Relation, member: &str) -> String {
    format!("{ENTRY}{}-{member}", relation.id())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
