//! A charm in Python with native code built for the sandbox: pydantic's core, rpds (which jsonschema uses), and
//! msgspec (`tests/guests/python-native`).
#![expect(clippy::tests_outside_test_module, reason = "this is a test program")]

use std::{fs, path::Path};

use periapt_host_api::commit::EarlyEffect;
use periapt_trial::{CompiledCache, Scene, Trial, TrialOutcome, TrialResult};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The charm and its trial runner.
struct Native {
    trial: Trial,
    runtime: Runtime,
}

impl Native {
    fn open() -> anyhow::Result<Self> {
        let place = tempfile::tempdir()?;
        let archive = fs::read(periapt_tests::packed("python-native", place.path())?)?;
        let cache = CompiledCache::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"))?;
        Ok(Self { trial: Trial::open(&archive, &cache)?, runtime: Runtime::new()? })
    }

    /// Runs a hook with a configuration and further fields of the scene.
    fn hook(&self, config: &Value, more: &Value) -> anyhow::Result<TrialResult> {
        let mut scene =
            json!({"unit": "python-native/0", "event": {"hook": "config-changed"}, "config": config});
        if let (Some(scene), Some(more)) = (scene.as_object_mut(), more.as_object()) {
            scene.extend(more.clone());
        }
        let scene: Scene = serde_json::from_value(scene)?;
        Ok(self.runtime.block_on(self.trial.run(&scene))?)
    }

    /// Returns the status that a successful hook sets.
    fn status(&self, config: &Value) -> anyhow::Result<String> {
        status_of(&self.hook(config, &json!({}))?)
    }
}

fn status_of(tried: &TrialResult) -> anyhow::Result<String> {
    anyhow::ensure!(matches!(tried.outcome, TrialOutcome::Handled), "{:?}", tried.outcome);
    let said = tried.early.iter().rev().find_map(|effect| match effect {
        EarlyEffect::UnitStatus { message, .. } => Some(message.clone()),
        _ => None,
    });
    Ok(said.unwrap_or_default())
}

#[test]
fn a_discriminated_union_reads_a_charms_configuration() -> anyhow::Result<()> {
    let native = Native::open()?;
    assert_eq!(native.status(&json!({"kind": "plain", "port": 26}))?, "Plain(kind='plain', port=26)");
    let secured = native.status(&json!({"kind": "secured", "certificate": "pem"}))?;
    assert_eq!(secured, "Secured(kind='secured', certificate='pem')");
    Ok(())
}

#[test]
fn a_named_tuple_is_a_field() -> anyhow::Result<()> {
    let status = Native::open()?.status(&json!({"mode": "name"}))?;
    assert_eq!(status, r#"{"address":["a.b",26],"tags":["x"]}"#);
    Ok(())
}

#[test]
fn jsonschema_judges() -> anyhow::Result<()> {
    assert_eq!(Native::open()?.status(&json!({"mode": "judge"}))?, "'x' is not of type 'integer'");
    Ok(())
}

#[test]
fn msgspec_decodes_by_types() -> anyhow::Result<()> {
    let status = Native::open()?.status(&json!({"mode": "decode"}))?;
    let expected =
        r#"{"type":"share","mount-point":"/a","tags":[]}, Expected `str`, got `int` - at `$[0].mount-point`"#;
    assert_eq!(status, expected);
    Ok(())
}

#[test]
fn what_is_not_valid_is_an_exception() -> anyhow::Result<()> {
    let native = Native::open()?;
    let caught = native.status(&json!({"mode": "raise"}))?;
    assert_eq!(caught, "1 wrong: Input should be greater than or equal to 1");
    // An uncaught validation error fails the hook like any other exception.
    let tried = native.hook(&json!({"mode": "fail"}), &json!({}))?;
    let TrialOutcome::Failed { kind, message, .. } = &tried.outcome else { panic!("{:?}", tried.outcome) };
    assert_eq!(kind, "failed");
    assert!(message.contains("1 validation error for Plain"), "{message}");
    Ok(())
}

/// Outside of the sandbox, the panic would become an exception.
#[test]
fn a_panic_in_native_code_ends_the_hook_and_no_other() -> anyhow::Result<()> {
    let native = Native::open()?;
    for _ in 0..2 {
        let tried = native.hook(&json!({"mode": "panic"}), &json!({}))?;
        assert!(
            matches!(&tried.outcome, TrialOutcome::Failed { kind, .. } if kind == "panicked"),
            "{:?}",
            tried.outcome
        );
        assert_eq!(native.status(&json!({"port": 26}))?, "Plain(kind='plain', port=26)");
    }
    Ok(())
}

#[test]
fn native_code_has_no_more_memory_than_a_hook() -> anyhow::Result<()> {
    let tried = Native::open()?.hook(&json!({"mode": "fill"}), &json!({}))?;
    assert!(
        matches!(&tried.outcome, TrialOutcome::Failed { kind, .. } if kind == "out-of-memory"),
        "{:?}",
        tried.outcome
    );
    Ok(())
}

/// A hook that runs again after its agent died must give the same result.
#[test]
fn collections_of_native_code_have_one_order_in_all_hooks() -> anyhow::Result<()> {
    let native = Native::open()?;
    let seeded = |seed: &str| -> anyhow::Result<String> {
        status_of(&native.hook(&json!({"mode": "order"}), &json!({"seed": seed.repeat(32)}))?)
    };
    let order = seeded("07")?;
    assert_eq!(order.matches(", ").count(), 39, "{order}");
    assert_eq!(order, seeded("07")?);
    assert_eq!(order, seeded("08")?);
    Ok(())
}
