//! One account per related application.
//!
//! The passwords are in the application bag of the peer relation: generated once, and readable by every later hook
//! and every later leader. A relation's number is never reused, so it identifies the account for ever.

use crate::{PORT, password, replication, settings::Settings};
use periapt_sdk::{Relation, Result, Unit, info};

/// The longest name of a MySQL database.
const MAX_NAME: usize = 64;

/// Creates the relation's account if there is none, and publishes it; leader only.
pub(crate) fn offer(unit: &Unit, peers: &Relation, relation: &Relation, settings: &Settings) -> Result {
    let app = relation.remote_app()?;
    let recorded = peers.app_bag().get(&key(relation))?;
    let password = match recorded {
        Some(password) => password,
        None => {
            let password = password::generate()?;
            peers.app_bag().set(&key(relation), &password)?;
            info!("made an account for {app} ({relation})");
            password
        }
    };
    relation.app_bag().set_all([
        ("host", replication::host(unit, relation)?),
        ("port", PORT.to_string()),
        ("database", database(&app, relation)),
        ("user", format!("relation-{}", relation.id())),
        ("password", password),
        ("character-set", settings.character_set.clone()),
        ("max-connections", settings.max_connections.to_string()),
    ])
}

/// Drops the relation's account. Returns false if there was none. Leader only.
pub(crate) fn drop(unit: &Unit, relation: &Relation) -> Result<bool> {
    let Some(peers) = unit.relation("replicas") else { return Ok(false) };
    if peers.app_bag().get::<String>(&key(relation))?.is_none() {
        return Ok(false);
    }
    peers.app_bag().remove(&key(relation))?;
    Ok(true)
}

/// Counts the accounts.
pub(crate) fn count(peers: &Relation) -> Result<usize> {
    Ok(peers.app_bag().all()?.keys().filter(|key| key.starts_with("password-")).count())
}

fn key(relation: &Relation) -> String {
    format!("password-{}", relation.id())
}

/// Returns `APPLICATION_RELATION`. If it is too long, the application's part is shortened.
fn database(app: &str, relation: &Relation) -> String {
    let suffix = format!("_{}", relation.id());
    let room = MAX_NAME.saturating_sub(suffix.len());
    let name: String = app.chars().map(|c| if c == '-' { '_' } else { c }).take(room).collect();
    name + &suffix
}
