//! The controllers of a log are made several by `enable-ha`, and one is removed.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use periapt_tests::Installation;
use serde_json::Value;

use crate::site::{Site, controller, models, until};

/// Returns the names of the controllers, as a host's controller shows them.
fn members(host: &Installation) -> anyhow::Result<Vec<String>> {
    let shown = controller(host)?;
    let members = shown.pointer("/details/controller-machines").and_then(Value::as_object);
    Ok(members.context("members")?.keys().cloned().collect())
}

/// Starts a controller by the words that `enable-ha` prints for its host.
fn join(host: &Installation, command: &str) -> anyhow::Result<()> {
    let words = command.split_whitespace().skip(1);
    let words = words.map(|word| if word == "HOST" { "127.0.0.1" } else { word });
    let words = words.map(|word| if word == "0.0.0.0:17070" { "127.0.0.1:0" } else { word });
    host.ok(words).map(drop)
}

#[test]
fn a_controller_that_is_gone_is_removed_and_its_host_joins_again_with_a_new_token() -> anyhow::Result<()> {
    let mut site = Site::bootstrapped_on(Installation::empty()?, &[])?;
    let first = Arc::clone(site.hosts.first().context("a host")?);
    let tokens = first.path().join("tokens");
    let tokens = tokens.to_str().context("a path")?;
    let alone = Installation::empty()?;
    alone.ok(["bootstrap", "local"])?;
    let refused = alone.refused(["enable-ha"])?;
    ensure!(refused.contains("shares its state with no other") && refused.contains("--log"), "{refused}");
    let even = first.run(["enable-ha", "-n", "4"])?;
    ensure!(even.code == Some(2) && even.stderr.contains("must be odd"), "{even:?}");
    let few = first.refused(["enable-ha", "--to", "two"])?;
    ensure!(few.contains("2 further controllers make 3, and --to names 1"), "{few}");

    let enable = ["enable-ha", "--to", "two,three", "--directory", tokens, "--format", "json"];
    let enabled: Value = serde_json::from_str(&first.ok(enable)?)?;
    ensure!(enabled.get("maintained") == Some(&serde_json::json!(["one"])), "{enabled}");
    let commands = enabled.get("commands").and_then(Value::as_array).context("commands")?;
    for command in commands {
        let host = Installation::empty()?;
        join(&host, command.as_str().context("a command")?)?;
        site.hosts.push(Arc::new(host));
    }
    for host in &site.hosts {
        until("all are known everywhere", || Ok(members(host)? == ["one", "three", "two"]))?;
    }
    let shown = first.ok(["enable-ha"])?;
    ensure!(shown == "maintaining controllers: one, three, two\n", "{shown}");

    // One host is gone for good. The others forget it, and it stays out when it comes back.
    site.host(2)?.ok(["controller", "stop", "local"])?;
    let second = site.host(1)?;
    let remove = ["remove-machine", "-m", "controller", "three", "--no-prompt"];
    let unknown = second.refused(["remove-machine", "-m", "controller", "four", "--no-prompt"])?;
    ensure!(unknown.contains("controller \"four\" not found"), "{unknown}");
    second.ok(remove.into_iter().chain(["--dry-run"]))?;
    second.ok(remove)?;
    for host in &site.hosts[..2] {
        until("it is gone from the list", || Ok(members(host)? == ["one", "two"]))?;
    }
    let third = site.host(2)?;
    let started = third.refused(["controller", "start", "local"])?;
    ensure!(started.contains("controller \"three\" was removed from those of its log"), "{started}");
    third.ok(["kill-controller", "local", "--no-prompt"])?;

    let enabled: Value = serde_json::from_str(&first.ok([
        "enable-ha",
        "--to",
        "three",
        "--directory",
        tokens,
        "--format",
        "json",
    ])?)?;
    let command = enabled.pointer("/commands/0").and_then(Value::as_str).context("a command")?;
    join(third, command)?;
    third.ok(["add-model", "a"])?;
    for host in &site.hosts {
        until("the model is everywhere", || Ok(models(host)? == ["a"]))?;
    }

    // The one that leads ends, and another goes on.
    let leads = site.leader(0)?.context("a leader")?;
    let name = ["one", "two", "three"].get(leads).copied().context("its name")?;
    let other = site.host((leads + 1) % 3)?;
    other.ok(["remove-machine", "-m", "controller", name, "--no-prompt"])?;
    other.ok(["add-model", "b"])?;
    ensure!(!members(other)?.iter().any(|member| member == name), "it is removed");
    Ok(())
}
