//! Sources: applications that publish data for backups and take restored data. The README lists the keys.

use crate::snapshot::Content;
use periapt_sdk::{Context, Error, Relation, Result, Unit};

/// The prefix of the keys of content, on both sides.
const CONTENT: &str = "content.";

/// Finds the relation with a source, or the only relation.
pub(crate) fn find(unit: &Unit, name: Option<&str>) -> Result<Relation> {
    let mut sources = Vec::new();
    for relation in unit.relations("sources") {
        sources.push((relation.remote_app()?, relation));
    }
    let known: Vec<_> = sources.iter().map(|(app, _)| app.clone()).collect();
    let known = known.join(", ");
    match (name, sources.len()) {
        (_, 0) => Err(Error::new("there is nothing to keep: integrate an application with sources")),
        (None, 1) => Ok(sources.remove(0).1),
        (None, _) => Err(Error::new(format!("say which by source=NAME: there are {known}"))),
        (Some(name), _) => sources
            .into_iter()
            .find_map(|(app, relation)| (app == name).then_some(relation))
            .context(format!("{name} is no source; there are: {known}")),
    }
}

/// Returns all published data of a source.
///
/// # Errors
///
/// When the source has not published anything yet.
pub(crate) fn content(relation: &Relation) -> Result<Content> {
    let bag = relation.remote_app_bag()?;
    if bag.get::<u64>("entries")?.is_none() {
        return Err(Error::new(format!("{} has not published anything to keep yet", relation.remote_app()?)));
    }
    Ok(strip(bag.all()?))
}

/// Restores content to a source through this unit's bag. `request` is new each time.
pub(crate) fn give(relation: &Relation, request: &str, content: &Content) -> Result {
    clear(relation)?;
    let bag = relation.unit_bag();
    bag.set_all(content.iter().map(|(key, value)| (format!("{CONTENT}{key}"), value)))?;
    bag.set("restore", request)
}

/// Returns the backup that a source has not taken back yet.
pub(crate) fn pending(unit: &Unit, relation: &Relation) -> Result<Option<String>> {
    if relation.unit_bag().get::<String>("restore")?.is_none() {
        return Ok(None);
    }
    Ok(unit.state().get(&given(relation)))
}

/// Stores the id of the backup that is being restored to a source.
pub(crate) fn note(unit: &Unit, relation: &Relation, id: u64) -> Result {
    unit.state().set(given(relation), id.to_string())
}

/// Clears the bag once a source has taken the restored content, and returns the backup's id.
pub(crate) fn confirm(unit: &Unit, relation: &Relation) -> Result<Option<String>> {
    let request: Option<String> = relation.unit_bag().get("restore")?;
    let key = format!("restored.{}", unit.name().replace('/', "-"));
    let taken: Option<String> = relation.remote_app_bag()?.get(&key)?;
    if request.is_none() || request != taken {
        return Ok(None);
    }
    clear(relation)?;
    let id = unit.state().get(&given(relation));
    unit.state().delete(&given(relation))?;
    Ok(id)
}

fn clear(relation: &Relation) -> Result {
    let bag = relation.unit_bag();
    let keys = bag.all()?.into_keys().filter(|key| key.starts_with(CONTENT) || key == "restore");
    bag.set_all(keys.map(|key| (key, "")))
}

fn given(relation: &Relation) -> String {
    format!("given-{}", relation.id())
}

fn strip(bag: Content) -> Content {
    bag.into_iter().filter_map(|(key, value)| Some((key.strip_prefix(CONTENT)?.to_owned(), value))).collect()
}
