//! Charms in other languages than Rust: packed from sources by the binary, and run in the sandbox.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use periapt_tests::Installation;
use serde_json::json;

use crate::text;

/// Returns the directory of a charm of this repository.
fn charm(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../charms").join(name)
}

/// Packs a charm's directory from sources, and deploys it with further arguments.
fn deploy(periapt: &Installation, directory: &Path, more: &[&str]) -> anyhow::Result<()> {
    let name = directory.file_name().context("a charm's directory has a name")?;
    let archive = periapt.path().join(name).with_extension("charm");
    let pack = ["pack".as_ref(), directory.as_os_str(), "-o".as_ref(), archive.as_os_str()];
    periapt.ok(pack)?;
    let mut arguments = vec!["deploy".as_ref(), archive.as_os_str()];
    arguments.extend(more.iter().map(AsRef::<std::ffi::OsStr>::as_ref));
    periapt.ok(arguments).map(drop)
}

/// Writes a short charm into a directory of the test's own.
fn written(periapt: &Installation, name: &str, files: &[(&str, &str)]) -> anyhow::Result<PathBuf> {
    let directory = periapt.path().join(name);
    let metadata = format!(
        "name: {name}\ntype: charm\nsummary: x\ndescription: x\nconfig: {{options: {{mode: {{type: string, default: none}}}}}}\n"
    );
    for (path, content) in [("charmcraft.yaml", metadata.as_str())].iter().chain(files) {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
        fs::write(&path, content)?;
    }
    Ok(directory)
}

#[test]
fn a_charm_in_typescript_is_packed_from_its_sources_and_does_its_work() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    deploy(&periapt, &charm("haproxy"), &[])?;
    periapt.wait_for(["application", "haproxy", "--status", "blocked"])?;
    periapt.deploy("wordpress", ["-n", "2"])?;
    periapt.deploy("mysql", [])?;
    periapt.ok(["integrate", "wordpress", "mysql"])?;
    periapt.ok(["integrate", "haproxy:backends", "wordpress:website"])?;
    periapt.wait_for(["unit", "haproxy/0", "--message", "2 backends on port 80"])?;

    periapt.ok(["config", "haproxy", "port=8080", "balance=leastconn"])?;
    periapt.wait_for(["unit", "haproxy/0", "--message", "2 backends on port 8080"])?;
    let shown = periapt.json(["show-unit", "haproxy/0"])?;
    assert_eq!(shown["haproxy/0"]["opened-ports"], json!(["8080/tcp"]));

    let run = |arguments: &[&str]| periapt.json([&["run", "haproxy/0"], arguments].concat());
    let drained = run(&["drain", "unit=wordpress/1"])?;
    assert_eq!(drained["haproxy/0"]["results"]["serving"], "1", "{drained}");
    let shown = run(&["show-config"])?;
    let config = text(&shown, "/haproxy~10/results/config")?;
    assert!(config.contains("balance leastconn\n") && config.contains(":80 check disabled\n"), "{config}");

    // An exception fails the task, and the log has its stack trace with the author's own files.
    let done = periapt.run(["run", "haproxy/0", "drain", "unit=wordpress/9"])?;
    assert_eq!(done.code, Some(1));
    let log = periapt.ok(["debug-log", "--no-tail", "--lines", "1000", "-i", "haproxy/0"])?;
    assert!(log.contains("Error: wordpress/9 is no backend"), "{log}");
    assert!(log.contains("    at backendNamed (src/charm.ts:"), "{log}");
    Ok(())
}

/// A charm in JavaScript that works with files: it opens more handles than a hook may have at a time, and tries to
/// leave its directories.
const FILES: &str = r#"
import { active, listFiles, log, makeDirectory, on, readFile, readText, removeFile, writeFile } from "@periapt/charm";

on("config-changed", (unit) => {
  const data = unit.storageLocation("data/0");
  log.info("page", readText(unit.resource("page").path), "of", readText(`${data}/old`));
  makeDirectory("/tmp/below");
  writeFile("/tmp/below/large", "x".repeat(200_000));
  for (let i = 0; i < 300; i += 1) writeFile(`${data}/seen`, `${i}`);
  removeFile(`${data}/old`);
  log.info(listFiles(data).join(), listFiles("/tmp").join(), readFile("/tmp/below/large").length);
  for (const path of ["/tmp/none", "/etc/passwd", "/tmp/../etc/passwd", data]) {
    try {
      log.info(readText(path));
    } catch (error) {
      log.info(error.message);
    }
  }
  unit.status = active();
});
"#;

#[test]
fn a_charm_in_javascript_reads_and_writes_files() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let metadata = "name: filer\ntype: charm\nsummary: x\ndescription: x\nstorage: {data: {type: filesystem, location: /srv/data}}\n\
                    resources: {page: {type: file, filename: page.txt}}\n";
    let directory = written(&periapt, "filer", &[("charmcraft.yaml", metadata), ("src/charm.js", FILES)])?;
    let archive = periapt.path().join("filer.charm");
    periapt.ok(["pack".as_ref(), directory.as_os_str(), "-o".as_ref(), archive.as_os_str()])?;
    let (page, disk) = (periapt.path().join("page.txt"), periapt.path().join("disk"));
    fs::write(&page, "h\u{e4}llo")?;
    fs::create_dir(&disk)?;
    fs::write(disk.join("old"), "before")?;
    let scene = json!({
        "unit": "filer/0",
        "event": {"hook": "config-changed"},
        "resources": {"page": page},
        "storages": [{"id": "data/0", "directory": disk}],
    });
    let file = periapt.path().join("scene.json");
    fs::write(&file, scene.to_string())?;
    let tried: serde_json::Value =
        serde_json::from_str(&periapt.ok(["try-hook".as_ref(), archive.as_os_str(), file.as_os_str()])?)?;
    let said = tried["early"].as_array().into_iter().flatten().filter_map(|it| it["log"]["message"].as_str());
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            "page h\u{e4}llo of before",
            "seen below 200000",
            "cannot read /tmp/none: no-entry",
            "cannot read /etc/passwd: no-entry",
            "cannot read /tmp/../etc/passwd: not-permitted",
            "cannot read /srv/data: is-directory",
        ],
        "{tried}"
    );
    assert_eq!(fs::read_to_string(disk.join("seen"))?, "299");
    Ok(())
}

/// A charm in JavaScript that acts on `config-changed` by its option `mode`.
const WAYS: &str = r#"
import { on, blocked } from "@periapt/charm";
import { message } from "./words.js";

const grow = () => { const all = []; for (;;) all.push(new Uint8Array(1 << 24)); };
const recurse = (n) => recurse(n + 1) + 1;

const ways = {
  none() {},
  throw() { throw new TypeError(message); },
  loop() { for (;;) {} },
  grow,
  recurse: () => recurse(0),
  status() { throw blocked("needs a hand"); },
  wait: async () => {},
  refused(unit) { unit.relations("x"); unit.openPorts("80-79/tcp"); },
  random(unit) { unit.setVersion(`${Math.random()} ${crypto.randomUUID()}`.replaceAll(" ", "_")); },
};
on("config-changed", (unit) => ways[unit.config.mode](unit));
"#;

#[test]
fn what_goes_wrong_in_javascript_is_told_and_stopped() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["model-config", "automatically-retry-hooks=false", "hook-cpu-budget=2s"])?;
    let words = "export const message = \"out of luck\";\n";
    let sources = [("src/charm.js", WAYS), ("src/words.js", words)];
    deploy(&periapt, &written(&periapt, "ways", &sources)?, &[])?;
    periapt.wait_for(["unit", "ways/0", "--status", "unknown"])?;

    periapt.ok(["config", "ways", "mode=status"])?;
    periapt.wait_for(["unit", "ways/0", "--status", "blocked", "--message", "needs a hand"])?;

    for (mode, said) in [
        ("throw", "hook \"config-changed\" failed: out of luck"),
        ("loop", "cpu budget exceeded"),
        ("grow", "hook \"config-changed\" failed: out of memory"),
        ("recurse", "stack overflow: too many nested calls"),
        ("wait", "the handler of config-changed is asynchronous"),
        ("refused", "opening ports: invalid port range 80-79/tcp"),
    ] {
        periapt.ok(["config", "ways", &format!("mode={mode}")])?;
        periapt.wait_for(["unit", "ways/0", "--status", "error"])?;
        let log = periapt.ok(["debug-log", "--no-tail", "--lines", "12", "-i", "ways/0"])?;
        assert!(log.contains(said), "{mode}: {log}");
        if mode == "throw" {
            assert!(
                log.contains("TypeError: out of luck") && log.contains("at throw (src/charm.js:"),
                "{log}"
            );
        }
        periapt.ok(["resolved", "--no-retry", "ways/0"])?;
        periapt.wait_for(["unit", "ways/0", "--status", "blocked"])?;
    }
    Ok(())
}

#[test]
fn what_cannot_be_built_is_told_in_the_authors_words() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let pack = |name: &str, files: &[(&str, &str)]| -> anyhow::Result<String> {
        let directory = written(&periapt, name, files)?;
        let said = periapt.refused(["pack".as_ref(), directory.as_os_str()])?;
        assert!(!periapt.path().join(name).with_extension("charm").exists(), "{said}");
        Ok(said)
    };
    let said = pack("syntax", &[("src/charm.ts", "const port: number = ;\n")])?;
    assert!(said.contains("src/charm.ts:1:22: Unexpected \";\""), "{said}");
    let said = pack("missing", &[("src/charm.js", "import \"left-pad\";\n")])?;
    assert!(said.contains("src/charm.js:1:8: Could not resolve \"left-pad\""), "{said}");
    let on = "import { nothing, on } from \"@periapt/charm\";\n";
    for (name, source, expected) in [
        ("node", "import fs from \"node:fs\";\n", "src/charm.js:1:16: \"fs\" is a module of Node.js"),
        ("name", on, "src/charm.js:1:10: No matching export in \"@periapt/charm\" for import \"nothing\""),
        (
            "global",
            "\nconst home = process.env.HOME;\n",
            "src/charm.js:2: process is not defined (charms run without",
        ),
        ("idle", "export {};\n", "the charm handles nothing: it calls `on`"),
        (
            "early",
            "console.log(\"hello\");\n",
            "the charm asks the host for something (log.write) while it is loaded",
        ),
        (
            "async",
            "import { on } from \"@periapt/charm\";\n\non(\"install\", async () => {});\n",
            "src/charm.js:3: the handler of install is asynchronous",
        ),
    ] {
        let said = pack(name, &[("src/charm.js", source)])?;
        assert!(said.contains(expected) && !said.contains("wasm"), "{name}: {said}");
    }
    let said = pack("unbuilt", &[("src/charm.c", "#include <periapt.h>\nint x = y;\n")])?;
    assert!(said.contains("src/charm.c:2:9: error: use of undeclared identifier 'y'"), "{said}");
    let said = pack("idle-c", &[("src/charm.c", "#include <periapt.h>\n")])?;
    assert!(said.contains("no source defines `periapt_handlers`"), "{said}");
    let said = pack("thrown", &[("src/charm.js", "throw new Error(\"at once\");\n")])?;
    assert!(said.contains("at once"), "{said}");
    Ok(())
}

#[test]
fn a_charm_in_c_is_packed_from_its_sources_and_does_its_work() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    let hello = charm("hello-c");
    deploy(&periapt, &hello, &["hello"])?;
    deploy(&periapt, &hello, &["other"])?;
    periapt.wait_for(["unit", "hello/0", "--message", "says \"Hello\" on port 7777"])?;
    periapt.ok(["integrate", "hello:greeting", "other:hears"])?;
    periapt.wait_for(["unit", "other/0", "--message", "heard from hello/0: Hello, other/0!"])?;
    let shown = periapt.json(["run", "hello/0", "greet", "whom=s\u{e9}same \"et\" toi"])?;
    let greeting = text(&shown, "/hello~10/results/greeting")?;
    assert_eq!(greeting, "Hello, s\u{e9}same \"et\" toi!");

    // A refusal by the SDK fails the hook with its message, and the hook has no effect.
    periapt.ok(["config", "hello", "port=70000"])?;
    periapt.wait_for(["unit", "hello/0", "--status", "error"])?;
    let log = periapt.ok(["debug-log", "--no-tail", "--lines", "5", "-i", "hello/0"])?;
    assert!(log.contains("failed: 70000 is no port: expected 1 to 65535"), "{log}");
    let shown = periapt.json(["show-unit", "hello/0"])?;
    assert_eq!(shown["hello/0"]["opened-ports"], json!(["7777/tcp"]));
    Ok(())
}

#[test]
fn a_tool_that_is_missing_is_named_with_the_way_to_it() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let nothing = periapt.path().join("nothing");
    fs::create_dir(&nothing)?;
    for (source, said) in [
        (
            "src/charm.js",
            "node is needed to pack charms in JavaScript, and is not installed\nhint: install Node.js 18",
        ),
        (
            "src/charm.c",
            "a C compiler that builds for wasm32-wasi is needed to pack charms in C, and is not installed\nhint: install clang",
        ),
    ] {
        let directory = written(&periapt, &source.replace(['/', '.'], "-"), &[(source, "")])?;
        let mut command = periapt.command(["pack".as_ref(), directory.as_os_str()]);
        let output = command.env("PATH", &nothing).env_remove("PERIAPT_CLANG").output()?;
        let stderr = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), stderr.contains(said)), (Some(1), true), "{stderr}");
    }
    Ok(())
}
