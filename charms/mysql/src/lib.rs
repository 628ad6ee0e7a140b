//! A database server: an account for each related application, and replication among its units.

mod accounts;
mod password;
mod replication;
mod settings;

use periapt_sdk::{
    Charm, RelationBroken, RelationChanged, RelationCreated, RelationDeparted, RelationJoined, Result,
    Status, Unit, info,
};
use settings::Settings;

periapt_sdk::export!(Mysql);

const PORT: u16 = 3306;

#[derive(Default)]
struct Mysql;

impl Charm for Mysql {
    fn install(&mut self, unit: &Unit) -> Result {
        unit.set_version("8.4")?;
        unit.set_status(&Status::maintenance("preparing the server"))
    }

    fn start(&mut self, unit: &Unit) -> Result {
        unit.open(PORT)?;
        converge(unit)
    }

    fn config_changed(&mut self, unit: &Unit) -> Result {
        converge(unit)
    }

    fn upgrade_charm(&mut self, unit: &Unit) -> Result {
        converge(unit)
    }

    fn update_status(&mut self, unit: &Unit) -> Result {
        report(unit)
    }

    fn leader_elected(&mut self, unit: &Unit) -> Result {
        converge(unit)
    }

    fn relation_created(&mut self, unit: &Unit, _: &RelationCreated) -> Result {
        converge(unit)
    }

    fn relation_joined(&mut self, unit: &Unit, _: &RelationJoined) -> Result {
        converge(unit)
    }

    fn relation_changed(&mut self, unit: &Unit, _: &RelationChanged) -> Result {
        converge(unit)
    }

    fn relation_departed(&mut self, unit: &Unit, _: &RelationDeparted) -> Result {
        report(unit)
    }

    fn relation_broken(&mut self, unit: &Unit, event: &RelationBroken) -> Result {
        // A unit that is being removed leaves every relation. The relation goes on without the unit, and the next
        // leader needs the account.
        let ended = event.relation.endpoint() == "db" && !is_going(unit);
        if ended && unit.is_leader()? && accounts::drop(unit, &event.relation)? {
            info!("dropped the account of {} ({})", event.app, event.relation);
        }
        report(unit)
    }

    fn stop(&mut self, unit: &Unit) -> Result {
        unit.set_ports([])
    }
}

/// Brings all published data of this unit in line with the present state.
fn converge(unit: &Unit) -> Result {
    let settings: Settings = unit.config().map_err(|error| Status::blocked(error.to_string()))?;
    if let Some(peers) = unit.relation("replicas") {
        replication::announce(unit, &peers)?;
        if unit.is_leader()? {
            for relation in unit.relations("db") {
                accounts::offer(unit, &peers, &relation, &settings)?;
            }
        }
    }
    report(unit)
}

/// Returns true if this unit is being removed.
fn is_going(unit: &Unit) -> bool {
    let name = unit.name();
    unit.goal_state().units.iter().any(|(other, goal)| *other == name && goal.status == "dying")
}

/// Sets this unit's status, from the application's size and primary.
fn report(unit: &Unit) -> Result {
    let Some(peers) = unit.relation("replicas") else {
        return unit.set_status(&Status::waiting("for the peer relation"));
    };
    let status = match replication::primary(&peers)? {
        None => Status::waiting("for a primary"),
        Some(primary) if primary == unit.name() => {
            Status::active(format!("primary, accounts: {}", accounts::count(&peers)?))
        }
        Some(primary) => Status::active(format!("replica of {primary}")),
    };
    unit.set_status(&status)
}

#[cfg(test)]
mod tests;
