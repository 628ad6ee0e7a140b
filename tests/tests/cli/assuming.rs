//! Charms that assume features that the model lacks.

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use periapt_tests::{Installation, module, packed_changed};
use serde_json::json;

const NOTHING: &str = "Charm feature requirements cannot be met:";

/// Creates a model without an agent.
fn model() -> anyhow::Result<Installation> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    Ok(periapt)
}

/// Packs `mysql` with an `assumes` that the packer does not check, and returns the archive's path.
fn assuming(periapt: &Installation, edition: &str, assumes: &str) -> anyhow::Result<String> {
    let packed =
        packed_changed("mysql", edition, periapt.path(), |text| format!("{text}\nassumes: {assumes}\n"));
    Ok(packed?.to_str().context("a path")?.to_owned())
}

#[test]
fn deploy_and_refresh_refuse_what_is_not_here_unless_they_are_forced() -> anyhow::Result<()> {
    let periapt = model()?;
    let cluster = assuming(&periapt, "cluster", "[k8s-api]")?;
    let refused = periapt.refused(["deploy", &cluster])?;
    let expected = format!(
        "ERROR cannot add application \"mysql\": {NOTHING}\n  - charm requires feature \"k8s-api\" but model does not support it\n"
    );
    assert!(refused.starts_with(&expected), "{refused}");
    assert!(refused.contains("hint: --force passes over what a charm assumes"), "{refused}");
    assert_eq!(periapt.json(["status"])?["applications"], json!({}));

    let present = assuming(&periapt, "present", "[juju >= 3.6, juju < 5]")?;
    periapt.ok(["deploy", &present])?;
    let newer = assuming(&periapt, "newer", "[{any-of: [juju >= 4.1, k8s-api]}]")?;
    let refused = periapt.refused(["refresh", "mysql", "--path", &newer])?;
    let version = periapt.json(["show-model"])?["test"]["supported-features"][0]["version"].clone();
    let expected = format!(
        "  - charm requires at least one of the following:\n    - charm requires feature \"juju\" (version >= 4.1.0) \
         but model currently supports version {}\n",
        version.as_str().context("no version")?
    );
    assert!(refused.contains(&expected) && refused.contains("hint: --force"), "{refused}");
    let charm = |status: &serde_json::Value| status["applications"]["mysql"]["charm"].clone();
    assert_eq!(charm(&periapt.json(["status"])?), "local:mysql-0");
    periapt.ok(["refresh", "mysql", "--path", &newer, "--force"])?;
    assert_eq!(charm(&periapt.json(["status"])?), "local:mysql-1");
    periapt.ok(["deploy", &cluster, "forced", "--force"])?;
    Ok(())
}

#[test]
fn a_bundle_with_a_charm_that_would_be_refused_changes_nothing() -> anyhow::Result<()> {
    let periapt = model()?;
    assuming(&periapt, "cluster", "[k8s-api]")?;
    assuming(&periapt, "present", "[juju]")?;
    let bundle = "applications: {a: {charm: ./mysql-present.charm}, b: {charm: ./mysql-cluster.charm}}";
    fs::write(periapt.path().join("bundle.yaml"), bundle)?;
    for arguments in [&["deploy", "./bundle.yaml"][..], &["deploy", "./bundle.yaml", "--dry-run"]] {
        let refused = periapt.refused(arguments)?;
        let expected = format!(
            "ERROR cannot deploy bundle: cannot deploy application \"b\": {NOTHING}\n  - charm requires"
        );
        assert!(refused.starts_with(&expected) && refused.contains("hint: --force"), "{refused}");
        assert_eq!(periapt.json(["status"])?["applications"], json!({}));
    }
    periapt.ok(["deploy", "./bundle.yaml", "--force"])?;
    let status = periapt.json(["status"])?;
    assert_eq!(status["applications"].as_object().map(|all| all.len()), Some(2), "{status}");
    // Applications that exist are not checked again; their replacements are.
    let again = periapt.run(["deploy", "./bundle.yaml"])?;
    assert_eq!((again.code, again.stderr.trim()), (Some(0), "No changes to apply."));
    let swapped = bundle.replace("a: {charm: ./mysql-present.charm}", "a: {charm: ./mysql-cluster.charm}");
    fs::write(periapt.path().join("bundle.yaml"), swapped)?;
    let refused = periapt.refused(["deploy", "./bundle.yaml"])?;
    assert!(refused.contains("cannot deploy application \"a\": "), "{refused}");
    periapt.ok(["deploy", "./bundle.yaml", "--force"])?;
    Ok(())
}

/// Creates a charm's directory beside the code of `mysql`.
fn sources(periapt: &Installation, assumes: &str) -> anyhow::Result<PathBuf> {
    let directory = periapt.path().join("sources");
    fs::create_dir_all(&directory)?;
    let metadata = format!("name: c\nsummary: s\ndescription: d\nassumes: {assumes}\n");
    fs::write(directory.join("charmcraft.yaml"), metadata)?;
    Ok(directory)
}

#[test]
fn pack_warns_of_what_is_not_here_and_refuses_bad_grammar() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let code = module("mysql")?;
    let code = code.to_str().context("a path")?;
    let pack = ["pack", "sources", "--wasm", code, "--format", "json"];
    sources(&periapt, "[k8s-api, juju >= 3.6]")?;
    let packed = periapt.run(pack)?;
    assert_eq!(packed.code, Some(0), "{packed:?}");
    let warning = "the charm assumes features that are not supported: k8s-api; deploy and refresh refuse it without --force";
    assert!(packed.stderr.contains(&format!("WARNING {warning}\n")), "{packed:?}");
    let told: serde_json::Value = serde_json::from_str(&packed.stdout)?;
    assert_eq!(told["warnings"], json!([warning]));

    sources(&periapt, "[juju >= 3.6]")?;
    let packed = periapt.run(pack)?;
    assert!(packed.code == Some(0) && !packed.stderr.contains("WARNING"), "{packed:?}");

    sources(&periapt, "[juju > 3.6]")?;
    let refused = periapt.refused(pack)?;
    let expected = "charmcraft.yaml: assumes: condition \"juju > 3.6\": versions are compared by >= or <";
    assert!(refused.contains(expected), "{refused}");
    Ok(())
}
