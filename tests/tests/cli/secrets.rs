//! Secrets, from one charm's hook to another's and to the disk, where no content stands.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use periapt_tests::Installation;

/// Contents, none of which the test writes anywhere but into secrets: scripts have them backwards.
const CONTENTS: [&str; 3] = ["first-needle-4711", "second-needle-4712", "users-needle-4713"];

/// What stands in a bag, in the same database: who looks for it finds it.
const CONTROL: &str = "control-needle-4714";

/// How long anything may take.
const UNTIL: Duration = Duration::from_secs(90);

fn backwards(text: &str) -> String {
    text.chars().rev().collect()
}

/// An owner and a reader, which opens what it is granted.
pub(crate) fn related(owner: &str) -> anyhow::Result<Installation> {
    let periapt = Installation::bootstrapped()?;
    let script = format!("script={owner}");
    periapt.deploy("probe", ["owner", "--config", &script])?;
    periapt.deploy("probe", ["reader", "--config", "script=*: open\n*: open-token"])?;
    for name in ["owner", "reader"] {
        periapt.wait_for(["application", name, "--status", "unknown"])?;
    }
    periapt.ok(["integrate", "owner:db", "reader:sink"])?;
    Ok(periapt)
}

/// Waits until a unit has logged something.
pub(crate) fn logged(periapt: &Installation, unit: &str, text: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + UNTIL;
    loop {
        let log = periapt.ok(["debug-log", "--replay", "--no-tail", "--include", unit])?;
        if log.contains(text) {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < deadline, "{unit} has not said {text:?}: {log}");
    }
}

#[test]
fn a_secret_goes_from_one_charm_to_another_and_stands_nowhere_else() -> anyhow::Result<()> {
    let [first, second, users] = CONTENTS.map(backwards);
    let periapt = related(&format!(
        "db-relation-created: share password={first}\ndb-relation-created: set plain={CONTROL}\n\
         config-changed: tool leader-get\nsecret-remove: prune"
    ))?;
    logged(&periapt, "reader/0", &format!("opened password={first}"))?;

    // Another revision: the reader hears of it and tracks it, and the owner hears that nobody tracks the first.
    let script = format!("script=config-changed: revise password={second}\nsecret-remove: prune");
    periapt.ok(["config", "owner", &script])?;
    logged(&periapt, "reader/0", &format!("opened password={second}"))?;
    logged(&periapt, "owner/0", "event secret-remove")?;

    // A user's, named by an option.
    let uri = periapt.ok(["add-secret", "token", &format!("token={}", CONTENTS[2])])?;
    periapt.ok(["grant-secret", "token", "reader"])?;
    periapt.ok(["config", "reader", &format!("token={}", uri.trim_end())])?;
    logged(&periapt, "reader/0", &format!("opened token={users}"))?;
    let secrets = periapt.json(["secrets"])?;
    assert_eq!(secrets.as_object().context("a map")?.len(), 2, "{secrets}");

    let data = periapt.path().join("data");
    assert!(holds(&data, CONTROL)?, "the control stands in the database");
    for content in CONTENTS {
        assert!(!holds(&data, content)?, "{content} stands in the clear below {}", data.display());
    }
    Ok(())
}

#[test]
fn the_owner_hears_that_a_revision_expired() -> anyhow::Result<()> {
    let script =
        "db-relation-created: share password=eno\ndb-relation-created: expire 1s\nsecret-expired: prune";
    let periapt = related(script)?;
    logged(&periapt, "owner/0", "event secret-expired")?;
    periapt.json_until(&["secrets"], |secrets| secrets.as_object().is_some_and(serde_json::Map::is_empty))?;
    Ok(())
}

/// Whether a text stands in some file below a directory, as bytes or as base64 of them.
fn holds(directory: &Path, text: &str) -> anyhow::Result<bool> {
    use base64::Engine as _;
    // Base64 of a text differs by where in a group of three it begins.
    let encoded = (0..3).map(|skip| {
        let padded = format!("{}{text}", "x".repeat(skip));
        let whole = base64::engine::general_purpose::STANDARD_NO_PAD.encode(padded);
        whole.get(4..whole.len() - 4).unwrap_or_default().to_owned()
    });
    let wanted: Vec<String> = [text.to_owned()].into_iter().chain(encoded).collect();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            if holds(&entry.path(), text)? {
                return Ok(true);
            }
        } else if entry.file_type()?.is_file() {
            // A database at work deletes files.
            let Ok(bytes) = std::fs::read(entry.path()) else { continue };
            let found =
                |wanted: &String| bytes.windows(wanted.len()).any(|window| window == wanted.as_bytes());
            if wanted.iter().any(found) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
