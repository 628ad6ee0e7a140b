//! Clients of exposed ports, each with an address of its own: who is let in by endpoints, subnets and spaces.

use std::{
    io::{self, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, in_own_network, packed_parts};

use crate::{
    packets::{Host, connected, is_silence, on_host, until},
    servers::{ANSWERED, asks},
    site::{HOSTS, on},
};

/// The address of the agent's host.
const AGENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// The clients, and their addresses as subnets.
const SOUTH: (Host, &str) = (Some("south"), "10.77.0.2/32");
const EAST: (Host, &str) = (Some("east"), "10.77.0.3/32");
const OUTSIDE: (Host, &str) = (None, "10.77.0.100/32");
const CLIENTS: [(Host, &str); 3] = [SOUTH, EAST, OUTSIDE];

/// The port that is opened for the endpoint `db` alone, and the one that is opened for all.
const OF_DB: u16 = 8081;
const OF_ALL: u16 = 8082;

/// A request that the server answers after a minute, when its time is up.
const SLOW: &[u8] = b"GET /sleep HTTP/1.1\r\nHost: app\r\n\r\n";

/// The time for which such a connection is watched: one that is not let in is reset at once.
const IDLE: Duration = Duration::from_millis(300);

/// The time in which a connection is cut off.
const CUT_OFF_WITHIN: Duration = Duration::from_secs(120);

/// Starts an agent with a unit that has a server on each port, and opens both.
fn started() -> anyhow::Result<Installation> {
    let periapt = on("north")?;
    let bootstrap = ["bootstrap", "local", "--listen", "10.77.0.1:17070", "--agent-name", "north"];
    periapt.ok(bootstrap.into_iter().chain(["--workloads", "wasm"]))?;
    periapt.ok(["add-model", "test"])?;
    let parts = [("db.wasm", "hostile-workload"), ("all.wasm", "hostile-workload")];
    let server = |name: &str, port: u16| format!("{name}: {{component: {name}.wasm, http: {port}}}");
    let servers =
        format!("x-periapt: {{workloads: {{{}, {}}}}}\n", server("db", OF_DB), server("all", OF_ALL));
    let archive =
        packed_parts("probe", "exposed", periapt.path(), &parts, |text| format!("{text}{servers}"))?;
    let script =
        format!("script=start: tool open-port {OF_DB}/tcp --endpoints db\nstart: open-port {OF_ALL}/tcp");
    periapt.ok(["deploy", archive.to_str().context("a path")?, "app", "--config", &script])?;
    periapt.wait_for(["model"])?;
    Ok(periapt)
}

/// Returns true if a client gets an answer of the server on a port.
fn reaches(client: Host, port: u16) -> anyhow::Result<bool> {
    let agent = AGENT.to_string();
    let answer = on_host(client, || asks((agent.as_str(), port), &format!("localhost:{port}")));
    Ok(answer.is_ok_and(|answer| answer.contains(ANSWERED)))
}

/// Waits until exactly these clients reach a port.
fn until_reached(port: u16, by: &[(Host, &str)]) -> anyhow::Result<()> {
    for client in CLIENTS {
        let admitted = by.contains(&client);
        until(&format!("{client:?} is let in at port {port}: {admitted}"), || {
            Ok(reaches(client.0, port)? == admitted)
        })?;
    }
    Ok(())
}

/// Waits until nobody listens on a port.
fn until_closed(client: Host, port: u16) -> anyhow::Result<()> {
    let agent = IpAddr::V4(AGENT);
    until(&format!("nobody listens on port {port}"), || match connected(client, agent, port) {
        Ok(_) => Ok(false),
        Err(error) => {
            let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
            Ok(kind == Some(io::ErrorKind::ConnectionRefused))
        }
    })
}

/// Opens a connection to the unit's server, and has it wait for an answer. It stays open while the client is let in.
fn opened(client: Host, port: u16) -> anyhow::Result<TcpStream> {
    let mut stream = connected(client, IpAddr::V4(AGENT), port)?.context("no connection")?;
    stream.write_all(SLOW)?;
    stream.set_read_timeout(Some(IDLE))?;
    let silence = stream.read(&mut [0]);
    ensure!(silence.as_ref().is_err_and(is_silence), "{client:?} has no open connection: {silence:?}");
    Ok(stream)
}

/// Checks that a connection was cut off. A server whose time is up answers.
fn is_cut_off(mut stream: TcpStream) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(CUT_OFF_WITHIN))?;
    let ended = stream.read(&mut [0]);
    ensure!(
        ended.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset),
        "it is not cut off: {ended:?}"
    );
    Ok(())
}

#[test]
fn clients_are_let_in_by_endpoint_subnet_and_space_until_their_exposure_ends() -> anyhow::Result<()> {
    let name = "exposing::clients_are_let_in_by_endpoint_subnet_and_space_until_their_exposure_ends";
    in_own_network(name, &HOSTS, || {
        let periapt = started()?;
        until_reached(OF_DB, &[])?;
        until_reached(OF_ALL, &[])?;
        periapt.ok(["expose", "app"])?;
        until_reached(OF_DB, &CLIENTS)?;
        until_reached(OF_ALL, &CLIENTS)?;
        periapt.ok(["unexpose", "app"])?;
        until_closed(None, OF_DB)?;

        // A port of an endpoint is open to that endpoint's clients; one of all endpoints to the clients of each.
        periapt.ok(["expose", "app", "--endpoints", "db", "--to-cidrs", SOUTH.1])?;
        periapt.ok(["expose", "app", "--endpoints", "sink", "--to-cidrs", EAST.1])?;
        until_reached(OF_DB, &[SOUTH])?;
        until_reached(OF_ALL, &[SOUTH, EAST])?;

        // A space is all endpoints' but those with an exposure of their own.
        periapt.ok(["add-space", "clients", OUTSIDE.1])?;
        periapt.ok(["expose", "app", "--to-spaces", "clients"])?;
        until_reached(OF_ALL, &CLIENTS)?;
        until_reached(OF_DB, &[SOUTH])?;
        let (of_db, of_all) = (opened(SOUTH.0, OF_DB)?, opened(EAST.0, OF_ALL)?);
        periapt.ok(["unexpose", "app", "--endpoints", "db,sink"])?;
        is_cut_off(of_db)?;
        is_cut_off(of_all)?;
        until_reached(OF_DB, &[OUTSIDE])?;
        until_reached(OF_ALL, &[OUTSIDE])?;
        // The space changes, and so do its clients.
        let outside = opened(OUTSIDE.0, OF_ALL)?;
        periapt.ok(["add-space", "others", OUTSIDE.1])?;
        periapt.ok(["move-to-space", "clients", EAST.1])?;
        is_cut_off(outside)?;
        until_reached(OF_DB, &[EAST])?;
        until_reached(OF_ALL, &[EAST])?;

        let (of_db, of_all) = (opened(EAST.0, OF_DB)?, opened(EAST.0, OF_ALL)?);
        periapt.ok(["unexpose", "app"])?;
        is_cut_off(of_db)?;
        is_cut_off(of_all)?;
        for port in [OF_DB, OF_ALL] {
            until_closed(EAST.0, port)?;
        }
        Ok(())
    })
}
