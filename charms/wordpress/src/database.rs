//! The account that the database publishes in the relation.

use periapt_sdk::{Relation, Result};

pub(crate) struct Database {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) character_set: String,
}

impl Database {
    /// Returns the account, once the remote application's bag has all of it.
    pub(crate) fn given_by(relation: &Relation) -> Result<Option<Self>> {
        let bag = relation.remote_app_bag()?;
        let (Some(host), Some(port), Some(name), Some(user), Some(password)) = (
            bag.get("host")?,
            bag.get("port")?,
            bag.get("database")?,
            bag.get("user")?,
            bag.get("password")?,
        ) else {
            return Ok(None);
        };
        let character_set = bag.get("character-set")?.unwrap_or_else(|| "utf8mb4".to_owned());
        Ok(Some(Self { host, port, name, user, password, character_set }))
    }
}
