//! The posts: keys `post-ID` in the application bag of the peer relation, so that all units serve the same.
//!
//! The leader publishes them to backup charms, and takes restored posts back (see `charms/backup`).

use crate::journal;
use periapt_sdk::{ActionEvent, Context, Error, OwnBag, Relation, Result, Unit};
use std::collections::BTreeMap;

const POST: &str = "post-";

/// The prefix of the keys of content, to and from a backup.
const CONTENT: &str = "content.";

pub(crate) fn publish(unit: &Unit, event: &ActionEvent) -> Result {
    let bag = leaders_bag(unit)?;
    let (title, text): (String, Option<String>) = (event.param("title")?, event.param("text")?);
    let newest = all(&bag)?.keys().filter_map(|key| key.strip_prefix(POST)?.parse().ok()).max();
    let id: u64 = newest.unwrap_or(0) + 1;
    bag.set(&format!("{POST}{id}"), format_args!("{title}\n{}", text.unwrap_or_default()))?;
    journal::tell(unit, &format!("published post {id}, \"{title}\""))?;
    event.set("post", id)?;
    mirror(unit)
}

pub(crate) fn retract(unit: &Unit, event: &ActionEvent) -> Result {
    let bag = leaders_bag(unit)?;
    let id: u64 = event.param("id")?;
    let key = format!("{POST}{id}");
    bag.get::<String>(&key)?.context(format!("there is no post {id}"))?;
    bag.remove(&key)?;
    journal::tell(unit, &format!("retracted post {id}"))?;
    mirror(unit)
}

pub(crate) fn list(unit: &Unit, event: &ActionEvent) -> Result {
    let peers = unit.relation("loadbalancer").context("the unit has not settled yet")?;
    let posts = all(&peers.app_bag())?;
    event.set("count", posts.len())?;
    event.set_all(posts.iter().map(|(key, post)| (format!("posts.{key}"), post.lines().next().unwrap_or(""))))
}

/// Takes restored posts back, then publishes the posts to the backup charms. Leader only.
pub(crate) fn mirror(unit: &Unit) -> Result {
    let Some(peers) = unit.relation("loadbalancer") else { return Ok(()) };
    let backups = unit.relations("content");
    for relation in &backups {
        for member in relation.members()? {
            take(unit, &peers.app_bag(), relation, &member)?;
        }
    }
    let posts = all(&peers.app_bag())?;
    for relation in &backups {
        let content = posts.iter().map(|(key, post)| (format!("{CONTENT}{key}"), post.clone()));
        replace(&relation.app_bag(), CONTENT, content.collect())?;
        relation.app_bag().set("entries", posts.len())?;
    }
    Ok(())
}

/// Takes the posts that a backup unit restores, once for each of its requests.
fn take(unit: &Unit, posts: &OwnBag, relation: &Relation, member: &str) -> Result {
    let given = relation.member_bag(member);
    let request: Option<String> = given.get("restore")?;
    let key = format!("restored.{}", member.replace('/', "-"));
    let Some(request) = request else { return relation.app_bag().remove(&key) };
    if relation.app_bag().get(&key)?.as_ref() == Some(&request) {
        return Ok(());
    }
    let content = given.all()?.into_iter().filter_map(|(key, post)| {
        let key = key.strip_prefix(CONTENT).filter(|key| key.starts_with(POST))?;
        Some((key.to_owned(), post))
    });
    let content: BTreeMap<_, _> = content.collect();
    replace(posts, POST, content)?;
    relation.app_bag().set(&key, request)?;
    journal::tell(unit, &format!("took posts back from {member}"))
}

/// Replaces the keys of a bag that begin with `prefix`.
fn replace(bag: &OwnBag, prefix: &str, wanted: BTreeMap<String, String>) -> Result {
    let gone = bag.all()?.into_keys().filter(|key| key.starts_with(prefix) && !wanted.contains_key(key));
    let gone: Vec<_> = gone.map(|key| (key, String::new())).collect();
    bag.set_all(gone.into_iter().chain(wanted))
}

fn all(bag: &OwnBag) -> Result<BTreeMap<String, String>> {
    let mut posts = bag.all()?;
    posts.retain(|key, _| key.starts_with(POST));
    Ok(posts)
}

/// Returns the application bag of the peer relation, which only the leader writes.
fn leaders_bag(unit: &Unit) -> Result<OwnBag> {
    if !unit.is_leader()? {
        return Err(Error::new(format!("only the leader does this: run it on {}/leader", unit.app())));
    }
    Ok(unit.relation("loadbalancer").context("the unit has not settled yet")?.app_bag())
}
