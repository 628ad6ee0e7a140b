//! Users on the command line: one client of the operator, and one of a colleague.

use std::{fs::File, os::unix::fs::MetadataExt as _, path::Path};

use anyhow::Context as _;
use periapt_tests::{Done, Installation};

/// Runs a command with a line on standard input.
fn run_with_line(
    periapt: &Installation,
    line: &str,
    arguments: impl IntoIterator<Item = &'static str>,
) -> anyhow::Result<Done> {
    let path = periapt.path().join("input");
    std::fs::write(&path, format!("{line}\n"))?;
    let mut command = periapt.command(arguments);
    command.stdin(File::open(&path)?);
    Installation::finished(command)
}

/// Returns the text to register with that a command has printed.
fn registration(output: &str) -> anyhow::Result<String> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("periapt register "));
    Ok(line.with_context(|| format!("no registration in {output}"))?.to_owned())
}

/// Adds a user, and returns a client of theirs that is logged in.
pub(crate) fn colleague(operator: &Installation, user: &str) -> anyhow::Result<Installation> {
    let colleague = Installation::empty()?;
    let text = registration(&operator.ok(["add-user", user])?)?;
    let line = format!("{text}\ncorrect horse");
    let done = run_with_line(&colleague, &line, ["register", "-", "--no-prompt"])?;
    anyhow::ensure!(done.code == Some(0), "{done:?}");
    Ok(colleague)
}

#[test]
fn a_colleague_registers_reads_a_model_and_is_refused_a_write() -> anyhow::Result<()> {
    let (operator, colleague) = (Installation::empty()?, Installation::empty()?);
    operator.ok(["bootstrap", "--no-agent"])?;
    operator.ok(["add-model", "test"])?;
    let added = operator.ok(["add-user", "jane", "Jane Doe"])?;
    assert!(added.starts_with("User \"jane\" added\nPlease send this command to jane:\n"), "{added}");
    let text = registration(&added)?;

    // The text comes on standard input, then the password.
    let done =
        run_with_line(&colleague, &format!("{text}\ncorrect horse"), ["register", "-", "--no-prompt"])?;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("Welcome, jane. You are now logged into \"local\"."), "{done:?}");
    let again = run_with_line(&colleague, "correct horse", ["register", "-", "--no-prompt"])?.one_error()?;
    assert!(again.contains("invalid registration"), "{again}");
    let mut used = colleague.command(["register", &text, "--replace", "--no-prompt"]);
    used.stdin(File::open(colleague.path().join("input"))?);
    let used = Installation::finished(used)?.one_error()?;
    assert!(used.contains("the registration token is unknown, used or expired"), "{used}");

    assert_eq!(colleague.json(["whoami"])?["user"], "jane");
    assert_eq!(colleague.json(["models"])?["models"], serde_json::json!([]));
    let hidden = colleague.refused(["status", "-m", "admin/test"])?;
    assert!(hidden.contains("model admin/test not found"), "{hidden}");
    operator.ok(["grant", "jane", "read", "test"])?;
    let twice = operator.refused(["grant", "jane", "read", "test"])?;
    assert!(twice.contains("user already has \"read\" access or greater"), "{twice}");
    colleague.ok(["status", "-m", "admin/test"])?;
    // The selection names the owner, as others may have models of the same name.
    assert_eq!(
        colleague.run(["switch", "admin/test"])?.stderr.trim_end(),
        "local (controller) -> local:admin/test"
    );
    assert_eq!(colleague.ok(["switch"])?, "local:admin/test\n");
    assert_eq!(colleague.json(["whoami"])?["model"], "admin/test");
    assert_eq!(colleague.json(["models"])?["current-model"], "admin/test");
    assert!(colleague.ok(["models"])?.contains("\nadmin/test*"));
    let write = ["model-config", "-m", "admin/test", "update-status-hook-interval=1m"];
    let refused = colleague.refused(write)?;
    assert!(refused.contains("permission denied"), "{refused}");
    operator.ok(["grant", "jane", "write", "test"])?;
    colleague.ok(write)?;

    let seen = colleague.json(["users"])?;
    assert_eq!(seen.as_array().map(Vec::len), Some(1), "others than superusers see themselves: {seen}");
    let all = operator.ok(["users"])?;
    assert!(all.contains("admin*") && all.contains("Jane Doe"), "{all}");
    operator.ok(["revoke", "jane", "read", "test"])?;
    colleague.refused(["status", "-m", "admin/test"])?;

    let log = operator.ok(["audit-log"])?;
    for part in ["add-user", "grant-model", "set-model-config", "permission-denied"] {
        assert!(log.contains(part), "no {part} in {log}");
    }
    let denied = colleague.refused(["audit-log"])?;
    assert!(denied.contains("permission denied"), "{denied}");
    Ok(())
}

#[test]
fn a_login_lasts_until_it_ends_and_its_token_is_for_its_owner_alone() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    let text = registration(&periapt.ok(["add-user", "jane"])?)?;
    let colleague = Installation::empty()?;
    let done =
        run_with_line(&colleague, &format!("{text}\ncorrect horse"), ["register", "-", "--no-prompt"])?;
    assert_eq!(done.code, Some(0), "{done:?}");
    let accounts = colleague.path().join("data/accounts.json");
    assert_eq!(std::fs::metadata(&accounts)?.mode() & 0o777, 0o600);
    let out = colleague.run(["logout"])?;
    assert!(out.stderr.contains("You are no longer logged into any controllers."), "{out:?}");
    let wrong =
        run_with_line(&colleague, "wrong horse", ["login", "-u", "jane", "--no-prompt"])?.one_error()?;
    let expected = "cannot log into controller \"local\": invalid entity name or password";
    assert!(wrong.contains(expected), "{wrong}");
    let asked = run_with_line(&colleague, "correct horse", ["login", "-u", "jane"])?.one_error()?;
    assert!(asked.contains("there is no terminal to ask for the password"), "{asked}");
    let done = run_with_line(&colleague, "correct horse", ["login", "-u", "jane", "--no-prompt"])?;
    assert_eq!(done.code, Some(0), "{done:?}");
    let sessions = colleague.json(["sessions"])?;
    assert_eq!(sessions[0]["current"], true, "{sessions}");
    periapt.ok(["disable-user", "jane"])?;
    let ended = colleague.refused(["models"])?;
    assert!(ended.contains("not logged in") && ended.contains("periapt login"), "{ended}");
    periapt.ok(["enable-user", "jane"])?;
    let done = run_with_line(&colleague, "correct horse", ["login", "--no-prompt"])?;
    assert_eq!(done.code, Some(0), "the user who logged in last: {done:?}");
    let owner = periapt.refused(["remove-user", "admin", "-y"])?;
    assert!(owner.contains("cannot delete controller owner \"admin\""), "{owner}");
    periapt.ok(["remove-user", "jane", "-y"])?;
    assert!(colleague.refused(["models"])?.contains("not logged in"));
    Ok(())
}

#[test]
fn a_user_who_loses_the_right_to_a_followed_log_is_told_why() -> anyhow::Result<()> {
    let (operator, colleague) = (Installation::bootstrapped()?, Installation::empty()?);
    operator.deploy("mysql", [])?;
    operator.wait_for(["model"])?;
    operator.ok(["exec", "--unit", "mysql/0", "juju-log hello"])?;
    let text = registration(&operator.ok(["add-user", "jane"])?)?;
    let line = format!("{text}\ncorrect horse");
    let done = run_with_line(&colleague, &line, ["register", "-", "--no-prompt"])?;
    assert_eq!(done.code, Some(0), "{done:?}");
    for (losing, told) in [
        (&["revoke", "jane", "read", "test"][..], "model admin/test not found"),
        (&["disable-user", "jane"], "`periapt login` opens a new session"),
    ] {
        operator.ok(["grant", "jane", "read", "test"])?;
        let log = colleague.path().join("follower.log");
        let command = colleague.command(["debug-log", "-m", "admin/test", "--replay", "--tail"]);
        let mut follower = colleague.logged(command, &log)?;
        assert!(!follower.first_line()?.is_empty());
        operator.ok(losing)?;
        assert_eq!(follower.ended()?, Some(1));
        let log = std::fs::read_to_string(log)?;
        assert_eq!(log.lines().filter(|line| line.starts_with("ERROR ")).count(), 1, "{log}");
        assert!(log.contains(told), "{log}");
    }
    Ok(())
}

/// Puts the store of an earlier version in the place of a stopped controller's: it has no users, no enrolled agents and no
/// authority.
fn replace_store(periapt: &Installation) -> anyhow::Result<()> {
    let directory = periapt.path().join("data/controllers/local/controller");
    for file in ["ca.pem", "ca-key.pem"] {
        std::fs::remove_file(directory.join(file))?;
    }
    let store = directory.join("store");
    std::fs::remove_dir_all(&store)?;
    std::fs::create_dir(&store)?;
    let earlier = Path::new(env!("CARGO_MANIFEST_DIR"));
    let earlier = earlier.join("../controller/store-rocksdb/tests/fixtures/schema-1");
    for file in std::fs::read_dir(earlier)? {
        let file = file?;
        std::fs::copy(file.path(), store.join(file.file_name()))?;
    }
    Ok(())
}

#[test]
fn the_operator_of_an_earlier_versions_controller_is_told_to_register_once_and_how() -> anyhow::Result<()> {
    let (operator, elsewhere) = (Installation::empty()?, Installation::empty()?);
    operator.ok(["bootstrap", "--no-agent"])?;
    let file = operator.path().join("data/client.json");
    let mut known: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;

    // The entries of an earlier version: a URL without TLS, no authority, and a model without its owner.
    operator.ok(["controller", "stop"])?;
    replace_store(&operator)?;
    let entry = known.pointer_mut("/controllers/local").context("no entry")?;
    let entry = entry.as_object_mut().context("no object")?;
    let listen = entry["local"]["listen"].as_str().context("no address")?.to_owned();
    entry.insert("url".to_owned(), format!("http://{listen}").into());
    entry.insert("current-model".to_owned(), "kept".into());
    entry.remove("ca-cert");
    std::fs::write(&file, serde_json::to_vec(&known)?)?;
    let entry = known.pointer_mut("/controllers/local").and_then(|entry| entry.as_object_mut());
    entry.context("no object")?.insert("local".to_owned(), serde_json::Value::Null);
    std::fs::create_dir_all(elsewhere.path().join("data"))?;
    std::fs::write(elsewhere.path().join("data/client.json"), serde_json::to_vec(&known)?)?;

    let started = operator.run(["controller", "start"])?;
    assert_eq!(started.code, Some(0), "{started:?}");
    assert!(started.stderr.contains("change-user-password admin --reset"), "{started:?}");
    assert_eq!(operator.ok(["switch"])?, "local:admin/kept\n");
    let status = operator.json(["status"])?;
    assert_eq!(
        status["applications"]["tiny"]["units"].as_object().map(serde_json::Map::len),
        Some(2),
        "{status}"
    );
    assert_eq!(operator.json(["whoami"])?["user"], "admin");
    assert_eq!(operator.json(["users"])?[0]["access"], "superuser");
    operator.ok(["controller", "stop"])?;
    let again = operator.run(["controller", "start"])?;
    assert!(!again.stderr.contains("earlier version"), "{again:?}");

    let old = elsewhere.refused(["status"])?;
    assert!(old.contains("is known from an earlier version") && old.contains("--reset"), "{old}");
    let text = registration(&operator.ok(["change-user-password", "admin", "--reset"])?)?;
    let line = format!("{text}\ncorrect horse");
    let done = run_with_line(&elsewhere, &line, ["register", "-", "--replace", "--no-prompt"])?;
    assert_eq!(done.code, Some(0), "{done:?}");
    elsewhere.ok(["status"])?;
    operator.ok(["status"])?;

    // The agent of the earlier version is known by name, and joins once, too.
    let url = format!("https://{listen}");
    let run = |url: &str| -> Vec<String> {
        let words = ["agent", "run", "--controller", url, "--name", "one", "--data", "one"];
        words.map(str::to_owned).into()
    };
    let plain = operator.refused(run(&format!("http://{listen}")))?;
    assert!(plain.contains("an agent reaches its controller over TLS alone"), "{plain}");
    let unknown = operator.refused(run(&url))?;
    assert!(
        unknown.contains("agent one has not joined this controller: `periapt agent-token one`"),
        "{unknown}"
    );
    operator.ok(["agent-token", "one", "--output", "one.token"])?;
    let with_token = [run(&url), vec!["--token-file".to_owned(), "one.token".to_owned()]].concat();
    let mut agent = operator.spawn(with_token)?;
    assert_eq!(agent.first_line()?, "ready one");
    assert_eq!(operator.json(["agents"])?[0]["units"], 2);
    assert_eq!(agent.end("TERM")?, Some(0));
    Ok(())
}
