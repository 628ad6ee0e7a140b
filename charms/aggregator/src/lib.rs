//! Aggregates the reports of many units in batches: one hook for all changes since the last.

mod books;

use books::Books;
use periapt_sdk::{
    ActionEvent, Charm, Error, Event, RelationBatch, RelationBroken, Result, Status, Unit, info,
};

periapt_sdk::export!(Aggregator);

#[derive(Default)]
struct Aggregator;

impl Charm for Aggregator {
    fn relation_batch(&mut self, unit: &Unit, event: &RelationBatch) -> Result {
        let books = Books::of(unit);
        for member in event.present() {
            books.enter(&event.relation, member)?;
        }
        for member in &event.departed {
            books.strike(&event.relation, member)?;
        }
        let told = event.joined.len() + event.changed.len() + event.departed.len();
        books.count_batch(told)?;
        info!("one hook told of {told} units of {}", event.app);
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

/// Publishes the sums: to operators by the status, and from the leader to the reporting units.
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
    let (batches, largest) = books.batches()?;
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    unit.set_status(&Status::active(format!(
        "{} line{} of {} unit{}, told in {batches} hook{}, at most {largest} at a time",
        sums.lines,
        plural(sums.lines),
        sums.units,
        plural(sums.units),
        plural(batches),
    )))
}

/// Shows the newest lines of each principal, from the present bags.
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

/// Makes a result's key from a name that other units chose.
fn key(name: &str) -> String {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let key: String = letters.collect();
    key.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests;
