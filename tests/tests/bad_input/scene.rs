//! An installation, and the check that a mistake changes nothing in it.

use std::{collections::BTreeMap, ffi::OsStr, fs, path::Path};

use anyhow::ensure;
use periapt_tests::Installation;
use serde_json::Value;

/// A mistake: a command line, and the parts of its error.
pub(crate) type Mistake<'a> = (Vec<&'a str>, Vec<&'a str>);

/// Creates a controller without an agent, so that only the operator changes things, and a model `test`.
pub(crate) fn quiet() -> anyhow::Result<Installation> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    Ok(periapt)
}

/// The state that a mistake must not change: the model and the files.
#[derive(Debug, PartialEq)]
pub(crate) struct Scene {
    status: Value,
    client: String,
    /// The test's own directory and the controller's blobs, with the sizes of files.
    files: BTreeMap<String, u64>,
}

impl Scene {
    pub(crate) fn of(periapt: &Installation) -> anyhow::Result<Self> {
        let mut files = BTreeMap::new();
        list(periapt.path(), &mut files)?;
        // Services write these by themselves.
        files.retain(|path, _| !path.contains("/store/") && !path.ends_with(".log"));
        let client = fs::read_to_string(periapt.path().join("data/client.json"))?;
        let mut status = periapt.json(["status", "--relations"])?;
        // These fields describe the moment of the status.
        for volatile in ["/controller/timestamp", "/controller/revision"] {
            if let Some(value) = status.pointer_mut(volatile) {
                value.take();
            }
        }
        // A unit's status changes some time after its creation, while it waits for an agent.
        let applications = status.pointer_mut("/applications").and_then(Value::as_object_mut);
        for (_, application) in applications.into_iter().flatten() {
            let units = application.pointer_mut("/units").and_then(Value::as_object_mut);
            for (_, unit) in units.into_iter().flatten() {
                unit.as_object_mut().and_then(|unit| unit.remove("juju-status"));
            }
        }
        Ok(Self { status, client, files })
    }
}

fn list(directory: &Path, files: &mut BTreeMap<String, u64>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.insert(format!("{}/", path.display()), 0);
            list(&path, files)?;
        } else {
            files.insert(path.display().to_string(), fs::metadata(&path)?.len());
        }
    }
    Ok(())
}

/// Makes a mistake, and checks that its error contains `says` and that nothing changes.
pub(crate) fn check(
    periapt: &Installation,
    arguments: &[impl AsRef<OsStr> + std::fmt::Debug],
    says: &[&str],
) -> anyhow::Result<()> {
    let before = Scene::of(periapt)?;
    let error = periapt.refused(arguments)?;
    for part in says {
        ensure!(error.contains(part), "{arguments:?} does not say {part:?}: {error}");
    }
    let after = Scene::of(periapt)?;
    ensure!(before == after, "{arguments:?} left something behind:\n{before:#?}\n{after:#?}");
    Ok(())
}

/// Checks a table of mistakes.
pub(crate) fn check_all(periapt: &Installation, mistakes: Vec<Mistake<'_>>) -> anyhow::Result<()> {
    mistakes.into_iter().try_for_each(|(arguments, says)| check(periapt, &arguments, &says))
}
