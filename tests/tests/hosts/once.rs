//! Units with workloads, of which none runs on two hosts at once.

use std::{fs, net::IpAddr};

use anyhow::{Context as _, ensure};
use periapt_tests::{Link, set_link};
use serde_json::Value;

use crate::{
    packets::{connects, on_host, until},
    servers::{ANSWERED, asks, packed_server},
    site::{HOSTS, Site, host_of, on_a_site_with},
};

/// The host that is cut off. The first unit of a model goes there: it is the first by name.
const CUT_OFF: &str = "east";

/// The port of the server.
const PORT: u16 = 8081;

/// Returns the address of a host.
fn address(host: &str) -> anyhow::Result<String> {
    let number = HOSTS.iter().position(|name| *name == host).context("a host")?;
    Ok(format!("10.77.0.{}", number + 1))
}

/// Returns the processes of the pods of a host's agent.
fn pods(site: &Site, host: &str) -> anyhow::Result<Vec<u32>> {
    let (agent, mut found) = (site.agent_process(host)?, Vec::new());
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // The process may have ended.
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let status = String::from_utf8_lossy(&read("status")).into_owned();
        if line.contains(" agent pod ") && status.lines().any(|line| line == format!("PPid:\t{agent}")) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Returns true if the server of a host's unit answers a client on that host.
fn answers_there(host: &'static str) -> anyhow::Result<bool> {
    let address = address(host)?;
    let answer = on_host(Some(host), || asks((address.as_str(), PORT), &format!("localhost:{PORT}")));
    Ok(answer.is_ok_and(|answer| answer.contains(ANSWERED)))
}

/// Returns true if the server of a host's unit answers a client outside.
fn answers_outside(host: &str) -> anyhow::Result<bool> {
    let answer = asks((address(host)?.as_str(), PORT), &format!("localhost:{PORT}"));
    Ok(answer.is_ok_and(|answer| answer.contains(ANSWERED)))
}

/// Returns true if something listens at the server's port on a host.
fn is_listened_to(host: &str) -> anyhow::Result<bool> {
    let address: IpAddr = address(host)?.parse()?;
    // Where nobody listens, the connection is refused.
    Ok(connects(None, address, PORT).unwrap_or_default())
}

#[test]
fn a_unit_with_a_workload_stays_on_a_host_that_is_cut_off_and_never_runs_twice() -> anyhow::Result<()> {
    let name = "once::a_unit_with_a_workload_stays_on_a_host_that_is_cut_off_and_never_runs_twice";
    on_a_site_with(name, &["--workloads", "wasm"], |site| {
        let (site, periapt) = (&*site, &site.north);
        let archive = packed_server(periapt, "once", PORT)?;
        let script = format!("script=start: open-port {PORT}/tcp");
        periapt.ok(["deploy", &archive, "web", "--config", &script])?;
        periapt.ok(["expose", "web"])?;
        periapt.deploy("mysql", ["-n", "3"])?;
        periapt.wait_for(["model"])?;
        let status = periapt.json(["status"])?;
        for unit in ["web/0", "mysql/2"] {
            ensure!(host_of(&status, unit)? == CUT_OFF, "{unit} in {status}");
        }
        until("the server answers", || answers_outside(CUT_OFF))?;
        let begun = pods(site, CUT_OFF)?;
        ensure!(begun.len() == 1, "{begun:?}");

        // A unit without workloads goes elsewhere after its time, and the other one has had the same time.
        set_link(CUT_OFF, Link::Down)?;
        site.wait(CUT_OFF, false)?;
        let moved = |status: &Value| host_of(status, "mysql/2").is_ok_and(|host| host != CUT_OFF);
        periapt.json_until(&["status"], moved)?;
        periapt.wait_for(["application", "mysql"])?;
        let status = periapt.json(["status"])?;
        ensure!(host_of(&status, "web/0")? == CUT_OFF, "{status}");
        periapt.wait_for(["unit", "web/0", "--status", "unknown", "--agent", "lost"])?;
        until("the server runs on", || answers_there(CUT_OFF))?;
        for other in HOSTS.iter().filter(|host| **host != CUT_OFF) {
            ensure!(pods(site, other)?.is_empty() && !is_listened_to(other)?, "it runs on {other} as well");
        }

        // It is the same pod once the host is back.
        set_link(CUT_OFF, Link::Up)?;
        site.wait(CUT_OFF, true)?;
        periapt.wait_for(["model"])?;
        until("the server answers outside again", || answers_outside(CUT_OFF))?;
        ensure!(pods(site, CUT_OFF)? == begun, "another pod has begun");

        // A person decides that the host is gone. When it comes back, the server ends there, and does not start again.
        set_link(CUT_OFF, Link::Down)?;
        site.wait(CUT_OFF, false)?;
        periapt.ok(["remove-unit", "web/0", "--no-prompt", "--force", "--max-wait", "0s"])?;
        periapt.wait_for(["unit", "web/0", "--gone"])?;
        periapt.ok(["add-unit", "web"])?;
        periapt.wait_for(["application", "web", "--units", "1"])?;
        let elsewhere = host_of(&periapt.json(["status"])?, "web/1")?;
        ensure!(elsewhere != CUT_OFF, "{elsewhere}");
        until("the other unit's server answers", || answers_outside(&elsewhere))?;
        ensure!(pods(site, CUT_OFF)? == begun, "nobody has told the host");
        set_link(CUT_OFF, Link::Up)?;
        site.wait(CUT_OFF, true)?;
        until("the pod has ended with its unit", || Ok(pods(site, CUT_OFF)?.is_empty()))?;
        periapt.wait_for(["model"])?;
        ensure!(pods(site, CUT_OFF)?.is_empty() && !is_listened_to(CUT_OFF)?, "it has started again");
        ensure!(answers_outside(&elsewhere)? && pods(site, &elsewhere)?.len() == 1, "the other unit goes on");
        Ok(())
    })
}
