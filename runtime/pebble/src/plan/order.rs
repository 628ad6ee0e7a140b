//! The order in which services start and stop.

use std::collections::{BTreeMap, BTreeSet};

use super::layer::{LayerError, Plan};

/// Returns the services to start for `names`, with all that they require, each after those that it starts after.
pub(crate) fn start_order<'a>(
    plan: &'a Plan,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>, LayerError> {
    let mut wanted = BTreeSet::new();
    let mut open: Vec<&str> = names.into_iter().collect();
    while let Some(name) = open.pop() {
        let Some((name, service)) = plan.services.get_key_value(name) else {
            return Err(LayerError(format!("service {name:?} does not exist")));
        };
        if wanted.insert(name.as_str()) {
            open.extend(service.requires.iter().map(String::as_str));
        }
    }
    sorted(plan, &wanted)
}

/// Returns the services to stop for `names`, with all that require them, in the reverse of the order of the start.
pub(crate) fn stop_order<'a>(
    plan: &'a Plan,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>, LayerError> {
    let mut wanted = BTreeSet::new();
    let mut open: Vec<&str> = names.into_iter().collect();
    while let Some(name) = open.pop() {
        let Some((name, _)) = plan.services.get_key_value(name) else {
            return Err(LayerError(format!("service {name:?} does not exist")));
        };
        if wanted.insert(name.as_str()) {
            let requiring = plan.services.iter().filter(|(_, service)| service.requires.contains(name));
            open.extend(requiring.map(|(other, _)| other.as_str()));
        }
    }
    let mut order = sorted(plan, &wanted)?;
    order.reverse();
    Ok(order)
}

/// Returns the services among `names` that one of them starts after.
pub(crate) fn waits(plan: &Plan, names: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let mut waits: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in names {
        let Some(service) = plan.services.get(name) else { continue };
        for other in service.after.iter().filter(|other| names.contains(other)) {
            waits.entry(name.clone()).or_default().insert(other.clone());
        }
        for other in service.before.iter().filter(|other| names.contains(other)) {
            waits.entry(other.clone()).or_default().insert(name.clone());
        }
    }
    waits
}

/// Sorts services so that each stands behind those that it starts after; equals by name.
fn sorted(plan: &Plan, wanted: &BTreeSet<&str>) -> Result<Vec<String>, LayerError> {
    let names: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    let mut waits = waits(plan, &names);
    let mut left: BTreeSet<String> = names.into_iter().collect();
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let ready: Vec<String> =
            left.iter().filter(|name| waits.get(*name).is_none_or(BTreeSet::is_empty)).cloned().collect();
        if ready.is_empty() {
            let circle = left.into_iter().collect::<Vec<_>>().join(", ");
            return Err(LayerError(format!("services in before/after loop: {circle}")));
        }
        for name in ready {
            left.remove(&name);
            for others in waits.values_mut() {
                others.remove(&name);
            }
            order.push(name);
        }
    }
    Ok(order)
}
