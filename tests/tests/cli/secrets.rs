//! Secrets, from one charm's hook to another's and to the disk, which holds no content in clear.

use std::path::Path;

use anyhow::Context as _;
use periapt_tests::Installation;

/// The contents. The test writes them only into secrets; scripts have them backwards.
const CONTENTS: [&str; 3] = ["first-needle-4711", "second-needle-4712", "users-needle-4713"];

/// A value of a bag in the same database, which proves that the search works.
const CONTROL: &str = "control-needle-4714";

fn backwards(text: &str) -> String {
    text.chars().rev().collect()
}

/// Creates an owner and a reader, which opens the secrets granted to it.
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

/// Waits until a unit has logged a text.
pub(crate) fn logged(periapt: &Installation, unit: &str, text: &str) -> anyhow::Result<()> {
    let log = ["debug-log", "--replay", "--no-tail", "--include", unit];
    periapt.ok_until(&log, |log| log.contains(text)).map(drop)
}

#[test]
fn a_secret_goes_from_one_charm_to_another_and_stands_nowhere_else() -> anyhow::Result<()> {
    let [first, second, users] = CONTENTS.map(backwards);
    let periapt = related(&format!(
        "db-relation-created: share password={first}\ndb-relation-created: set plain={CONTROL}\n\
         config-changed: tool leader-get\nsecret-remove: prune"
    ))?;
    logged(&periapt, "reader/0", &format!("opened password={first}"))?;

    // A new revision: the reader learns of it and tracks it, and the owner learns that the first is obsolete.
    let script = format!("script=config-changed: revise password={second}\nsecret-remove: prune");
    periapt.ok(["config", "owner", &script])?;
    logged(&periapt, "reader/0", &format!("opened password={second}"))?;
    logged(&periapt, "owner/0", "event secret-remove")?;

    // A user's secret, named by an option.
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

/// Returns true if a file below a directory contains a text, plain or in base64.
fn holds(directory: &Path, text: &str) -> anyhow::Result<bool> {
    use base64::Engine as _;
    // The base64 of a text depends on its offset modulo three.
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
            // A running database deletes files.
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
