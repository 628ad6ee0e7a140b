//! The commands of docs/ha.md, on three hosts with a server of etcd on each, as the document says.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command, sync::Arc};

use anyhow::{Context as _, ensure};
use periapt_host_api::Timestamp;
use periapt_log_etcd::testing::{EtcdHost, TestEtcd};
use periapt_tests::{Installation, in_own_network, network_of};
use periapt_transport::Authority;
use serde_json::Value;

use crate::site::{HOSTS, Site, models, until};

/// The name that the document gives its controllers.
pub(crate) const NAME: &str = "prod";
/// The names that the document gives the machines.
const MACHINES: [&str; 3] = ["node-1", "node-2", "node-3"];

/// The files by which the first machine's controller knows etcd, and proves itself to it.
pub(crate) const CLIENT_FILES: [&str; 3] = ["etcd-ca.pem", "etcd-client.pem", "etcd-client-key.pem"];

/// Returns the blocks of code of a section of docs/ha.md.
pub(crate) fn blocks(section: &str) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ha.md"))?;
    let heading = format!("\n## {section}\n");
    let (_, after) = text.split_once(&heading).with_context(|| format!("no section {section:?}"))?;
    let section = after.split("\n## ").next().unwrap_or_default();
    Ok(section.split("```").skip(1).step_by(2).map(str::to_owned).collect())
}

/// Returns the commands of a section of docs/ha.md, each as its words without the program's name.
fn commands(section: &str) -> anyhow::Result<Vec<Vec<String>>> {
    let blocks = blocks(section)?.into_iter();
    let lines =
        blocks.flat_map(|block| block.replace("\\\n", " ").lines().map(str::to_owned).collect::<Vec<_>>());
    let words = lines.filter_map(|line| {
        Some(line.trim().strip_prefix("periapt ")?.split_whitespace().map(str::to_owned).collect())
    });
    Ok(words.collect())
}

/// Returns the names and addresses of all machines, as they stand in `/etc/hosts`.
fn names() -> String {
    let lines = MACHINES.iter().enumerate().map(|(number, name)| {
        let number = number + 1;
        format!("10.77.0.{number} {name}.example {name}\n")
    });
    format!("127.0.0.1 localhost\n{}", lines.collect::<String>())
}

/// Gives the machines their names, in the mount namespace of the test.
fn name_machines(place: &Path) -> anyhow::Result<()> {
    let hosts = place.join("hosts");
    fs::write(&hosts, names())?;
    let done = Command::new("mount").arg("--bind").arg(&hosts).arg("/etc/hosts").output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// Writes a file that its owner alone reads.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o600))?)
}

/// Starts a server of etcd on each machine, which serve TLS and ask for certificates. Writes the files for clients into
/// the directory of the first machine, under the names of the document.
fn etcd(first: &Installation) -> anyhow::Result<TestEtcd> {
    let authority = Authority::generate()?;
    let names = MACHINES.iter().map(|name| name.parse()).collect::<Result<Vec<_>, _>>()?;
    let (certificate, key) = authority.issue_server(&names, Timestamp::now())?;
    let (own, own_key) = authority.issue_controller("periapt", Timestamp::now())?;
    let place = |name: &str| first.path().join(name);
    for (name, text) in [
        ("etcd-server.pem", certificate.as_str()),
        ("etcd-server-key.pem", &key),
        ("etcd-ca.pem", authority.certificate()),
        ("etcd-client.pem", &own),
        ("etcd-client-key.pem", &own_key),
    ] {
        write(&place(name), text)?;
    }
    let more = [
        format!("--cert-file={}", place("etcd-server.pem").display()),
        format!("--key-file={}", place("etcd-server-key.pem").display()),
        format!("--trusted-ca-file={}", place("etcd-ca.pem").display()),
        "--client-cert-auth".to_owned(),
    ];
    let hosts = HOSTS.into_iter().enumerate().map(|(number, host)| {
        let number = u8::try_from(number)? + 1;
        anyhow::Ok(EtcdHost { network: network_of(host), address: [10, 77, 0, number].into() })
    });
    Ok(TestEtcd::start_on(&hosts.collect::<anyhow::Result<Vec<_>>>()?, &more.each_ref().map(String::as_str)))
}

/// Hands a token over from the first machine to another.
fn hand_over(site: &Site, machine: usize) -> anyhow::Result<()> {
    let name = MACHINES.get(machine).context("a machine")?;
    let file = format!("{name}.token");
    let text = fs::read_to_string(site.host(0)?.path().join(&file))?;
    write(&site.host(machine)?.path().join(file), &text)
}

/// Returns the members that a machine's controller shows.
pub(crate) fn members(host: &Installation) -> anyhow::Result<serde_json::Map<String, Value>> {
    let shown = host.json(["show-controller"])?;
    let members = shown.pointer(&format!("/{NAME}/details/controller-machines")).and_then(Value::as_object);
    members.cloned().context("members")
}

/// Starts etcd on three machines, and the controllers of the first two, by the commands of the document.
pub(crate) fn begun() -> anyhow::Result<Site> {
    let hosts = HOSTS.iter().map(|host| Ok(Arc::new(Installation::empty()?.in_network(network_of(host)))));
    let hosts = hosts.collect::<anyhow::Result<Vec<_>>>()?;
    let first = hosts.first().context("a host")?;
    name_machines(first.path())?;
    let site = Site { etcd: etcd(first)?, hosts: hosts.clone(), agents: Vec::new() };

    let start = commands("Start")?;
    let [bootstrap, token, join] = start.as_slice() else { anyhow::bail!("other commands: {start:?}") };
    until("etcd answers", || Ok(first.run(bootstrap)?.code == Some(0)))?;
    first.ok(token)?;
    hand_over(&site, 1)?;
    site.host(1)?.ok(join)?;
    Ok(site)
}

#[test]
fn three_machines_are_set_up_by_the_commands_of_the_document() -> anyhow::Result<()> {
    let test = "documented::three_machines_are_set_up_by_the_commands_of_the_document";
    in_own_network(test, &HOSTS, || {
        let site = begun()?;
        let (hosts, first) = (&site.hosts, site.host(0)?);
        // The other way, of which the text tells.
        let listing = first.json(["enable-ha", "--to", "node-3"])?;
        let [command] = listing["commands"].as_array().context("commands")?.as_slice() else {
            anyhow::bail!("{listing}")
        };
        let command = command.as_str().context("a command")?.replace("HOST", "node-3.example");
        let command = command.strip_prefix("periapt ").context("a command of periapt")?;
        hand_over(&site, 2)?;
        site.host(2)?.ok(command.split_whitespace())?;

        until("all are up to date", || {
            let members = members(first)?;
            Ok(MACHINES.iter().all(|name| members.get(*name).is_some_and(|member| member["behind"] == 0)))
        })?;
        for (number, name) in MACHINES.iter().enumerate() {
            site.host(number)?.ok(["add-model", name, "--no-switch"])?;
        }
        for host in hosts {
            until("each shows the models of all", || Ok(models(host)? == MACHINES))?;
        }

        let removal = commands("Remove a controller")?;
        let [remove] = removal.as_slice() else { anyhow::bail!("other commands: {removal:?}") };
        // A person answers the question.
        first.ok(remove.iter().map(String::as_str).chain(["--no-prompt"]))?;
        until("it is listed no more", || Ok(!members(first)?.contains_key("node-3")))?;
        site.host(2)?.ok(["kill-controller", NAME, "--no-prompt"])?;
        first.ok(["enable-ha", "--to", "node-3"])?;
        hand_over(&site, 2)?;
        site.host(2)?.ok(command.split_whitespace())?;
        until("it has come back", || Ok(members(first)?.contains_key("node-3")))?;
        ensure!(models(site.host(2)?)? == MACHINES);
        Ok(())
    })
}
