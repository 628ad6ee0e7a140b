//! Slots that callers share: a bound for each holder, and one for all of them together.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

/// The slots that holders, as networks or users, have taken. Cloning is cheap.
#[derive(Debug)]
pub(crate) struct Slots<H: Ord>(Arc<Shared<H>>);

#[derive(Debug)]
struct Shared<H> {
    of_holder: usize,
    of_all: usize,
    taken: Mutex<Taken<H>>,
}

#[derive(Debug)]
struct Taken<H> {
    all: usize,
    by: BTreeMap<H, usize>,
}

/// A slot that is taken until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot<H: Ord> {
    slots: Slots<H>,
    holder: H,
}

impl<H: Ord> Clone for Slots<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<H: Ord + Clone> Slots<H> {
    /// Returns slots of which one holder can take `of_holder`, and all holders together `of_all`.
    pub(crate) fn new(of_holder: usize, of_all: usize) -> Self {
        let taken = Mutex::new(Taken { all: 0, by: BTreeMap::new() });
        Self(Arc::new(Shared { of_holder, of_all, taken }))
    }

    /// Takes a slot; none if the holder, or all of them together, have what they may have.
    pub(crate) fn take(&self, holder: H) -> Option<Slot<H>> {
        let mut taken = self.0.taken.lock();
        let of_holder = taken.by.get(&holder).copied().unwrap_or_default();
        if of_holder >= self.0.of_holder || taken.all >= self.0.of_all {
            return None;
        }
        taken.all += 1;
        taken.by.insert(holder.clone(), of_holder + 1);
        drop(taken);
        Some(Slot { slots: self.clone(), holder })
    }

    /// Returns true while nobody has a slot.
    #[cfg(test)]
    pub(crate) fn is_free(&self) -> bool {
        let taken = self.0.taken.lock();
        taken.all == 0 && taken.by.is_empty()
    }
}

impl<H: Ord> Drop for Slot<H> {
    fn drop(&mut self) {
        let mut taken = self.slots.0.taken.lock();
        taken.all = taken.all.saturating_sub(1);
        match taken.by.get_mut(&self.holder) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.by.remove(&self.holder)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_and_all_together_have_bounds_and_a_slot_is_given_back() {
        const OF_HOLDER: usize = 3;
        const OF_ALL: usize = 10;
        let slots = Slots::new(OF_HOLDER, OF_ALL);
        let mut held: Vec<_> = (0..OF_HOLDER).map(|_| slots.take(0).unwrap()).collect();
        assert!(slots.take(0).is_none());
        held.pop();
        held.push(slots.take(0).unwrap());
        held.extend((OF_HOLDER..OF_ALL).map(|holder| slots.take(holder).unwrap()));
        assert!(slots.take(OF_ALL).is_none(), "all are taken");
        held.pop();
        held.push(slots.take(OF_ALL).unwrap());
        drop(held);
        assert!(slots.is_free());
    }
}
