//! One application on three hosts, a host that is cut off, and one that is gone.

use std::{fs, os::unix::fs::PermissionsExt as _};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, Link, set_link};
use serde_json::Value;

use crate::site::{HOSTS, host_of, on, on_a_site};

#[test]
fn units_on_three_hosts_are_one_application() -> anyhow::Result<()> {
    on_a_site("joined::units_on_three_hosts_are_one_application", |site| {
        let periapt = &site.north;
        periapt.deploy("mysql", ["-n", "3", "--to", "agent=north,agent=south,agent=east"])?;
        periapt.deploy("wordpress", ["-n", "2", "--to", "agent=south,agent=east"])?;
        periapt.ok(["integrate", "wordpress", "mysql"])?;
        periapt.wait_for(["model"])?;
        let status = periapt.json(["status"])?;
        for (number, host) in HOSTS.iter().enumerate() {
            let machine = &status["machines"][number.to_string()];
            ensure!(machine["instance-id"] == *host, "{status}");
            ensure!(machine["dns-name"] == format!("10.77.0.{}", number + 1), "{status}");
        }
        // Charms came by digest, actions are run and logs are read where the units are.
        periapt.ok(["config", "mysql", "max-connections=7"])?;
        periapt.wait_for(["model"])?;
        for unit in ["mysql/0", "mysql/1", "mysql/2"] {
            let run = ["sh", "-c", "config-get max-connections && juju-log told"];
            let done = periapt.ok(["exec", "--unit", unit, "--"].into_iter().chain(run))?;
            ensure!(done == "7\n", "{done}");
        }
        // Each unit logs, whichever of them leads, and each agent sends its lines when it can.
        let told = |log: &str| log.lines().filter(|line| line.ends_with("told")).count() == HOSTS.len();
        periapt.ok_until(&["debug-log", "--no-tail", "--limit", "500"], told)?;
        Ok(())
    })
}

#[test]
fn a_host_that_was_cut_off_goes_on_where_it_was() -> anyhow::Result<()> {
    on_a_site("joined::a_host_that_was_cut_off_goes_on_where_it_was", |site| {
        let periapt = &site.north;
        periapt.deploy("mysql", ["-n", "2", "--to", "agent=north,agent=south"])?;
        periapt.wait_for(["model"])?;
        let hooks = periapt.json(["hooks", "mysql/1"])?;
        set_link("south", Link::Down)?;
        site.wait("south", false)?;
        ensure!(site.is_alive("east")?, "east is not concerned");
        periapt.wait_for(["unit", "mysql/1", "--status", "unknown", "--agent", "lost"])?;
        ensure!(periapt.json(["hooks", "mysql/1"])? == hooks, "nothing ran");
        periapt.ok(["config", "mysql", "max-connections=9"])?;
        periapt.wait_for(["unit", "mysql/0"])?;
        set_link("south", Link::Up)?;
        site.wait("south", true)?;
        periapt.wait_for(["model"])?;
        let told = periapt.ok(["exec", "--unit", "mysql/1", "--", "config-get", "max-connections"])?;
        ensure!(told == "9\n", "{told}");
        Ok(())
    })
}

#[test]
fn a_host_dies_and_its_units_without_storage_go_on_elsewhere() -> anyhow::Result<()> {
    on_a_site("joined::a_host_dies_and_its_units_without_storage_go_on_elsewhere", |site| {
        // The first unit goes to the first host by name, and the last one joins it.
        site.north.deploy("probe", ["--storage", "scratch=1,10M"])?;
        site.north.deploy("mysql", ["-n", "3"])?;
        site.north.wait_for(["model"])?;
        let status = site.north.json(["status"])?;
        for unit in ["probe/0", "mysql/2"] {
            ensure!(host_of(&status, unit)? == "east", "{unit} in {status}");
        }
        site.kill("east")?;
        site.wait("east", false)?;
        let periapt = &site.north;
        let moved = |status: &Value| host_of(status, "mysql/2").is_ok_and(|host| host != "east");
        periapt.json_until(&["status"], moved)?;
        periapt.ok(["config", "mysql", "max-connections=5"])?;
        periapt.wait_for(["application", "mysql"])?;
        let told = periapt.ok(["exec", "--unit", "mysql/2", "--", "config-get", "max-connections"])?;
        ensure!(told == "5\n", "{told}");
        let status = periapt.json(["status"])?;
        ensure!(host_of(&status, "probe/0")? == "east", "its storage is there: {status}");
        periapt.wait_for(["unit", "probe/0", "--status", "unknown", "--agent", "lost"])
    })
}

#[test]
fn two_tenants_on_other_hosts_see_and_change_what_they_may() -> anyhow::Result<()> {
    on_a_site("joined::two_tenants_on_other_hosts_see_and_change_what_they_may", |site| {
        let periapt = &site.north;
        periapt.ok(["add-model", "other"])?;
        let (jane, joe) = (registered(periapt, "jane", "south")?, registered(periapt, "joe", "east")?);
        periapt.ok(["grant", "jane", "read", "test"])?;
        periapt.ok(["grant", "joe", "admin", "other"])?;
        jane.ok(["status", "-m", "admin/test"])?;
        let refused = jane.refused(["model-config", "-m", "admin/test", "update-status-hook-interval=1m"])?;
        ensure!(refused.contains("permission denied"), "{refused}");
        let hidden = jane.refused(["status", "-m", "admin/other"])?;
        ensure!(hidden.contains("model admin/other not found"), "{hidden}");
        joe.deploy("mysql", ["-m", "admin/other", "--to", "agent=south"])?;
        joe.wait_for(["model", "-m", "admin/other"])?;
        let hidden = joe.refused(["status", "-m", "admin/test"])?;
        ensure!(hidden.contains("model admin/test not found"), "{hidden}");
        for command in [&["agent-token", "mine"][..], &["remove-agent", "south", "--no-prompt"]] {
            let refused = joe.refused(command)?;
            ensure!(refused.contains("permission denied"), "{refused}");
        }
        let log = periapt.ok(["audit-log"])?;
        for part in ["join-agent", "10.77.0.2", "10.77.0.3", "remove-agent", "permission-denied"] {
            ensure!(log.contains(part), "no {part} in {log}");
        }
        Ok(())
    })
}

/// Returns the client of a new user on a host.
fn registered(operator: &Installation, user: &str, host: &str) -> anyhow::Result<Installation> {
    let added = operator.ok(["add-user", user])?;
    let text = added.lines().find_map(|line| line.trim().strip_prefix("periapt register "));
    let client = on(host)?;
    let input = client.path().join("input");
    fs::write(
        &input,
        format!("{}\ncorrect horse\n", text.with_context(|| format!("no registration in {added}"))?),
    )?;
    let mut command = client.command(["register", "-", "--no-prompt"]);
    command.stdin(fs::File::open(&input)?);
    let done = Installation::finished(command)?;
    ensure!(done.code == Some(0), "{done:?}");
    Ok(client)
}

#[test]
fn a_host_that_is_gone_for_good_is_removed_and_its_units_are_made_elsewhere() -> anyhow::Result<()> {
    on_a_site("joined::a_host_that_is_gone_for_good_is_removed_and_its_units_are_made_elsewhere", |site| {
        site.north.deploy("mysql", ["-n", "2", "--to", "agent=north,agent=south"])?;
        site.north.wait_for(["model"])?;
        site.kill("south")?;
        site.wait("south", false)?;
        let periapt = &site.north;
        periapt.ok(["remove-agent", "south", "--force", "--no-prompt"])?;
        periapt.ok(["remove-unit", "mysql/1", "--no-prompt", "--force", "--max-wait", "0s"])?;
        periapt.wait_for(["unit", "mysql/1", "--gone"])?;
        periapt.ok(["add-unit", "mysql", "--to", "agent=east"])?;
        periapt.wait_for(["application", "mysql", "--units", "2"])?;
        // It comes back without being known any more.
        set_link("south", Link::Up)?;
        let data = periapt.path().join("south");
        let run = ["agent", "run", "--controller", "https://10.77.0.1:17070", "--name", "south", "--data"];
        let error = periapt.refused(run.into_iter().map(Into::into).chain([data.into_os_string()]))?;
        ensure!(error.contains("agent south has not joined this controller"), "{error}");
        Ok(())
    })
}

#[test]
fn a_client_on_another_host_is_nobody_and_a_wrong_name_of_the_controller_is_told() -> anyhow::Result<()> {
    let name = "joined::a_client_on_another_host_is_nobody_and_a_wrong_name_of_the_controller_is_told";
    on_a_site(name, |site| {
        let elsewhere = on("east")?;
        let listing = site.north.json(["controllers"])?;
        let entry = &listing["controllers"]["local"];
        let written = |url: &str| -> anyhow::Result<()> {
            let data = elsewhere.path().join("data");
            fs::create_dir_all(&data)?;
            let client = serde_json::json!({
                "version": 1,
                "current-controller": "local",
                "controllers": {"local": {"url": url, "ca-cert": entry["ca-cert"], "uuid": entry["uuid"]}},
            });
            fs::write(data.join("client.json"), client.to_string())?;
            Ok(fs::set_permissions(data.join("client.json"), fs::Permissions::from_mode(0o600))?)
        };
        written("https://10.77.0.1:17070")?;
        let error = elsewhere.refused(["models"])?;
        ensure!(error.contains("not logged in"), "{error}");
        // The controller was told neither of this name nor of this address.
        written("https://localhost:17070")?;
        let error = elsewhere.refused(["models"])?;
        ensure!(error.contains("does not answer"), "{error}");
        Ok(())
    })
}
