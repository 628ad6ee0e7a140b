//! Invariants on the order of committed hooks.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    RelationId, UnitName,
    event::{Event, MAX_BATCH_MEMBERS, RelationBatch},
    timing::LEADERSHIP_GUARANTEE_MS,
};

use super::Violation;
use crate::{Traced, trace::HookRunState};

/// Returns every violation of the rules of order in a trace: U-4, U-24, R-23, R-24, R-25, R-26, R-28, U-23, D-3,
/// install is first and remove last.
pub fn order_violations(trace: &[Traced]) -> Vec<Violation> {
    let units: BTreeSet<&UnitName> = trace.iter().map(|traced| &traced.unit).collect();
    let mut violations: Vec<Violation> = units
        .into_iter()
        .flat_map(|unit| {
            // Actions are no hooks: they run once in any case, and have no order with hooks.
            let of_unit: Vec<&Traced> =
                trace.iter().filter(|traced| traced.unit == *unit && traced.event.task().is_none()).collect();
            let concluded =
                of_unit.iter().copied().filter(|traced| traced.is_concluded()).collect::<Vec<_>>();
            let mut violations = life(unit, &concluded);
            violations.extend(relations(unit, &concluded));
            violations.extend(failures(unit, &of_unit));
            violations
        })
        .collect();
    violations.extend(leadership(trace));
    violations
}

/// Checks a unit's life: install is first and nothing follows remove; a hook about leadership comes before the first
/// config-changed (U-4); start follows config-changed at the first start (U-24); no relation hook follows stop (U-23).
fn life(unit: &UnitName, hooks: &[&Traced]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let names: Vec<String> = hooks.iter().map(ToString::to_string).collect();
    let mut check = |rule, holds: bool| {
        if !holds {
            violations.push(Violation::new(rule, format!("{unit}: {}", names.join(", "))));
        }
    };
    let at = |event: &Event| hooks.iter().position(|traced| traced.event == *event);
    check("1.8 install comes first", hooks.is_empty() || at(&Event::Install) == Some(0));
    check("1.8 nothing follows remove", at(&Event::Remove).is_none_or(|at| at + 1 == hooks.len()));
    if let Some(config_changed) = at(&Event::ConfigChanged) {
        let mut before = hooks.iter().take(config_changed).map(|traced| &traced.event);
        let told = |event: &Event| matches!(event, Event::LeaderElected | Event::LeaderSettingsChanged);
        check("U-4 who leads is told before config-changed", before.any(told));
    }
    if let Some(start) = at(&Event::Start) {
        let before = start.checked_sub(1).and_then(|before| hooks.get(before));
        check("U-24", before.is_some_and(|traced| traced.event == Event::ConfigChanged));
    }
    let elected = hooks.iter().filter(|traced| traced.event == Event::Install).count();
    check("1.8 install is committed once", elected <= 1);
    if let Some(stop) = at(&Event::Stop) {
        let after = hooks.iter().skip(stop + 1);
        check("U-23", after.clone().all(|traced| traced.event == Event::Remove));
    }
    violations
}

/// The hooks of one relation that a unit ran so far.
#[derive(Default)]
struct RelationHooks {
    created: bool,
    broken: bool,
    members: BTreeSet<UnitName>,
    pending: Option<UnitName>,
}

fn relations(unit: &UnitName, hooks: &[&Traced]) -> Vec<Violation> {
    let mut told: BTreeMap<RelationId, RelationHooks> = BTreeMap::new();
    let mut violations = Vec::new();
    for traced in hooks {
        let Some(context) = traced.event.relation() else { continue };
        let told = told.entry(context.relation).or_default();
        let what = || format!("{unit}: {traced} of relation {}", context.relation);
        if let Some(rule) = record(told, unit, traced) {
            violations.push(Violation::new(rule, what()));
        }
    }
    violations
}

/// Records a hook of a relation, or returns the rule that it breaks.
fn record(told: &mut RelationHooks, unit: &UnitName, traced: &Traced) -> Option<&'static str> {
    let passed = traced.state == HookRunState::PassedOver;
    if traced.state == HookRunState::Moot {
        // The hook did not run. A joined member's owed relation-changed ends with the relation, or comes in a batch.
        told.pending = None;
        return None;
    }
    let remote = traced.event.remote_unit().cloned();
    if told.broken {
        return Some("R-25 broken is last");
    }
    let first = matches!(traced.event, Event::RelationCreated(_));
    if first == told.created {
        // relation-created comes once, and before any other.
        return Some("R-28");
    }
    if let Some(pending) = told.pending.take() {
        // A charm that has asked for batches since then gets the change in one.
        let follows = match &traced.event {
            Event::RelationChanged { remote_unit: Some(unit), .. } => *unit == pending,
            Event::RelationBatch { batch, .. } => {
                batch.changed.contains(&pending) || batch.departed.contains(&pending)
            }
            _ => false,
        };
        if !follows {
            return Some("R-23");
        }
    }
    match (&traced.event, remote) {
        (Event::RelationCreated(_), _) => told.created = true,
        (Event::RelationJoined { .. }, Some(remote)) => {
            if remote == *unit {
                return Some("R-20 a unit joins itself");
            }
            if !told.members.insert(remote.clone()) {
                return Some("2.5 joined of a member");
            }
            told.pending = Some(remote);
        }
        (Event::RelationChanged { .. }, Some(remote)) if !told.members.contains(&remote) && !passed => {
            return Some("2.5 changed of a stranger");
        }
        (Event::RelationDeparted { .. }, Some(remote)) if !told.members.remove(&remote) => {
            return Some("2.5 departed of a stranger");
        }
        (Event::RelationBatch { batch, .. }, _) => return record_batch(told, unit, batch, passed),
        (Event::RelationBroken(context), _) => {
            told.broken = true;
            if context.remote_application == *unit.application() {
                return Some("R-26");
            }
            if !told.members.is_empty() {
                return Some("R-25 all departs precede broken");
            }
        }
        _ => {}
    }
    None
}

/// Records a batch, or returns the rule that it breaks.
fn record_batch(
    told: &mut RelationHooks,
    unit: &UnitName,
    batch: &RelationBatch,
    passed: bool,
) -> Option<&'static str> {
    let named: Vec<_> = batch.members().collect();
    if named.is_empty() && !batch.application_changed {
        return Some("a batch tells something");
    }
    if named.len() > MAX_BATCH_MEMBERS {
        return Some("a batch is bounded");
    }
    if named.iter().collect::<BTreeSet<_>>().len() != named.len() {
        return Some("a batch names each member once");
    }
    if batch.joined.contains(unit) {
        return Some("R-20 a unit joins itself");
    }
    if batch.joined.iter().any(|joined| !told.members.insert(joined.clone())) {
        return Some("2.5 joined of a member");
    }
    if !passed && batch.changed.iter().any(|changed| !told.members.contains(changed)) {
        return Some("2.5 changed of a stranger");
    }
    if batch.departed.iter().any(|departed| !told.members.remove(departed)) {
        return Some("2.5 departed of a stranger");
    }
    None
}

/// Checks that after a failure only the same hook runs, until it is committed or skipped (U-29).
fn failures(unit: &UnitName, hooks: &[&Traced]) -> Vec<Violation> {
    let mut failed: Option<&Event> = None;
    let mut violations = Vec::new();
    for traced in hooks {
        let passed = matches!(traced.state, HookRunState::PassedOver | HookRunState::Moot);
        if let Some(event) = failed
            && !passed
            && !traced.event.is_attempt_of(event)
        {
            violations.push(Violation::new("U-29", format!("{unit}: {traced} ran while {event} had failed")));
        }
        match traced.state {
            HookRunState::Failed => failed = Some(&traced.event),
            HookRunState::Committed | HookRunState::PassedOver | HookRunState::Moot => failed = None,
            HookRunState::InFlight | HookRunState::Refused | HookRunState::Stale | HookRunState::Lost => {}
        }
    }
    violations
}

/// Checks that for 30 seconds after one unit was told that it leads, no other unit of its application is told so (D-3,
/// K03). It passes over a first unit without a later hook, which may be gone (L-4).
fn leadership(trace: &[Traced]) -> Vec<Violation> {
    let told: Vec<(usize, &UnitName, u64)> = trace
        .iter()
        .enumerate()
        .flat_map(|(place, traced)| traced.tools.iter().map(move |call| (place, &traced.unit, call)))
        .filter(|(_, _, call)| {
            call.argv.first().is_some_and(|name| name == "is-leader") && call.output.stdout.trim() == "True"
        })
        .map(|(place, unit, call)| (place, unit, call.at.boot_ms))
        .collect();
    let mut violations = Vec::new();
    for (index, (_, unit, at)) in told.iter().enumerate() {
        let within = told
            .iter()
            .skip(index + 1)
            .take_while(|(_, _, then)| *then < at.saturating_add(LEADERSHIP_GUARANTEE_MS));
        let mut others =
            within.filter(|(_, other, _)| other != unit && other.application() == unit.application());
        if let Some((place, other, then)) = others.next() {
            let lives_on =
                trace.iter().skip(*place).any(|later| later.unit == **unit && later.is_concluded());
            if lives_on {
                let after = then.saturating_sub(*at);
                violations.push(Violation::new(
                    "D-3",
                    format!("{other} was told that it leads {after} ms after {unit}"),
                ));
            }
        }
    }
    violations
}
