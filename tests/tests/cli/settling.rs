//! The main path: deploy, relate, configure, scale, remove.

use anyhow::Context as _;
use periapt_tests::Installation;
use serde_json::Value;

use crate::text;

#[test]
fn two_applications_are_related_configured_scaled_and_removed() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("mysql", ["-n", "2"])?;
    periapt.deploy("wordpress", ["-n", "2", "--config", "blog-title=Cats"])?;
    periapt.wait_for(["application", "wordpress", "--units", "2", "--status", "blocked"])?;

    periapt.ok(["integrate", "wordpress", "mysql"])?;
    periapt.wait_for(["model"])?;
    let status = periapt.json(["status"])?;
    assert_eq!(text(&status, "/applications/mysql/application-status/current")?, "active");
    let serving = text(&status, "/applications/wordpress/units/wordpress~10/workload-status/message")?;
    assert_eq!(serving, "serving \"Cats\" on port 80, 2 units");
    assert_eq!(text(&status, "/applications/wordpress/relations/db/0/related-application")?, "mysql");
    assert_eq!(text(&status, "/machines/0/instance-id")?, "first");

    // The leader of the other side gave both units the same account.
    let shown = periapt.json(["show-unit", "wordpress/0", "wordpress/1"])?;
    let account = |unit: &str| -> anyhow::Result<String> {
        let relations = shown.pointer(&format!("/wordpress~1{unit}/relation-info")).and_then(Value::as_array);
        let db = relations.into_iter().flatten().find(|relation| relation["endpoint"] == "db");
        Ok(text(db.context("no relation db")?, "/application-data/password")?.to_owned())
    };
    assert_eq!(account("0")?, account("1")?);

    periapt.ok(["config", "wordpress", "port=8080"])?;
    periapt.wait_for(["application", "wordpress", "--message", "*port 8080*"])?;
    let status = periapt.json(["status", "wordpress"])?;
    let ports = status.pointer("/applications/wordpress/units/wordpress~11/open-ports");
    assert_eq!(ports, Some(&serde_json::json!(["8080/tcp"])));
    assert_eq!(periapt.ok(["config", "wordpress", "port"])?, "8080\n");

    periapt.ok(["add-unit", "wordpress"])?;
    periapt.wait_for(["application", "wordpress", "--units", "3", "--message", "*3 units"])?;
    periapt.ok(["remove-unit", "wordpress/1", "--no-prompt"])?;
    periapt.wait_for(["unit", "wordpress/1", "--gone"])?;
    periapt.wait_for(["application", "wordpress", "--units", "2", "--message", "*2 units"])?;

    periapt.ok(["remove-relation", "wordpress", "mysql"])?;
    periapt.wait_for(["application", "wordpress", "--status", "blocked"])?;
    periapt.ok(["remove-application", "wordpress", "mysql", "--no-prompt"])?;
    periapt.wait_for(["application", "wordpress", "--gone"])?;
    periapt.wait_for(["application", "mysql", "--gone"])?;
    periapt.ok(["destroy-model", "test", "--no-prompt"])?;
    assert_eq!(periapt.json(["models"])?["models"], serde_json::json!([]));
    periapt.ok(["destroy-controller", "local", "--no-prompt"])?;
    assert_eq!(periapt.json(["controllers"])?["controllers"], serde_json::json!({}));
    assert!(!periapt.path().join("data/controllers/local").exists());
    Ok(())
}

#[test]
fn a_charm_that_knows_only_hook_tools_becomes_active() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("hello-c", ["hello"])?;
    periapt.wait_for(["model"])?;
    let oneline = periapt.ok(["status", "--format", "oneline"])?;
    assert!(oneline.starts_with("- hello/0: "), "{oneline}");
    assert!(oneline.contains("(agent:idle, workload:active)"), "{oneline}");
    Ok(())
}

#[test]
fn a_refreshed_application_runs_upgrade_charm() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("mysql", ["db"])?;
    periapt.wait_for(["model"])?;
    // The same code with another description is another charm.
    let directory = periapt.path().join("mysql");
    std::fs::create_dir(&directory)?;
    let archive = periapt_archive::Archive::read(&std::fs::read(periapt.path().join("mysql.charm"))?)?;
    let file = |name: &str| archive.file(name).with_context(|| name.to_owned());
    let metadata = String::from_utf8(file("charmcraft.yaml")?.to_vec())?;
    std::fs::write(directory.join("charmcraft.yaml"), metadata.replace("summary: ", "summary: Newer, "))?;
    std::fs::write(directory.join("charm.wasm"), file("charm.wasm")?)?;

    periapt.ok(["refresh", "db", "--path", "mysql"])?;
    periapt.wait_for(["application", "db"])?;
    let status = periapt.json(["status"])?;
    assert_eq!(text(&status, "/applications/db/charm")?, "local:mysql-1");
    // The unit has its new charm a moment before its first hook of it runs.
    let upgrades = |hooks: &serde_json::Value| {
        let entries = hooks["entries"].as_array().into_iter().flatten();
        entries.filter(|entry| entry["record"]["event"] == "upgrade-charm").count()
    };
    let hooks = periapt.json_until(&["hooks", "db/0"], |hooks| upgrades(hooks) > 0)?;
    assert_eq!(upgrades(&hooks), 1, "{hooks}");
    Ok(())
}
