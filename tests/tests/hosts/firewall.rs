//! Agents that keep the host's firewall: the kernel drops packets to open ports unless the model admits the sender.

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket},
    path::PathBuf,
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, RunningProcess, binary, in_own_network};
use serde_json::Value;

use crate::{
    packets::{Host, connected, connects, connects_from, is_heard, is_silence, on_host, pings, until},
    site::on,
};

/// The controller's host, and the one with the firewall.
const HOSTS: [&str; 2] = ["north", "south"];
const NORTH: Host = Some("north");
const SOUTH: Host = Some("south");
const OUTSIDE: Host = None;

/// The addresses of the host with the firewall.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const V4: IpAddr = IpAddr::V4(ADDRESS);
const V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2));

/// All addresses of a host, by IPv4 as well.
const ANY: IpAddr = IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED);

/// The subnets of the other two.
const OF_NORTH: &str = "10.77.0.1/32,fd77::1/128";
const OF_OUTSIDE: &str = "10.77.0.100/32,fd77::100/128";

/// The ports of servers on the host. Some are in ranges that the units open.
const PORTS: [u16; 7] = [22, 23, 24, 8000, 8010, 8011, 9000];

/// The port of a server that accepts nothing by itself.
const HELD: u16 = 8005;

/// The open ports of the first application: a charm may open those of the host's own services as well.
const SCRIPT: &str = "script=install: open-port 20-25/tcp\ninstall: open-port 8000-8010/tcp\n\
                      install: open-port 5300/udp\ninstall: open-port icmp\n*: status active fine";

/// Two hosts with a controller on the first, and servers on the second, which are no workloads.
struct Scene {
    north: Installation,
    south: Installation,
    /// The server whose connections a test accepts.
    held: TcpListener,
    udp: UdpSocket,
}

impl Scene {
    fn new() -> anyhow::Result<Self> {
        for (host, number) in [(NORTH, "1"), (SOUTH, "2"), (OUTSIDE, "100")] {
            let place: Vec<&str> = host.into_iter().flat_map(|host| ["-n", host]).collect();
            let device = if host.is_some() { "eth0" } else { "lan" };
            let address = format!("fd77::{number}/64");
            let add = ["addr", "add", address.as_str(), "dev", device, "nodad"];
            let done = Command::new("ip").args(place).args(add).output()?;
            ensure!(done.status.success(), "{done:?}");
        }
        let north = on("north")?;
        let listen = ["--listen", "10.77.0.1:17070", "--agent-name", "north"];
        north.ok(["bootstrap", "local"].into_iter().chain(listen))?;
        north.ok(["add-model", "test"])?;
        for port in PORTS {
            let server = on_host(SOUTH, || Ok(TcpListener::bind((ANY, port))?))?;
            // It accepts for as long as the test runs: connections that wait would fill its queue.
            std::thread::spawn(move || server.incoming().for_each(drop));
        }
        let held = on_host(SOUTH, || Ok(TcpListener::bind((ANY, HELD))?))?;
        let udp = on_host(SOUTH, || Ok(UdpSocket::bind((ANY, 5300))?))?;
        Ok(Self { north, south: on("south")?, held, udp })
    }

    fn data(&self, agent: &str) -> PathBuf {
        self.south.path().join(agent)
    }

    /// Starts an agent on the host with the firewall, which joins at its first start.
    fn agent(&self, name: &str, more: &[&str]) -> anyhow::Result<RunningProcess> {
        let token = self.north.path().join(format!("{name}.token"));
        let token = token.to_str().context("a path")?;
        let mut words = vec!["agent", "run", "--controller", "https://10.77.0.1:17070", "--name", name];
        let data = self.data(name);
        words.extend(["--data", data.to_str().context("a path")?]);
        if !data.exists() {
            self.north.ok(["agent-token", name, "--controller", "local", "--output", token])?;
            words.extend(["--token-file", token]);
        }
        let mut agent = self.south.spawn(words.iter().chain(more))?;
        ensure!(agent.first_line()? == format!("ready {name}"), "{name} has not registered");
        Ok(agent)
    }

    fn expose(&self, application: &str, to: &str) -> anyhow::Result<()> {
        self.north.ok(["expose", application, "--to-cidrs", to]).map(drop)
    }
}

/// Returns the message of the first machine's agent.
fn message(status: &Value) -> &str {
    status.pointer("/machines/0/juju-status/message").and_then(Value::as_str).unwrap_or_default()
}

fn until_connects(from: Host, to: IpAddr, port: u16) -> anyhow::Result<()> {
    until(&format!("{from:?} reaches {to}, port {port}"), || connects(from, to, port))
}

fn until_dropped(from: Host, to: IpAddr, port: u16) -> anyhow::Result<()> {
    until(&format!("{from:?} does not reach {to}, port {port}"), || Ok(!connects(from, to, port)?))
}

#[test]
fn the_kernel_admits_whom_the_model_admits_and_leaves_all_else_alone() -> anyhow::Result<()> {
    let name = "firewall::the_kernel_admits_whom_the_model_admits_and_leaves_all_else_alone";
    in_own_network(name, &HOSTS, || {
        let scene = Scene::new()?;
        let options = ["--firewall", "nftables", "--firewall-except", "24"];
        let mut agent = scene.agent("south", &options)?;
        for port in PORTS {
            until_connects(OUTSIDE, V4, port)?;
        }
        scene.north.deploy("probe", ["--to", "agent=south", "--config", SCRIPT])?;
        scene.north.wait_for(["model"])?;

        // What is open and not exposed is dropped; what nobody opened, SSH and what the operator excepts are not.
        until_dropped(OUTSIDE, V4, 8000)?;
        for (port, passes) in [(22, true), (23, false), (24, true), (8010, false), (8011, true), (9000, true)]
        {
            let reached = connects(OUTSIDE, V4, port)?;
            ensure!(reached == passes, "port {port} is reached: {reached}");
        }
        ensure!(!connects(OUTSIDE, V6, 8000)? && connects(OUTSIDE, V6, 8011)?, "IPv6");
        ensure!(!is_heard(&scene.udp, OUTSIDE, V4)? && !pings(OUTSIDE, ADDRESS)?, "UDP and pings");
        // The host reaches itself, and others from a port that a unit has open.
        ensure!(connects(SOUTH, V4, 8000)? && connects(SOUTH, V6, 8000)?, "the host itself");
        let north = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 17070);
        ensure!(connects_from(SOUTH, 8007, north)?, "answers to what the host began");

        scene.expose("probe", OF_NORTH)?;
        until_connects(NORTH, V4, 8000)?;
        until_connects(NORTH, V4, 8010)?;
        until_connects(NORTH, V6, 8000)?;
        until("UDP is heard", || is_heard(&scene.udp, NORTH, V4))?;
        until("UDP is heard by IPv6", || is_heard(&scene.udp, NORTH, V6))?;
        until("pings are answered", || pings(NORTH, ADDRESS))?;
        for to in [V4, V6] {
            ensure!(
                !connects(OUTSIDE, to, 8000)? && !is_heard(&scene.udp, OUTSIDE, to)?,
                "{to} from outside"
            );
        }
        ensure!(!pings(OUTSIDE, ADDRESS)?, "a ping from outside");

        // Another subnet: the connections of the former one are cut off, too.
        let mut client = connected(NORTH, V4, HELD)?.context("no connection")?;
        let (mut served, _) = scene.held.accept()?;
        client.write_all(b"one")?;
        served.read_exact(&mut [0; 3])?;
        scene.expose("probe", OF_OUTSIDE)?;
        until_connects(OUTSIDE, V4, 8000)?;
        until_dropped(NORTH, V4, 8000)?;
        client.write_all(b"two")?;
        served.set_read_timeout(Some(Duration::from_secs(2)))?;
        ensure!(served.read(&mut [0; 3]).is_err_and(|error| is_silence(&error)), "it is cut off");

        // While the agent is away and after it is back, the rules are what they were.
        agent.end("TERM")?;
        ensure!(!connects(NORTH, V4, 8000)? && connects(OUTSIDE, V4, 8000)?, "without the agent");
        agent = scene.agent("south", &options)?;
        ensure!(!connects(NORTH, V4, 8000)?, "after a restart");
        until_connects(OUTSIDE, V4, 8000)?;
        scene.expose("probe", OF_NORTH)?;
        until_connects(NORTH, V4, 8000)?;
        until_dropped(OUTSIDE, V4, 8000)?;

        // The ports go with the unit.
        scene.north.ok(["remove-application", "probe", "--no-prompt"])?;
        until_connects(OUTSIDE, V4, 8000)?;
        until_connects(OUTSIDE, V4, 23)?;
        until("pings are answered again", || pings(OUTSIDE, ADDRESS))?;
        agent.end("TERM").map(drop)
    })
}

#[test]
fn two_agents_of_a_host_have_their_own_rules_which_go_with_the_agent() -> anyhow::Result<()> {
    let name = "firewall::two_agents_of_a_host_have_their_own_rules_which_go_with_the_agent";
    in_own_network(name, &HOSTS, || {
        let scene = Scene::new()?;
        let one = scene.agent("one", &["--firewall", "nftables"])?;
        let other = scene.agent("other", &["--firewall", "nftables"])?;
        for (application, agent, port) in [("web", "agent=one", 8000), ("db", "agent=other", 9000)] {
            let script = format!("script=install: open-port {port}/tcp\n*: status active fine");
            scene.north.deploy("probe", [application, "--to", agent, "--config", &script])?;
        }
        scene.north.wait_for(["model"])?;
        until_dropped(OUTSIDE, V4, 8000)?;
        until_dropped(OUTSIDE, V4, 9000)?;
        scene.expose("db", OF_OUTSIDE)?;
        until_connects(OUTSIDE, V4, 9000)?;
        ensure!(!connects(OUTSIDE, V4, 8000)? && !connects(NORTH, V4, 9000)?, "each rule is its own port's");

        // An agent that is removed leaves nothing, and the other one's rules stay.
        scene.north.ok(["remove-agent", "other", "--force", "--no-prompt"])?;
        ensure!(other.ended()? == Some(3), "the code with which systemd does not start it again");
        ensure!(connects(NORTH, V4, 9000)?, "the rules are gone with the agent");
        ensure!(!connects(OUTSIDE, V4, 8000)?, "the other agent's rules are there");

        // Without the option at its next start, an agent deletes the rules that it wrote before.
        one.end("TERM")?;
        ensure!(!connects(OUTSIDE, V4, 8000)?, "without the agent");
        let one = scene.agent("one", &[])?;
        ensure!(connects(OUTSIDE, V4, 8000)?, "the rules are gone with the option");
        one.end("TERM").map(drop)
    })
}

#[test]
fn changes_among_many_open_ports_reach_the_kernel_and_the_others_stay() -> anyhow::Result<()> {
    let name = "firewall::changes_among_many_open_ports_reach_the_kernel_and_the_others_stay";
    in_own_network(name, &HOSTS, || {
        let scene = Scene::new()?;
        let agent = scene.agent("south", &["--firewall", "nftables"])?;
        // Ports that do not touch have each their own rules: 200 for all senders, and as many for each subnet.
        let open: String =
            (0..200).map(|number| format!("install: open-port {}/tcp\n", 8000 + 2 * number)).collect();
        let many = format!("script={open}*: status active fine");
        scene.north.deploy("probe", ["many", "--to", "agent=south", "--config", &many])?;
        let few = "script=install: open-port 9000/tcp\ninstall: open-port icmp\n*: status active fine";
        scene.north.deploy("probe", ["few", "--to", "agent=south", "--config", few])?;
        scene.north.wait_for(["model"])?;
        until_dropped(OUTSIDE, V4, 8000)?;
        until_dropped(OUTSIDE, V4, 9000)?;
        scene.expose("many", OF_NORTH)?;
        until_connects(NORTH, V4, 8000)?;
        // Each of these changes leaves the ports of the other application as they are.
        for (to, passes, fails) in [(OF_OUTSIDE, OUTSIDE, NORTH), (OF_NORTH, NORTH, OUTSIDE)] {
            scene.expose("few", to)?;
            until_connects(passes, V4, 9000)?;
            until_dropped(fails, V4, 9000)?;
            for port in [8000, 8010] {
                ensure!(connects(NORTH, V4, port)? && connects(NORTH, V6, port)?, "port {port}");
                ensure!(!connects(OUTSIDE, V4, port)?, "port {port} from outside");
            }
        }
        // Its ports and pings go with the second application, and the others stay.
        scene.north.ok(["remove-application", "few", "--no-prompt"])?;
        until_connects(OUTSIDE, V4, 9000)?;
        until("pings are answered", || pings(OUTSIDE, ADDRESS))?;
        ensure!(connects(NORTH, V4, 8010)? && !connects(OUTSIDE, V4, 8010)?, "the ports that stay");
        agent.end("TERM").map(drop)
    })
}

#[test]
fn status_says_why_the_firewall_lacks_rules_until_it_has_them() -> anyhow::Result<()> {
    let name = "firewall::status_says_why_the_firewall_lacks_rules_until_it_has_them";
    in_own_network(name, &HOSTS, || {
        let scene = Scene::new()?;
        let agent = scene.agent("south", &["--firewall", "nftables"])?;
        // Ports that do not touch have each their own rules.
        let open: String =
            (0..12).map(|number| format!("install: open-port {}/tcp\n", 8000 + 2 * number)).collect();
        let script = format!("script={open}*: status active fine");
        scene.north.deploy("probe", ["--to", "agent=south", "--config", &script])?;
        scene.north.wait_for(["model"])?;
        scene.expose("probe", OF_OUTSIDE)?;
        until_connects(OUTSIDE, V4, 8000)?;
        until_dropped(NORTH, V4, 8000)?;
        ensure!(message(&scene.north.json(["status"])?).is_empty(), "all rules are written");

        let many: Vec<String> = (100..200).map(|number| format!("10.{number}.0.0/16")).collect();
        scene.expose("probe", &many.join(","))?;
        let problem = "the host's firewall lacks the newest rules: more than 1024 are needed";
        scene.north.json_until(&["status"], |status| message(status).starts_with(problem))?;
        ensure!(message(&scene.north.json(["show-machine", "0"])?).starts_with(problem), "show-machine");
        let table = scene.north.ok(["status"])?;
        ensure!(table.lines().any(|line| line.starts_with("0 ") && line.contains(problem)), "{table}");
        ensure!(connects(OUTSIDE, V4, 8000)? && !connects(NORTH, V4, 8000)?, "the former rules stay");

        scene.expose("probe", OF_NORTH)?;
        until_connects(NORTH, V4, 8000)?;
        scene.north.json_until(&["status"], |status| message(status).is_empty())?;
        agent.end("TERM").map(drop)
    })
}

#[test]
fn an_agent_without_the_right_to_write_rules_does_not_start_and_says_so() -> anyhow::Result<()> {
    let name = "firewall::an_agent_without_the_right_to_write_rules_does_not_start_and_says_so";
    in_own_network(name, &HOSTS, || {
        let south = on("south")?;
        let refused = |options: &[&str]| {
            // Root of another user namespace has no right over this one's network.
            let mut command = south.program("unshare");
            command.args(["--user", "--map-root-user"]).arg(binary()?);
            command.args(["agent", "run", "--controller", "https://10.77.0.1:17070", "--name", "south"]);
            command.arg("--data").arg(south.path().join("south")).args(options);
            Installation::finished(command)
        };
        let error = refused(&["--firewall", "nftables"])?.one_error()?;
        ensure!(error.contains("it needs the capability CAP_NET_ADMIN"), "{error}");
        ensure!(!south.path().join("south").exists(), "it has begun nothing");
        let misused = refused(&["--firewall-except", "24"])?;
        ensure!(misused.stderr.contains("--firewall-except needs --firewall nftables"), "{misused:?}");
        Ok(())
    })
}
