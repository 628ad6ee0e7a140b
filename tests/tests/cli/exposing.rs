//! Open ports of workloads, as hosts outside reach them at the agent's address.

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use periapt_tests::{free_port, signal};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpSocket,
    time::timeout,
};

use crate::workloads::{Scene, processes, until};

/// The agent's address in these tests. With the driver `plain`, workloads take their ports of another loopback address.
const AGENT: &str = "127.0.0.2";

/// Two clients, by their addresses.
const CLIENTS: [&str; 2] = ["127.0.0.3", "127.0.0.4"];

/// The time in which a port answers or refuses.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

fn scene() -> anyhow::Result<Scene> {
    Scene::with_options("probe", &["--listen-address", AGENT])
}

/// Returns what the agent's address answers to a client.
fn get(client: &str, port: u16) -> anyhow::Result<String> {
    let exchange = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(client.parse()?, 0))?;
        let mut stream = socket.connect(SocketAddr::new(AGENT.parse()?, port)).await?;
        stream.write_all(b"GET /page.txt HTTP/1.0\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, anyhow::Error>(answer)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { timeout(ANSWERS_WITHIN, exchange).await.context("no answer")? })
}

fn is_page(client: &str, port: u16) -> bool {
    get(client, port).is_ok_and(|answer| answer.ends_with("a page of the workload"))
}

fn until_page(client: &str, port: u16) -> anyhow::Result<()> {
    until(&format!("{client} gets the page"), || Ok(is_page(client, port)))
}

/// Waits until a client cannot even connect.
fn until_closed(client: &str, port: u16) -> anyhow::Result<()> {
    let is_refused = |error: anyhow::Error| {
        let error = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        error == Some(std::io::ErrorKind::ConnectionRefused)
    };
    until(&format!("nobody listens for {client}"), || Ok(get(client, port).is_err_and(is_refused)))
}

#[test]
fn an_exposed_port_answers_at_the_agents_address_until_it_is_closed() -> anyhow::Result<()> {
    let (scene, port) = (scene()?, free_port()?);
    let [one, other] = CLIENTS;
    scene.boot_id()?;
    scene.serve(port)?;
    ensure!(get(one, port).is_err(), "nothing is open");
    scene.act(&format!("open-port {port}/tcp"))?;
    ensure!(get(one, port).is_err(), "an open port alone lets nobody in");
    scene.periapt.ok(["expose", "probe"])?;
    until_page(one, port)?;
    until_page(other, port)?;

    // The server dies, and so does its pod: the agent's port stays, and leads to what comes back.
    let server = format!("http.server {port}");
    let servers = processes(&[&server])?;
    signal(*servers.first().context("no server")?, "KILL")?;
    until("another server runs", || Ok(processes(&[&server])?.iter().any(|pid| !servers.contains(pid))))?;
    until_page(one, port)?;
    let pods = crate::workloads::children(scene.agent.id(), &["agent pod --keeper"])?;
    let before = scene.boot_id()?;
    signal(*pods.first().context("no pod")?, "KILL")?;
    until("another pod has begun", || Ok(scene.boot_id()? != before))?;
    ensure!(!is_page(one, port), "the pod has no server yet");
    scene.serve(port)?;
    until_page(one, port)?;

    // Clients are told apart by their addresses.
    scene.periapt.ok(["unexpose", "probe"])?;
    until_closed(one, port)?;
    scene.periapt.ok(["expose", "probe", "--to-cidrs", &format!("{one}/32")])?;
    until_page(one, port)?;
    ensure!(!is_page(other, port), "{other} is not let in");
    scene.periapt.ok(["expose", "probe", "--to-cidrs", &format!("{other}/32")])?;
    until_page(other, port)?;
    ensure!(!is_page(one, port), "{one} is not let in any more");

    scene.act(&format!("close-port {port}/tcp"))?;
    until_closed(other, port)?;
    scene.act(&format!("open-port {port}/tcp"))?;
    until_page(other, port)?;

    // The operator sees what clients and the server have sent: answers are longer than requests.
    scene.periapt.json_until(&["usage"], |usage| {
        let counts = usage.pointer("/applications/probe/workloads/probe~10");
        let count = |name: &str| counts.and_then(|counts| counts.get(name)?.as_u64()).unwrap_or_default();
        count("connections") >= 2 && count("received") > 0 && count("sent") > count("received")
    })?;
    scene.periapt.ok(["remove-application", "probe", "--no-prompt"])?;
    until_closed(other, port)
}

#[test]
fn a_port_that_another_process_has_is_used_once_it_is_free() -> anyhow::Result<()> {
    let (scene, port) = (scene()?, free_port()?);
    let holder = TcpListener::bind((AGENT, port))?;
    scene.boot_id()?;
    scene.serve(port)?;
    scene.act(&format!("open-port {port}/tcp"))?;
    scene.periapt.ok(["expose", "probe"])?;
    // The agent and the unit go on: hooks reach the workload on its own port.
    let page = format!("{port} GET /page.txt");
    scene.ask_until(&page, |answer| answer.contains("200 a page of the workload"))?;
    drop(holder);
    until_page(CLIENTS[0], port)
}
