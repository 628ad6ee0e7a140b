//! Charms that are damaged on the way to an agent.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, RunningProcess, packed};

use crate::text;

const STATUS: &str = "/applications/mysql/units/mysql~10/juju-status/current";
const MESSAGE: &str = "/applications/mysql/units/mysql~10/juju-status/message";

/// Returns the files below a directory.
fn files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    Ok(found)
}

/// Creates a unit without an agent; returns the controller's file of its charm and the file's content.
fn without_agent() -> anyhow::Result<(Installation, PathBuf, Vec<u8>)> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("mysql", [])?;
    let blobs = files(&periapt.path().join("data/controllers/local/controller/blobs"))?;
    ensure!(blobs.len() == 1, "{blobs:?}");
    let blob = blobs.into_iter().next().context("the charm")?;
    let whole = fs::read(&blob)?;
    Ok((periapt, blob, whole))
}

fn agent(periapt: &Installation) -> anyhow::Result<RunningProcess> {
    let mut agent = periapt.agent("first", [])?;
    assert_eq!(agent.first_line()?, "ready first");
    Ok(agent)
}

#[test]
fn a_charm_that_is_damaged_on_arrival_is_seen_in_status_and_goes_on_when_it_is_mended() -> anyhow::Result<()>
{
    let (periapt, blob, whole) = without_agent()?;
    let name = blob.file_name().context("a name")?.to_string_lossy().into_owned();
    fs::write(&blob, &whole[..whole.len() / 2])?;
    let _agent = agent(&periapt)?;
    let failed = |value: &serde_json::Value| text(value, STATUS).is_ok_and(|status| status == "failed");
    let status = periapt.json_until(&["status"], failed)?;
    let cut_off = text(&status, MESSAGE)?.to_owned();
    assert!(
        cut_off.contains("a charm that is damaged: it has digest ")
            && cut_off.contains(&name)
            && cut_off.ends_with("; uploading the same file again replaces it"),
        "{cut_off}"
    );
    let shown = periapt.ok(["status"])?;
    assert!(shown.contains("failed") && shown.contains(&name), "{shown}");
    let log = ["debug-log", "--replay", "--no-tail", "--level", "WARNING"];
    periapt.ok_until(&log, |log| log.contains(&cut_off))?;

    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    fs::write(&blob, flipped)?;
    let failed_anew = |value: &serde_json::Value| {
        failed(value) && text(value, MESSAGE).is_ok_and(|message| message != cut_off)
    };
    periapt.json_until(&["status"], failed_anew)?;

    // A second upload of the same file: the controller detects the damaged blob, and replaces it.
    let archive = packed("mysql", periapt.path())?.display().to_string();
    periapt.ok(["refresh", "mysql", "--path", archive.as_str()])?;
    assert!(fs::read(&blob)? == whole, "the upload replaces the damaged archive");
    periapt.wait_for(["model"])?;
    let status = periapt.json(["status"])?;
    assert_eq!((text(&status, STATUS)?, text(&status, MESSAGE).unwrap_or_default()), ("idle", ""));
    Ok(())
}

#[test]
fn a_unit_whose_charm_is_damaged_can_be_removed() -> anyhow::Result<()> {
    let (periapt, blob, whole) = without_agent()?;
    fs::write(&blob, &whole[..whole.len() / 2])?;
    let _agent = agent(&periapt)?;
    let failed = |value: &serde_json::Value| text(value, STATUS).is_ok_and(|status| status == "failed");
    periapt.json_until(&["status"], failed)?;
    periapt.ok(["remove-unit", "mysql/0", "--no-prompt"])?;
    periapt.wait_for(["unit", "mysql/0", "--gone"])
}
