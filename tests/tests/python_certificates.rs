//! A charm in Python that generates keys and issues certificates, with `cryptography` built for the sandbox
//! (`tests/guests/python-certificates`).
#![expect(clippy::tests_outside_test_module, reason = "this is a test program")]

use std::{collections::BTreeSet, fs, path::Path};

use periapt_host_api::commit::EarlyEffect;
use periapt_trial::{CompiledCache, Scene, Trial, TrialOutcome};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The charm and its trial runner.
struct Certificates {
    trial: Trial,
    runtime: Runtime,
}

impl Certificates {
    fn open() -> anyhow::Result<Self> {
        let place = tempfile::tempdir()?;
        let archive = fs::read(periapt_tests::packed("python-certificates", place.path())?)?;
        let cache = CompiledCache::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"))?;
        Ok(Self { trial: Trial::open(&archive, &cache)?, runtime: Runtime::new()? })
    }

    /// Returns the status that a unit's hook sets under a configuration, with random numbers from `seed` if there is
    /// one.
    fn status(&self, unit: &str, config: &Value, seed: Option<&str>) -> anyhow::Result<String> {
        let mut scene = json!({"unit": unit, "event": {"hook": "config-changed"}, "config": config});
        if let (Some(seed), Some(scene)) = (seed, scene.as_object_mut()) {
            scene.insert("seed".to_owned(), seed.repeat(32).into());
        }
        let scene: Scene = serde_json::from_value(scene)?;
        let tried = self.runtime.block_on(self.trial.run(&scene))?;
        anyhow::ensure!(matches!(tried.outcome, TrialOutcome::Handled), "{:?}", tried.outcome);
        let said = tried.early.iter().rev().find_map(|effect| match effect {
            EarlyEffect::UnitStatus { message, .. } => Some(message.clone()),
            _ => None,
        });
        Ok(said.unwrap_or_default())
    }

    fn first(&self, config: &Value) -> anyhow::Result<String> {
        self.status("python-certificates/0", config, None)
    }
}

#[test]
fn a_certificate_is_asked_for_issued_and_verified() -> anyhow::Result<()> {
    let charm = Certificates::open()?;
    for key in ["ec", "rsa"] {
        let said = charm.first(&json!({"mode": "issue", "key": key}))?;
        assert_eq!(said, "issued to CN=unit.example by CN=ca", "{key}");
    }
    Ok(())
}

#[test]
fn the_library_for_certificates_issues_one() -> anyhow::Result<()> {
    let said = Certificates::open()?.first(&json!({"mode": "relate"}))?;
    assert_eq!(said, "issued to unit.example, key valid: True");
    Ok(())
}

#[test]
fn keys_are_kept_with_a_password() -> anyhow::Result<()> {
    assert_eq!(
        Certificates::open()?.first(&json!({"mode": "keep"}))?,
        "-----BEGIN ENCRYPTED PRIVATE KEY-----"
    );
    Ok(())
}

#[test]
fn tokens_are_read_with_their_key_alone() -> anyhow::Result<()> {
    assert_eq!(Certificates::open()?.first(&json!({"mode": "token"}))?, "kept");
    Ok(())
}

#[test]
fn what_was_made_while_packing_is_used_in_hooks() -> anyhow::Result<()> {
    assert_eq!(Certificates::open()?.first(&json!({"mode": "packed"}))?, "verified");
    Ok(())
}

/// All hooks start from the same memory snapshot, in which OpenSSL had already drawn random numbers during packing.
#[test]
fn no_two_hooks_make_the_same_keys() -> anyhow::Result<()> {
    let charm = Certificates::open()?;
    for key in ["ec", "ed25519", "rsa"] {
        let config = json!({"mode": "draw", "key": key});
        let mut drawn = BTreeSet::new();
        for unit in ["python-certificates/0", "python-certificates/0", "python-certificates/1"] {
            let said = charm.status(unit, &config, None)?;
            // A key, a serial number and a signature.
            assert_eq!(said.split(' ').count(), 3, "{said}");
            drawn.extend(said.split(' ').map(str::to_owned));
        }
        assert_eq!(drawn.len(), 9, "{key}: {drawn:?}");
    }
    Ok(())
}

/// A hook that runs again after its agent died must give the same result.
#[test]
fn keys_come_from_the_hooks_seed_alone() -> anyhow::Result<()> {
    let charm = Certificates::open()?;
    for key in ["ec", "ed25519", "rsa"] {
        let seeded = |seed| -> anyhow::Result<String> {
            let config = json!({"mode": "draw", "key": key});
            charm.status("python-certificates/0", &config, Some(seed))
        };
        let drawn = seeded("07")?;
        assert_eq!(drawn, seeded("07")?, "{key}");
        let other = seeded("08")?;
        for (one, another) in drawn.split(' ').zip(other.split(' ')) {
            assert_ne!(one, another, "{key}");
        }
    }
    Ok(())
}
