//! Storage, from an operator's command to a hook's file and back.

use std::io::Write as _;

use anyhow::Context as _;
use periapt_tests::Installation;

/// Returns the notes that the probe read, from its log.
fn notes(periapt: &Installation) -> anyhow::Result<Vec<String>> {
    let log = periapt.ok(["debug-log", "--replay", "--no-tail"])?;
    let read = |line: &str| line.split_once("read /srv/scratch/note: ").map(|(_, note)| note.to_owned());
    Ok(log.lines().filter_map(read).collect())
}

#[test]
fn what_a_hook_writes_to_storage_is_there_after_an_upgrade_and_a_restart_of_the_agent() -> anyhow::Result<()>
{
    let periapt = Installation::bootstrapped()?;
    let script = "script=scratch-storage-attached: write /srv/scratch/note=kept\n\
                  install: read /srv/scratch/note\nstart: status active\nupgrade-charm: read /srv/scratch/note";
    let refused = periapt.deploy("probe", ["--storage", "data=1G"]).unwrap_err().to_string();
    assert!(refused.contains("has no store called"), "{refused}");
    periapt.deploy("probe", ["--config", script, "--storage", "scratch=1,10M"])?;
    periapt.wait_for(["model"])?;
    assert_eq!(notes(&periapt)?, ["kept"]);

    let storage = periapt.json(["storage"])?;
    let instance = &storage["storage"]["scratch/0"];
    assert_eq!(instance["status"]["current"], "attached", "{storage}");
    assert_eq!(instance["attachments"]["units"]["probe/0"]["location"], "/srv/scratch", "{storage}");
    assert_eq!(storage["filesystems"]["0"]["size"], 10);
    assert_eq!(periapt.json(["status"])?["storage"], storage);
    let table = periapt.ok(["storage"])?;
    let cells: Vec<_> = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(cells[1], ["probe/0", "scratch/0", "filesystem", "rootfs", "10MiB", "attached"], "{table}");

    // Another archive of the same charm, and another agent process with the same data.
    let changed = periapt.path().join("changed");
    std::fs::create_dir(&changed)?;
    let archive = periapt_archive::Archive::read(&std::fs::read(periapt.path().join("probe.charm"))?)?;
    let file = |name: &str| archive.file(name).with_context(|| name.to_owned());
    let metadata = String::from_utf8(file("charmcraft.yaml")?.to_vec())?;
    std::fs::write(changed.join("charmcraft.yaml"), metadata.replace("summary: ", "summary: Newer, "))?;
    std::fs::write(changed.join("charm.wasm"), file("charm.wasm")?)?;
    periapt_tests::signal(periapt.agent_process("local")?, "KILL")?;
    periapt.ok(["controller", "start", "local"])?;
    periapt.ok(["refresh", "probe", "--path", "changed"])?;
    let upgraded = |hooks: &serde_json::Value| {
        let mut entries = hooks["entries"].as_array().into_iter().flatten();
        entries.any(|entry| entry["record"]["event"] == "upgrade-charm")
    };
    periapt.json_until(&["hooks", "probe/0"], upgraded)?;
    assert_eq!(notes(&periapt)?, ["kept", "kept"]);

    // The storage outlives its unit, and is removed on request.
    periapt.ok(["remove-unit", "probe/0", "--no-prompt"])?;
    periapt.json_until(&["storage"], |storage| {
        storage["storage"]["scratch/0"]["status"]["current"] == "detached"
    })?;
    let refused = periapt.refused(["destroy-model", "test", "--no-prompt"])?;
    assert!(refused.contains("--destroy-storage"), "{refused}");

    // A new unit attaches the storage with all its files.
    let refused = periapt.refused(["add-unit", "probe", "-n", "2", "--attach-storage", "scratch/0"])?;
    assert!(refused.contains("2 units are asked for"), "{refused}");
    periapt.ok(["add-unit", "probe", "--attach-storage", "scratch/0"])?;
    periapt.wait_for(["unit", "probe/1"])?;
    assert_eq!(notes(&periapt)?, ["kept", "kept", "kept"]);
    let shown = periapt.ok(["status", "--storage"])?;
    assert!(shown.contains("probe/1  scratch/0"), "{shown}");
    assert_eq!(periapt.json(["storage-pools"])?, serde_json::json!({"rootfs": {"provider": "rootfs"}}));
    periapt.ok(["remove-unit", "probe/1", "--no-prompt"])?;
    periapt.json_until(&["storage"], |storage| {
        storage["storage"]["scratch/0"]["status"]["current"] == "detached"
    })?;
    periapt.ok(["deploy", "probe.charm", "heir", "--config", script, "--attach-storage", "scratch/0"])?;
    periapt.wait_for(["application", "heir"])?;
    assert_eq!(notes(&periapt)?.len(), 4);
    periapt.ok(["remove-application", "heir", "--destroy-storage", "--no-prompt"])?;
    periapt.json_until(&["storage"], |storage| storage["storage"].is_null())?;
    Ok(())
}

#[test]
fn an_agent_makes_no_more_storage_than_it_may_and_goes_on_when_there_is_room() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let mut small = periapt.agent("small", ["--storage-limit", "15M"])?;
    assert_eq!(small.first_line()?, "ready small");
    let script = "script=start: status active";
    let place = ["--storage", "scratch=1,10M", "--to", "agent=small"];
    periapt.deploy("probe", ["--config", script].into_iter().chain(place))?;
    periapt.wait_for(["unit", "probe/0"])?;
    periapt.ok(["add-unit", "probe", "--to", "agent=small"])?;
    let of = |storage: &serde_json::Value, what: &str| {
        storage["storage"]["scratch/1"]["status"][what].as_str().unwrap_or_default().to_owned()
    };
    let waiting = periapt.json_until(&["storage"], |storage| !of(storage, "message").is_empty())?;
    assert_eq!(of(&waiting, "current"), "pending", "{waiting}");
    assert!(
        of(&waiting, "message").starts_with("not enough space for 10MiB: 10MiB of the 15MiB"),
        "{waiting}"
    );

    periapt.ok(["remove-unit", "probe/0", "--no-prompt", "--destroy-storage"])?;
    periapt.wait_for(["unit", "probe/1"])?;
    let storage = periapt.json(["storage"])?;
    assert_eq!((of(&storage, "current"), of(&storage, "message")), ("attached".to_owned(), String::new()));
    assert_eq!(small.end("TERM")?, Some(0));
    Ok(())
}

#[test]
fn storage_beneath_other_storage_is_another_for_hooks_scripts_and_trials() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    // A storage with a one-letter name, mounted inside a storage that is declared `multiple`.
    let nested = periapt_tests::packed_changed("probe", "nested", periapt.path(), |text| {
        text.replace("storage:\n", "storage:\n  d:\n    type: filesystem\n    location: /srv/scratch/d\n")
    })?;
    let nested = nested.to_str().context("a path")?;
    let script = "script=start: write /srv/scratch/note=outer\nstart: write /srv/scratch/d/note=inner\n\
                  start: write /srv/scratch/./d/way=inner\nstart: read /srv/scratch/d/way\nstart: status active";
    periapt.ok(["deploy", nested, "--config", script, "--storage", "scratch=1,10M", "--storage", "d=10M"])?;
    periapt.wait_for(["model"])?;
    let log = periapt.ok(["debug-log", "--replay", "--no-tail"])?;
    assert!(log.contains("read /srv/scratch/d/way: inner"), "{log}");
    let said = |script: &str| periapt.ok(["exec", "--unit", "probe/0", "--", script]);
    assert_eq!(said("ls /srv/scratch")?, "d\nnote\n");
    assert_eq!(said("ls /srv/scratch/d")?, "note\nway\n");
    assert_eq!(said("cat /srv/scratch/note /srv/scratch/d/note /srv/scratch/./d/note")?, "outerinnerinner\n");
    said("cat /srv/scratch/note > /srv/scratch/d/copy && rm /srv/scratch/d/way")?;
    assert_eq!(said("ls /srv/scratch/d")?, "copy\nnote\n");

    // In a trial, each storage uses its own directory: writes below one do not reach the other.
    for (id, directory) in [("scratch/0", "outer"), ("d/0", "inner")] {
        let place = periapt.path().join(directory);
        std::fs::create_dir(&place)?;
        std::fs::write(place.join("note"), id)?;
    }
    let script =
        "start: read /srv/scratch/note\nstart: read /srv/scratch/d/note\nstart: write /srv/scratch/d/new=x";
    let scene = serde_json::json!({
        "unit": "probe/3",
        "event": {"hook": "start"},
        "config": {"script": script},
        "storages": [
            {"id": "scratch/0", "directory": periapt.path().join("outer")},
            {"id": "d/0", "directory": periapt.path().join("inner")},
        ],
    });
    let mut trial = periapt.command(["try-hook", nested]);
    trial.env("PERIAPT_CACHE", periapt.path().join("cache"));
    let mut trial = trial.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn()?;
    writeln!(trial.stdin.take().context("its input")?, "{scene}")?;
    let tried = String::from_utf8(trial.wait_with_output()?.stdout)?;
    for read in ["read /srv/scratch/note: scratch/0", "read /srv/scratch/d/note: d/0"] {
        assert!(tried.contains(read), "{tried}");
    }
    assert!(periapt.path().join("inner/new").is_file() && !periapt.path().join("outer/d/new").exists());
    Ok(())
}
