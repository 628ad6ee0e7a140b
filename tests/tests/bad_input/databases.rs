//! Directories in which a controller cannot run: it leaves each unchanged.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use periapt_host_api::Revision;
use periapt_store::Batch;
use periapt_store_rocksdb::BaselineDatabase;
use periapt_tests::{Done, Installation};

use crate::file_system::with_file_system;

/// Runs a controller in the foreground until it ends by itself.
fn run(periapt: &Installation, data: &Path) -> anyhow::Result<Done> {
    let data = data.to_str().context("a path that is text")?;
    periapt.run(["controller", "run", "--data", data, "--listen", "127.0.0.1:0"])
}

/// Checks that a controller refuses a directory twice with the same single error, which contains `says`, and leaves
/// its database unchanged.
fn check_refused(periapt: &Installation, data: &Path, says: &[&str]) -> anyhow::Result<()> {
    let before = database(data)?;
    let mut errors = Vec::new();
    for _ in 0..2 {
        let done = run(periapt, data)?;
        assert_eq!(done.stdout, "", "it never said that it is ready");
        errors.push(done.one_error()?);
    }
    for error in errors {
        for part in says {
            assert!(error.contains(part), "{data:?} does not say {part:?}: {error}");
        }
    }
    let after = database(data)?;
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<_> {
        files.iter().map(|(path, bytes)| (path.clone(), bytes.len())).collect()
    };
    assert!(after == before, "{data:?} was written: {:?} {:?}", names(&before), names(&after));
    Ok(())
}

/// Returns the database's files, without RocksDB's info log.
fn database(data: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let store = data.join("store");
    let mut files = BTreeMap::new();
    if !store.is_dir() {
        return Ok(files);
    }
    for entry in fs::read_dir(store)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("LOG") && name != "LOCK" {
            files.insert(path.clone(), fs::read(&path)?);
        }
    }
    Ok(files)
}

/// Creates a controller's directory with a model in it.
fn used(periapt: &Installation) -> anyhow::Result<PathBuf> {
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.ok(["controller", "stop"])?;
    Ok(periapt.path().join("data/controllers/local/controller"))
}

/// Returns the path of the store's file whose name starts with `name`.
fn part(data: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let found = database(data)?
        .into_keys()
        .find(|path| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name)));
    found.with_context(|| format!("no {name}"))
}

#[test]
fn a_damaged_database_is_refused_with_the_way_on() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let data = used(&periapt)?;
    for name in ["CURRENT", "MANIFEST-"] {
        let file = part(&data, name)?;
        let whole = fs::read(&file)?;
        let damage: [&dyn Fn() -> std::io::Result<()>; 3] =
            [&|| fs::write(&file, "rubbish"), &|| fs::write(&file, ""), &|| fs::remove_file(&file)];
        for act in damage {
            act()?;
            let store = data.join("store").display().to_string();
            let says = ["ERROR the store is damaged: ", store.as_str(), "restore it from a backup"];
            check_refused(&periapt, &data, &says)?;
        }
        fs::write(&file, whole)?;
    }
    // A start in the background reports the same error.
    let current = part(&data, "CURRENT")?;
    let whole = fs::read(&current)?;
    fs::write(&current, "rubbish")?;
    let error = periapt.refused(["controller", "start"])?;
    assert!(
        error.contains("the controller did not start") && error.contains("the store is damaged"),
        "{error}"
    );
    fs::write(&current, whole)?;
    periapt.ok(["controller", "start"])?;
    assert_eq!(
        periapt.json(["models"])?["models"].as_array().map(Vec::len),
        Some(1),
        "nothing was lost by trying"
    );
    Ok(())
}

/// Writes rows of another program into `store`.
fn written_by_another(data: &Path, rows: &[(&str, &[u8])]) -> anyhow::Result<()> {
    fs::create_dir_all(data)?;
    let mut database = BaselineDatabase::open(&data.join("store"))?;
    let entities = rows.iter().map(|(key, value)| (key.as_bytes().to_vec(), Some(value.to_vec()))).collect();
    Ok(database.write(&Batch { expected: Revision(0), entities, ..Batch::default() })?)
}

#[test]
fn a_database_of_a_newer_form_is_refused_as_newer() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let data = periapt.path().join("newer");
    let rows: [(&str, &[u8]); 3] =
        [("schema", &99u32.to_be_bytes()), ("store-id", &[7; 16]), ("head", &5u64.to_be_bytes())];
    written_by_another(&data, &rows)?;
    check_refused(
        &periapt,
        &data,
        &["ERROR the store has schema 99, this program knows up to ", "use a newer periapt"],
    )
}

#[test]
fn a_directory_of_something_else_is_refused() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let foreign = periapt.path().join("foreign");
    written_by_another(&foreign, &[("their", b"content")])?;
    check_refused(
        &periapt,
        &foreign,
        &["not a store of periapt: ", "foreign/store", "content but no schema"],
    )?;
    for name in ["store", "blobs"] {
        let data = periapt.path().join(format!("{name}-is-a-file"));
        fs::create_dir(&data)?;
        fs::write(data.join(name), "mine")?;
        check_refused(&periapt, &data, &[&format!("{name}-is-a-file/{name}")])?;
        assert_eq!(fs::read(data.join(name))?, b"mine");
    }
    let file = periapt.path().join("file");
    fs::write(&file, "mine")?;
    check_refused(&periapt, &file, &["ERROR ", "/file", "exists"])?;
    check_refused(&periapt, &file.join("below"), &["ERROR ", "/file/below", "Not a directory"])
}

#[test]
fn a_directory_that_another_controller_has_is_refused() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let mut first = periapt.spawn(["controller", "run", "--data", "c", "--listen", "127.0.0.1:0"])?;
    assert!(first.first_line()?.starts_with("ready "));
    let error = run(&periapt, &periapt.path().join("c"))?.one_error()?;
    assert!(error.contains("/c/store") && error.contains("another process"), "{error}");
    assert_eq!(first.end("TERM")?, Some(0), "the first one is not disturbed");
    Ok(())
}

/// Root may do anything, so the test drops that right.
#[test]
fn a_directory_without_rights_is_refused() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let locked = periapt.path().join("locked");
    fs::create_dir(&locked)?;
    fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o000))?;
    let plain = periapt.command(["controller", "run", "--listen", "127.0.0.1:0", "--data"]);
    let mut command = match fs::read_dir(&locked) {
        Err(_) => plain,
        Ok(_) => {
            let mut humbled = Command::new("setpriv");
            humbled.arg("--bounding-set=-dac_override,-dac_read_search").arg(plain.get_program());
            humbled.args(plain.get_args()).env("PERIAPT_DATA", periapt.path().join("data"));
            humbled
        }
    };
    let done = command.arg(locked.join("below")).output()?;
    let stderr = String::from_utf8(done.stderr)?;
    let error = Done { code: done.status.code(), stdout: String::new(), stderr }.one_error()?;
    assert!(error.contains("/locked/below") && error.contains("Permission denied"), "{error}");
    Ok(())
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    let name = "databases::a_directory_that_cannot_be_written_is_refused";
    with_file_system(name, "ro", async |directory| {
        let periapt = Installation::empty().unwrap();
        let error = run(&periapt, directory).unwrap().one_error().unwrap();
        assert!(error.contains(directory.to_str().unwrap()) && error.contains("Read-only"), "{error}");
    });
}
