//! Early effects that may not have reached the controller, kept in case the runner dies.

use std::collections::BTreeMap;

use periapt_host_api::{UnitName, commit::EarlyItem};

use periapt_uniter::executor::early_bytes;

/// The most items of one unit. A hook produces items faster than the controller accepts them only for moments, so
/// items beyond this limit have been in flight for long.
const KEPT: usize = 1_000;

/// The most bytes of a unit's items as JSON: the limit of a hook's log, and a fraction of the limit of a call.
const KEPT_BYTES: usize = 2 << 20;

/// The last items of each unit with a hook in flight.
#[derive(Debug, Default)]
pub(crate) struct UnconfirmedEffects(BTreeMap<UnitName, Vec<EarlyItem>>);

impl UnconfirmedEffects {
    /// Adds items, in order.
    pub(crate) fn noted(&mut self, unit: UnitName, items: Vec<EarlyItem>) {
        let kept = self.0.entry(unit).or_default();
        kept.extend(items);
        let mut bytes = 0;
        let fits = |item: &&EarlyItem| {
            bytes += early_bytes(item);
            bytes <= KEPT_BYTES
        };
        let newest = kept.iter().rev().take(KEPT).take_while(fits).count();
        kept.drain(..kept.len().saturating_sub(newest));
    }

    /// Removes all items up to a number, which the controller has.
    pub(crate) fn settled(&mut self, unit: &UnitName, number: u64) {
        if let Some(kept) = self.0.get_mut(unit) {
            kept.retain(|item| item.number > number);
        }
    }

    /// Removes the items of a unit whose hook has ended: its runner sends the rest.
    pub(crate) fn ended(&mut self, unit: &UnitName) {
        self.0.remove(unit);
    }

    /// Takes the items of one unit of a dead runner; none when all are taken.
    pub(crate) fn take(&mut self) -> Option<(UnitName, Vec<EarlyItem>)> {
        self.0.retain(|_, items| !items.is_empty());
        self.0.pop_first()
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{Timestamp, commit::EarlyEffect};

    use super::*;

    fn items(numbers: std::ops::Range<u64>) -> Vec<EarlyItem> {
        let effect = EarlyEffect::ApplicationVersion { version: "1".to_owned() };
        numbers
            .map(|number| EarlyItem { number, at: Timestamp::UNIX_EPOCH, effect: effect.clone() })
            .collect()
    }

    fn numbers(unconfirmed: &mut UnconfirmedEffects) -> Vec<u64> {
        std::iter::from_fn(|| unconfirmed.take())
            .flat_map(|(_, items)| items)
            .map(|item| item.number)
            .collect()
    }

    #[test]
    fn what_the_controller_has_or_the_runner_sees_to_is_not_kept() {
        let (one, other): (UnitName, UnitName) = ("app/1".parse().unwrap(), "app/2".parse().unwrap());
        let mut unconfirmed = UnconfirmedEffects::default();
        unconfirmed.noted(one.clone(), items(1..6));
        unconfirmed.noted(other.clone(), items(1..3));
        unconfirmed.settled(&one, 3);
        unconfirmed.ended(&other);
        assert_eq!(numbers(&mut unconfirmed), [4, 5]);
        assert_eq!(numbers(&mut unconfirmed), [0; 0]);
    }

    #[test]
    fn a_flood_drops_the_oldest() {
        let mut unconfirmed = UnconfirmedEffects::default();
        unconfirmed.noted("app/1".parse().unwrap(), items(0..1_500));
        let kept = numbers(&mut unconfirmed);
        assert_eq!((kept.first(), kept.len()), (Some(&500), KEPT));
    }

    #[test]
    fn a_flood_of_large_items_drops_the_oldest_by_their_bytes() {
        let mut unconfirmed = UnconfirmedEffects::default();
        let effect = EarlyEffect::ApplicationVersion { version: "x".repeat(100 << 10) };
        for item in items(0..100) {
            unconfirmed.noted("app/1".parse().unwrap(), vec![EarlyItem { effect: effect.clone(), ..item }]);
        }
        let kept = numbers(&mut unconfirmed);
        assert_eq!((kept.last(), kept.len()), (Some(&99), 20));
    }
}
