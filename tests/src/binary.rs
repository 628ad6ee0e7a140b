//! Where the binary under test lies.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use periapt_helper::Program;

/// How a controller in a test's own process has charms checked: by the binary.
pub fn check_helper() -> anyhow::Result<Program> {
    let arguments = vec!["controller".into(), "check-charm".into()];
    Ok(Program { path: binary()?, arguments, environment: Vec::new() })
}

/// The `periapt` binary of this build: `PERIAPT_BINARY`, or beside the test's own executable, where one call of
/// cargo builds both (`tools/test`).
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
