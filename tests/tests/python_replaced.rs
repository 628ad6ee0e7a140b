//! A charm in Python with pure-Python replacements of libraries that elsewhere use native code
//! (`tests/guests/python-replaced`).
#![expect(clippy::tests_outside_test_module, reason = "this is a test program")]

use std::{fs, path::Path};

use periapt_host_api::commit::EarlyEffect;
use periapt_trial::{CompiledCache, Scene, Trial, TrialOutcome};
use serde_json::json;

#[test]
fn what_is_native_code_elsewhere_does_the_same_in_a_hook() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let archive = fs::read(periapt_tests::packed("python-replaced", place.path())?)?;
    let cache = CompiledCache::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"))?;
    let trial = Trial::open(&archive, &cache)?;
    let scene: Scene = serde_json::from_value(json!({
        "unit": "python-replaced/0",
        "event": {"hook": "config-changed"},
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
    let expected = "CERT_REQUIRED, 88 bytes";
    assert_eq!(told, [expected]);
    Ok(())
}
