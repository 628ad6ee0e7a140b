//! `init`: the new charm of each language passes its own tests, packs, and becomes active once it is deployed.

use std::{path::Path, process::Command};

use anyhow::ensure;
use periapt_tests::Installation;

use crate::{
    go::{quiet, toolchain},
    text,
};

/// Creates a charm, runs its own tests with `test`, packs it, deploys it and waits until it is active.
fn begins(language: &str, test: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    begins_with(language, &[], test)
}

/// Does the same with environment variables for packing.
fn begins_with(
    language: &str,
    variables: &[(&str, &Path)],
    test: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let said = periapt.run(["init", "--language", language, "my-charm"])?;
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let directory = periapt.path().join("my-charm");
    test(&directory)?;
    let packed = periapt.command(["pack", "./my-charm"]).envs(variables.iter().copied()).output()?;
    ensure!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    periapt.ok(["deploy", "./my-charm.charm", "--config", "greeting=Ahoy"])?;
    periapt.wait_for(["application", "my-charm", "--status", "active", "--message", "says Ahoy"])?;
    let shown = periapt.json(["run", "my-charm/0", "greet", "whom=you"])?;
    assert_eq!(text(&shown, "/my-charm~10/results/greeting")?, "Ahoy, you!");
    Ok(())
}

/// Runs a tool of the language in the charm's directory. npm gets an empty cache: the charm's dependencies must be
/// beside it.
fn run(directory: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let cache = tempfile::tempdir()?;
    let mut command = Command::new(program);
    let output =
        command.args(arguments).current_dir(directory).env("npm_config_cache", cache.path()).output()?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {arguments:?}: {said}");
    Ok(())
}

#[test]
fn a_new_charm_in_javascript_is_tested_packed_and_active() -> anyhow::Result<()> {
    begins("js", |directory| {
        // The charm's only dependency is beside it: npm fetches nothing.
        run(directory, "npm", &["install", "--offline", "--no-audit", "--no-fund"])?;
        run(directory, "npm", &["test"])
    })
}

#[test]
fn a_new_charm_in_c_is_tested_packed_and_active() -> anyhow::Result<()> {
    begins("c", |directory| run(directory, "make", &["test"]))
}

#[test]
fn a_new_charm_in_go_is_tested_packed_and_active() -> anyhow::Result<()> {
    let Some(go) = toolchain()? else { return Ok(()) };
    begins_with("go", &[("PERIAPT_GO", &go)], |directory| {
        let mut command = quiet(&go);
        let output = command.args(["test", "./..."]).current_dir(directory).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        Ok(())
    })
}

#[test]
fn a_new_charm_in_rust_is_packed_and_active() -> anyhow::Result<()> {
    // `tools/test` runs the charm's tests, in one place, where the SDK is compiled once.
    begins("rust", |_| Ok(()))
}

#[test]
fn a_new_charm_in_python_is_packed_and_active() -> anyhow::Result<()> {
    // The charm's tests need packages from PyPI.
    begins("python", |_| Ok(()))
}

#[test]
fn a_new_charm_takes_no_place_that_is_taken_and_no_name_that_is_none() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["init", "--language", "c", "my-charm"])?;
    let said = periapt.refused(["init", "--language", "js", "my-charm"])?;
    assert!(said.contains("my-charm is not empty\nhint: name a directory that does not exist yet"), "{said}");
    let said = periapt.refused(["init", "--language", "js", "My_Charm"])?;
    assert!(said.contains("hint: say the charm's name with --name"), "{said}");
    assert!(!periapt.path().join("My_Charm").exists());
    periapt.ok(["init", "--language", "js", "My_Charm", "--name", "mine"])?;
    Ok(())
}
