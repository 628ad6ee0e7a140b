//! Calls between units of three hosts.

use anyhow::ensure;

use crate::{
    packets::until,
    servers::{ANSWERED, asks, packed_server},
    site::{HOSTS, on_a_site_with},
};

/// The application on each host, with the port of its unit's server. No other unit has a server there, so an answer
/// shows which unit was called.
const APPLICATIONS: [(&str, u16); 3] = [("web", 8081), ("api", 8082), ("db", 8083)];

#[test]
fn workloads_on_three_hosts_reach_each_other_by_name() -> anyhow::Result<()> {
    let name = "calls::workloads_on_three_hosts_reach_each_other_by_name";
    on_a_site_with(name, &["--workloads", "wasm"], |site| {
        let periapt = &site.north;
        for ((application, port), host) in APPLICATIONS.into_iter().zip(HOSTS) {
            let archive = packed_server(periapt, application, port)?;
            let (to, script) = (format!("agent={host}"), format!("script=start: open-port {port}/tcp"));
            periapt.ok(["deploy", &archive, application, "--to", &to, "--config", &script])?;
            // The test tells each server what to ask.
            periapt.ok(["expose", application])?;
        }
        for (sink, db) in [("web", "api"), ("api", "db"), ("db", "web")] {
            periapt.ok(["integrate", &format!("{sink}:sink"), &format!("{db}:db")])?;
        }
        periapt.wait_for(["model"])?;
        let addresses = ["10.77.0.1", "10.77.0.2", "10.77.0.3"];
        for ((caller, own), address) in APPLICATIONS.into_iter().zip(addresses) {
            let server = (address, own);
            for (called, port) in APPLICATIONS.into_iter().filter(|(called, _)| *called != caller) {
                let authority = format!("{called}-0:{port}");
                // A server that has not started yet, and one that is not known yet, give no answer or another one.
                until(&format!("{caller}/0 reaches {authority}"), || {
                    Ok(asks(server, &authority).is_ok_and(|answer| answer.contains(ANSWERED)))
                })?;
            }
        }
        let nobody = asks((addresses[0], APPLICATIONS[0].1), "api-0:8083")?;
        ensure!(nobody.starts_with("HTTP/1.1 200 ") && !nobody.contains(ANSWERED), "{nobody}");
        Ok(())
    })
}
