//! The path of the binary under test.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use periapt_helper::Program;

/// Returns the program with which a controller in a test's own process checks charms: the binary.
pub fn check_helper() -> anyhow::Result<Program> {
    let arguments = vec!["controller".into(), "check-charm".into()];
    Ok(Program { path: binary()?, arguments, environment: Vec::new() })
}

/// Returns the path of this build's `periapt` binary: `PERIAPT_BINARY`, or beside the test's own executable, as a
/// single call of cargo builds both (`tools/test`).
pub fn binary() -> anyhow::Result<PathBuf> {
    if let Some(path) = env::var_os("PERIAPT_BINARY") {
        return Ok(path.into());
    }
    let test = env::current_exe().context("this test's own executable")?;
    // `target/PROFILE/deps/TEST`
    let profile = test.parent().and_then(Path::parent).context("the build's directory")?;
    let binary = profile.join("periapt");
    if !binary.exists() {
        bail!(
            "{} is not built: run `cargo build --bin periapt`, or name it by PERIAPT_BINARY",
            binary.display()
        );
    }
    Ok(binary)
}
