//! Conditions on a status, with the part that is missing.

use periapt_host_api::{
    glob::glob,
    status::{FullStatus, PlacedUnit},
};

use super::UnitGoal;

/// The missing part of a goal, for messages.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotYet(pub(super) String);

/// Checks that everything is active and idle, and nothing is being added or removed.
pub(super) fn model_is_settled(status: &FullStatus) -> Result<(), NotYet> {
    let wanted = UnitGoal { status: None, message: "*".into(), agent: "idle".into(), gone: false };
    for (name, application) in &status.applications {
        if !application.life.is_empty() {
            return Err(NotYet(format!("application {name} is {}", application.life)));
        }
        application.all_units().try_for_each(|placed| fits(placed, &wanted))?;
    }
    for (name, machine) in &status.machines {
        if !machine.life.is_empty() {
            return Err(NotYet(format!("machine {name} is {}", machine.life)));
        }
    }
    for relation in &status.relations {
        if !relation.waits_for.is_empty() || !matches!(relation.status.as_str(), "joined" | "joining") {
            return Err(NotYet(format!("relation {} is {}", relation.id, relation.status)));
        }
    }
    Ok(())
}

/// Checks that a machine exists, and that its agent runs it.
pub(super) fn machine_is_started(status: &FullStatus, name: &str) -> Result<(), NotYet> {
    let machine =
        status.machines.get(name).ok_or_else(|| NotYet(format!("machine {name} does not exist")))?;
    match machine.juju_status.current.as_str() {
        "started" => Ok(()),
        other => Err(NotYet(format!("machine {name} is {other}"))),
    }
}

/// Checks that an application has the wanted number of units, each as wanted; or that it is gone.
pub(super) fn application_is(
    status: &FullStatus,
    name: &str,
    units: Option<usize>,
    wanted: &UnitGoal,
) -> Result<(), NotYet> {
    match (status.applications.get(name), wanted.gone) {
        (None, true) => return Ok(()),
        (Some(_), false) => {}
        (None, false) => return Err(NotYet(format!("application {name} does not exist"))),
        (Some(application), true) => {
            return Err(NotYet(still_there(&format!("application {name}"), &application.waits_for)));
        }
    }
    let all: Vec<_> = status.units().filter(|unit| unit.application() == name).collect();
    match units {
        Some(wanted) if all.len() != wanted => {
            return Err(NotYet(format!("application {name} has {} unit(s), not {wanted}", all.len())));
        }
        None if all.is_empty() => return Err(NotYet(format!("application {name} has no units"))),
        _ => {}
    }
    all.into_iter().try_for_each(|placed| fits(placed, wanted))
}

/// Checks that a unit is as wanted, or gone.
pub(super) fn unit_is(status: &FullStatus, name: &str, wanted: &UnitGoal) -> Result<(), NotYet> {
    match (status.units().find(|unit| unit.name == name), wanted.gone) {
        (None, true) => Ok(()),
        (Some(placed), false) => fits(placed, wanted),
        (None, false) => Err(NotYet(format!("unit {name} does not exist"))),
        (Some(placed), true) => Err(NotYet(still_there(&format!("unit {name}"), &placed.unit.waits_for))),
    }
}

fn still_there(what: &str, waits_for: &[String]) -> String {
    match waits_for {
        [] => format!("{what} still exists"),
        waits_for => format!("{what} still exists, and waits for {}", waits_for.join(", ")),
    }
}

fn fits(PlacedUnit { name, unit, .. }: PlacedUnit<'_>, wanted: &UnitGoal) -> Result<(), NotYet> {
    let (workload, agent) = (&unit.workload_status, &unit.juju_status);
    if !unit.life.is_empty() {
        return Err(NotYet(format!("unit {name} is {}", unit.life)));
    }
    let has_it = match &wanted.status {
        Some(status) => workload.current == *status,
        // A unit in status unknown has run its start hook, and its charm never set a status.
        None => matches!(workload.current.as_str(), "active" | "unknown"),
    };
    if !has_it {
        return Err(NotYet(format!("unit {name} is {}: {}", workload.current, workload.message)));
    }
    if !glob(&wanted.message, &workload.message) {
        return Err(NotYet(format!("unit {name} says {:?}", workload.message)));
    }
    if !unit.upgrading_from.is_empty() {
        return Err(NotYet(format!("unit {name} does not run its application's charm yet")));
    }
    // A unit in error has an idle agent: its hook waits for a retry or for an operator.
    match agent.current == wanted.agent {
        true => Ok(()),
        false => Err(NotYet(format!("unit {name}'s agent is {}: {}", agent.current, agent.message))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::status::fixture;

    fn wanted(status: &str, message: &str) -> UnitGoal {
        UnitGoal { status: Some(status.into()), message: message.into(), agent: "idle".into(), gone: false }
    }

    fn gone() -> UnitGoal {
        UnitGoal { gone: true, ..wanted("active", "*") }
    }

    #[test]
    fn a_model_is_settled_when_all_is_active_idle_and_alive() {
        assert_eq!(model_is_settled(&fixture::settled()), Ok(()));
        assert_eq!(
            model_is_settled(&fixture::unsettled()).unwrap_err().to_string(),
            "application wordpress is dying"
        );
        let mut executing = fixture::settled();
        let mysql = executing.applications.get_mut("mysql").unwrap();
        mysql.units.get_mut("mysql/1").unwrap().juju_status.current = "executing".into();
        assert_eq!(
            model_is_settled(&executing).unwrap_err().to_string(),
            "unit mysql/1's agent is executing: "
        );
    }

    #[test]
    fn a_charm_that_never_says_how_it_is_is_not_waited_for() {
        let mut silent = fixture::settled();
        let mysql = silent.applications.get_mut("mysql").unwrap();
        for unit in mysql.units.values_mut() {
            unit.workload_status.current = "unknown".into();
        }
        let unsaid = UnitGoal { status: None, ..wanted("active", "*") };
        assert_eq!(model_is_settled(&silent), Ok(()));
        assert_eq!(application_is(&silent, "mysql", Some(2), &unsaid), Ok(()));
        let error =
            application_is(&silent, "mysql", Some(2), &wanted("active", "*")).unwrap_err().to_string();
        assert!(error.contains("is unknown"), "{error}");
        // The statuses of a unit whose agent is gone are not current.
        let mysql = silent.applications.get_mut("mysql").unwrap();
        mysql.units.get_mut("mysql/1").unwrap().juju_status.current = "lost".into();
        assert!(
            application_is(&silent, "mysql", Some(2), &unsaid).unwrap_err().to_string().contains("is lost")
        );
    }

    #[test]
    fn a_unit_with_its_former_charm_is_not_settled() {
        let mut former = fixture::settled();
        let mysql = former.applications.get_mut("mysql").unwrap();
        mysql.units.get_mut("mysql/1").unwrap().upgrading_from = "ab".repeat(32);
        assert_eq!(
            model_is_settled(&former).unwrap_err().to_string(),
            "unit mysql/1 does not run its application's charm yet"
        );
    }

    #[test]
    fn an_application_is_as_wanted_when_all_its_units_are() {
        let status = fixture::settled();
        assert_eq!(application_is(&status, "wordpress", Some(2), &wanted("active", "serv*")), Ok(()));
        for (units, wanted, missing) in [
            (Some(3), wanted("active", "*"), "application wordpress has 2 unit(s), not 3"),
            (None, wanted("blocked", "*"), "unit wordpress/10 is active: serving"),
            (None, wanted("active", "idling"), "unit wordpress/10 says \"serving\""),
            (None, gone(), "application wordpress still exists"),
        ] {
            assert_eq!(
                application_is(&status, "wordpress", units, &wanted).unwrap_err().to_string(),
                missing
            );
        }
        assert_eq!(application_is(&status, "shop", None, &gone()), Ok(()));
        assert!(application_is(&status, "shop", None, &wanted("active", "*")).is_err());
    }

    #[test]
    fn a_subordinate_is_found_under_its_principal() {
        let status = fixture::unsettled();
        assert_eq!(unit_is(&status, "proxy/0", &wanted("error", "*")), Ok(()));
        assert_eq!(application_is(&status, "proxy", Some(1), &wanted("error", "*")), Ok(()));
        assert_eq!(unit_is(&status, "proxy/1", &gone()), Ok(()));
        assert_eq!(
            unit_is(&status, "proxy/0", &gone()).unwrap_err().to_string(),
            "unit proxy/0 still exists"
        );
    }
}
