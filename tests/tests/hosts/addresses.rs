//! The addresses that hooks and operators are told of units: each answers from where it is told.

use anyhow::{Context as _, ensure};
use periapt_tests::Installation;

use crate::{
    packets::until,
    servers::{ANSWERED, asks, packed_server},
    site::on_a_site_with,
};

/// The port of each application's servers.
const APP: u16 = 8081;
const DB: u16 = 8082;

/// A unit with what it calls, both as a hook of its names them.
struct Call {
    caller: &'static str,
    /// The endpoint of the caller, and that of the unit that it calls.
    endpoints: (&'static str, &'static str),
    called: &'static str,
}

/// The calls: on one host and from each of two hosts to the other, in a relation and among peers.
const CALLS: [Call; 6] = [
    Call { caller: "app/0", endpoints: ("sink", "db"), called: "db/0" },
    Call { caller: "app/1", endpoints: ("sink", "db"), called: "db/0" },
    Call { caller: "db/0", endpoints: ("db", "sink"), called: "app/0" },
    Call { caller: "db/0", endpoints: ("db", "sink"), called: "app/1" },
    Call { caller: "app/0", endpoints: ("peer", "peer"), called: "app/1" },
    Call { caller: "app/1", endpoints: ("peer", "peer"), called: "app/0" },
];

/// Returns what a hook tool prints in a hook of a unit.
fn told(periapt: &Installation, unit: &str, tool: &[&str]) -> anyhow::Result<String> {
    let printed = periapt.ok([&["exec", "--unit", unit, "--"], tool].concat())?;
    Ok(printed.trim().to_owned())
}

/// Returns the address of a unit and its port, as `status` shows them.
fn shown(periapt: &Installation, unit: &str) -> anyhow::Result<(String, u16)> {
    let application = unit.split('/').next().unwrap_or(unit);
    let status = periapt.json(["status"])?;
    let found = status
        .pointer(&format!("/applications/{application}/units/{}", unit.replace('/', "~1")))
        .with_context(|| format!("{unit} in {status}"))?;
    let address = found["public-address"].as_str().with_context(|| found.to_string())?;
    let port = found.pointer("/open-ports/0").and_then(|port| port.as_str()?.strip_suffix("/tcp"));
    Ok((address.to_owned(), port.with_context(|| found.to_string())?.parse()?))
}

fn port_of(unit: &str) -> u16 {
    if unit.starts_with("db/") { DB } else { APP }
}

/// Waits until the workload of a unit gets the answer of a server. The test asks it at the address that `status` shows.
fn until_answered(periapt: &Installation, caller: &str, authority: &str) -> anyhow::Result<()> {
    let (address, port) = shown(periapt, caller)?;
    until(&format!("{caller} is answered by {authority}"), || {
        Ok(asks((address.as_str(), port), authority).is_ok_and(|answer| answer.contains(ANSWERED)))
    })
}

#[test]
fn addresses_that_hooks_and_operators_are_told_answer_on_one_host_and_between_two() -> anyhow::Result<()> {
    let name = "addresses::addresses_that_hooks_and_operators_are_told_answer_on_one_host_and_between_two";
    on_a_site_with(name, &["--workloads", "wasm"], |site| {
        let periapt = &site.north;
        for (application, port, to) in [("app", APP, "agent=north,agent=south"), ("db", DB, "agent=north")] {
            let archive = packed_server(periapt, application, port)?;
            let (script, units) = (format!("script=start: open-port {port}/tcp"), to.split(',').count());
            let units = units.to_string();
            periapt.ok(["deploy", &archive, application, "-n", &units, "--to", to, "--config", &script])?;
            periapt.ok(["expose", application])?;
        }
        periapt.ok(["integrate", "app:sink", "db:db"])?;
        periapt.wait_for(["model"])?;
        for unit in ["app/0", "app/1", "db/0"] {
            let (address, port) = shown(periapt, unit)?;
            let expected = if unit == "app/1" { "10.77.0.2" } else { "10.77.0.1" };
            ensure!(address == expected && port == port_of(unit), "{unit} at {address}:{port}");
            until_answered(periapt, unit, &format!("localhost:{port}"))?;
        }
        for Call { caller, endpoints: (own, other), called } in CALLS {
            let relation = told(periapt, caller, &["relation-ids", own])?;
            let address =
                told(periapt, caller, &["relation-get", "-r", &relation, "ingress-address", called])?;
            let of_itself = told(periapt, called, &["network-get", other, "--ingress-address"])?;
            let (of_status, port) = shown(periapt, called)?;
            ensure!(
                address == of_itself && address == of_status,
                "{called} is at {address} for {caller}, at {of_itself} for itself, and at {of_status}"
            );
            until_answered(periapt, caller, &format!("{address}:{port}"))?;
        }

        // An answer at the other host's address was that of the unit there.
        let (address, port) = shown(periapt, "app/0")?;
        periapt.ok(["remove-unit", "app/1", "--no-prompt"])?;
        periapt.wait_for(["unit", "app/1", "--gone"])?;
        until("nobody answers for the unit that is gone", || {
            let answer = asks((address.as_str(), port), &format!("10.77.0.2:{APP}"));
            Ok(answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 ") && !answer.contains(ANSWERED)))
        })
    })
}
