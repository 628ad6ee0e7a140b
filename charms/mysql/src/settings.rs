//! The operator's settings.

use periapt_sdk::{Config, Error, FromConfig, Result};

pub(crate) struct Settings {
    pub(crate) max_connections: u32,
    pub(crate) character_set: String,
}

impl FromConfig for Settings {
    fn from_config(config: &Config) -> Result<Self> {
        let max_connections = config.get("max-connections")?;
        if !(1..=100_000).contains(&max_connections) {
            let message = format!("option max-connections is {max_connections}, expected 1 to 100000");
            return Err(Error::new(message));
        }
        let character_set: String = config.get("character-set")?;
        if !character_set.chars().all(|c| c.is_ascii_alphanumeric()) || character_set.is_empty() {
            let message =
                format!("option character-set is \"{character_set}\", expected a name such as utf8mb4");
            return Err(Error::new(message));
        }
        Ok(Self { max_connections, character_set })
    }
}
