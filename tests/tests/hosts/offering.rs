//! Units of other models: those of a model that uses an offer reach the ports of the offering application, and those of
//! other models do not.

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::{
    packets::until,
    servers::{ANSWERED, asks, packed_server},
    site::{Site, on_a_site_with},
};

/// The options of each agent: its workloads reach private addresses that are granted.
const OPTIONS: [&str; 4] = ["--workloads", "wasm", "--egress", "granted"];

/// The addresses of the hosts, each of which has a unit of one model.
const STRANGER: &str = "10.77.0.1";
const OFFERER: &str = "10.77.0.2";
const BUYER: &str = "10.77.0.3";

/// The ports of the units' servers.
const OFFERED: u16 = 8080;
const BUYING: u16 = 8090;
const STRANGE: u16 = 8091;

/// Deploys a server into a model, on one host, with its port open.
fn deploy(site: &Site, model: &str, name: &str, (host, port): (&str, u16)) -> anyhow::Result<()> {
    let archive = packed_server(&site.north, name, port)?;
    let (place, script) = (format!("agent={host}"), format!("script=start: open-port {port}/tcp"));
    site.north.ok(["deploy", "-m", model, &archive, name, "--to", &place, "--config", &script])?;
    site.north.wait_for(["model", "-m", model])
}

/// Deploys a client of the offered port: a server that the test tells to ask it.
fn deploy_client(site: &Site, model: &str, name: &str, place: (&str, u16)) -> anyhow::Result<()> {
    site.north.ok(["add-model", model, "--no-switch"])?;
    deploy(site, model, name, place)?;
    site.north.ok(["expose", "-m", model, name])?;
    let granted = format!("workload-egress={OFFERER}:{OFFERED}");
    site.north.ok(["model-config", "-m", model, &granted])?;
    Ok(())
}

/// Waits until a client's server answers itself.
fn until_there(client: (&str, u16)) -> anyhow::Result<()> {
    until(&format!("the server at {client:?} answers"), || {
        let answer = asks(client, &format!("localhost:{}", client.1));
        Ok(answer.is_ok_and(|answer| answer.contains(ANSWERED)))
    })
}

/// Returns true if a client's server gets an answer of the offered port.
fn is_answered(client: (&str, u16)) -> anyhow::Result<bool> {
    let answer = asks(client, &format!("{OFFERER}:{OFFERED}"))?;
    ensure!(answer.starts_with("HTTP/1.1 200 "), "the client itself answers: {answer}");
    Ok(answer.contains(ANSWERED))
}

#[test]
fn a_unit_that_uses_an_offer_reaches_its_port_and_one_of_a_third_model_does_not() -> anyhow::Result<()> {
    let name = "offering::a_unit_that_uses_an_offer_reaches_its_port_and_one_of_a_third_model_does_not";
    on_a_site_with(name, &OPTIONS, |site| {
        deploy(site, "test", "app", ("south", OFFERED))?;
        site.north.ok(["offer", "test.app:db"])?;
        deploy_client(site, "buyers", "buyer", ("east", BUYING))?;
        deploy_client(site, "strangers", "stranger", ("north", STRANGE))?;
        let (buyer, stranger) = ((BUYER, BUYING), (STRANGER, STRANGE));
        until_there(buyer)?;
        until_there(stranger)?;
        // The destination is granted to both, but the offering application is not exposed.
        ensure!(!is_answered(buyer)? && !is_answered(stranger)?, "nothing is related yet");

        site.north.ok(["integrate", "-m", "buyers", "buyer:sink", "admin/test.app"])?;
        until("the unit that uses the offer is let in", || is_answered(buyer))?;
        ensure!(!is_answered(stranger)?, "a third model's unit is let in");

        // The offering side suspends it, and resumes it.
        let offers = site.north.json(["offers", "-m", "test"])?;
        let id = offers.pointer("/app/connections/0/relation-id").map(Value::to_string);
        let id = id.with_context(|| format!("no connection in {offers}"))?;
        site.north.ok(["suspend-relation", "-m", "test", &id])?;
        until("the unit is not let in while the relation is suspended", || Ok(!is_answered(buyer)?))?;
        site.north.ok(["resume-relation", "-m", "test", &id])?;
        until("the unit is let in again", || is_answered(buyer))?;

        site.north.ok(["remove-saas", "-m", "buyers", "app"])?;
        until("the unit is let in no longer", || Ok(!is_answered(buyer)?))?;
        ensure!(!is_answered(stranger)?);
        Ok(())
    })
}
