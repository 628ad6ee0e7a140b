//! Resources, from an operator's file to a hook.

use std::fs;

use anyhow::Context as _;
use periapt_host_api::Digest;
use periapt_tests::Installation;

use crate::text;

const SCRIPT: &str = "script=start: resource data\nupgrade-charm: tool resource-get data\n\
                      upgrade-charm: read /resources/data/data.txt\nupgrade-charm: resource data\n\
                      start: status active";

/// Returns the resource as the probe logged it through the typed interface, without the prefix of the lines.
fn read(periapt: &Installation) -> anyhow::Result<Vec<String>> {
    let log = periapt.ok(["debug-log", "--replay", "--no-tail"])?;
    let line =
        |line: &str| line.split_once("resource /resources/data/data.txt ").map(|(_, rest)| rest.to_owned());
    Ok(log.lines().filter_map(line).collect())
}

/// Returns the line that the probe logs for content of a revision.
fn logged_line(revision: u32, content: &str) -> String {
    let (sha256, size) = (Digest::of(content.as_bytes()), content.len());
    format!("revision={revision} size={size} sha256={sha256} read={size}: {content}")
}

#[test]
fn a_hook_reads_what_was_attached_and_is_told_of_what_is_new() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let file = |name: &str, content: &str| fs::write(periapt.path().join(name), content);
    file("first.txt", "one")?;
    file("second.txt", "two, and more")?;
    file("wrong.zip", "zip")?;
    periapt_tests::packed("probe", periapt.path())?;
    for (resource, expected) in [
        ("rows=first.txt", "unrecognized resource \"rows\""),
        ("data=wrong.zip", "does not have the extension of \"data.txt\""),
        ("data=absent.txt", "absent.txt: "),
        ("image=first.txt", "resource \"image\": first.txt: this is no image"),
    ] {
        let refused = periapt.refused(["deploy", "probe.charm", "--resource", resource])?;
        assert!(refused.contains(expected), "{resource}: {refused}");
    }
    periapt.deploy("probe", ["--config", SCRIPT, "--resource", "data=first.txt"])?;
    periapt.wait_for(["model"])?;
    assert_eq!(read(&periapt)?, [logged_line(1, "one")]);

    let attached = periapt.run(["attach-resource", "probe", "data=./second.txt"])?;
    assert!(attached.stderr.contains("as revision 2"), "{attached:?}");
    let upgraded = |hooks: &serde_json::Value| {
        let mut entries = hooks["entries"].as_array().into_iter().flatten();
        entries.any(|entry| entry["record"]["event"] == "upgrade-charm")
    };
    periapt.json_until(&["hooks", "probe/0"], upgraded)?;
    assert_eq!(read(&periapt)?, [logged_line(1, "one"), logged_line(2, "two, and more")]);
    let log = periapt.ok(["debug-log", "--replay", "--no-tail"])?;
    assert!(log.contains("tool resource-get: 0 /resources/data/data.txt"), "{log}");
    assert!(log.contains("read /resources/data/data.txt: two, and more"), "{log}");

    let again = periapt.run(["attach-resource", "probe", "data=second.txt"])?;
    assert!(again.stderr.contains("has this content already"), "{again:?}");
    for (resource, expected) in [
        ("rows=first.txt", "unrecognized resource \"rows\"; charm \"probe\" declares data, image"),
        ("data=wrong.zip", "does not have the extension"),
        ("image=first.txt", "resource \"image\": first.txt: this is no image"),
        ("data=7", "resource \"data\" has no revision 7 that is kept; kept: 1, 2"),
    ] {
        let refused = periapt.refused(["attach-resource", "probe", resource])?;
        assert!(refused.contains(expected), "{resource}: {refused}");
    }

    let listed = periapt.json(["resources", "probe"])?;
    let data = &listed["resources"][0];
    assert_eq!(text(data, "/fingerprint")?, Digest::of(b"two, and more").to_string());
    assert_eq!((text(data, "/revision")?, text(data, "/username")?), ("2", "admin"));
    let of_unit = periapt.json(["list-resources", "probe/0", "--details"])?;
    assert_eq!(text(&of_unit, "/0/unit/revision")?, "2", "{of_unit}");
    assert_eq!(text(&of_unit, "/1/expected/type")?, "oci-image", "{of_unit}");
    let table = periapt.ok(["resources", "probe"])?;
    let cells = table.lines().nth(1).context("no row")?.split_whitespace().collect::<Vec<_>>();
    assert_eq!(cells[..2], ["data", "admin"], "{table}");
    Ok(())
}

#[test]
fn a_charm_without_its_file_runs_until_it_asks_for_it() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("probe", ["--config", SCRIPT])?;
    periapt.wait_for(["unit", "probe/0", "--status", "error"])?;
    let status = periapt.json(["status"])?;
    let message = text(&status, "/applications/probe/units/probe~10/workload-status/message")?;
    assert!(message.contains("start"), "{message}");
    fs::write(periapt.path().join("late.txt"), "late")?;
    periapt.ok(["attach-resource", "probe", "data=late.txt"])?;
    periapt.ok(["resolved", "probe/0"])?;
    periapt.wait_for(["model"])?;
    assert!(read(&periapt)?.contains(&logged_line(1, "late")));
    Ok(())
}

#[test]
fn a_bundle_brings_resources_and_only_what_differs() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt_tests::packed("probe", periapt.path())?;
    fs::create_dir(periapt.path().join("files"))?;
    let rows = periapt.path().join("files/rows.txt");
    fs::write(&rows, "one")?;
    let bundle = "applications: {probe: {charm: ./probe.charm, resources: {data: files/rows.txt}}}";
    fs::write(periapt.path().join("bundle.yaml"), bundle)?;
    periapt.ok(["deploy", "./bundle.yaml"])?;
    let same = periapt.run(["deploy", "./bundle.yaml"])?;
    assert_eq!(same.stderr.trim(), "No changes to apply.");

    fs::write(&rows, "two")?;
    let changed = periapt.run(["deploy", "./bundle.yaml"])?;
    let short = Digest::of(b"two").short();
    let line = format!("- attach content {short} to resource data of application probe");
    assert!(changed.stderr.lines().any(|said| said == line), "{changed:?}");
    let listed = periapt.json(["resources", "probe"])?;
    assert_eq!(text(&listed, "/resources/0/revision")?, "2");

    periapt.ok(["export-bundle", "--filename", "exported.yaml"])?;
    assert_eq!(periapt.run(["deploy", "./exported.yaml"])?.stderr.trim(), "No changes to apply.");
    periapt.ok(["add-model", "copy"])?;
    periapt.ok(["deploy", "./exported.yaml"])?;
    let copied = periapt.json(["resources", "probe"])?;
    assert_eq!(text(&copied, "/resources/0/fingerprint")?, Digest::of(b"two").to_string());

    for (resources, expected) in [
        ("{data: 7}", "revisions of a store are not supported"),
        ("{other: files/rows.txt}", "charm probe has no resource other"),
        ("{data: files/absent}", "files/absent"),
    ] {
        fs::write(periapt.path().join("bundle.yaml"), bundle.replace("{data: files/rows.txt}", resources))?;
        let refused = periapt.refused(["deploy", "./bundle.yaml"])?;
        assert!(refused.contains(expected), "{resources}: {refused}");
    }
    Ok(())
}
