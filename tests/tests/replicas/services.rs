//! Controllers as services: the words of the package's unit, with the options that docs/ha.md gives them, as systemd runs
//! them.

use std::{fs, path::Path};

use anyhow::{Context as _, bail, ensure};
use periapt_tests::{Installation, RunningProcess, binary, in_own_network};

use crate::{
    documented::{CLIENT_FILES, NAME, begun, blocks, members, write},
    site::{HOSTS, models, until},
};

/// The directory of the services' data in the document.
const DATA: &str = "/var/lib/periapt";

/// Returns a script for the shell that runs the unit's command with the unit's variables and those of a file of options.
/// The shell splits `$PERIAPT_OPTIONS` into words, as systemd does.
fn script(options: &str, data: &Path) -> anyhow::Result<String> {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/systemd/periapt-controller@.service");
    let unit = fs::read_to_string(unit)?;
    let of = |key: &str| {
        let values = unit.lines().filter_map(|line| line.strip_prefix(key)).map(str::to_owned);
        values.collect::<Vec<_>>()
    };
    ensure!(of("EnvironmentFile=") == ["-/etc/default/periapt-controller-%i"], "{unit}");
    ensure!(of("Restart=") == ["on-failure"], "a controller that fails is started again: {unit}");
    ensure!(of("StartLimitIntervalSec=") == ["0"], "systemd gives up while etcd is away: {unit}");
    let starts = of("ExecStart=");
    let [start] = starts.as_slice() else { bail!("{starts:?}") };
    let (binary, data) = (binary()?, data.display().to_string());
    let script = format!("set -a\n{}\n{options}\nexec {start}\n", of("Environment=").join("\n"));
    Ok(script
        .replace("@bindir@/periapt", &binary.display().to_string())
        .replace("%S/periapt", &data)
        .replace(DATA, &data)
        .replace("%i", NAME))
}

/// Starts the service of a host, and waits until its controller answers.
fn started(host: &Installation, options: &str) -> anyhow::Result<RunningProcess> {
    let mut shell = host.program("sh");
    shell.args(["-c", &script(options, &host.path().join("data"))?]);
    let log = host.path().join("service.log");
    let mut service = host.logged(shell, &log)?;
    let line = service.first_line()?;
    ensure!(line.starts_with("ready https://"), "{line:?}: {}", fs::read_to_string(&log)?);
    Ok(service)
}

#[test]
fn a_bootstrapped_and_a_joined_controller_go_on_as_services_and_start_again() -> anyhow::Result<()> {
    let test = "services::a_bootstrapped_and_a_joined_controller_go_on_as_services_and_start_again";
    in_own_network(test, &HOSTS, || {
        let site = begun()?;
        let (first, second) = (site.host(0)?, site.host(1)?);
        for name in CLIENT_FILES {
            write(&first.path().join("data").join(name), &fs::read_to_string(first.path().join(name))?)?;
        }
        first.ok(["add-model", "a", "--no-switch"])?;

        let written = blocks("As a service")?;
        let [of_first, of_second, hand_over] = written.as_slice() else { bail!("{written:?}") };
        let stop = hand_over.lines().find_map(|line| line.rsplit_once(" periapt ")).context("a command")?.1;
        for host in [first, second] {
            host.ok(stop.split_whitespace())?;
        }
        let leads = started(first, of_first)?;
        let killed = started(second, of_second)?;
        first.ok(["add-model", "b", "--no-switch"])?;
        second.ok(["add-model", "c", "--no-switch"])?;

        ensure!(killed.end("KILL")?.is_none(), "it was killed");
        first.ok(["add-model", "d", "--no-switch"])?;
        let again = started(second, of_second)?;
        until("the second is up to date again", || {
            let members = members(first)?;
            Ok(members.len() == 2
                && members.values().all(|member| member["behind"] == 0 && member.get("away").is_none()))
        })?;

        // The second alone answers.
        ensure!(leads.end("TERM")? == Some(0), "a service that is stopped ends in order");
        ensure!(models(second)? == ["a", "b", "c", "d"]);
        second.ok(["add-model", "e", "--no-switch"])?;
        ensure!(again.end("TERM")? == Some(0), "a service that is stopped ends in order");
        Ok(())
    })
}
