//! The status of applications and units.

use std::collections::BTreeSet;

use periapt_host_api::{
    JUJU_VERSION,
    relation::Scope,
    status::{ApplicationStatus, Life, RelatedApplication, UnitStatus},
};

use super::life;
use crate::{
    entity::{Application, Relation, Unit},
    root::{ModelState, Root},
    status::shown::{charm_url, group, life_text, shown_application_status, shown_statuses, text},
    unit,
};

pub(crate) fn status(
    root: &Root,
    state: &ModelState,
    application: &Application,
    lease_now_ms: u64,
) -> ApplicationStatus {
    let name = &application.name;
    let charm = root.charm(&application.charm.digest);
    let charm_name = charm.map(|charm| charm.meta.name.clone()).unwrap_or_default();
    let charm_rev = state.charm(&application.charm.digest).map_or(0, |charm| charm.revision);
    let endpoints = charm.into_iter().flat_map(|charm| charm.meta.endpoints.keys().map(ToString::to_string));
    let principals = state.units_of(name).filter(|unit| unit.principal.is_none());
    ApplicationStatus {
        charm: format!("local:{charm_name}-{charm_rev}"),
        charm_origin: "local".to_owned(),
        charm_name,
        charm_rev,
        charm_digest: application.charm.digest.to_string(),
        base: Default::default(),
        exposed: application.exposed,
        scale: state.units_of(name).filter(|unit| unit.principal.is_none()).count(),
        life: life_text(application.life),
        waits_for: life::waits_for(state, application),
        application_status: text(shown_application_status(root, state, application, lease_now_ms)),
        version: application.workload_version.clone(),
        relations: group(relations(state, application)),
        subordinate_to: principals_of(state, application).into_iter().collect(),
        units: principals
            .map(|unit| (unit.name.to_string(), self::unit(root, state, unit, lease_now_ms)))
            .collect(),
        endpoint_bindings: endpoints
            .chain([String::new()])
            .map(|endpoint| (endpoint.clone(), application.bindings.space_of(&endpoint).to_owned()))
            .collect(),
    }
}

fn shown_relations<'a>(
    state: &'a ModelState,
    application: &'a Application,
) -> impl Iterator<Item = &'a Relation> {
    let relations = state.relations_of(&application.name).map(AsRef::as_ref);
    relations.filter(|relation: &&Relation| relation.life != Life::Dead)
}

/// Returns the related applications of each endpoint, those of the implicit `juju-info` included.
fn relations<'a>(
    state: &'a ModelState,
    application: &'a Application,
) -> impl Iterator<Item = (String, RelatedApplication)> + 'a {
    shown_relations(state, application).filter_map(|relation| {
        let own = relation.end_of(&application.name)?;
        let other = relation.other_end(&application.name)?;
        let scope = match relation.scope {
            Scope::Global => "global",
            Scope::Container => "container",
        };
        Some((
            own.name.to_string(),
            RelatedApplication {
                related_application: other.application.to_string(),
                interface: own.interface.to_string(),
                scope: scope.to_owned(),
            },
        ))
    })
}

fn principals_of(state: &ModelState, application: &Application) -> BTreeSet<String> {
    if !application.subordinate {
        return BTreeSet::new();
    }
    shown_relations(state, application)
        .filter(|relation| relation.scope == Scope::Container)
        .filter_map(|relation| relation.other_end(&application.name))
        .map(|end| end.application.to_string())
        .collect()
}

fn unit(root: &Root, state: &ModelState, unit: &Unit, lease_now_ms: u64) -> UnitStatus {
    let (workload, agent) = shown_statuses(root, state, unit, lease_now_ms);
    let application = state.application(unit.name.application());
    let leader = application.and_then(|found| found.leader.as_ref());
    let wanted = application.map(|found| found.charm.digest);
    let running = unit.record.charm.map(|charm| charm.digest);
    let host = state.agent_of(unit).and_then(|agent| root.agent(agent)).map(|agent| &agent.host);
    let address = host.and_then(|host| host.addresses.first().cloned()).unwrap_or_default();
    let mut juju_status = text(agent);
    juju_status.version = host.map(|_| JUJU_VERSION.to_owned()).unwrap_or_default();
    let upgrading_from = running.filter(|_| running != wanted);
    let subordinates = state.subordinates_of(&unit.name);
    UnitStatus {
        workload_status: text(workload),
        juju_status,
        leader: leader.is_some_and(|leader| leader.unit == unit.name),
        // A subordinate has no machine of its own in Juju's status.
        machine: unit
            .machine
            .filter(|_| unit.principal.is_none())
            .map(|machine| machine.to_string())
            .unwrap_or_default(),
        open_ports: unit.ports.iter().map(|opened| opened.range.to_string()).collect(),
        public_address: address.clone(),
        address,
        subordinates: subordinates
            .map(|unit| (unit.name.to_string(), self::unit(root, state, unit, lease_now_ms)))
            .collect(),
        life: life_text(unit.life),
        waits_for: unit::life::waits_for(state, unit),
        upgrading_from: upgrading_from.map(|digest| charm_url(root, state, &digest)).unwrap_or_default(),
        workload_problems: unit::workloads::status::problems(root, state, unit, lease_now_ms),
    }
}
