//! A full disk: no stored data is lost, no partial write stays, and work resumes once there is space.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use periapt_tests::{Installation, module, packed};

use crate::file_system::with_file_system;

/// Fills the disk.
fn fill(directory: &Path) -> PathBuf {
    let ballast = directory.join("ballast");
    let mut file = fs::File::options().create(true).append(true).open(&ballast).unwrap();
    for piece in [1 << 16, 1 << 10, 1] {
        loop {
            match file.write_all(&vec![b'x'; piece]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    ballast
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_bootstrap_on_a_full_disk_leaves_nothing() {
    let name = "disks::a_bootstrap_on_a_full_disk_leaves_nothing";
    with_file_system(name, "size=16m", async |directory| {
        let periapt = Installation::below(directory).unwrap();
        let ballast = fill(directory);
        let error = periapt.refused(["bootstrap", "--no-agent"]).unwrap();
        assert!(error.contains("No space left on device"), "{error}");
        assert_eq!(names(&periapt.path().join("data/controllers")), [""; 0]);
        assert!(!periapt.path().join("data/client.json").exists());
        fs::remove_file(ballast).unwrap();
        periapt.ok(["bootstrap", "--no-agent"]).unwrap();
    });
}

#[test]
fn an_archive_that_does_not_fit_leaves_no_part_of_it() {
    let name = "disks::an_archive_that_does_not_fit_leaves_no_part_of_it";
    with_file_system(name, "size=4m", async |directory| {
        let periapt = Installation::empty().unwrap();
        let charm = periapt.path().join("charm");
        fs::create_dir(&charm).unwrap();
        fs::write(charm.join("charmcraft.yaml"), "name: c\nsummary: s\ndescription: d\n").unwrap();
        fs::copy(periapt_tests::module("mysql").unwrap(), charm.join("charm.wasm")).unwrap();
        let output = directory.join("c.charm");
        fs::write(&output, "the one before").unwrap();
        let ballast = fill(directory);
        let error = periapt.refused(["pack", "./charm", "-o", output.to_str().unwrap()]).unwrap();
        assert!(error.contains("c.charm") && error.contains("No space left on device"), "{error}");
        assert_eq!(names(directory), ["ballast", "c.charm"]);
        assert_eq!(fs::read(&output).unwrap(), b"the one before");
        fs::remove_file(ballast).unwrap();
        periapt.ok(["pack", "./charm", "-o", output.to_str().unwrap()]).unwrap();
    });
}

#[test]
fn a_controller_whose_disk_is_full_refuses_and_goes_on_when_there_is_room() {
    let name = "disks::a_controller_whose_disk_is_full_refuses_and_goes_on_when_there_is_room";
    with_file_system(name, "size=64m", async |directory| {
        let periapt = Installation::below(directory).unwrap();
        periapt.ok(["bootstrap", "--no-agent"]).unwrap();
        periapt.ok(["add-model", "test"]).unwrap();
        let mysql = packed("mysql", periapt.path()).unwrap();
        let wordpress = packed("wordpress", periapt.path()).unwrap();
        periapt.ok(["deploy", mysql.to_str().unwrap()]).unwrap();
        let blobs = periapt.path().join("data/controllers/local/controller/blobs");
        let before = names(&blobs);
        let ballast = fill(directory);

        // The archive does not fit, and no part of it is stored.
        let error = periapt.refused(["deploy", wordpress.to_str().unwrap()]).unwrap();
        assert!(error.contains("No space left on device"), "{error}");
        assert_eq!(files(&blobs), 1, "{before:?} {:?}", names(&blobs));
        // Small writes succeed while the log has preallocated space.
        let (mut acknowledged, mut number) = ("utf8mb4".to_owned(), 0);
        let error = loop {
            number += 1;
            let text = format!("{number}-{}", "x".repeat(60_000));
            let done = periapt.run(["config", "mysql", &format!("character-set={text}")]).unwrap();
            match done.code {
                Some(0) => acknowledged = text,
                _ => break done.one_error().unwrap(),
            }
        };
        assert!(error.contains("No space left on device") && error.contains("hint: "), "{error}");
        let status = periapt.ok(["status"]).unwrap();
        assert!(status.contains("mysql"), "reading goes on: {status}");
        let now = periapt.ok(["config", "mysql", "character-set"]).unwrap();
        assert!(now.trim_end() == acknowledged, "{}", &now[..now.len().min(40)]);

        fs::remove_file(ballast).unwrap();
        let began = Instant::now();
        // The controller opens the store again, with pauses of ten seconds at most.
        while periapt.run(["config", "mysql", "character-set=after"]).unwrap().code != Some(0) {
            assert!(began.elapsed() < Duration::from_secs(60), "it never goes on");
        }
        periapt.ok(["deploy", wordpress.to_str().unwrap()]).unwrap();
        assert_eq!(periapt.ok(["config", "mysql", "character-set"]).unwrap(), "after\n");
    });
}

#[test]
fn an_agent_whose_disk_is_full_is_seen_in_status_and_goes_on_when_there_is_room() {
    let name = "disks::an_agent_whose_disk_is_full_is_seen_in_status_and_goes_on_when_there_is_room";
    with_file_system(name, "size=32m", async |directory| {
        let periapt = Installation::empty().unwrap();
        periapt.ok(["bootstrap", "local", "--no-agent"]).unwrap();
        periapt.ok(["add-model", "test"]).unwrap();
        let data = directory.join("agent");
        let mut agent = periapt.agent_in(&data, "first", []).unwrap();
        assert_eq!(agent.first_line().unwrap(), "ready first");
        let ballast = fill(directory);
        periapt.deploy("mysql", []).unwrap();
        let unit = |status: &serde_json::Value| {
            status["applications"]["mysql"]["units"]["mysql/0"]["juju-status"].clone()
        };
        let status = periapt.json_until(&["status"], |status| unit(status)["current"] == "failed").unwrap();
        let message = unit(&status)["message"].to_string();
        assert!(message.contains("No space left on device"), "{message}");
        fs::remove_file(ballast).unwrap();
        periapt.wait_for(["model"]).unwrap();
        let status = periapt.json(["status"]).unwrap();
        assert_eq!(unit(&status)["current"], "idle");
    });
}

/// Returns the number of files below a directory.
fn files(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

#[test]
fn a_device_is_written_to_and_not_replaced() {
    let name = "disks::a_device_is_written_to_and_not_replaced";
    with_file_system(name, "size=16m", async |directory| {
        let periapt = Installation::empty().unwrap();
        let archive = fs::read(packed("mysql", periapt.path()).unwrap()).unwrap();
        // Devices of this test's own: a process that may write to the directory could replace them.
        for (link, target) in
            [("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2"), ("fd", "/proc/self/fd")]
        {
            std::os::unix::fs::symlink(target, directory.join(link)).unwrap();
        }
        for device in ["null", "full", "zero", "urandom"] {
            fs::write(directory.join(device), "").unwrap();
            mount(&Path::new("/dev").join(device), &directory.join(device));
        }
        mount(directory, Path::new("/dev"));
        let before = names(Path::new("/dev"));
        let pack = |output: &str| {
            let mut command =
                periapt.command(["pack", concat!(env!("CARGO_MANIFEST_DIR"), "/../charms/mysql")]);
            command.arg("--wasm").arg(module("mysql").unwrap()).args(["-o", output]);
            command.output().unwrap()
        };
        assert_eq!(pack("/dev/stdout").stdout, archive);
        assert_eq!(pack("/dev/fd/1").stdout, archive);
        assert!(pack("/dev/stderr").stderr.starts_with(&archive));
        assert!(pack("/dev/null").status.success());
        let error = String::from_utf8(pack("/dev/full").stderr).unwrap();
        assert_eq!(error, "ERROR cannot write /dev/full: No space left on device (os error 28)\n");
        // A mount point cannot be replaced, so the command writes into it.
        let file = periapt.path().join("mounted.charm");
        fs::write(&file, "long before").unwrap();
        mount(&file, &file);
        assert!(pack("mounted.charm").status.success());
        assert_eq!(fs::read(&file).unwrap(), archive);
        assert_eq!(names(Path::new("/dev")), before);
    });
}

fn mount(what: &Path, at: &Path) {
    let mounted = std::process::Command::new("mount").arg("--rbind").args([what, at]).status().unwrap();
    assert!(mounted.success(), "{} at {}", what.display(), at.display());
}
