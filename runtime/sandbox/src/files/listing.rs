//! The listing of a directory, as it was at the call.

use std::sync::Arc;

use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, ErrorCode};

use crate::{fuel::LISTED_NAME_FUEL, meter::Meter};

/// The host memory of a name beside its bytes: an entry in a vector of up to twice the needed size, copied while it
/// grows, and an allocation.
const ENTRY: u64 = 128;

type Entry = (DescriptorType, Arc<str>);

/// A sorted snapshot of a directory, with a read position. It is host memory, and counts towards the hook's limit.
#[derive(Debug)]
pub(super) struct Listing {
    entries: std::vec::IntoIter<Entry>,
    bytes: u64,
}

/// A listing under construction, within the hook's remaining memory. Each name costs fuel.
#[derive(Debug)]
pub(super) struct Gathering {
    entries: Vec<Entry>,
    meter: Arc<Meter>,
    room: u64,
    bytes: u64,
}

impl Gathering {
    /// Creates an empty listing with room for some bytes.
    pub(super) fn new(meter: &Arc<Meter>, room: u64) -> Self {
        Self { entries: Vec::new(), meter: Arc::clone(meter), room, bytes: 0 }
    }

    /// Adds a name, or fails if it exceeds the hook's memory.
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

    /// Returns the listing, sorted by name.
    pub(super) fn sorted(mut self) -> Listing {
        self.entries.sort_unstable_by(|(_, one), (_, other)| one.cmp(other));
        Listing { entries: self.entries.into_iter(), bytes: self.bytes }
    }
}

impl Listing {
    /// Returns its host memory until it is dropped, in bytes.
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
