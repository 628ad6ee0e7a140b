//! The rules about workloads: a container's Pebble that listens anew is told early, and its notices after all
//! other hooks (`docs/hook-model.md` 1.7 rule 9 and after 17e).

use periapt_host_api::{
    ContainerName, Timestamp,
    event::Event,
    notice::{NoticeContext, WaitingNotice},
};

use crate::{Decision, ListeningWorkload, resolve_input::ResolveInput};

/// Returns pebble-ready for the first container, by name, whose Pebble has another boot id than the one that the charm
/// was told of. A unit that has not started, or is dying, is told nothing.
pub(super) fn next(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    if !may_be_told(input) {
        return None;
    }
    let is_new = |(container, listening): &(&ContainerName, &ListeningWorkload)| {
        input.declares(container) && told(input, container, listening).is_none()
    };
    let (container, _) = input.workloads.iter().find(is_new)?;
    Some(input.run(Event::PebbleReady { container: container.clone() }, now))
}

/// Returns the event of the notice that has waited longest, of those whose start the charm was told of. It comes after
/// all that others cause: a workload that makes notices without end keeps its unit from nothing.
pub(super) fn notices(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    if !may_be_told(input) {
        return None;
    }
    let first = |(container, listening): (&ContainerName, &ListeningWorkload)| {
        let (number, waiting) = listening.notices.after(told(input, container, listening)?).next()?;
        let (container, boot_id) = (container.clone(), listening.boot_id.clone());
        input.declares(&container).then(|| (waiting.clone(), NoticeContext { container, boot_id, number }))
    };
    let waiting = input.workloads.iter().filter_map(first);
    let (WaitingNotice { notice, .. }, workload) = waiting.min_by_key(|(waiting, _)| waiting.arrival)?;
    Some(input.run(Event::of_notice(&notice, workload), now))
}

/// Returns true if a hook about a container is moot: the charm does not declare it any more, or the start in which its
/// notice was made has ended.
pub(super) fn is_moot(input: &ResolveInput<'_>, event: &Event) -> bool {
    let has_ended = |notice: &NoticeContext| {
        input.workloads.get(&notice.container).is_none_or(|listening| listening.boot_id != notice.boot_id)
    };
    event.container().is_some_and(|container| !input.declares(container))
        || event.notice().is_some_and(has_ended)
}

fn may_be_told(input: &ResolveInput<'_>) -> bool {
    input.record().started && input.alive() && input.at_rest()
}

/// Returns the number of the last notice of this start of which the charm was told; none before its pebble-ready.
fn told(input: &ResolveInput<'_>, container: &ContainerName, listening: &ListeningWorkload) -> Option<u64> {
    let told = input.record().workloads.get(container)?;
    (told.boot_id == listening.boot_id).then_some(told.told)
}
