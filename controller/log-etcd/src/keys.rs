//! The keys of a log.

use std::fmt::Display;

/// The digits of a position, so that keys are in the order of positions.
const DIGITS: usize = 20;

/// The keys of one shard's log.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// The prefix of all keys, with a slash at its end.
    prefix: String,
    /// The prefix of the shard's keys, with a slash at its end.
    shard: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str, shard: u16) -> Self {
        Self { prefix: format!("{prefix}/"), shard: format!("{prefix}/{shard:02}/") }
    }

    /// Returns the prefix of all keys of all shards.
    pub(crate) fn all(&self) -> &str {
        &self.prefix
    }

    /// Returns the prefix of all keys of the shard.
    pub(crate) fn shard(&self) -> &str {
        &self.shard
    }

    pub(crate) fn id(&self) -> String {
        format!("{}id", self.prefix)
    }

    pub(crate) fn term(&self) -> String {
        self.in_shard("term")
    }

    pub(crate) fn leader(&self) -> String {
        self.in_shard("leader")
    }

    /// Returns the key of the last position.
    pub(crate) fn end(&self) -> String {
        self.in_shard("end")
    }

    pub(crate) fn trimmed(&self) -> String {
        self.in_shard("trimmed")
    }

    pub(crate) fn entry(&self, position: u64) -> String {
        self.in_shard(format_args!("log/{position:0DIGITS$}"))
    }

    /// Returns the key behind those of all entries.
    pub(crate) fn behind_entries(&self) -> String {
        self.in_shard("log0")
    }

    /// Returns the position of an entry's key.
    pub(crate) fn position(&self, key: &[u8]) -> Option<u64> {
        let key = std::str::from_utf8(key).ok()?;
        let digits = key.strip_prefix(&self.shard)?.strip_prefix("log/")?;
        if digits.len() != DIGITS { None } else { digits.parse().ok() }
    }

    /// Returns the first key of the parts of an entry, and of all later ones.
    pub(crate) fn parts(&self, position: u64) -> String {
        self.in_shard(format_args!("part/{position:0DIGITS$}/"))
    }

    pub(crate) fn part(&self, position: u64, digest: &str, number: usize) -> String {
        self.in_shard(format_args!("part/{position:0DIGITS$}/{digest}/{number:04}"))
    }

    fn in_shard(&self, name: impl Display) -> String {
        format!("{}{name}", self.shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_positions() {
        let keys = Keys::new("p", 3);
        let positions = [1, 2, 9, 10, 99, 100, 10_000_000_000, u64::MAX];
        for pair in positions.windows(2) {
            assert!(keys.entry(pair[0]) < keys.entry(pair[1]));
            assert!(keys.part(pair[0], "ffff", 9999) < keys.parts(pair[1]));
        }
        assert!(keys.entry(u64::MAX) < keys.behind_entries());
        assert_eq!(keys.position(keys.entry(17).as_bytes()), Some(17));
        assert_eq!(keys.position(keys.part(17, "ff", 0).as_bytes()), None);
        assert_eq!(keys.position(keys.end().as_bytes()), None);
    }
}
