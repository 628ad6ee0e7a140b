//! Refreshes to another charm, whose plan the command shows first.

use std::path::PathBuf;

use periapt_tests::{Installation, packed_changed};
use serde_json::json;

/// Creates a model with `wordpress` and without an agent.
fn model() -> anyhow::Result<Installation> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("wordpress", [])?;
    Ok(periapt)
}

/// Packs the charm with a text of its metadata replaced.
fn changed(periapt: &Installation, edition: &str, from: &str, to: &str) -> anyhow::Result<PathBuf> {
    packed_changed("wordpress", edition, periapt.path(), |text| text.replace(from, to))
}

#[test]
fn what_a_charm_asks_is_told_before_anything_changes() -> anyhow::Result<()> {
    let periapt = model()?;
    periapt.deploy("mysql", [])?;
    periapt.ok(["integrate", "wordpress:db", "mysql:db"])?;
    periapt.ok(["config", "wordpress", "port=81", "blog-title=Cats"])?;
    let next = packed_changed("wordpress", "next", periapt.path(), |text| {
        let text =
            text.replace("type: int\n", "type: string\n").replace("default: 80\n", "default: eighty\n");
        format!("{text}\nextra-bindings:\n  admin:\n")
    })?;
    let next = next.to_str().unwrap_or_default();
    let arguments = ["refresh", "wordpress", "--path", next];

    let plan = periapt.json(arguments.into_iter().chain(["--dry-run"]))?;
    assert_eq!(plan["from"], "local:wordpress-0", "{plan}");
    let difference = &plan["difference"];
    assert_eq!(difference["dropped-settings"], json!({"port": {"integer": 81}}), "{plan}");
    assert_eq!(difference["extra-bindings"], json!({"added": ["admin"], "removed": []}), "{plan}");
    assert_eq!(difference["options"]["port"]["changed"]["to"]["type"], "string", "{plan}");
    assert_eq!(plan["refusal"], json!(null), "{plan}");
    assert_eq!(periapt.ok(["config", "wordpress", "port"])?, "81\n", "a dry run changes nothing");

    // The command asks nothing if the charm needs no new permissions, and scripts are not asked.
    let table = periapt.ok(arguments)?;
    assert!(table.contains("dropped  setting  port"), "{table}");
    assert_eq!(periapt.ok(["config", "wordpress", "port"])?, "eighty\n");
    assert_eq!(periapt.ok(["config", "wordpress", "blog-title"])?, "Cats\n");
    let again = periapt.run(arguments)?;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stderr.contains("is already running charm \"local:wordpress-1\""), "{again:?}");
    // Settings are parsed by the new charm's options, and are changed even if the charm is the same.
    periapt.ok(arguments.into_iter().chain([
        "--config",
        "port=ninety",
        "--trust",
        "--force",
        "--force-base",
    ]))?;
    assert_eq!(periapt.ok(["config", "wordpress", "port"])?, "ninety\n");
    let wrong = periapt.refused(arguments.into_iter().chain(["--config", "prot=1"]))?;
    assert!(wrong.contains("unknown option \"prot\""), "{wrong}");

    // Obstacles are shown with the plan, also by the dry run.
    let limited = changed(&periapt, "limited", "  db:\n", "  database:\n")?;
    let limited = limited.to_str().unwrap_or_default();
    for more in [&["--dry-run"][..], &["--force"], &[]] {
        let arguments = ["refresh", "wordpress", "--path", limited];
        let refused = periapt.run(arguments.iter().chain(more))?;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stdout.contains("added    endpoint  database"), "{refused:?}");
        assert!(refused.stderr.contains("the new charm has no endpoint \"db\""), "{refused:?}");
    }
    assert_eq!(periapt.json(["status"])?["applications"]["wordpress"]["charm"], "local:wordpress-1");
    Ok(())
}
