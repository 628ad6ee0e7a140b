//! The operator's settings.

use periapt_sdk::{Config, Error, FromConfig, Result};

/// The largest number of backups per source: each is a file, and a disk has room for so many.
const MOST: u32 = 1_000;

pub(crate) struct Settings {
    /// The number of backups of each source to keep. `None` means all.
    pub(crate) keep: Option<u32>,
}

impl FromConfig for Settings {
    fn from_config(config: &Config) -> Result<Self> {
        match config.get("keep")? {
            0 => Ok(Self { keep: None }),
            keep @ 1..=MOST => Ok(Self { keep: Some(keep) }),
            keep => Err(Error::new(format!("option keep is {keep}, expected 0 to {MOST}"))),
        }
    }
}
