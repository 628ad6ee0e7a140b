//! The resolver: the rules of `docs/hook-model.md` 1.7, in order, each in the module of its subject.

use periapt_host_api::{Timestamp, UnitName, view::View};

use crate::{Decision, UnitWorkloads, action, later, relation, resolve_input::ResolveInput, update_status};

mod deploy;
mod error;
mod leadership;
mod ordinary;
mod removal;
mod secrets;
mod start;
mod storage;
mod workloads;

/// A rule, which returns a decision if it applies.
type Rule = fn(&ResolveInput<'_>, Timestamp) -> Option<Decision>;

/// The rules in order. The first decision counts. The numbers are those of `docs/hook-model.md` 1.7; missing rules
/// (commands) will go to their numbers.
const RULES: &[Rule] = &[
    removal::dead_or_wound_up,     // 1
    action::terminated,            // (1.6: an action whose agent died)
    error::answer_without_failure, // (a late `resolved`)
    error::cut_short,              // (1.9: a hook that was cut short beside workloads)
    start::after_reboot,           // 3
    deploy::failed,                // 4
    relation::created,             // 7
    leadership::next,              // 8
    workloads::next,               // 9
    secrets::next,                 // 10
    action::next,                  // 11
    // 12 commands
    storage::next,           // 13
    error::failed_hook,      // 15
    ordinary::queued_hook,   // 16
    removal::teardown,       // 17a
    start::install,          // 17b
    deploy::upgrade,         // 17c
    ordinary::config_change, // 17d
    relation::next,          // 17e
    later::next,             // (decision 0017: events that the charm asked for)
    workloads::notices,      // (decision 0091: notices of workloads)
    update_status::next,     // 17f
    update_status::next,     // 17f
];

/// Returns the next step of a unit. The same view, record and time always give the same result.
///
/// `view` is one whole revision that contains the unit's record, and is not older than the unit's last commit.
pub fn resolve(view: &View, unit: &UnitName, now: Timestamp) -> Decision {
    resolve_beside(view, unit, &UnitWorkloads::new(), now)
}

/// Returns the next step of a unit with these workloads beside it.
pub(crate) fn resolve_beside(
    view: &View,
    unit: &UnitName,
    workloads: &UnitWorkloads,
    now: Timestamp,
) -> Decision {
    match ResolveInput::find(view, unit, workloads) {
        Ok(input) => RULES.iter().find_map(|rule| rule(&input, now)).unwrap_or_else(|| {
            let timers = [input.record().update_status_due, later::wake_at(&input, now)];
            Decision::Idle { wake_at: timers.into_iter().flatten().min() }
        }),
        Err(decision) => decision,
    }
}
