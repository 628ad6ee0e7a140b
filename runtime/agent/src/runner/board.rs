//! Which units are at rest, and since when.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use periapt_host_api::{Timestamp, UnitName};
use tokio::time::Instant;

/// What a unit is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It works, or is about to.
    Busy,
    /// Nothing is due before this time, unless the view changes.
    Rest {
        /// None: never.
        wake_at: Option<Timestamp>,
    },
}

#[derive(Debug)]
struct Inner {
    units: BTreeMap<UnitName, Doing>,
    changed_at: Instant,
}

/// All units of the runner.
#[derive(Debug)]
pub(crate) struct Board(Mutex<Inner>);

impl Default for Board {
    fn default() -> Self {
        Self(Mutex::new(Inner { units: BTreeMap::new(), changed_at: Instant::now() }))
    }
}

impl Board {
    /// A unit does something else now.
    pub(crate) fn set(&self, unit: &UnitName, doing: Doing) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.units.get(unit) != Some(&doing) {
            inner.units.insert(unit.clone(), doing);
            inner.changed_at = Instant::now();
        }
    }

    /// A unit is looked after no more.
    pub(crate) fn remove(&self, unit: &UnitName) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.units.remove(unit);
        inner.changed_at = Instant::now();
    }

    /// Since when nothing changed here.
    pub(crate) fn changed_at(&self) -> Instant {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).changed_at
    }

    /// The first time at which something is due, if all units are at rest; else none.
    pub(crate) fn at_rest(&self) -> Option<Option<Timestamp>> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut first: Option<Timestamp> = None;
        for doing in inner.units.values() {
            match doing {
                Doing::Busy => return None,
                Doing::Rest { wake_at } => {
                    first = match (first, *wake_at) {
                        (Some(one), Some(other)) => Some(one.min(other)),
                        (one, other) => one.or(other),
                    };
                }
            }
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_rests_when_all_do_and_wakes_for_the_first() {
        let (one, other): (UnitName, UnitName) = ("app/1".parse().unwrap(), "app/2".parse().unwrap());
        let (soon, late) = (Timestamp::from_second(10).unwrap(), Timestamp::from_second(20).unwrap());
        let board = Board::default();
        assert_eq!(board.at_rest(), Some(None));
        board.set(&one, Doing::Rest { wake_at: Some(late) });
        board.set(&other, Doing::Busy);
        assert_eq!(board.at_rest(), None);
        board.set(&other, Doing::Rest { wake_at: Some(soon) });
        assert_eq!(board.at_rest(), Some(Some(soon)));
        board.remove(&other);
        assert_eq!(board.at_rest(), Some(Some(late)));
        board.set(&one, Doing::Rest { wake_at: None });
        assert_eq!(board.at_rest(), Some(None));
    }
}
