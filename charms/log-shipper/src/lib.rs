//! A subordinate that ships its principal's log: it reads the principal's bag in a relation of container scope, and
//! writes its own in a second relation.

mod log;

use log::Log;
use periapt_sdk::{Bag, Charm, Config, Error, Event, FromConfig, Relation, Result, Status, Unit};

periapt_sdk::export!(LogShipper);

#[derive(Default)]
struct LogShipper;

struct Settings {
    /// The number of lines that are shipped in full.
    lines: usize,
}

impl FromConfig for Settings {
    fn from_config(config: &Config) -> Result<Self> {
        match config.get("lines")? {
            lines @ 1..=100_u16 => Ok(Self { lines: lines.into() }),
            lines => Err(Error::new(format!("option lines is {lines}, expected 1 to 100"))),
        }
    }
}

impl Charm for LogShipper {
    fn otherwise(&mut self, unit: &Unit, _: &Event) -> Result {
        let settings: Settings = unit.config().map_err(|error| Status::blocked(error.to_string()))?;
        let principal = unit.principal().ok_or(Status::waiting("for a principal"))?;
        let mut log = Log::load(unit)?;
        for bag in bags(unit, "logs", &principal)? {
            log.read(&bag, settings.lines)?;
        }
        log.store(unit)?;
        let aggregator = unit.relation("aggregator");
        let aggregator = aggregator.ok_or(Status::blocked("nowhere to ship to: integrate an aggregator"))?;
        ship(unit, &log, &principal, &aggregator)
    }
}

fn ship(unit: &Unit, log: &Log, principal: &str, aggregator: &Relation) -> Result {
    aggregator.unit_bag().set_all([
        ("principal", principal.to_owned()),
        ("address", address(unit, principal)?),
        ("count", log.count.to_string()),
        ("missed", log.missed.to_string()),
        ("lines", log.lines.join("\n")),
    ])?;
    let plural = if log.count == 1 { "" } else { "s" };
    let mut message = format!("shipped {} line{plural} of {principal}", log.count);
    if log.missed > 0 {
        message += &format!(", missed {}", log.missed);
    }
    unit.set_status(&Status::active(message))
}

/// Returns the principal's address from a relation that both share; empty if there is none.
fn address(unit: &Unit, principal: &str) -> Result<String> {
    for endpoint in ["logs", "host"] {
        for bag in bags(unit, endpoint, principal)? {
            if let Some(address) = bag.get("ingress-address")? {
                return Ok(address);
            }
        }
    }
    Ok(String::new())
}

/// Returns the principal's bags in the relations of an endpoint in which it is in view.
fn bags(unit: &Unit, endpoint: &str, principal: &str) -> Result<Vec<Bag>> {
    let mut bags = Vec::new();
    for relation in unit.relations(endpoint) {
        if relation.members()?.iter().any(|member| member == principal) {
            bags.push(relation.member_bag(principal));
        }
    }
    Ok(bags)
}

#[cfg(test)]
mod tests;
