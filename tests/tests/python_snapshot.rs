//! A charm in Python that keeps data from the time of its import, in the sandbox (`tests/guests/python-snapshot`).
#![expect(clippy::tests_outside_test_module, reason = "this is a test program")]

use std::{fs, path::Path};

use periapt_host_api::commit::EarlyEffect;
use periapt_trial::{CompiledCache, Scene, Trial, TrialOutcome};
use serde_json::json;

#[test]
fn no_handle_of_the_build_is_left_in_a_hook_and_places_are_those_of_a_hook() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let archive = fs::read(periapt_tests::packed("python-snapshot", place.path())?)?;
    let storage = place.path().join("scratch");
    fs::create_dir(&storage)?;
    let cache = CompiledCache::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"))?;
    let trial = Trial::open(&archive, &cache)?;
    let scene: Scene = serde_json::from_value(json!({
        "unit": "python-snapshot/0",
        "event": {"hook": "config-changed"},
        "storages": [{"id": "scratch/0", "directory": storage}],
    }))?;
    let tried = tokio::runtime::Runtime::new()?.block_on(trial.run(&scene))?;
    assert!(matches!(tried.outcome, TrialOutcome::Handled), "{:?}", tried.outcome);
    let told: Vec<_> = tried
        .early
        .iter()
        .filter_map(|effect| match effect {
            EarlyEffect::UnitStatus { message, .. } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["10 uses"]);
    Ok(())
}
