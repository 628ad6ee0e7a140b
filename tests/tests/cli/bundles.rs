//! Whole models as one document.

use std::fs;

use periapt_tests::{Installation, packed};

use crate::text;

const BUNDLE: &str = "
applications:
  blog:
    charm: ./wordpress.charm
    num_units: 2
    to: [front, agent=first]
    options: {blog-title: 'include-file://title.txt', port: 8080}
    expose: true
  db:
    charm: ./mysql.charm
    to: [blog/0]
machines:
  front:
relations:
- [blog:db, db]
";

/// Creates an installation with a bundle and its charms.
fn with_bundle() -> anyhow::Result<Installation> {
    let periapt = Installation::bootstrapped()?;
    for charm in ["wordpress", "mysql"] {
        packed(charm, periapt.path())?;
    }
    fs::write(periapt.path().join("shop.yaml"), BUNDLE)?;
    fs::write(periapt.path().join("title.txt"), "Cats")?;
    Ok(periapt)
}

#[test]
fn a_bundle_is_deployed_changed_and_exported() -> anyhow::Result<()> {
    let periapt = with_bundle()?;
    let dry = periapt.run(["deploy", "./shop.yaml", "--dry-run"])?;
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert!(dry.stderr.contains("- add a unit of db on the machine of blog's unit 0"), "{dry:?}");
    assert_eq!(periapt.json(["status"])?["applications"], serde_json::json!({}), "a dry run changes nothing");

    periapt.ok(["deploy", "./shop.yaml"])?;
    periapt.wait_for(["model"])?;
    let status = periapt.json(["status"])?;
    let machine = |unit: &str, application: &str| {
        text(&status, &format!("/applications/{application}/units/{}/machine", unit.replace('/', "~1")))
            .map(str::to_owned)
    };
    assert_eq!(machine("db/0", "db")?, machine("blog/0", "blog")?);
    assert_ne!(machine("blog/0", "blog")?, machine("blog/1", "blog")?);
    assert_eq!(status["applications"]["blog"]["exposed"], true);
    assert_eq!(periapt.ok(["config", "blog", "blog-title"])?, "Cats\n");

    let again = periapt.run(["deploy", "./shop.yaml"])?;
    assert_eq!((again.code, again.stderr.trim()), (Some(0), "No changes to apply."));
    fs::write(
        periapt.path().join("more.yaml"),
        "applications: {db: {num_units: 2, to: [blog/0, new]}, blog: {options: {port: 81}}}",
    )?;
    let more = periapt.run(["deploy", "./shop.yaml", "--overlay", "more.yaml"])?;
    let lines: Vec<_> = more.stderr.lines().collect();
    assert_eq!(
        lines,
        [
            "Executing changes:",
            "- set port of application blog",
            "- add a unit of db on a new machine",
            "Deploy of bundle completed."
        ],
        "{more:?}"
    );
    periapt.wait_for(["application", "db", "--units", "2"])?;

    periapt.ok(["export-bundle", "--filename", "exported.yaml"])?;
    let same = periapt.run(["deploy", "./exported.yaml"])?;
    assert_eq!(same.stderr.trim(), "No changes to apply.");
    periapt.ok(["add-model", "copy"])?;
    periapt.ok(["deploy", "./exported.yaml"])?;
    periapt.wait_for(["model"])?;
    assert_eq!(periapt.ok(["config", "blog", "port"])?, "81\n");
    Ok(())
}

/// A bundle with bindings, exposure, placement and storage of its applications.
const DETAILED: &str = "
applications:
  blog:
    charm: ./wordpress.charm
    bindings: {'': alpha, website: dmz}
    constraints: mem=64M tags=^slow
    exposed-endpoints:
      website: {expose-to-cidrs: [192.0.2.0/24], expose-to-spaces: [dmz]}
  probe:
    charm: ./probe.charm
    storage: {scratch: '1,10M'}
";

/// Waits until both units have a machine and the unit with storage is idle.
fn placed(periapt: &Installation) -> anyhow::Result<()> {
    let is_there = |status: &serde_json::Value| {
        let agent = text(status, "/applications/probe/units/probe~10/juju-status/current");
        text(status, "/applications/blog/units/blog~10/machine").is_ok()
            && agent.is_ok_and(|agent| agent == "idle")
    };
    periapt.json_until(&["status"], is_there).map(drop)
}

#[test]
fn a_bundles_details_are_deployed_changed_and_exported() -> anyhow::Result<()> {
    let periapt = with_bundle()?;
    packed("probe", periapt.path())?;
    periapt.ok(["add-space", "dmz", "192.0.2.0/24"])?;
    fs::write(periapt.path().join("detailed.yaml"), DETAILED)?;
    let dry = periapt.run(["deploy", "./detailed.yaml", "--dry-run"])?;
    for line in [
        "bindings alpha website=dmz, constraints mem=64M tags=^slow",
        "- expose application blog; website to 192.0.2.0/24, dmz",
        "storage scratch=1,10M",
    ] {
        assert!(dry.stderr.contains(line), "{line}: {dry:?}");
    }
    periapt.ok(["deploy", "./detailed.yaml"])?;
    placed(&periapt)?;
    assert_eq!(periapt.ok(["constraints", "blog"])?, "mem=64M tags=^slow\n");
    assert_eq!(periapt.json(["storage"])?["filesystems"]["0"]["size"], 10);
    let again = periapt.run(["deploy", "./detailed.yaml"])?;
    assert_eq!((again.code, again.stderr.trim()), (Some(0), "No changes to apply."));
    fs::write(
        periapt.path().join("more.yaml"),
        "applications: {blog: {bindings: {website: alpha}, constraints: mem=128M}}",
    )?;
    let more = periapt.run(["deploy", "./detailed.yaml", "--overlay", "more.yaml"])?;
    let lines: Vec<_> = more.stderr.lines().collect();
    assert_eq!(
        lines,
        [
            "Executing changes:",
            "- bind application blog: website=alpha",
            "- constrain application blog to mem=128M",
            "Deploy of bundle completed."
        ],
        "{more:?}"
    );

    let first = periapt.ok(["export-bundle"])?;
    fs::write(periapt.path().join("exported.yaml"), &first)?;
    periapt.ok(["add-model", "copy"])?;
    periapt.ok(["add-space", "dmz", "192.0.2.0/24"])?;
    periapt.ok(["deploy", "./exported.yaml"])?;
    placed(&periapt)?;
    assert_eq!(periapt.ok(["export-bundle"])?, first);
    Ok(())
}

#[test]
fn a_bundle_that_cannot_be_changes_nothing() -> anyhow::Result<()> {
    let periapt = with_bundle()?;
    for (from, to, expected) in [
        ("num_units: 2", "units: 2", "shop.yaml: line 5 column"),
        ("./mysql.charm", "./oracle", "application db: "),
        ("port: 8080", "colour: red", "charm wordpress has no option colour"),
        ("blog:db, db", "blog:db, db:nothing", "charm mysql has no such endpoint"),
        ("expose: true", "trust: true", "asks for application blog to be trusted"),
        ("title.txt", "absent.txt", "cannot read ./absent.txt"),
    ] {
        assert!(BUNDLE.contains(from), "{from}");
        fs::write(periapt.path().join("shop.yaml"), BUNDLE.replace(from, to))?;
        let error = periapt.refused(["deploy", "./shop.yaml"])?;
        assert!(error.contains(expected), "{to}: {error}");
    }
    fs::write(periapt.path().join("shop.yaml"), BUNDLE)?;
    let error = periapt.refused(["deploy", "./shop.yaml", "blog", "-n", "3"])?;
    assert!(error.contains("a bundle takes no application name"), "{error}");
    let error = periapt.refused(["deploy", "./mysql.charm", "--dry-run"])?;
    assert!(error.contains("are for bundles"), "{error}");
    assert_eq!(periapt.json(["status"])?["applications"], serde_json::json!({}));
    Ok(())
}
