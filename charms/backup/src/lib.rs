//! Backups of data that applications publish: files in the unit's storage, which an operator can restore.

mod directory;
mod settings;
mod snapshot;
mod source;
mod tasks;

use directory::Directory;
use periapt_sdk::{ActionEvent, Charm, Error, Event, RelationChanged, Result, Status, Unit, info};

periapt_sdk::export!(Backup);

#[derive(Default)]
struct Backup;

impl Charm for Backup {
    fn relation_changed(&mut self, unit: &Unit, event: &RelationChanged) -> Result {
        if let Some(id) = source::confirm(unit, &event.relation)? {
            info!("{} has taken backup {id}", event.app);
            unit.state().set("restored", format!("restored {id} of {}", event.app))?;
        }
        report(unit)
    }

    fn action(&mut self, unit: &Unit, event: &ActionEvent) -> Result {
        match event.name.as_str() {
            "create" => tasks::create(unit, event)?,
            "list" => tasks::list(unit, event)?,
            "restore" => tasks::restore(unit, event)?,
            "prune" => tasks::prune(unit, event)?,
            other => return Err(Error::new(format!("there is no action {other}"))),
        }
        report(unit)
    }

    fn otherwise(&mut self, unit: &Unit, _: &Event) -> Result {
        report(unit)
    }
}

/// Sets the status: the number of backups, and the source of the newest.
fn report(unit: &Unit) -> Result {
    let directory = Directory::of(unit).ok_or(Status::waiting("for storage"))?;
    let sources = unit.relations("sources");
    if sources.is_empty() {
        return unit.set_status(&Status::blocked("nothing to keep: integrate an application"));
    }
    for relation in &sources {
        if let Some(id) = source::pending(unit, relation)? {
            let app = relation.remote_app()?;
            return unit.set_status(&Status::maintenance(format!("giving backup {id} to {app}")));
        }
    }
    let entries = directory.entries()?;
    let plural = if entries.len() == 1 { "" } else { "s" };
    let mut message = format!("{} backup{plural}", entries.len());
    if let Some(newest) = entries.last() {
        message += &format!(", the newest {} of {}", newest.id, newest.source);
    }
    if let Some(restored) = unit.state().get("restored") {
        message += &format!("; {restored}");
    }
    unit.set_status(&Status::active(message))
}

#[cfg(test)]
mod tests;
