//! The rule about workloads: a container's Pebble that listens anew is told (`docs/hook-model.md` 1.7 rule 9).

use periapt_host_api::{ContainerName, Timestamp, event::Event};

use crate::{Decision, resolve_input::ResolveInput};

/// Returns pebble-ready for the first container, by name, whose Pebble has another boot id than the one that the charm
/// was told of. A unit that has not started, or is dying, is told nothing.
pub(super) fn next(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    if !record.started || !input.alive() || !input.at_rest() {
        return None;
    }
    let is_new = |(container, boot_id): &(&ContainerName, &String)| {
        input.declares(container)
            && record.workloads.get(*container).is_none_or(|told| told.boot_id != **boot_id)
    };
    let (container, _) = input.workloads.iter().find(is_new)?;
    Some(input.run(Event::PebbleReady { container: container.clone() }, now))
}

/// Returns true if a hook about a container is moot: the charm does not declare it any more.
pub(super) fn is_moot(input: &ResolveInput<'_>, event: &Event) -> bool {
    event.container().is_some_and(|container| !input.declares(container))
}
