//! `show-unit`

mod containers;
mod events;
mod journal;

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{
    Timestamp, UnitName,
    api::{UnitBag, UnitDetails, UnitRelation},
    container::TakenPort,
    record::{HookStep, Operation},
    relation::Settings,
    status::StatusInfo,
};
use serde::Serialize;

use self::{containers::ShownContainer, events::ShownEvent, journal::ShownHook};
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::{OutputArgs, Text},
};

/// Show details of units: state, containers, relations with their data
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt show-unit mysql/0\n  periapt show-unit mysql/0 --format json --endpoint db\n  \
                  periapt show-unit mysql/0 --journal"
)]
pub(crate) struct ShowUnit {
    /// The units
    #[arg(required = true)]
    units: Vec<UnitName>,
    /// Only relations of this endpoint
    #[arg(long)]
    endpoint: Option<String>,
    /// Only this related unit's data
    #[arg(long, value_name = "UNIT")]
    related_unit: Option<UnitName>,
    /// Leave out the applications' data
    #[arg(long)]
    no_app: bool,
    /// Only the applications' data of relations
    #[arg(long, conflicts_with_all = ["no_app", "related_unit"])]
    app: bool,
    /// The newest hooks, with the changes that each absorbed. The table has these alone; other formats add them to the
    /// rest
    #[arg(long)]
    journal: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownUnit {
    #[serde(skip_serializing_if = "String::is_empty")]
    workload_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    opened_ports: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_address: Option<String>,
    charm: String,
    charm_digest: String,
    leader: bool,
    life: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subordinates: Vec<String>,
    workload_status: ShownStatus,
    agent_status: ShownStatus,
    operation: String,
    commits: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    update_status_due: Option<Timestamp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_events: Vec<ShownEvent>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    containers: BTreeMap<String, ShownContainer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    taken_ports: Vec<TakenPort>,
    relation_info: Vec<ShownRelation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<Vec<ShownHook>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownStatus {
    current: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    since: Timestamp,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownRelation {
    relation_id: u32,
    endpoint: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cross_model: bool,
    related_endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_data: Option<Settings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_unit: Option<UnitBag>,
    #[serde(skip_serializing_if = "Option::is_none")]
    related_units: Option<BTreeMap<String, UnitBag>>,
    related_application: String,
    interface: String,
}

impl Verb for ShowUnit {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut units = BTreeMap::new();
        for unit in &self.units {
            let details = model.client().unit(&model.selector, unit).await?;
            units.insert(unit.to_string(), self.shown(details));
        }
        match self.journal {
            true => self.output.print(context.color, &units, journal_table),
            // Juju has no table for it: the default format is YAML.
            false => self.output.or_yaml().print(context.color, &units, |_| String::new()),
        }
    }
}

impl ShowUnit {
    fn shown(&self, unit: UnitDetails) -> ShownUnit {
        let wanted = |relation: &UnitRelation| {
            self.endpoint.as_ref().is_none_or(|endpoint| relation.endpoint.as_str() == endpoint)
        };
        ShownUnit {
            workload_version: unit.workload_version,
            machine: unit.machine.map(|machine| machine.to_string()),
            agent: unit.agent.map(|agent| agent.to_string()),
            opened_ports: unit.opened_ports.iter().map(|ports| ports.range.to_string()).collect(),
            public_address: unit.address,
            charm: unit.charm,
            charm_digest: unit.charm_digest.to_string(),
            leader: unit.leader,
            life: unit.life.to_string(),
            principal: unit.principal.map(|unit| unit.to_string()),
            subordinates: unit.subordinates.iter().map(ToString::to_string).collect(),
            workload_status: status(unit.workload_status),
            agent_status: status(unit.agent_status),
            operation: operation(&unit.record.operation),
            commits: unit.record.seq,
            update_status_due: unit.record.update_status_due,
            pending_events: unit.pending_events.into_iter().map(ShownEvent::from).collect(),
            containers: containers::shown(unit.containers),
            taken_ports: unit.taken_ports,
            relation_info: unit
                .relations
                .into_iter()
                .filter(wanted)
                .map(|relation| self.relation(relation))
                .collect(),
            journal: self.journal.then(|| unit.journal.into_iter().map(ShownHook::from).collect()),
        }
    }

    fn relation(&self, relation: UnitRelation) -> ShownRelation {
        let wanted = |unit: &UnitName| self.related_unit.as_ref().is_none_or(|wanted| wanted == unit);
        ShownRelation {
            relation_id: relation.relation_id.0,
            endpoint: relation.endpoint.to_string(),
            related_endpoint: relation.related_endpoint.to_string(),
            related_application: relation.related_application.to_string(),
            interface: relation.interface.to_string(),
            application_data: (!self.no_app).then_some(relation.application_data),
            local_unit: (!self.app).then_some(relation.local_unit),
            related_units: (!self.app).then(|| {
                let related = relation.related_units.into_iter().filter(|(unit, _)| wanted(unit));
                related.map(|(unit, bag)| (unit.to_string(), bag)).collect()
            }),
            cross_model: relation.cross_model,
        }
    }
}

fn journal_table(units: &BTreeMap<String, ShownUnit>) -> Text {
    journal::table(
        units.iter().map(|(unit, shown)| (unit.as_str(), shown.journal.as_deref().unwrap_or_default())),
    )
}

fn status<S: std::fmt::Display>(info: StatusInfo<S>) -> ShownStatus {
    ShownStatus { current: info.status.to_string(), message: info.message, since: info.since }
}

/// Describes the current operation of the unit's uniter.
fn operation(operation: &Operation) -> String {
    match operation {
        Operation::Continue => "idle".to_owned(),
        Operation::Hook { event, step: HookStep::Queued } => format!("{event} is due"),
        Operation::Hook { event, step: HookStep::Failed(failure) } => {
            format!("{event} failed, attempt {}: {}", failure.attempts, failure.message)
        }
        Operation::DeployFailed { failure, .. } => format!("charm could not be used: {}", failure.message),
    }
}
