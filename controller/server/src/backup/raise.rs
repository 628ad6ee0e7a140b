//! The changes of a restoration: numbers that fence what ran before it, which are incarnations of runners and terms of
//! leaders, and no controllers of the old log.

use std::sync::Arc;

use periapt_host_api::{Incarnation, LeaderTerm, Timestamp};
use periapt_model::{
    Entity,
    changes::Changes,
    entity::{Application, Controller, EntityKey, Runner},
};

/// The amount by which numbers are raised at least: more than a controller gives out between a backup and its end, even
/// if a clock went back.
const LEAST: u64 = 1 << 32;

/// The further amount for each second since the backup: more than a controller gives out in one. So a backup that is
/// restored twice has greater numbers than the controller of the first restoration gave out.
const A_SECOND: u64 = 1 << 20;

/// Returns the amount by which numbers rise in the restoration of a backup.
pub(super) fn amount(created: Timestamp, now: Timestamp) -> u64 {
    let age = now.as_second().saturating_sub(created.as_second());
    LEAST.saturating_add(A_SECOND.saturating_mul(u64::try_from(age).unwrap_or_default()))
}

/// Returns the changes that make each number greater than any that was given out before, and forget the controllers of the
/// old log.
pub(super) fn raised<'a>(
    entities: impl IntoIterator<Item = &'a (EntityKey, Entity)>,
    amount: u64,
) -> Changes {
    let mut changes = Changes::default();
    for (key, entity) in entities {
        let raised = match entity {
            Entity::Runner(runner) => Entity::Runner(Arc::new(Runner {
                incarnation: Incarnation(runner.incarnation.0.saturating_add(amount)),
                ..Runner::clone(runner)
            })),
            Entity::Application(application) => {
                let mut application = Application::clone(application);
                application.last_term = LeaderTerm(application.last_term.0.saturating_add(amount));
                if let Some(leader) = &mut application.leader {
                    leader.term = application.last_term;
                }
                Entity::Application(Arc::new(application))
            }
            // The controllers of the old log are no controllers of this store.
            Entity::Controller(controller) => Entity::Controller(Arc::new(Controller {
                members: Default::default(),
                ..Controller::clone(controller)
            })),
            _ => continue,
        };
        changes.puts.insert(key.clone(), Some(raised));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_restoration_of_the_same_backup_raises_by_more_and_a_wrong_clock_by_enough() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let (first, second) = (amount(at(1000), at(1000)), amount(at(1000), at(1060)));
        assert_eq!((first, second - first), (LEAST, 60 * A_SECOND));
        assert_eq!(amount(at(1000), at(0)), LEAST);
        let decades = amount(at(0), at(30 * 365 * 86_400));
        assert!(decades < 1 << 53, "JSON's readers take it exactly: {decades}");
    }
}
