//! A network of hosts, which a test makes for itself and which ends with it: network namespaces that a bridge connects.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use periapt_transport::testing::free_ports;

/// The address of the test's own process in the network.
pub const OUTSIDE: &str = "10.77.0.100";

/// Set in the test's second process, which has the network.
const INSIDE: &str = "PERIAPT_SITE";

/// The options of `unshare` for a network in which this user may do everything.
const OWN: [&str; 6] = ["--user", "--map-root-user", "--net", "--mount", "--fork", "--kill-child"];

/// Connects the hosts, which are its arguments, by a bridge.
const NETWORK: &str = "set -e
mount -t tmpfs tmpfs /run
ip link set lo up
ip link add name lan type bridge
ip addr add 10.77.0.100/24 dev lan
ip link set lan up
number=0
for host in \"$@\"; do
  number=$((number + 1))
  ip netns add $host
  ip link add name $host type veth peer name eth0 netns $host
  ip link set $host master lan
  ip link set $host up
  ip -n $host addr add 10.77.0.$number/24 dev eth0
  ip -n $host link set lo up
  ip -n $host link set eth0 up
done";

/// Returns a port that nobody listens on, and that no connection or server of another test gets by itself.
///
/// # Errors
/// Fails if the system refuses sockets.
pub fn free_port() -> anyhow::Result<u16> {
    free_ports(1)?.pop().context("a port")
}

/// A hardware address that no host has: what is sent there is lost, and the sender is not told.
const NOBODY: &str = "02:00:00:00:00:01";

/// The state of a host's connection to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It is connected.
    Up,
    /// It is cut off.
    Down,
}

/// Runs a test, given by its full name, in a network of its own with these hosts. The first has the address 10.77.0.1, the
/// second 10.77.0.2. Prints the reason and does nothing if no network can be made.
///
/// # Errors
/// The test failed; or no network can be made, and this is CI.
#[expect(clippy::print_stderr, reason = "who runs the tests is told what was not tried, and why")]
pub fn in_own_network(
    test: &str,
    hosts: &[&str],
    body: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let make: Vec<_> = ["-c", NETWORK, "sh"].iter().chain(hosts).copied().collect();
    if std::env::var_os(INSIDE).is_some() {
        run("sh", &make)?;
        return body();
    }
    let tried = Command::new("unshare").args(OWN).arg("sh").args(&make).output()?;
    if !tried.status.success() {
        let reason = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
        // In CI these tests must run.
        ensure!(std::env::var_os("CI").is_none(), "no network can be made here: {reason}");
        eprintln!("SKIPPED {test}: no network can be made here: {reason}");
        return Ok(());
    }
    let mut again = Command::new("unshare");
    again.args(OWN).arg(std::env::current_exe()?).args(["--exact", test, "--nocapture"]);
    // The errors, which say what was not tried, are this process's own.
    let mut again = again.env(INSIDE, "1").stdout(Stdio::piped()).spawn()?;
    let output = again.stdout.take().context("the test's output")?;
    let mut has_passed = false;
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        has_passed |= line.contains("1 passed");
        // A long test tells how far it is.
        eprintln!("{line}");
    }
    let ended = again.wait()?;
    ensure!(ended.success() && has_passed, "{test} has failed in its network: {ended}");
    Ok(())
}

/// Returns the path of a host's network, for [`Installation::in_network`](crate::Installation::in_network).
pub fn network_of(host: &str) -> String {
    format!("/run/netns/{host}")
}

/// Cuts a host off from all others, or connects it again.
///
/// # Errors
/// There is no such host.
pub fn set_link(host: &str, link: Link) -> anyhow::Result<()> {
    run("ip", &["link", "set", host, if link == Link::Up { "up" } else { "down" }])
}

/// Gives the test's own process another address, to which a host has a route.
///
/// # Errors
/// There is no such host, or the process has the address already.
pub fn add_address_outside(host: &str, address: &str) -> anyhow::Result<()> {
    run("ip", &["addr", "add", &format!("{address}/32"), "dev", "lan"])?;
    run("ip", &["-n", host, "route", "add", &format!("{address}/32"), "dev", "eth0"])
}

/// Loses all packets that a host sends to another one, whose number begins with 1, or lets them through again. Connections
/// stay, and nobody is told.
///
/// # Errors
/// There is no such host.
pub fn set_path(from: &str, to: usize, link: Link) -> anyhow::Result<()> {
    let address = format!("10.77.0.{to}");
    let (place, to) = (["-n", from, "neigh"], [&*address, "dev", "eth0"]);
    let neighbour = match link {
        // The kernel finds the right hardware address again.
        Link::Up => [&place[..], &["del"], &to].concat(),
        Link::Down => [&place[..], &["replace"], &to, &["lladdr", NOBODY, "nud", "permanent"]].concat(),
    };
    run("ip", &neighbour)
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let done = Command::new(program).args(arguments).output().with_context(|| program.to_owned())?;
    ensure!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}
