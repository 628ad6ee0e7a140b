//! A model as its API shows it, and the checks of it.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ApplicationName, UnitName,
    api::{ApplicationDetails, UnitDetails},
    record::{HookStep, Operation},
    settings::OptionValue,
    status::{AgentStatus, FullStatus, Life, WorkloadStatus},
};

use crate::steps::{Editions, PASSING, Plan, Step, message, script};

/// The observed state of a model.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) status: FullStatus,
    pub(crate) applications: BTreeMap<ApplicationName, ApplicationDetails>,
    pub(crate) units: BTreeMap<UnitName, UnitDetails>,
}

impl Observed {
    fn application(&self, name: &str) -> Option<&ApplicationDetails> {
        let mut all = self.applications.values();
        all.find(|application| application.name.as_str() == name && application.life == Life::Alive)
    }

    /// Returns the numbers of an application's units that are alive.
    fn units_of(&self, name: &str) -> BTreeSet<u32> {
        let units = self.status.applications.get(name).into_iter().flat_map(|application| &application.units);
        let alive = units.filter(|(_, unit)| unit.life.is_empty());
        alive.filter_map(|(name, _)| name.rsplit_once('/')?.1.parse().ok()).collect()
    }

    /// Returns requirer and provider of the relations that are alive, without those that every model has.
    fn relations(&self) -> BTreeSet<(&str, &str)> {
        let relations = self.status.relations.iter();
        relations
            .filter(|relation| relation.interface == "probe" && relation.status != "dying")
            .map(|relation| (relation.requirer.as_str(), relation.provider.as_str()))
            .collect()
    }

    /// Returns true if the model shows a step's effect.
    pub(crate) fn shows(&self, step: &Step, charms: Editions) -> bool {
        match *step {
            Step::Note(name, note) | Step::Mend(name, note, _) => self.has_script(name, &script(note, false)),
            Step::Break(name, note) => self.has_script(name, &script(note, true)),
            Step::Refresh(name, edition, _) => {
                let wanted = charms.digest(edition);
                self.application(name).is_some_and(|application| application.charm_digest == wanted)
            }
            Step::AddUnit(name, number) => self.units_of(name).contains(&number),
            Step::RemoveUnit(name, number) => !self.units_of(name).contains(&number),
            Step::Integrate(requirer, provider) => self.relations().contains(&(requirer, provider)),
            Step::Part(requirer, provider) => !self.relations().contains(&(requirer, provider)),
            Step::Expose(name, exposed) => {
                self.application(name).is_some_and(|application| application.exposed == exposed)
            }
            Step::Deploy(note) => self.has_script(PASSING, &script(note, false)),
            Step::Remove => self.application(PASSING).is_none(),
        }
    }

    /// Returns an application's script.
    pub(crate) fn script_of(&self, name: &str) -> Option<String> {
        match self.application(name)?.settings["script"].value.as_ref()? {
            OptionValue::Text(value) => Some(value.clone()),
            _ => None,
        }
    }

    /// Returns the counts that units have written.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> {
        let relations = self.units.values().flat_map(|unit| &unit.relations);
        let tallies = relations.filter(|relation| relation.endpoint.as_str() == "tally");
        tallies.filter_map(|relation| relation.local_unit.data.get("hooks")?.parse().ok())
    }

    fn has_script(&self, name: &str, script: &str) -> bool {
        self.script_of(name).is_some_and(|value| value == script)
    }

    /// Returns the contradictions to acknowledged commands.
    pub(crate) fn contradictions(&self, plan: &Plan, charms: Editions) -> Vec<String> {
        let mut wrong = Vec::new();
        if plan.relations != self.relations() {
            wrong.push(format!("relations: {:?}, and there are {:?}", plan.relations, self.relations()));
        }
        if self.application(PASSING).is_some() != plan.applications.contains_key(PASSING) {
            wrong.push(format!("{PASSING}: {:?}", self.application(PASSING)));
        }
        for (name, wanted) in &plan.applications {
            if wanted.note > 0 && !self.has_script(name, &script(wanted.note, wanted.broken)) {
                wrong.push(format!("{name} has not note {}", wanted.note));
            }
            let charm = charms.digest(wanted.edition);
            if self.application(name).map(|application| application.charm_digest) != Some(charm) {
                wrong.push(format!("{name} has not the {:?} charm", wanted.edition));
            }
            if self.application(name).map(|application| application.exposed) != Some(wanted.exposed) {
                wrong.push(format!("{name} is not exposed={}", wanted.exposed));
            }
            let units = self.units_of(name);
            if *name != PASSING && units != wanted.units {
                wrong.push(format!("units of {name}: {:?}, and there are {units:?}", wanted.units));
            }
        }
        wrong
    }

    /// Returns the unfinished work.
    pub(crate) fn pending(&self, plan: &Plan) -> Vec<String> {
        let mut pending = Vec::new();
        let gone = |life: &str| life.is_empty();
        for (name, application) in &self.status.applications {
            if !gone(&application.life) || application.units.values().any(|unit| !gone(&unit.life)) {
                pending.push(format!("something of {name} is dying"));
            }
        }
        for relation in self.status.relations.iter().filter(|relation| relation.status == "dying") {
            pending.push(format!("relation {} is dying", relation.id));
        }
        for unit in self.units.values() {
            pending.extend(pending_of(unit, plan));
        }
        pending
    }

    /// Returns the units of an application that are alive, each with its failed hook.
    pub(crate) fn failures_of<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a UnitDetails, Option<String>)> {
        let units = self.units.values();
        let lasting = units.filter(move |unit| unit.application.as_str() == name && unit.life == Life::Alive);
        lasting.map(|unit| match &unit.record.operation {
            Operation::Hook { event, step: HookStep::Failed(_) } => (unit, Some(event.hook_name())),
            _ => (unit, None),
        })
    }

    /// Returns the number of each unit's commits.
    pub(crate) fn commits(&self) -> BTreeMap<UnitName, u64> {
        self.units.iter().map(|(name, unit)| (name.clone(), unit.record.seq)).collect()
    }
}

fn pending_of(unit: &UnitDetails, plan: &Plan) -> Vec<String> {
    let mut pending = Vec::new();
    let name = &unit.name;
    let note = plan.applications.get(unit.application.as_str()).map_or(0, |application| application.note);
    let (agent, workload) = (&unit.agent_status, &unit.workload_status);
    if agent.status != AgentStatus::Idle || unit.record.operation != Operation::Continue {
        pending.push(format!("{name} is {}: {:?}", agent.status, unit.record.operation));
    }
    if note > 0 && (workload.status != WorkloadStatus::Active || workload.message != message(note)) {
        pending.push(format!("{name} is {} {:?}, and not at {note}", workload.status, workload.message));
    }
    for relation in &unit.relations {
        let record = unit.record.relations.get(&relation.relation_id);
        let scope =
            relation.related_units.iter().filter(|(_, bag)| bag.in_scope).map(|(unit, _)| unit.clone());
        let joined = record.is_some_and(|record| {
            record.created && record.changed_pending.is_none() && scope.eq(record.members.keys())
        });
        if !relation.local_unit.in_scope || !joined {
            pending.push(format!("{name} is not at rest in relation {}: {record:?}", relation.relation_id));
        }
    }
    pending
}
