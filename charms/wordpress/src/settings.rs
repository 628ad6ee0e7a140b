//! The operator's settings.

use periapt_sdk::{Config, Error, FromConfig, Result};

pub(crate) struct Settings {
    pub(crate) title: String,
    pub(crate) port: u16,
    pub(crate) debug: bool,
}

impl FromConfig for Settings {
    fn from_config(config: &Config) -> Result<Self> {
        let port = config.get("port")?;
        if port == 0 {
            return Err(Error::new("option port is 0, expected 1 to 65535"));
        }
        Ok(Self { title: config.get("blog-title")?, port, debug: config.get("debug")? })
    }
}
