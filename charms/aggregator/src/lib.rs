//! Gathers what many units publish: each keeps what it has heard, and the leader says what that is together.

mod books;

use books::Books;
use periapt_sdk::{
    ActionEvent, Charm, Error, Event, RelationBroken, RelationChanged, RelationDeparted, Result, Status, Unit,
};

periapt_sdk::export!(Aggregator);

#[derive(Default)]
struct Aggregator;

impl Charm for Aggregator {
    fn relation_changed(&mut self, unit: &Unit, event: &RelationChanged) -> Result {
        if let Some(member) = &event.unit {
            Books::of(unit).enter(&event.relation, member)?;
        }
        publish(unit)
    }

    fn relation_departed(&mut self, unit: &Unit, event: &RelationDeparted) -> Result {
        Books::of(unit).strike(&event.relation, &event.unit)?;
        publish(unit)
    }

    fn relation_broken(&mut self, unit: &Unit, event: &RelationBroken) -> Result {
        Books::of(unit).forget(&event.relation)?;
        publish(unit)
    }

    fn action(&mut self, unit: &Unit, event: &ActionEvent) -> Result {
        match event.name.as_str() {
            "tail" => tail(unit, event),
            other => Err(Error::new(format!("there is no action {other}"))),
        }
    }

    fn otherwise(&mut self, unit: &Unit, _: &Event) -> Result {
        publish(unit)
    }
}

/// Says what has been gathered: to operators, and, if this unit leads, to those who told it.
fn publish(unit: &Unit) -> Result {
    let books = Books::of(unit);
    let sums = books.sums()?;
    if unit.is_leader()? {
        for relation in unit.relations("logs") {
            relation.app_bag().set_all([
                ("units", sums.units.to_string()),
                ("lines", sums.lines.to_string()),
                ("missed", sums.missed.to_string()),
                ("digest", sums.digest.clone()),
            ])?;
        }
    }
    if sums.units == 0 {
        return unit.set_status(&Status::waiting("for units to tell of their logs"));
    }
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    unit.set_status(&Status::active(format!(
        "{} line{} of {} unit{}",
        sums.lines,
        plural(sums.lines),
        sums.units,
        plural(sums.units),
    )))
}

/// Shows the newest lines of each principal, as they stand in the bags now.
fn tail(unit: &Unit, event: &ActionEvent) -> Result {
    let most: u32 = event.param("lines")?;
    for relation in unit.relations("logs") {
        for member in relation.members()? {
            let bag = relation.member_bag(&member);
            let principal = bag.get::<String>("principal")?.map(|name| key(&name));
            let principal = principal.filter(|key| !key.is_empty()).unwrap_or_else(|| key(&member));
            let log: String = bag.get("lines")?.unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let newest = lines.len().saturating_sub(most.try_into()?);
            let newest: Vec<&str> = lines.into_iter().skip(newest).collect();
            event.set(&principal, newest.join("\n"))?;
        }
    }
    Ok(())
}

/// A result's key for a name that others chose.
fn key(name: &str) -> String {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let key: String = letters.collect();
    key.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests;
