//! Agents that join with a token, as on other hosts.

use std::{fs, os::unix::fs::PermissionsExt as _};

use anyhow::Context as _;
use periapt_tests::{Installation, RunningProcess};
use serde_json::Value;

fn url(periapt: &Installation) -> anyhow::Result<String> {
    let listing = periapt.json(["controllers"])?;
    let url = listing.pointer("/controllers/local/url").and_then(Value::as_str);
    Ok(url.context("no URL")?.to_owned())
}

/// Returns the words of `agent run` for an agent with its data below its name.
fn run<'a>(url: &'a str, name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["agent", "run", "--controller", url, "--name", name, "--data", name], more].concat()
}

fn ready(mut agent: RunningProcess, name: &str) -> anyhow::Result<RunningProcess> {
    assert_eq!(agent.first_line()?, format!("ready {name}"));
    Ok(agent)
}

#[test]
fn a_token_lets_one_agent_in_once_and_the_agent_comes_back_without_it() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    let url = url(&periapt)?;
    periapt.ok(["agent-token", "one", "--output", "one.token"])?;
    let mode = fs::metadata(periapt.path().join("one.token"))?.permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let with_token = ["--token-file", "one.token"];
    let error = periapt.refused(run(&url, "two", &with_token))?;
    assert!(error.contains("the join token is for agent \"one\""), "{error}");
    assert!(!error.contains("pt_j_"), "{error}");

    let one = ready(periapt.spawn(run(&url, "one", &with_token))?, "one")?;
    periapt.json_until(&["agents"], |agents| agents[0]["alive"] == true)?;
    // Another host that has the token, too.
    let stolen = [
        "agent",
        "run",
        "--controller",
        &url,
        "--name",
        "one",
        "--data",
        "thief",
        "--token-file",
        "one.token",
    ];
    let error = periapt.refused(stolen)?;
    assert!(
        error.contains("the controller does not let agent one join: the join token was used at"),
        "{error}"
    );
    let error = periapt.refused(["agent-token", "one"])?;
    assert!(error.contains("agent \"one\" has joined already"), "{error}");

    assert_eq!(one.end("TERM")?, Some(0));
    let key = periapt.path().join("one/identity/key.pem");
    assert_eq!(fs::metadata(&key)?.permissions().mode() & 0o777, 0o600);
    let one = ready(periapt.spawn(run(&url, "one", &[]))?, "one")?;
    assert_eq!(one.end("TERM")?, Some(0));

    // Without its key it is another host, which joins again on request alone.
    fs::remove_file(&key)?;
    let error = periapt.refused(run(&url, "one", &[]))?;
    assert!(error.contains("agent one has not joined this controller: `periapt agent-token one`"), "{error}");
    let token = periapt.ok(["agent-token", "one", "--again", "--expires", "10m"])?;
    let mut command = periapt.command(run(&url, "one", &[]));
    command.env("PERIAPT_AGENT_TOKEN", token.trim());
    let one = ready(periapt.spawned(command)?, "one")?;
    assert_eq!(one.end("TERM")?, Some(0));
    Ok(())
}

#[test]
fn a_token_is_read_where_nobody_else_reads_it() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    let url = url(&periapt)?;
    let token = periapt.ok(["agent-token", "one"])?;
    let done = periapt.run(run(&url, "one", &["--token", token.trim()]))?;
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("all users of this machine can see command lines"), "{done:?}");
    assert!(!done.stderr.contains(token.trim()), "{done:?}");
    let join =
        ["controller", "join", "other", "--controller", &url, "--member", "two", "--token", token.trim()];
    let done = periapt.run(join)?;
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("--token takes a file with the token"), "{done:?}");
    assert!(!done.stderr.contains(token.trim()), "{done:?}");

    let file = periapt.path().join("open.token");
    fs::write(&file, &token)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644))?;
    let error = periapt.refused(run(&url, "one", &["--token-file", "open.token"]))?;
    assert!(error.contains("open.token has mode 644, and others than its owner can reach it"), "{error}");
    fs::write(&file, "no token")?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    let error = periapt.refused(run(&url, "one", &["--token-file", "open.token"]))?;
    assert!(error.contains("invalid join token: pt_j_TEXT.DIGEST expected"), "{error}");
    let error = periapt.refused(run(&url, "one", &["--token-file", "none.token"]))?;
    assert!(error.contains("none.token: no such file"), "{error}");
    let error = periapt.refused(run(&url, "one", &[]))?;
    assert!(error.contains("agent one has not joined this controller"), "{error}");

    let mut command = periapt.command(run(&url, "one", &["--token", "-"]));
    command.stdin(fs::File::open({
        fs::write(&file, &token)?;
        &file
    })?);
    let one = ready(periapt.spawned(command)?, "one")?;
    assert_eq!(one.end("TERM")?, Some(0));
    Ok(())
}

#[test]
fn an_agent_that_is_removed_ends_with_an_exit_code_of_its_own_and_cannot_come_back() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let url = url(&periapt)?;
    periapt.ok(["agent-token", "second", "--output", "second.token"])?;
    let log = periapt.path().join("second.log");
    let command = periapt.command(run(&url, "second", &["--token-file", "second.token"]));
    let second = ready(periapt.logged(command, &log)?, "second")?;
    periapt.deploy("mysql", ["--to", "agent=second"])?;
    periapt.wait_for(["model"])?;
    let error = periapt.refused(["remove-agent", "second", "--no-prompt"])?;
    assert!(error.contains("agent \"second\" has machines or storage of test"), "{error}");
    periapt.ok(["remove-agent", "second", "--force", "--no-prompt"])?;
    let is_gone = |agents: &Value| agents[1]["name"] == "second" && agents[1]["alive"] == false;
    periapt.json_until(&["agents"], is_gone)?;
    periapt.wait_for(["unit", "mysql/0", "--status", "unknown", "--agent", "lost"])?;
    assert_eq!(second.ended()?, Some(3), "the code with which systemd does not start it again");
    let log = fs::read_to_string(log)?;
    assert!(log.contains("the controller does not know agent second any more: it was removed, or"), "{log}");
    let error = periapt.refused(run(&url, "second", &["--token-file", "second.token"]))?;
    assert!(error.contains("the join token is not one of this controller"), "{error}");
    periapt.ok(["remove-unit", "mysql/0", "--no-prompt", "--force", "--max-wait", "0s"])?;
    periapt.wait_for(["unit", "mysql/0", "--gone"])
}

#[test]
fn an_agent_knows_its_controller_by_the_authority_of_its_token() -> anyhow::Result<()> {
    let (periapt, other) = (Installation::empty()?, Installation::empty()?);
    periapt.ok(["bootstrap", "--no-agent"])?;
    other.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["agent-token", "one", "--output", "one.token"])?;
    let error = periapt.refused(run(&url(&other)?, "one", &["--token-file", "one.token"]))?;
    assert!(
        error.contains("is not trusted: another authority than the one that this client trusts"),
        "{error}"
    );
    let one = ready(periapt.spawn(run(&url(&periapt)?, "one", &["--token-file", "one.token"]))?, "one")?;
    assert_eq!(one.end("TERM")?, Some(0));
    let error = periapt.refused(run(&url(&other)?, "one", &[]))?;
    assert!(error.contains("is not trusted: another authority"), "{error}");
    Ok(())
}

#[test]
fn this_machines_agent_joins_again_when_its_key_or_the_authority_is_lost() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let place = periapt.path().join("data/controllers/local");
    assert!(!place.join("agent.token").exists(), "it was for the start alone");
    for lost in [&["agent/identity/key.pem"][..], &["controller/ca.pem", "controller/ca-key.pem"]] {
        periapt.ok(["controller", "stop"])?;
        for file in lost {
            fs::remove_file(place.join(file))?;
        }
        periapt.ok(["controller", "start"])?;
        assert_eq!(periapt.json(["agents"])?[0]["alive"], true, "{lost:?}");
    }
    periapt.deploy("mysql", [])?;
    periapt.wait_for(["model"])
}

#[test]
fn agents_of_a_pool_join_with_one_token_until_it_is_closed() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    let url = url(&periapt)?;
    periapt.ok(["agent-token", "--pool", "worker", "--uses", "3", "--output", "pool.token"])?;
    let with_token = ["--token-file", "pool.token"];
    for name in ["worker-1", "worker-2"] {
        let agent = ready(periapt.spawn(run(&url, name, &with_token))?, name)?;
        assert_eq!(agent.end("TERM")?, Some(0));
    }
    let error = periapt.refused(run(&url, "other", &with_token))?;
    assert!(error.contains("the join token is for agents of names that begin with \"worker-\""), "{error}");
    periapt.ok(["agent-token", "--pool", "worker", "--close"])?;
    let error = periapt.refused(run(&url, "worker-3", &with_token))?;
    assert!(error.contains("the join token is not one of this controller"), "{error}");
    let error = periapt.refused(["agent-token", "--pool", "worker", "--close"])?;
    assert!(error.contains("no agents of pool \"worker\" may join"), "{error}");
    for wrong in [
        &["agent-token"][..],
        &["agent-token", "one", "--pool", "worker"],
        &["agent-token", "one", "--uses", "2"],
    ] {
        assert_eq!(periapt.run(wrong)?.code, Some(2), "{wrong:?}");
    }
    Ok(())
}
