//! The restore drill: a controller that is lost with its directory comes back from a backup, and its agent by itself.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use age::{secrecy::ExposeSecret as _, x25519::Identity};
use anyhow::Context as _;
use periapt_tests::{Installation, RunningProcess};
use serde_json::Value;

use crate::{interrupted::until, secrets::logged};

const PASSPHRASE: &str = "correct horse 4711";

/// Starts a controller without an agent on its own host, with an agent "first" that does not lie in its directory.
fn with_an_agent_elsewhere() -> anyhow::Result<(Installation, RunningProcess)> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    let mut agent = periapt.agent("first", [])?;
    assert_eq!(agent.first_line()?, "ready first");
    periapt.ok(["add-model", "test"])?;
    fs::write(periapt.path().join("pass"), format!("{PASSPHRASE}\n"))?;
    Ok((periapt, agent))
}

fn controller(periapt: &Installation) -> PathBuf {
    periapt.path().join("data/controllers/local")
}

/// Kills the controller, and removes its directory and what the client knows of it.
fn lose(periapt: &Installation) -> anyhow::Result<()> {
    periapt.ok(["kill-controller", "local", "--no-prompt"])?;
    assert!(!controller(periapt).exists());
    Ok(())
}

fn address(periapt: &Installation) -> anyhow::Result<String> {
    let listing = periapt.json(["controllers"])?;
    let url = listing.pointer("/controllers/local/url").and_then(Value::as_str).context("no URL")?;
    Ok(url.trim_start_matches("https://").trim_end_matches('/').to_owned())
}

#[test]
fn a_lost_controller_comes_back_from_a_backup_and_its_agent_and_hooks_go_on() -> anyhow::Result<()> {
    let (periapt, _agent) = with_an_agent_elsewhere()?;
    periapt.deploy("probe", ["owner", "--config", "script=db-relation-created: share password=first-one"])?;
    periapt.deploy("probe", ["reader", "--config", "script=*: open\n*: open-token"])?;
    periapt.ok(["integrate", "owner:db", "reader:sink"])?;
    logged(&periapt, "reader/0", "opened password=first-one")?;
    periapt.ok(["add-secret", "token", "token=hunter2"])?;
    let address = address(&periapt)?;

    let made = periapt.json(["create-backup", "--filename", "b.tar", "--passphrase-file", "pass"])?;
    let file = periapt.path().join("b.tar");
    assert_eq!(made["keys"], true, "{made}");
    assert_eq!(made["bytes"], fs::metadata(&file)?.len());
    assert_eq!(fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
    // The controller deletes it once the last byte has left.
    let checkpoint = controller(&periapt).join("controller/checkpoint");
    until("nothing is left of the checkpoint", || Ok(!checkpoint.exists()))?;
    // No key stands in the file.
    let content = fs::read(&file)?;
    let secret = fs::read(controller(&periapt).join("controller/secret-key"))?;
    let authority = fs::read_to_string(controller(&periapt).join("controller/ca-key.pem"))?;
    for key in [&secret[..], authority.lines().nth(1).context("a key")?.as_bytes(), PASSPHRASE.as_bytes()] {
        assert!(!content.windows(key.len()).any(|part| part == key), "a key stands in the clear");
    }

    // After the backup much happens, which the restored controller must not take up where its runners left it.
    periapt.ok(["config", "owner", "script=config-changed: revise password=second-one"])?;
    logged(&periapt, "reader/0", "opened password=second-one")?;
    periapt.deploy("probe", ["later"])?;
    lose(&periapt)?;
    let restore = [
        "bootstrap",
        "local",
        "--no-agent",
        "--listen",
        &address,
        "--restore",
        "b.tar",
        "--passphrase-file",
        "pass",
    ];
    periapt.ok(restore)?;
    periapt.json_until(&["agents"], |agents| agents[0]["alive"] == true)?;

    periapt.ok(["switch", "local:test"])?;
    let status = periapt.json(["status"])?;
    let applications = status["applications"].as_object().context("applications")?;
    assert_eq!(applications.keys().collect::<Vec<_>>(), ["owner", "reader"], "as at the backup");
    assert!(periapt.ok(["show-secret", "token", "--reveal"])?.contains("hunter2"));
    let config = periapt.ok(["config", "owner", "script"])?;
    assert!(config.contains("first-one"), "{config}");

    periapt.ok(["config", "owner", "script=config-changed: revise password=third-one"])?;
    logged(&periapt, "reader/0", "opened password=third-one")?;
    periapt.ok(["add-unit", "reader"])?;
    logged(&periapt, "reader/1", "opened password=third-one")?;
    // A restored controller is backed up and restored again.
    periapt.ok(["create-backup", "--filename", "c.tar", "--passphrase-file", "pass"])?;
    lose(&periapt)?;
    let again = restore.map(|word| if word == "b.tar" { "c.tar" } else { word });
    periapt.ok(again)?;
    periapt.json_until(&["agents"], |agents| agents[0]["alive"] == true)?;
    Ok(())
}

#[test]
fn a_backup_that_cannot_be_used_is_one_error_and_leaves_nothing() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    let place = |name: &str| periapt.path().join(name);
    fs::write(place("pass"), PASSPHRASE)?;
    fs::write(place("wrong"), "another")?;
    let error = periapt.refused(["create-backup"])?;
    assert!(error.contains("there is no terminal to ask for the passphrase"), "{error}");
    periapt.ok(["create-backup", "--filename", "b.tar", "--passphrase-file", "pass"])?;
    let error = periapt.refused(["create-backup", "--filename", "b.tar", "--passphrase-file", "pass"])?;
    assert!(error.contains("b.tar already exists"), "{error}");
    periapt.ok(["create-backup", "--filename", "bare.tar", "--no-keys"])?;

    let whole = fs::read(place("b.tar"))?;
    let current = b"store/CURRENT";
    let store =
        whole.windows(current.len()).position(|name| name == current).context("a file of the store")?;
    let write = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        fs::write(place(name), bytes)
    };
    write("cut.tar", &|bytes| bytes.truncate(whole.len() / 2))?;
    write("endless.tar", &|bytes| bytes.truncate(whole.len() - 1024))?;
    write("longer.tar", &|bytes| bytes.push(0))?;
    write("flipped.tar", &|bytes| bytes[store + 512] ^= 1)?;
    write("escaping.tar", &|bytes| bytes[store..store + 9].copy_from_slice(b"../../../"))?;
    write("newer.tar", &|bytes| {
        let form = bytes.windows(9).position(|text| text == b"\"form\": 2").unwrap();
        bytes[form + 8] = b'9';
    })?;
    fs::write(place("foreign.tar"), vec![b'x'; 4096])?;
    fs::write(place("empty.tar"), "")?;

    let below = |path: &Path| -> anyhow::Result<Vec<_>> {
        let entries = fs::read_dir(path)?;
        Ok(entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?)
    };
    for (file, pass, told) in [
        ("cut.tar", "pass", "cut.tar is incomplete: it ends in the middle"),
        ("endless.tar", "pass", "endless.tar is incomplete"),
        ("longer.tar", "pass", "longer.tar is damaged: there is data after its end"),
        ("flipped.tar", "pass", "flipped.tar is damaged: its content does not have the digest at its end"),
        ("escaping.tar", "pass", "escaping.tar is damaged: there is no valid entry"),
        ("newer.tar", "pass", "newer.tar has form 9, this program knows up to 2"),
        ("foreign.tar", "pass", "foreign.tar is no backup of a periapt controller"),
        ("empty.tar", "pass", "empty.tar is no backup of a periapt controller"),
        ("none.tar", "pass", "cannot read none.tar"),
        ("bare.tar", "pass", "bare.tar has no keys"),
        ("b.tar", "wrong", "the passphrase does not open the keys in b.tar"),
    ] {
        let error = periapt.refused(["bootstrap", "other", "--restore", file, "--passphrase-file", pass])?;
        assert!(error.contains(told), "{file}: {error}");
        assert!(
            !error.contains("Creating controller"),
            "{file} is refused before anything is written: {error}"
        );
        assert_eq!(below(&place("data/controllers"))?, ["local"], "{file} leaves nothing");
    }
    let log = ["--log", "etcd://127.0.0.1:1", "--passphrase-file", "pass"];
    let error = periapt.refused(["bootstrap", "other", "--restore", "b.tar"].into_iter().chain(log))?;
    assert!(error.contains("etcd cannot be reached"), "{error}");
    assert_eq!(below(&place("data/controllers"))?, ["local"], "the log leaves nothing");
    // A controller that is there stays as it is.
    let error = periapt.refused(["bootstrap", "local", "--restore", "b.tar", "--passphrase-file", "pass"])?;
    assert!(error.contains("controller \"local\" already exists"), "{error}");
    // With its keys from elsewhere a backup without keys can be used.
    let keys = place("data/controllers/local/controller");
    let keys = keys.to_str().context("a path")?;
    for other in ["--passphrase-file", "--identity"] {
        let done = periapt.run(restoring("other", "bare.tar", &["--restore-keys", keys, other, "pass"]))?;
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.contains("cannot be used with") && done.stderr.contains(other), "{done:?}");
    }
    periapt.ok(["bootstrap", "other", "--no-agent", "--restore", "bare.tar", "--restore-keys", keys])?;
    // Who took the keys with a backup, and who took one without, is in the audit log.
    let log = periapt.json(["audit-log", "-c", "local"])?;
    let log = log.as_array().context("entries")?;
    let taken = log.iter().filter(|entry| entry["request"]["act"] == "create-backup");
    let taken: Vec<_> =
        taken.map(|entry| (&entry["request"]["user"], &entry["request"]["subject"])).collect();
    let (admin, with, without) = ("admin".into(), "with keys".into(), "without keys".into());
    assert_eq!(taken, [(&admin, &with), (&admin, &without)]);
    Ok(())
}

/// Returns the arguments of a restoration.
fn restoring<'a>(name: &'a str, file: &'a str, further: &[&'a str]) -> Vec<&'a str> {
    [&["bootstrap", name, "--no-agent", "--restore", file], further].concat()
}

#[test]
fn an_incremental_backup_leaves_out_what_others_have_and_is_restored_with_them() -> anyhow::Result<()> {
    let (periapt, _agent) = with_an_agent_elsewhere()?;
    let place = |name: &str| periapt.path().join(name);
    let pass = ["--passphrase-file", "pass"];
    let make = |file: &str, base: Option<&str>| {
        let base = base.map(|base| ["--base", base]);
        periapt.json(
            ["create-backup", "--filename", file].into_iter().chain(pass).chain(base.into_iter().flatten()),
        )
    };
    periapt.deploy("probe", ["first"])?;
    let monday = make("monday.tar", None)?;
    assert_eq!((&monday["unchanged"], monday.get("base")), (&0.into(), None), "{monday}");
    periapt.ok(["add-secret", "token", "token=hunter2"])?;
    periapt.deploy("wordpress", ["second"])?;
    let tuesday = make("tuesday.tar", Some("monday.tar"))?;
    assert_eq!(tuesday["base"], monday["digest"], "{tuesday}");
    assert!(tuesday["unchanged"].as_u64() > Some(1), "files of the store and a charm: {tuesday}");
    periapt.ok(["config", "first", "script=*: open-token"])?;
    let wednesday = make("wednesday.tar", Some("tuesday.tar"))?;
    assert!(
        wednesday["bytes"].as_u64() < tuesday["bytes"].as_u64(),
        "the second charm is left out: {wednesday}"
    );
    assert_eq!((&wednesday["blobs"], &tuesday["blobs"]), (&2.into(), &2.into()), "{wednesday}");

    // Restorations that cannot succeed are one error each, and leave nothing.
    let flip = |from: &str, to: &str| -> anyhow::Result<()> {
        let mut bytes = fs::read(place(from))?;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        Ok(fs::write(place(to), bytes)?)
    };
    fs::create_dir(place("alone"))?;
    fs::copy(place("wednesday.tar"), place("alone/wednesday.tar"))?;
    fs::create_dir(place("damaged"))?;
    fs::copy(place("wednesday.tar"), place("damaged/wednesday.tar"))?;
    fs::copy(place("monday.tar"), place("damaged/monday.tar"))?;
    flip("tuesday.tar", "damaged/tuesday.tar")?;
    make("other.tar", None)?;
    for (file, bases, told) in [
        ("alone/wednesday.tar", &[][..], "builds on tuesday.tar, a backup of revision"),
        (
            "alone/wednesday.tar",
            &["tuesday.tar", "other.tar"],
            "no backup that is restored builds on other.tar",
        ),
        ("alone/wednesday.tar", &["damaged/tuesday.tar"], "damaged/tuesday.tar is damaged"),
        ("damaged/wednesday.tar", &[], "damaged/tuesday.tar is damaged"),
        ("monday.tar", &["monday.tar"], "no backup that is restored builds on monday.tar"),
    ] {
        let bases: Vec<_> = bases.iter().flat_map(|base| ["--restore-base", base]).collect();
        let error = periapt.refused(restoring("again", file, &[&pass[..], &bases].concat()))?;
        assert!(error.contains(told), "{file} {bases:?}: {error}");
        assert!(!error.contains("Creating controller"), "before anything is written: {error}");
    }
    // So is a base of another controller, whose store is another one.
    periapt.ok(restoring("again", "wednesday.tar", &pass))?;
    let error = periapt.refused(
        ["create-backup", "-c", "again", "--filename", "no.tar", "--base", "monday.tar"]
            .into_iter()
            .chain(pass),
    )?;
    assert!(error.contains("monday.tar is a backup of the store"), "{error}");
    assert!(!place("no.tar").exists());
    periapt.ok(["kill-controller", "again", "--no-prompt"])?;

    let address = address(&periapt)?;
    lose(&periapt)?;
    let bases = ["--listen", &address, "--restore-base", "monday.tar", "--restore-base", "tuesday.tar"];
    periapt.ok(restoring("local", "alone/wednesday.tar", &[&pass[..], &bases].concat()))?;
    periapt.json_until(&["agents"], |agents| agents[0]["alive"] == true)?;
    periapt.ok(["switch", "local:test"])?;
    assert!(periapt.ok(["show-secret", "token", "--reveal"])?.contains("hunter2"));
    // The charms came from two backups.
    periapt.ok(["add-unit", "first"])?;
    periapt.ok(["add-unit", "second"])?;
    periapt.wait_for(["unit", "first/1"])?;
    periapt.wait_for(["unit", "second/1", "--status", "blocked"])?;
    Ok(())
}

#[test]
fn keys_of_a_backup_are_opened_by_a_recipients_secret_key_alone() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.ok(["add-secret", "token", "token=hunter2"])?;
    let place = |name: &str| periapt.path().join(name);
    let (one, two, third) = (Identity::generate(), Identity::generate(), Identity::generate());
    let public = |identity: &Identity| identity.to_public().to_string();
    let keep = |name: &str, identity: &Identity| {
        let text = format!("# created by a test\n{}\n", identity.to_string().expose_secret());
        fs::write(place(name), text)
    };
    keep("two.key", &two)?;
    keep("third.key", &third)?;
    fs::write(place("operators.txt"), format!("# operators\n\n{}\n", public(&two)))?;
    fs::write(place("none.txt"), "# nobody\n")?;
    fs::write(place("pass"), PASSPHRASE)?;

    for (arguments, told) in [
        (["--recipients-file", "two.key"], "two.key, line 2: a recipient is a public key of age"),
        (["--recipients-file", "none.txt"], "none.txt has no recipient"),
    ] {
        let error = periapt.refused(["create-backup", "--filename", "b.tar"].into_iter().chain(arguments))?;
        assert!(error.contains(told), "{error}");
        assert!(!error.contains("AGE-SECRET-KEY"), "{error}");
    }
    let made = ["create-backup", "--filename", "b.tar", "--recipient", &public(&one)];
    let made = periapt.json(made.into_iter().chain(["--recipients-file", "operators.txt"]))?;
    assert_eq!(made["keys"], true, "{made}");

    for (arguments, told) in [
        (&[][..], "the keys in b.tar are encrypted to recipients"),
        (&["--passphrase-file", "pass"], "the keys in b.tar are encrypted to recipients"),
        (&["--identity", "third.key"], "no identity in third.key opens the keys in b.tar"),
        (&["--identity", "operators.txt"], "operators.txt, line 3: an identity is a secret key of age"),
        (&["--identity", "nosuch.key"], "nosuch.key"),
    ] {
        let error = periapt.refused(restoring("again", "b.tar", arguments))?;
        assert!(error.contains(told), "{arguments:?}: {error}");
        assert!(!error.contains("Creating controller"), "before anything is written: {error}");
    }
    periapt.ok(restoring("again", "b.tar", &["--identity", "third.key", "--identity", "two.key"]))?;
    periapt.ok(["switch", "again:test"])?;
    assert!(periapt.ok(["show-secret", "token", "--reveal"])?.contains("hunter2"));
    Ok(())
}
