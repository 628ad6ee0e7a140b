//! Commands one after another, each a process of its own, at controllers of which one is behind.

use std::{fs, thread};

use anyhow::{Context as _, anyhow, ensure};
use periapt_tests::Installation;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{
    line::Line,
    refused::{asked, run_local},
    site::{Site, until},
};

/// Returns the client of a new superuser on another host.
fn registered(operator: &Installation) -> anyhow::Result<Installation> {
    let added = operator.ok(["add-user", "jane"])?;
    operator.ok(["grant", "jane", "superuser"])?;
    let text = added.lines().find_map(|line| line.trim().strip_prefix("periapt register "));
    let text = text.with_context(|| format!("no registration in {added}"))?;
    let client = Installation::empty()?;
    let input = client.path().join("input");
    fs::write(&input, format!("{text}\ncorrect horse\n"))?;
    let mut register = client.command(["register", "-", "--no-prompt"]);
    register.stdin(fs::File::open(&input)?);
    let done = Installation::finished(register)?;
    ensure!(done.code == Some(0), "{done:?}");
    Ok(client)
}

/// Returns the URLs of the controllers in a client's file, in the order of attempts.
fn addresses(client: &Installation) -> anyhow::Result<Vec<String>> {
    let known: Value = serde_json::from_str(&fs::read_to_string(client.path().join("data/client.json"))?)?;
    let urls = known.pointer("/controllers/local/addresses").and_then(Value::as_array);
    Ok(urls.into_iter().flatten().filter_map(|url| Some(url.as_str()?.to_owned())).collect())
}

/// Returns the names of a client's models, as its next command lists them; none if the command fails.
fn listed(client: &Installation) -> anyhow::Result<Option<Vec<String>>> {
    let done = client.run(["models", "--format", "json"])?;
    if done.code != Some(0) {
        return Ok(None);
    }
    let shown: Value = serde_json::from_str(&done.stdout)?;
    let models = shown.get("models").and_then(Value::as_array).context("a list of models")?;
    let mut names: Vec<_> =
        models.iter().filter_map(|model| Some(model.get("short-name")?.as_str()?.to_owned())).collect();
    names.sort();
    Ok(Some(names))
}

/// The first controller leads, takes a command and is killed. The second one has heard nothing from the log since before the
/// command, and serves what it has for some seconds.
#[test]
fn a_command_is_not_shown_less_than_the_one_before_it_was_answered() -> anyhow::Result<()> {
    let mut site = Site::bootstrapped_on(Installation::empty()?, &["--no-agent"])?;
    site.join_on(Installation::empty()?, "two")?;
    let (first, second) = (site.host(0)?, site.host(1)?);
    second.ok(["controller", "stop", "local"])?;
    let url = site.etcd.url();
    let line = Line::to(url.endpoints.first().context("an endpoint")?, |_| {})?;
    let mut running = second.spawn(run_local(second, &line.url())?)?;
    let ready = running.first_line()?;
    let url = ready.split_whitespace().nth(1).with_context(|| format!("no URL in {ready}"))?;
    let is_second = |known: &String| known.trim_end_matches('/') == url.trim_end_matches('/');

    let client = registered(first)?;
    client.ok(["add-model", "a"])?;
    until("the client knows both controllers", || {
        client.ok(["show-controller"])?;
        Ok(addresses(&client)?.iter().any(is_second))
    })?;
    let known = addresses(&client)?;
    ensure!(!known.first().is_some_and(is_second), "it is at the first one: {known:?}");
    until("the second one has it", || Ok(asked(second, "/v1/models")?.contains("\"a\"")))?;
    let process = i32::try_from(first.controller_process("local")?)?;

    line.hold();
    client.ok(["add-model", "b"])?;
    kill_process(Pid::from_raw(process).context("a process")?, Signal::KILL)?;
    thread::scope(|scope| {
        // The log reaches the second one again when it refuses requests: from then on it can show nothing old.
        let released = scope.spawn(|| {
            let stale = until("the second one is not up to date", || {
                Ok(!asked(second, "/v1/models")?.starts_with("HTTP/1.1 200 "))
            });
            line.release();
            stale
        });
        until("the next command is answered", || {
            let Some(models) = listed(&client)? else { return Ok(false) };
            ensure!(models == ["a", "b"], "the model of the command before is not in {models:?}");
            Ok(true)
        })?;
        released.join().map_err(|_| anyhow!("the other thread panicked"))?
    })?;

    // The client's file of positions goes with the entry.
    let seen = || fs::read_to_string(client.path().join("data/seen.json"));
    ensure!(seen()?.contains("\"local\""), "{}", seen()?);
    client.ok(["unregister", "local", "--no-prompt"])?;
    ensure!(!seen()?.contains("\"local\""), "{}", seen()?);
    Ok(())
}

#[test]
fn a_client_of_one_controller_alone_keeps_no_position() -> anyhow::Result<()> {
    let operator = Installation::empty()?;
    operator.ok(["bootstrap", "local", "--no-agent"])?;
    let client = registered(&operator)?;
    client.ok(["add-model", "a"])?;
    ensure!(listed(&client)? == Some(vec!["a".to_owned()]));
    for host in [&operator, &client] {
        ensure!(!host.path().join("data/seen.json").exists(), "{}", host.path().display());
    }
    Ok(())
}
