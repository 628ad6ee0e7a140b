//! What left hooks early and may not have reached the controller, kept in case the runner dies.

use std::collections::BTreeMap;

use periapt_host_api::{UnitName, commit::EarlyItem};

/// The most items that are kept of one unit. A hook makes them faster than a call to the controller takes only
/// for moments; what is beyond this, the oldest, has been under way for long.
const KEPT: usize = 1_000;

/// The last items of each unit whose hook is in flight.
#[derive(Debug, Default)]
pub(crate) struct Tails(BTreeMap<UnitName, Vec<EarlyItem>>);

impl Tails {
    /// Takes note of items, in order.
    pub(crate) fn noted(&mut self, unit: UnitName, items: Vec<EarlyItem>) {
        let kept = self.0.entry(unit).or_default();
        kept.extend(items);
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }

    /// The controller has all items up to a number.
    pub(crate) fn settled(&mut self, unit: &UnitName, number: u64) {
        if let Some(kept) = self.0.get_mut(unit) {
            kept.retain(|item| item.number > number);
        }
    }

    /// The unit's hook ended: its runner sees to the rest.
    pub(crate) fn ended(&mut self, unit: &UnitName) {
        self.0.remove(unit);
    }

    /// Takes all that is left of a runner that died.
    pub(crate) fn take(&mut self) -> BTreeMap<UnitName, Vec<EarlyItem>> {
        let mut tails = std::mem::take(&mut self.0);
        tails.retain(|_, items| !items.is_empty());
        tails
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

    fn numbers(tails: &mut Tails) -> Vec<u64> {
        tails.take().into_values().flatten().map(|item| item.number).collect()
    }

    #[test]
    fn what_the_controller_has_or_the_runner_sees_to_is_not_kept() {
        let (one, other): (UnitName, UnitName) = ("app/1".parse().unwrap(), "app/2".parse().unwrap());
        let mut tails = Tails::default();
        tails.noted(one.clone(), items(1..6));
        tails.noted(other.clone(), items(1..3));
        tails.settled(&one, 3);
        tails.ended(&other);
        assert_eq!(numbers(&mut tails), [4, 5]);
        assert_eq!(numbers(&mut tails), [0; 0]);
    }

    #[test]
    fn a_flood_drops_the_oldest() {
        let mut tails = Tails::default();
        tails.noted("app/1".parse().unwrap(), items(0..1_500));
        let kept = numbers(&mut tails);
        assert_eq!((kept.first(), kept.len()), (Some(&500), KEPT));
    }
}
