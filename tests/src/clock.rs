//! The wall clock of an installation's host, which a test sets.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};

use crate::Installation;

impl Installation {
    /// Gives the host a wall clock that [`Self::set_clock`] sets. Its monotonic clocks are the machine's.
    ///
    /// # Errors
    /// There is no libfaketime, and `tools/faketime` cannot fetch it.
    pub fn with_own_clock(self) -> anyhow::Result<Self> {
        let clock = clock(self.path());
        // The library reads the file again once a second.
        let this = self.with_environment([
            ("LD_PRELOAD", library()?.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", clock.display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ("NO_FAKE_STAT", "1".into()),
        ]);
        this.set_clock(0)?;
        Ok(this)
    }

    /// Sets the wall clock to so many seconds ahead of the machine's.
    pub fn set_clock(&self, ahead: i64) -> anyhow::Result<()> {
        let (clock, new) = (clock(self.path()), self.path().join("clock.new"));
        fs::write(&new, format!("{ahead:+}s\n"))?;
        fs::rename(new, clock).context("the host's clock")
    }
}

fn clock(directory: &Path) -> PathBuf {
    directory.join("clock")
}

/// Returns the path of libfaketime, which `tools/faketime` finds or downloads.
fn library() -> anyhow::Result<PathBuf> {
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/faketime");
    let found = Command::new(tool).stdin(Stdio::null()).output().context("tools/faketime cannot be run")?;
    ensure!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    Ok(String::from_utf8(found.stdout)?.trim().into())
}
