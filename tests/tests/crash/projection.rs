//! A model without values that differ from run to run: times, revisions, random values, leaders, and numbers of
//! machines and hooks.

use std::{collections::BTreeMap, fmt::Write as _};

use periapt_host_api::{
    api::{UnitBag, UnitDetails},
    relation::Settings,
};

use crate::observed::Observed;

/// The keys that charms write about their hooks, whose number depends on how changes are coalesced.
const BOOKS: [&str; 2] = ["hooks", "ledger"];

/// The facts of a model, by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Projection(BTreeMap<String, String>);

impl Projection {
    /// Projects a settled model.
    pub(crate) fn of(observed: &Observed) -> anyhow::Result<Self> {
        let mut facts = BTreeMap::new();
        // A unit that is removed soon after it was added may have got a machine before, or none: numbers differ.
        for (place, machine) in observed.status.machines.values().enumerate() {
            let fact =
                format!("on {}, {} {}", machine.instance_id, machine.juju_status.current, machine.life);
            facts.insert(format!("machine {place}"), fact);
        }
        for relation in &observed.status.relations {
            let fact = format!("{} {} {}", relation.provider, relation.requirer, relation.status);
            facts.insert(format!("relation {}", relation.id), fact);
        }
        for (name, application) in &observed.applications {
            let leaders =
                observed.units.values().filter(|unit| unit.application == *name && unit.leader).count();
            let status = observed.status.applications.get(name.as_str());
            let status =
                status.map(|status| (&status.application_status.current, &status.application_status.message));
            facts.insert(
                format!("application {name}"),
                format!(
                    "{} {} exposed={} trust={} units={:?} leaders={leaders} status={status:?}",
                    application.charm,
                    application.life,
                    application.exposed,
                    application.trust,
                    application.units
                ),
            );
            for (key, setting) in &application.settings {
                facts.insert(format!("application {name} {key}"), serde_json::to_string(&setting.value)?);
            }
        }
        for unit in observed.units.values() {
            unit_facts(&mut facts, unit)?;
        }
        Ok(Self(facts))
    }

    /// Returns the facts that only one of the two has; empty if they are equal.
    pub(crate) fn difference(&self, other: &Self) -> String {
        let mut text = String::new();
        for (sign, these, those) in [('-', other, self), ('+', self, other)] {
            for (path, fact) in these.0.iter().filter(|(path, fact)| those.0.get(*path) != Some(*fact)) {
                let _ = writeln!(text, "{sign} {path}: {fact}");
            }
        }
        text
    }
}

fn unit_facts(facts: &mut BTreeMap<String, String>, unit: &UnitDetails) -> anyhow::Result<()> {
    let (name, record) = (&unit.name, &unit.record);
    let mut fact = |what: &str, is: String| facts.insert(format!("unit {name} {what}"), is);
    fact("life", unit.life.to_string());
    fact("charm", format!("{} {} {:?}", unit.charm, unit.charm_digest, record.charm));
    fact("place", format!("{} {:?} {:?}", unit.machine.is_some(), unit.agent, unit.address));
    fact("ports", serde_json::to_string(&unit.opened_ports)?);
    fact("workload", format!("{} {}", unit.workload_status.status, unit.workload_status.message));
    fact("agent", format!("{} {}", unit.agent_status.status, unit.agent_status.message));
    fact("resolved", format!("{:?}", unit.resolved));
    fact("operation", format!("{:?}", record.operation));
    fact("has", format!("{} {} {} {}", record.installed, record.started, record.stopped, record.removed));
    fact("seen", format!("{:?}", record.seen));
    for relation in &unit.relations {
        let id = relation.relation_id;
        let told = record.relations.get(&id);
        let members: Vec<_> = told.into_iter().flat_map(|told| told.members.keys()).collect();
        let remote = (&relation.related_application, &relation.related_endpoint, &relation.interface);
        fact(&format!("relation {id}"), format!("{} {remote:?} {members:?}", relation.endpoint));
        fact(&format!("relation {id} application"), settings(&relation.application_data));
        fact(&format!("relation {id} own"), bag(&relation.local_unit));
        for (remote, theirs) in &relation.related_units {
            fact(&format!("relation {id} of {remote}"), bag(theirs));
        }
    }
    Ok(())
}

fn bag(bag: &UnitBag) -> String {
    format!("in scope: {}, {}", bag.in_scope, settings(&bag.data))
}

fn settings(settings: &Settings) -> String {
    let settled: Vec<_> = settings.iter().filter(|(key, _)| !BOOKS.contains(&key.as_str())).collect();
    format!("{settled:?}")
}
