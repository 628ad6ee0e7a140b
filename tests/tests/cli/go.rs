//! Charms in Go, if there is a toolchain: packed by the binary, and run in the sandbox.

mod words;

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};
use periapt_tests::Installation;
use serde_json::{Value, json};

use crate::text;

/// Returns the path of this repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The exit code of `tools/go path` without a Go toolchain.
const NONE: i32 = 3;

/// Returns the Go toolchain that builds charms; without one, prints a notice and returns none.
#[expect(clippy::print_stderr, reason = "a test that shows nothing says so")]
pub(crate) fn toolchain() -> anyhow::Result<Option<PathBuf>> {
    let output = Command::new(repository().join("tools/go")).arg("path").output().context("tools/go")?;
    match output.status.code() {
        Some(0) => Ok(Some(PathBuf::from(String::from_utf8(output.stdout)?.trim()))),
        Some(NONE) => {
            eprintln!("SKIPPED: there is no Go 1.24 or newer here; tools/go setup fetches one");
            Ok(None)
        }
        code => anyhow::bail!("tools/go path: {code:?}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Returns a call of Go that fetches nothing and shares the packer's build cache.
pub(crate) fn quiet(go: &Path) -> Command {
    let mut command = Command::new(go);
    command.env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
    if let Some(cache) = std::env::var_os("PERIAPT_CACHE") {
        command.env("GOCACHE", Path::new(&cache).join("go"));
    }
    command
}

#[test]
fn no_go_is_told_from_one_that_is_wrongly_named() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let old = place.path().join("go");
    fs::write(&old, "#!/bin/sh\necho go1.20\n")?;
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:{}", place.path().display(), std::env::var("PATH")?);
    let said = |named: Option<&Path>| -> anyhow::Result<(Option<i32>, String)> {
        let mut command = Command::new(repository().join("tools/go"));
        command.arg("path").env("PATH", &path).env("PERIAPT_CACHE", place.path()).env_remove("PERIAPT_GO");
        command.envs(named.map(|named| ("PERIAPT_GO", named)));
        let output = command.output()?;
        Ok((output.status.code(), String::from_utf8([output.stdout, output.stderr].concat())?))
    };
    assert_eq!(said(None)?, (Some(NONE), String::new()));
    let (code, text) = said(Some(&place.path().join("nothing")))?;
    assert!(code == Some(1) && text.contains("which is no program"), "{code:?} {text}");
    assert_eq!(said(Some(&old))?, (Some(0), format!("{}\n", old.display())));
    Ok(())
}

/// An installation with a Go toolchain for its charms.
struct Bench {
    periapt: Installation,
    go: PathBuf,
}

impl Bench {
    /// Packs a directory and returns the archive, or the error.
    fn pack(&self, directory: &Path) -> anyhow::Result<Result<PathBuf, String>> {
        let name = directory.file_name().context("a charm's directory has a name")?;
        let archive = self.periapt.path().join(name).with_extension("charm");
        let words = [OsStr::new("pack"), directory.as_os_str(), OsStr::new("-o"), archive.as_os_str()];
        let mut command = self.periapt.command(words);
        let output = command.env("PERIAPT_GO", &self.go).env("GOPROXY", "off").output()?;
        let said = String::from_utf8(output.stderr)?;
        Ok(if output.status.success() { Ok(archive) } else { Err(said) })
    }

    /// Writes a charm of one file, with this repository's SDK, into a directory of the test's own.
    fn written(&self, name: &str, source: &str) -> anyhow::Result<PathBuf> {
        let directory = self.periapt.path().join(name);
        fs::create_dir(&directory)?;
        let metadata = format!(
            "name: {name}\ntype: charm\nsummary: x\ndescription: x\n\
             config: {{options: {{mode: {{type: string, default: none}}}}}}\nactions: {{stress: {{}}}}\n"
        );
        let sdk = fs::canonicalize(repository().join("host-api/sdk/go"))?;
        let module = format!(
            "module {name}\n\ngo 1.24\n\nrequire periapt v0.0.0\n\nreplace periapt => {}\n",
            sdk.display()
        );
        fs::write(directory.join("charmcraft.yaml"), metadata)?;
        fs::write(directory.join("go.mod"), module)?;
        fs::write(directory.join("charm.go"), source)?;
        Ok(directory)
    }

    /// Runs one hook of an archive and returns its result, failed or not.
    fn tried(&self, archive: &Path, scene: &Value) -> anyhow::Result<Value> {
        let file = self.periapt.path().join("scene.json");
        fs::write(&file, scene.to_string())?;
        let tried = self.periapt.run(["try-hook".as_ref(), archive.as_os_str(), file.as_os_str()])?;
        serde_json::from_str(&tried.stdout).with_context(|| tried.stderr.clone())
    }
}

fn bench(periapt: impl FnOnce() -> anyhow::Result<Installation>) -> anyhow::Result<Option<Bench>> {
    let Some(go) = toolchain()? else { return Ok(None) };
    Ok(Some(Bench { periapt: periapt()?, go }))
}

#[test]
fn a_charm_in_go_is_packed_from_its_sources_and_does_its_work() -> anyhow::Result<()> {
    let Some(bench) = bench(Installation::bootstrapped)? else { return Ok(()) };
    let periapt = &bench.periapt;
    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    let hello = repository().join("charms/hello-go");
    let archive = bench.pack(&hello)?.map_err(anyhow::Error::msg)?;
    for application in ["hello", "other"] {
        periapt.ok(["deploy".as_ref(), archive.as_os_str(), application.as_ref()])?;
    }
    periapt.wait_for(["unit", "hello/0", "--message", "says \"Hello\" on port 7777"])?;
    periapt.ok(["integrate", "hello:greeting", "other:hears"])?;
    periapt.wait_for(["unit", "other/0", "--message", "heard from hello/0: Hello, other/0!"])?;
    for times in ["1", "2"] {
        let shown = periapt.json(["run", "hello/0", "greet", "whom=s\u{e9}same \"et\" toi"])?;
        assert_eq!(text(&shown, "/hello~10/results/greeting")?, "Hello, s\u{e9}same \"et\" toi!");
        assert_eq!(text(&shown, "/hello~10/results/times")?, times);
    }

    // An error that a handler returns fails the hook, which has no effect.
    periapt.ok(["config", "hello", "port=70000"])?;
    periapt.wait_for(["unit", "hello/0", "--status", "error"])?;
    let log = periapt.ok(["debug-log", "--no-tail", "--lines", "5", "-i", "hello/0"])?;
    assert!(log.contains("failed: 70000/tcp is no port: expected numbers up to 65535"), "{log}");
    let shown = periapt.json(["show-unit", "hello/0"])?;
    assert_eq!(shown["hello/0"]["opened-ports"], json!(["7777/tcp"]));

    let bytes = fs::read(&archive)?;
    let again = bench.pack(&hello)?.map_err(anyhow::Error::msg)?;
    ensure!(fs::read(again)? == bytes, "the same sources were packed to other bytes");
    Ok(())
}

#[test]
fn the_memory_of_a_charm_in_go_is_its_own_whatever_it_asks_for() -> anyhow::Result<()> {
    let Some(bench) = bench(Installation::empty)? else { return Ok(()) };
    let directory = bench.written("stress", include_str!("go/charms/stress.go"))?;
    let archive = bench.pack(&directory)?.map_err(anyhow::Error::msg)?;
    let tried = bench.tried(&archive, &json!({"unit": "stress/0", "event": {"hook": "config-changed"}}))?;
    assert_eq!(tried["outcome"], "handled", "{}", tried["outcome"]);
    assert_eq!(text(&tried, "/early/0/unit-status/message")?, "all is as it was");
    let action = json!({"unit": "stress/0", "event": {"hook": "stress", "kind": "action"}, "parameters": {"whom": "you"}});
    let tried = bench.tried(&archive, &action)?;
    assert_eq!(tried["outcome"], "handled", "{}", tried["outcome"]);
    assert_eq!(tried["action"]["results"]["result-9"], "you", "{}", tried["action"]);
    Ok(())
}

#[test]
fn what_goes_wrong_in_go_is_told_and_stopped() -> anyhow::Result<()> {
    let Some(bench) = bench(Installation::empty)? else { return Ok(()) };
    let directory = bench.written("ways", include_str!("go/charms/ways.go"))?;
    let archive = bench.pack(&directory)?.map_err(anyhow::Error::msg)?;
    let run = |mode: &str| {
        let event = json!({"hook": "config-changed"});
        let scene = json!({"unit": "ways/0", "event": event, "config": {"mode": mode}, "budgets": {"hook-cpu-budget": "1s", "hook-timeout": "60s"}});
        bench.tried(&archive, &scene)
    };
    for (mode, said) in [
        ("error", "out of luck"),
        ("panic", "panic: assignment to entry in nil map"),
        ("loop", "cpu budget exceeded"),
        ("grow", "out of memory"),
        ("recurse", "stack overflow: too many nested calls"),
        ("exit", "exited with code 1 before its handler returned"),
        ("wait", "trapped: aborted"),
        ("refused", "opening ports: invalid port range 80-79/tcp"),
        ("tool", "relation-get: invalid value \"nothing\" for option -r"),
    ] {
        let tried = run(mode)?;
        assert!(text(&tried, "/outcome/failed/message")?.contains(said), "{mode}: {tried}");
        let log = tried["early"].to_string();
        if mode == "wait" {
            assert!(log.contains("all goroutines are asleep") && log.contains("ways/charm.go:"), "{log}");
        }
        if mode == "panic" {
            assert!(log.contains("main.goWrong") && log.contains("ways/charm.go:"), "{log}");
            assert!(!log.contains("periapt.Handlers.Run"), "{log}");
        }
    }
    let tried = run("leader")?;
    assert_eq!(text(&tried, "/early/0/unit-status/message")?, "does not lead");
    Ok(())
}

#[test]
fn what_cannot_be_built_in_go_is_told_in_the_authors_words() -> anyhow::Result<()> {
    let Some(bench) = bench(Installation::empty)? else { return Ok(()) };
    let main = "package main\n\nimport \"periapt\"\n\nfunc main() {}\n\n";
    for (name, source, said) in [
        ("syntax", format!("{main}func init() {{ periapt.Handle(nil \n"), "charm.go:7:34: syntax error"),
        (
            "unknown",
            format!("{main}func init() {{ periapt.Handl(nil) }}\n"),
            "charm.go:7:23: undefined: periapt.Handl",
        ),
        (
            "fetching",
            "package main\n\nimport _ \"example.com/left/pad\"\n\nfunc main() {}\n".to_owned(),
            "charm.go:3:8: no required module provides package example.com/left/pad",
        ),
        ("library", "package library\n".to_owned(), "requires exactly one main package"),
        (
            "alone",
            "package main\n\nfunc main() {}\n".to_owned(),
            "the module has no handler: it exports no function `handle`",
        ),
    ] {
        let directory = bench.written(name, &source)?;
        let packed = bench.pack(&directory)?;
        let Err(error) = packed else { anyhow::bail!("{name} was packed") };
        assert!(error.contains(said), "{name}: {error}");
        assert_eq!(error.matches("ERROR ").count(), 1, "{error}");
    }
    Ok(())
}

#[test]
fn a_go_that_is_missing_or_too_old_is_named_with_the_way_to_another() -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench { periapt: Installation::empty()?, go: "/nothing/go".into() };
    let directory = bench.written("missing", "package main\n\nfunc main() {}\n")?;
    let said = bench.pack(&directory)?.expect_err("there is no Go");
    let expected =
        "/nothing/go is needed to pack charms in Go, and is not installed\nhint: install Go 1.24 or newer";
    assert!(said.contains(expected), "{said}");

    let old = bench.periapt.path().join("old-go");
    fs::write(&old, "#!/bin/sh\necho go1.19.8\n")?;
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755))?;
    let bench = Bench { go: old, ..bench };
    let said = bench.pack(&directory)?.expect_err("it is too old");
    assert!(
        said.contains("is needed to pack charms in Go, in version 1.24 or newer; there is go1.19.8"),
        "{said}"
    );
    Ok(())
}
