//! Charms in Rust, JavaScript, Go and C that drive a container by the client of Pebble of their SDK.

use std::{fs, path::Path};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, free_port};
use serde_json::{Value, json};

use super::{PLAIN, Scene};
use crate::{go::toolchain, text};

/// Packs a charm with a container from its files, deploys it on an agent that runs containers, and returns the results of its
/// action.
fn driven(language: &str, files: &[(&str, &str)], go: Option<&Path>) -> anyhow::Result<Value> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    let mut agent = periapt.agent("worker", PLAIN)?;
    assert_eq!(agent.first_line()?, "ready worker");
    let directory = periapt.path().join(language);
    let metadata = "name: driver\ntype: charm\nsummary: x\ndescription: x\ncontainers: {web: {resource: image}}\n\
                    resources: {image: {type: oci-image}}\nactions: {drive: {}}\n\
                    config: {options: {directory: {type: string}, port: {type: int}}}\n";
    for (path, content) in [("charmcraft.yaml", metadata)].iter().chain(files) {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
        fs::write(&path, content)?;
    }
    let archive = periapt.path().join("driver.charm");
    let words = ["pack".as_ref(), directory.as_os_str(), "-o".as_ref(), archive.as_os_str()];
    let mut pack = periapt.command(words);
    pack.env("GOPROXY", "off").envs(go.map(|go| ("PERIAPT_GO", go)));
    let packed = pack.output()?;
    ensure!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    let pages = periapt.path().join("pages");
    let options = [format!("directory={}", pages.display()), format!("port={}", free_port()?)];
    let [pages, port] = &options;
    periapt.ok([
        "deploy".as_ref(),
        archive.as_os_str(),
        "--config".as_ref(),
        pages.as_ref(),
        "--config".as_ref(),
        port.as_ref(),
    ])?;
    periapt.wait_for(["unit", "driver/0", "--status", "active", "--message", "active"])?;
    let task = periapt.json(["run", "driver/0", "drive"])?;
    let task = task.as_object().and_then(|tasks| tasks.values().next()).cloned().context("a task")?;
    task.get("results").cloned().with_context(|| task.to_string())
}

/// Checks what each of the charms tells.
fn check(results: &Value) -> anyhow::Result<()> {
    for (key, value) in [
        ("page", "hello of driver/0"),
        ("pulled", "hello of driver/0"),
        ("names", "page.txt sub"),
        ("gone", "true"),
        ("kind", "not-found"),
        ("checks", "page,,page"),
    ] {
        assert_eq!(text(results, &format!("/{key}"))?, value, "{results}");
    }
    Ok(())
}

/// Checks what those tell that run commands.
fn check_commands(results: &Value) {
    for (key, value) in [
        ("shouted", "600000 HELLO"),
        ("failed", "3 bad\n"),
        ("late", "change-failed"),
        ("notice", "driver/0"),
    ] {
        assert_eq!(results[key], json!(value), "{results}");
    }
}

#[test]
fn a_charm_in_rust_runs_commands_in_its_container() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    scene.boot_id()?;
    let shell = |script: &str| -> anyhow::Result<String> {
        scene.act(&format!("shell web {script}"))?;
        let log = scene.periapt.ok(["debug-log", "--replay", "--no-tail", "--include", "probe/0"])?;
        let line = log.lines().rev().find_map(|line| Some(line.split_once(" shell: ")?.1.to_owned()));
        line.with_context(|| format!("nothing of {script} in {log}"))
    };
    // The command prints while its input is sent.
    let done = shell("30000 tr a-z A-Z; echo done >&2; exit 4")?;
    assert_eq!(done, r#"code 4, 400000 bytes "AAA", "done\n""#);
    // The journal does not keep so much of a stream, and says so.
    let shown = scene.periapt.json(["hooks", "probe/0"])?;
    let entries = shown["entries"].as_array().context("entries")?;
    let reasons: Vec<_> = entries.iter().filter_map(|entry| entry["not-replayable"].as_str()).collect();
    let [reason] = reasons.as_slice() else { anyhow::bail!("one action read too much: {reasons:?}") };
    assert!(reason.ends_with(" bytes of its stream to web were not kept (limit 262144)"), "{reason}");
    assert!(scene.periapt.ok(["hooks", "probe/0"])?.contains(reason));
    // It ends and has read nothing.
    assert_eq!(shell("30000 echo early; exit 7")?, r#"code 7, 6 bytes "ear", """#);
    let late = shell("500 sleep 60")?;
    assert!(late.starts_with("change-failed: container \"web\": "), "{late}");
    let missing = scene.ask("web POST /v1/exec {\"command\": [\"/none\"]}")?;
    assert!(missing.contains(": 400 "), "{missing}");
    Ok(())
}

#[test]
fn a_charm_in_javascript_drives_its_container() -> anyhow::Result<()> {
    let results = driven("javascript", &[("src/charm.js", include_str!("charms/charm.js"))], None)?;
    check(&results)?;
    check_commands(&results);
    Ok(())
}

#[test]
fn a_charm_in_c_drives_its_container() -> anyhow::Result<()> {
    let results = driven("c", &[("src/charm.c", include_str!("charms/charm.c"))], None)?;
    check(&results)?;
    for (key, value) in [("shouted", "600 HELLO"), ("failed", "3 bad\n"), ("late", "change-failed")] {
        assert_eq!(results[key], json!(value), "{results}");
    }
    Ok(())
}

#[test]
fn a_charm_in_go_drives_its_container() -> anyhow::Result<()> {
    let Some(go) = toolchain()? else { return Ok(()) };
    let sdk = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../host-api/sdk/go"))?;
    let module = format!(
        "module driver\n\ngo 1.24\n\nrequire periapt v0.0.0\n\nreplace periapt => {}\n",
        sdk.display()
    );
    let source = include_str!("../go/charms/workload.go");
    let results = driven("go", &[("go.mod", &module), ("charm.go", source)], Some(&go))?;
    check(&results)?;
    check_commands(&results);
    Ok(())
}
