//! The path of the binary under test.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail, ensure};
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

/// The exit code of `tools/previous` where the history is not there, as in a shallow clone.
const NO_HISTORY: i32 = 3;

/// Returns the path of the program of the previous release, which `tools/previous` compiles if needed; none if this
/// checkout has no history of it.
pub fn previous_binary() -> anyhow::Result<Option<PathBuf>> {
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/previous");
    let found = Command::new(tool).stdin(Stdio::null()).output().context("tools/previous cannot be run")?;
    let said = String::from_utf8_lossy(&found.stderr);
    if found.status.code() == Some(NO_HISTORY) {
        return Ok(None);
    }
    ensure!(found.status.success(), "{said}");
    Ok(Some(String::from_utf8(found.stdout)?.trim().into()))
}
