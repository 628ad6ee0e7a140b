//! Secrets through typed calls. Outside of a secret, content is written backwards, because tests search for the
//! content in places where it must not be.

use periapt_sdk::{Config, Context, Event, FromConfig, Result, Secret, SecretContent, Unit, info};

/// The probe's label for its own secret.
pub(crate) const LABEL: &str = "shared";

/// The key of the secret's URI in the bag.
const KEY: &str = "secret";

struct Token(Option<String>);

impl FromConfig for Token {
    fn from_config(config: &Config) -> Result<Self> {
        config.get("token").map(Self)
    }
}

/// Adds a secret, grants it, and publishes its URI.
pub(crate) fn share(unit: &Unit, event: &Event, key: &str, value: &str) -> Result {
    let relation = event.relation().context("share belongs to a relation's hook")?;
    let secret = unit.app_secret().label(LABEL).value(key, backwards(value)).add()?;
    secret.grant(relation)?;
    relation.app_bag().set(KEY, &secret)
}

/// Adds a revision.
pub(crate) fn revise(unit: &Unit, key: &str, value: &str) -> Result {
    unit.secret_labelled(LABEL)?.change().value(key, backwards(value)).apply()
}

/// Removes the revision of the event.
pub(crate) fn prune(event: &Event) -> Result {
    let (Event::SecretExpired(about) | Event::SecretRemove(about)) = event else { return Ok(()) };
    Secret::new(about.uri.as_str()).remove_revision(about.revision)
}

/// Reads the event's secret, or the secret that the other end shares.
pub(crate) fn open(event: &Event) -> Result {
    let uri = match (event, event.relation()) {
        (Event::SecretChanged(about), _) => Some(about.uri.clone()),
        (_, Some(relation)) => relation.remote_app_bag()?.get(KEY)?,
        (_, None) => None,
    };
    match uri {
        Some(uri) => log(&Secret::new(uri).refresh()?),
        None => Ok(()),
    }
}

/// Reads the secret that the operator names.
pub(crate) fn open_token(unit: &Unit) -> Result {
    match unit.config()? {
        Token(Some(uri)) => log(&Secret::new(uri).get()?),
        Token(None) => Ok(()),
    }
}

fn log(content: &SecretContent) -> Result {
    for key in content.keys() {
        info!("opened {key}={}", backwards(content.text(key)?));
    }
    Ok(())
}

fn backwards(text: &str) -> String {
    text.chars().rev().collect()
}
