//! What a directory held when a hook asked.

use std::sync::Arc;

use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, ErrorCode};

use crate::{fuel::LISTED_NAME_FUEL, meter::Meter};

/// What a name takes of the host's memory beside its own bytes: its entry, in a vector that may have grown to twice what
/// it needs and was copied for it, and its allocation.
const ENTRY: u64 = 128;

type Entry = (DescriptorType, Arc<str>);

/// A directory's listing as it was when it was asked for, sorted by name and read to some point. It is the host's
/// memory, and counts as the hook's.
#[derive(Debug)]
pub(super) struct Listing {
    entries: std::vec::IntoIter<Entry>,
    bytes: u64,
}

/// A listing that is being made, within what the hook has left of its memory. Each name is paid for as it comes.
#[derive(Debug)]
pub(super) struct Gathering {
    entries: Vec<Entry>,
    meter: Arc<Meter>,
    room: u64,
    bytes: u64,
}

impl Gathering {
    /// Nothing yet, and room for so many bytes.
    pub(super) fn new(meter: &Arc<Meter>, room: u64) -> Self {
        Self { entries: Vec::new(), meter: Arc::clone(meter), room, bytes: 0 }
    }

    /// Adds a name, unless that is more than the hook may use.
    pub(super) fn add(
        &mut self,
        kind: DescriptorType,
        name: impl AsRef<str> + Into<Arc<str>>,
    ) -> Result<(), ErrorCode> {
        let length = name.as_ref().len() as u64;
        self.meter.work(LISTED_NAME_FUEL);
        self.meter.bytes(length);
        self.bytes = self.bytes.saturating_add(ENTRY).saturating_add(length);
        if self.bytes > self.room {
            return Err(ErrorCode::InsufficientMemory);
        }
        self.entries.push((kind, name.into()));
        Ok(())
    }

    /// The listing, sorted by name.
    pub(super) fn sorted(mut self) -> Listing {
        self.entries.sort_unstable_by(|(_, one), (_, other)| one.cmp(other));
        Listing { entries: self.entries.into_iter(), bytes: self.bytes }
    }
}

impl Listing {
    /// What it takes of the host's memory, until it is dropped.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Iterator for Listing {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        self.entries.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_sorted_paid_for_by_the_name_and_has_no_more_than_its_room() {
        let meter = Arc::new(Meter::new(0));
        let mut gathering = Gathering::new(&meter, 2 * (ENTRY + 1));
        gathering.add(DescriptorType::Directory, "b").unwrap();
        gathering.add(DescriptorType::RegularFile, "a").unwrap();
        assert_eq!(gathering.add(DescriptorType::RegularFile, "c"), Err(ErrorCode::InsufficientMemory));
        let names: Vec<_> = gathering.sorted().map(|(_, name)| name).collect();
        assert_eq!(names, ["a".into(), "b".into()]);
        assert!(meter.owed() >= 3 * LISTED_NAME_FUEL, "what was too much was read all the same");
    }
}
