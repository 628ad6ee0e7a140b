//! Workloads that call hosts outside of their model. The test's own process is these hosts: one with an address that looks
//! public, one with a private address, and the metadata service of a cloud.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::ensure;
use periapt_tests::{Installation, OUTSIDE, POLL_INTERVAL, add_address_outside, in_own_network};

use crate::{
    servers::{ANSWERED, asks, packed_server},
    site::on,
};

mod containers;

/// An address that looks public, another one, and that of metadata services.
const PUBLIC: &str = "203.0.113.7";
const OTHER: &str = "203.0.113.8";
const METADATA: &str = "169.254.169.254";

/// The address of the host with the agent and the controller.
const AGENT: &str = "10.77.0.1";

/// The port of the unit's own server, and that of the hosts outside.
const OWN_PORT: u16 = 8080;
const PORT: u16 = 8081;

/// The answer of the hosts outside.
const REACHED: &str = "a host outside";

/// The time in which a change of grants is seen.
const SEEN_WITHIN: Duration = Duration::from_secs(120);

/// The hosts outside, with the number of their connections.
#[derive(Clone, Default)]
struct Outside {
    connections: Arc<AtomicUsize>,
}

impl Outside {
    /// Starts a server at an address.
    fn start(&self, address: &str) -> anyhow::Result<()> {
        let listener = TcpListener::bind((address, PORT))?;
        let own = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                own.connections.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || serve(stream));
            }
        });
        Ok(())
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Answers one request.
fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 4_096 && stream.read(&mut byte)? == 1 {
        head.extend(byte);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
    stream.write_all(REACHED.as_bytes())
}

/// Returns what the unit's server gets from another server.
fn asked(authority: &str) -> anyhow::Result<String> {
    asks((AGENT, OWN_PORT), authority)
}

fn is_refused(authority: &str) -> anyhow::Result<()> {
    let answer = asked(authority)?;
    ensure!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("HttpRequestDenied"),
        "{authority}: {answer}"
    );
    Ok(())
}

/// Runs the server of a unit, and asks it for what it reaches.
struct Scene {
    periapt: Installation,
}

impl Scene {
    fn start(options: &[&str]) -> anyhow::Result<Self> {
        let periapt = on("north")?;
        let run = ["bootstrap", "local", "--listen", "10.77.0.1:17070", "--agent-name", "north"];
        periapt.ok(run.into_iter().chain(["--workloads", "wasm"]).chain(options.iter().copied()))?;
        periapt.ok(["add-model", "test"])?;
        let archive = packed_server(&periapt, "egress", OWN_PORT)?;
        periapt.ok(["deploy", &archive, "app"])?;
        periapt.wait_for(["model"])?;
        periapt.ok(["config", "app", &format!("script=act: open-port {OWN_PORT}/tcp")])?;
        periapt.ok(["run", "app/0", "act"])?;
        periapt.ok(["expose", "app"])?;
        let scene = Self { periapt };
        // Its own server answers once it has started.
        scene.until(&format!("localhost:{OWN_PORT}"), ANSWERED)?;
        Ok(scene)
    }

    fn until(&self, authority: &str, expected: &str) -> anyhow::Result<()> {
        let deadline = Instant::now() + SEEN_WITHIN;
        loop {
            let answer = asked(authority);
            match &answer {
                Ok(answer) if answer.contains(expected) => return Ok(()),
                _ => {
                    ensure!(Instant::now() < deadline, "{authority}: {answer:?}\n{}", self.periapt.logs());
                }
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn grant(&self, destinations: &str) -> anyhow::Result<()> {
        self.periapt.ok(["model-config", &format!("workload-egress={destinations}")]).map(drop)
    }
}

#[test]
fn a_workload_reaches_hosts_outside_exactly_as_they_are_granted() -> anyhow::Result<()> {
    in_own_network("egress::a_workload_reaches_hosts_outside_exactly_as_they_are_granted", &["north"], || {
        let (public, metadata, private) = (Outside::default(), Outside::default(), Outside::default());
        for address in [PUBLIC, OTHER, METADATA] {
            add_address_outside("north", address)?;
        }
        public.start(PUBLIC)?;
        public.start(OTHER)?;
        metadata.start(METADATA)?;
        private.start(OUTSIDE)?;
        let scene = Scene::start(&["--egress-deny", "203.0.113.8/32"])?;
        let at = |address: &str| format!("{address}:{PORT}");

        // Nothing is granted by default.
        for address in [PUBLIC, OTHER, METADATA, OUTSIDE, AGENT] {
            is_refused(&at(address))?;
        }
        ensure!(public.connections() == 0);
        scene.grant(&format!("203.0.113.0/24:{PORT},10.77.0.0/24"))?;
        scene.until(&at(PUBLIC), REACHED)?;
        is_refused(&format!("{PUBLIC}:80"))?;
        // The operator of the host has the last word: on one subnet, and on all private addresses.
        is_refused(&at(OTHER))?;
        is_refused(&at(OUTSIDE))?;
        // What is never reached cannot be granted, and no grant of everything has it.
        let wrong = scene.periapt.run(["model-config", "workload-egress=169.254.169.254"])?;
        ensure!(
            wrong.code != Some(0) && wrong.stderr.contains("metadata services are never reached"),
            "{}",
            wrong.stderr
        );
        scene.grant("0.0.0.0/0,::/0,10.77.0.0/24")?;
        scene.until(&at(PUBLIC), REACHED)?;
        for authority in [
            at(METADATA),
            format!("[::ffff:{METADATA}]:{PORT}"),
            format!("[64:ff9b::{METADATA}]:{PORT}"),
            at(AGENT),
            format!("{AGENT}:17070"),
            format!("{AGENT}:17072"),
            at(OUTSIDE),
        ] {
            is_refused(&authority)?;
        }
        ensure!(metadata.connections() == 0 && private.connections() == 0, "a connection was made");

        // An application's own grants hold in place of the model's; without a grant, nothing is reached.
        scene.periapt.ok(["config", "app", "workload-egress="])?;
        scene.until(&at(PUBLIC), "HttpRequestDenied")?;
        scene.periapt.ok(["config", "app", "--reset", "workload-egress"])?;
        scene.until(&at(PUBLIC), REACHED)?;
        scene.periapt.ok(["model-config", "--reset", "workload-egress"])?;
        scene.until(&at(PUBLIC), "HttpRequestDenied")
    })
}

#[test]
fn a_grant_that_goes_cuts_connections_and_private_addresses_need_the_hosts_operator() -> anyhow::Result<()> {
    let name = "egress::a_grant_that_goes_cuts_connections_and_private_addresses_need_the_hosts_operator";
    in_own_network(name, &["north"], || {
        // A server that takes a connection and says nothing, for as long as it lasts.
        let listener = TcpListener::bind((OUTSIDE, PORT))?;
        let scene = Scene::start(&["--egress", "granted"])?;
        scene.grant(&format!("10.77.0.0/24:{PORT}"))?;
        thread::scope(|scope| {
            // The agent may hear of the grant a moment later: until then it refuses.
            let asking = scope.spawn(|| {
                let deadline = Instant::now() + SEEN_WITHIN;
                loop {
                    let answer = asked(&format!("{OUTSIDE}:{PORT}"))?;
                    if !answer.contains("HttpRequestDenied") || Instant::now() > deadline {
                        return anyhow::Ok(answer);
                    }
                    thread::sleep(POLL_INTERVAL);
                }
            });
            let (mut held, from) = listener.accept()?;
            ensure!(from.ip().to_string() == AGENT, "{from}");
            held.set_read_timeout(Some(SEEN_WITHIN))?;
            let mut read = [0; 1_024];
            ensure!(held.read(&mut read)? > 0, "the request comes");
            scene.grant("example.com")?;
            // The rest of the request may come first, and the end as a reset.
            while held.read(&mut read).is_ok_and(|length| length > 0) {}
            let answer = asking.join().map_err(|_| anyhow::anyhow!("the request failed"))??;
            ensure!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("failed: "), "{answer}");
            Ok(())
        })
    })
}
