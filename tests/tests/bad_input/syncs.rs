//! A disk whose syncs fail: writes that are not durable are neither acknowledged nor visible.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::ensure;
use periapt_tests::Installation;

/// Builds a replacement of the C library's sync functions.
fn failing_sync(directory: &Path) -> anyhow::Result<PathBuf> {
    let library = directory.join("failing_sync.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad_input/failing_sync.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status()?;
    ensure!(built.success(), "cc does not build it");
    Ok(library)
}

#[test]
fn a_failing_sync_is_told_and_what_it_failed_on_is_not_seen() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let (library, failing) = (failing_sync(periapt.path())?, periapt.path().join("failing"));
    let bootstrapped = periapt
        .command(["bootstrap", "--no-agent"])
        .env("LD_PRELOAD", library)
        .env("FAILING_SYNC", &failing)
        .output()?;
    ensure!(bootstrapped.status.success(), "{bootstrapped:?}");
    periapt.ok(["add-model", "before"])?;

    fs::write(&failing, "")?;
    // The outcome of the first write is unknown; the second one never reached the store.
    for (name, tells) in
        [("one", "check whether the request had an effect"), ("two", "the request had no effect")]
    {
        let error = periapt.refused(["add-model", name])?;
        for part in ["Input/output error", "hint: ", "the store", tells] {
            assert!(error.contains(part), "does not say {part:?}: {error}");
        }
    }
    let status = periapt.ok(["status", "-m", "before"])?;
    assert!(status.contains("Input/output error"), "the problem is seen in the status: {status}");
    let models = |listing: serde_json::Value| -> Vec<String> {
        let models = listing["models"].as_array().cloned().unwrap_or_default();
        models.iter().map(|model| model["short-name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(models(periapt.json(["models"])?), ["before"]);

    fs::remove_file(&failing)?;
    let began = Instant::now();
    while periapt.run(["add-model", "after"])?.code != Some(0) {
        ensure!(began.elapsed() < Duration::from_secs(60), "it never goes on");
    }
    // The write with the unknown outcome may have happened, completely; the one that was refused without a write has
    // not.
    let now = models(periapt.json(["models"])?);
    assert!(now == ["after", "before"] || now == ["after", "before", "one"], "{now:?}");
    Ok(())
}
