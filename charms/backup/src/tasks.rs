//! The actions. Each logs its progress. A cancelled action keeps the whole files that it has written.

use crate::directory::{Directory, Entry, superfluous};
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::source;
use periapt_sdk::{ActionEvent, Context, Result, Unit};

/// The default number of listed backups.
const NEWEST: usize = 20;

pub(crate) fn create(unit: &Unit, event: &ActionEvent) -> Result {
    let directory = directory(unit)?;
    let name: Option<String> = event.param("source")?;
    let relation = source::find(unit, name.as_deref())?;
    let app = relation.remote_app()?;
    event.log(format_args!("reading what {app} has published"))?;
    let content = source::content(&relation)?;
    let id = next_id(unit, &directory)?;
    let note: Option<String> = event.param("note")?;
    let snapshot = Snapshot::new(id, app, note.unwrap_or_default(), content)?;
    let bytes = directory.write(&snapshot)?;
    unit.state().set("last-id", id.to_string())?;
    event.log(format_args!("wrote backup {id}, {bytes} bytes"))?;
    show(event, "backup", &snapshot)?;
    event.set("backup.bytes", bytes)?;
    if let Some(keep) = unit.config::<Settings>()?.keep {
        remove(event, &directory, &old(&directory, keep)?)?;
    }
    Ok(())
}

pub(crate) fn list(unit: &Unit, event: &ActionEvent) -> Result {
    let directory = directory(unit)?;
    let of: Option<String> = event.param("source")?;
    let mut entries = directory.entries()?;
    entries.retain(|entry| of.as_ref().is_none_or(|of| *of == entry.source));
    event.set("count", entries.len())?;
    let most: Option<u64> = event.param("newest")?;
    let most = most.map_or(Ok(NEWEST), usize::try_from)?;
    for entry in entries.into_iter().rev().take(most) {
        let at = format!("backups.{}", entry.id);
        match directory.read(&entry) {
            Ok(snapshot) => show(event, &at, &snapshot)?,
            Err(error) => event.set(&format!("{at}.error"), error)?,
        }
    }
    Ok(())
}

pub(crate) fn restore(unit: &Unit, event: &ActionEvent) -> Result {
    let directory = directory(unit)?;
    let id: u64 = event.param("id")?;
    let entry = directory.entries()?.into_iter().find(|entry| entry.id == id);
    let entry = entry.context(format!("there is no backup {id}; the action list shows which there are"))?;
    event.log(format_args!("reading backup {id}"))?;
    let snapshot = directory.read(&entry)?;
    let relation = source::find(unit, Some(&snapshot.source))?;
    // The number of an action is never reused, so a second restore of a backup makes a second request.
    source::give(&relation, &event.id, &snapshot.content)?;
    source::note(unit, &relation, id)?;
    event.log(format_args!("giving it to {}", snapshot.source))?;
    show(event, "backup", &snapshot)
}

pub(crate) fn prune(unit: &Unit, event: &ActionEvent) -> Result {
    let directory = directory(unit)?;
    let old = old(&directory, event.param("keep")?)?;
    let dry: Option<bool> = event.param("dry-run")?;
    let ids: Vec<_> = old.iter().map(|entry| entry.id.to_string()).collect();
    event.set("count", ids.len())?;
    event.set("ids", ids.join(","))?;
    if dry.unwrap_or_default() { Ok(()) } else { remove(event, &directory, &old) }
}

fn directory(unit: &Unit) -> Result<Directory> {
    Directory::of(unit).context("there is no storage yet")
}

/// Returns an id above all earlier ones, including those of removed backups.
fn next_id(unit: &Unit, directory: &Directory) -> Result<u64> {
    let last = unit.state().get("last-id").and_then(|text| text.parse().ok()).unwrap_or(0);
    // A file may come from an action that was cut short before its commit.
    let newest = directory.entries()?.last().map_or(0, |entry| entry.id);
    Ok(last.max(newest) + 1)
}

fn old(directory: &Directory, keep: u32) -> Result<Vec<Entry>> {
    Ok(superfluous(&directory.entries()?, keep.try_into()?))
}

fn remove(event: &ActionEvent, directory: &Directory, entries: &[Entry]) -> Result {
    for entry in entries {
        directory.remove(entry)?;
        event.log(format_args!("removed backup {} of {}", entry.id, entry.source))?;
    }
    Ok(())
}

fn show(event: &ActionEvent, at: &str, snapshot: &Snapshot) -> Result {
    event.set_all([
        (format!("{at}.id"), snapshot.id.to_string()),
        (format!("{at}.source"), snapshot.source.clone()),
        (format!("{at}.made"), snapshot.made.clone()),
        (format!("{at}.note"), snapshot.note.clone()),
        (format!("{at}.entries"), snapshot.content.len().to_string()),
        (format!("{at}.sha256"), snapshot.sha256.clone()),
    ])
}
