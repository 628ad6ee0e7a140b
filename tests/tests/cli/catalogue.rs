//! The charms of `charms/bundle.yaml` in one model: the promises of each, checked from outside.

use std::{fs, path::Path};

use periapt_tests::{Installation, packed};
use serde_json::{Value, json};

use crate::text;

const CHARMS: [&str; 6] = ["wordpress", "mysql", "backup", "tls-certificates", "log-shipper", "aggregator"];

/// Creates an installation with the bundle deployed and settled.
fn deployed() -> anyhow::Result<Installation> {
    let periapt = Installation::bootstrapped()?;
    for charm in CHARMS {
        packed(charm, periapt.path())?;
    }
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charms/bundle.yaml");
    fs::copy(bundle, periapt.path().join("bundle.yaml"))?;
    periapt.ok(["deploy", "./bundle.yaml"])?;
    periapt.wait_for(["model"])?;
    Ok(periapt)
}

/// Runs an action and returns its results.
fn results(periapt: &Installation, unit: &str, arguments: &[&str]) -> anyhow::Result<Value> {
    let shown = periapt.json([&["run", unit], arguments].concat())?;
    let task = shown.as_object().and_then(|tasks| tasks.values().next());
    Ok(task.map_or(Value::Null, |task| task["results"].clone()))
}

#[test]
fn the_bundle_of_the_catalogue_does_what_its_charms_promise() -> anyhow::Result<()> {
    let periapt = deployed()?;

    // Each principal has a subordinate beside it, which sees only its own principal and reports on it elsewhere.
    let status = periapt.json(["status"])?;
    for principal in ["wordpress/0", "wordpress/1", "mysql/0"] {
        let application = principal.split('/').next().unwrap_or_default();
        let beside = &status["applications"][application]["units"][principal]["subordinates"];
        let beside = beside.as_object().and_then(|units| units.values().next());
        let message = text(beside.unwrap_or(&Value::Null), "/workload-status/message")?;
        assert!(message.ends_with(&format!(" of {principal}")), "{message}");
    }
    // The line passes two relations, so it may arrive after the first check.
    periapt.json_until(&["run", "aggregator/leader", "tail"], |shown| {
        let tasks = shown.as_object().into_iter().flat_map(serde_json::Map::values);
        let mut lines = tasks.filter_map(|task| task["results"]["wordpress-1"].as_str());
        lines.any(|lines| lines.contains("rendered wp-config.php"))
    })?;

    // The storage has the bundle's size; a restore brings back the saved posts.
    assert_eq!(periapt.json(["storage"])?["filesystems"]["0"]["size"], 32);
    let publish = |title: &str| results(&periapt, "wordpress/leader", &["publish", title]);
    let backup = || -> anyhow::Result<String> {
        Ok(text(&results(&periapt, "backup/0", &["create"])?, "/backup/sha256")?.to_owned())
    };
    publish("title=Worth keeping")?;
    let kept = backup()?;
    publish("title=A mistake")?;
    results(&periapt, "wordpress/leader", &["retract", "id=1"])?;
    assert_ne!(backup()?, kept);
    results(&periapt, "backup/0", &["restore", "id=1"])?;
    periapt.wait_for(["application", "backup", "--message", "*restored 1 of wordpress"])?;
    assert_eq!(backup()?, kept);
    let posts = results(&periapt, "wordpress/leader", &["posts"])?;
    assert_eq!(posts["posts"], json!({"post-1": "Worth keeping"}));

    // A new certificate and a new authority reach their users, and old keys disappear.
    let renewed = results(&periapt, "tls-certificates/leader", &["renew", "unit=wordpress/0"])?;
    assert!(renewed.get("wordpress-1").is_none(), "{renewed}");
    let message = format!("*certificate {}", text(&renewed, "/wordpress-0")?);
    periapt.wait_for(["unit", "wordpress/0", "--message", &message])?;
    let renewed = results(&periapt, "tls-certificates/leader", &["rotate-authority"])?;
    for unit in ["wordpress/0", "wordpress/1"] {
        let message = format!("*certificate {}", text(&renewed, &format!("/{}", unit.replace('/', "-")))?);
        periapt.wait_for(["unit", unit, "--message", &message])?;
    }
    periapt.wait_for(["application", "tls-certificates", "--message", "*4 old keys removed"])?;
    let secrets = periapt.json(["secrets", "--owner", "tls-certificates"])?;
    let mut revisions = Vec::new();
    for id in secrets.as_object().into_iter().flat_map(serde_json::Map::keys) {
        let shown = periapt.json(["show-secret", id, "--revisions"])?;
        let listed = shown[id]["revisions"].as_array().cloned().unwrap_or_default();
        revisions.push((shown[id]["revision"].as_u64(), listed.len()));
    }
    revisions.sort_unstable();
    assert_eq!(revisions, [(Some(2), 1), (Some(2), 1), (Some(3), 1)], "{secrets}");

    // A certificate is replaced before it expires, without an operator.
    periapt.ok(["config", "tls-certificates", "lifetime=3s"])?;
    results(&periapt, "tls-certificates/leader", &["renew", "unit=wordpress/0"])?;
    periapt.json_until(&["secrets", "--owner", "tls-certificates"], |secrets| {
        let secrets = secrets.as_object().into_iter().flat_map(serde_json::Map::values);
        let key = |secret: &Value| secret["label"].as_str().is_some_and(|it| it.ends_with("wordpress/0"));
        secrets.filter(|secret| key(secret)).any(|secret| secret["revision"].as_u64() > Some(4))
    })?;
    periapt.ok(["config", "tls-certificates", "lifetime=30d"])?;

    let again = periapt.run(["deploy", "./bundle.yaml"])?;
    assert_eq!((again.code, again.stderr.trim()), (Some(0), "No changes to apply."));
    periapt.ok(["destroy-model", "test", "--destroy-storage", "--no-prompt"])?;
    Ok(())
}
