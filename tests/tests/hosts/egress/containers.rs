//! A container that calls hosts outside by their names. The test's own process is their name server, too.

use std::{
    collections::BTreeSet,
    fs,
    net::{Ipv4Addr, UdpSocket},
    path::Path,
    process::Command,
    sync::Arc,
    thread,
};

use anyhow::{Context as _, ensure};
use parking_lot::Mutex;
use periapt_tests::{
    Installation, OUTSIDE, RunningProcess, add_address_outside, busybox_root, in_own_network, skipped,
};
use serde_json::Value;

use super::{Outside, PORT, PUBLIC, REACHED};
use crate::{packets::until, site::on};

/// The port of name servers.
const QUESTIONS: u16 = 53;

/// Gives the processes of the test another `/etc/resolv.conf`, in its mount namespace. Where that is a link into `/run`,
/// it leads to nothing: the network has a `/run` of its own.
const RESOLVER: &str = r#"set -e
target=$(readlink -m /etc/resolv.conf)
case $target in
/run/*)
  mkdir -p "${target%/*}"
  : >"$target"
  ;;
esac
mount --bind "$0" /etc/resolv.conf"#;

/// A name server by which each name has the address of a host outside.
#[derive(Clone, Default)]
struct NameServer {
    asked: Arc<Mutex<BTreeSet<String>>>,
}

impl NameServer {
    /// Starts it, and has all processes of the test ask it.
    fn start(&self, place: &Path) -> anyhow::Result<()> {
        let socket = UdpSocket::bind((OUTSIDE, QUESTIONS))?;
        let own = self.clone();
        thread::spawn(move || {
            let mut message = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut message) {
                let answer = message.get(..length).and_then(|question| own.answer(question));
                if let Some(answer) = answer {
                    // A client that hears nothing asks again.
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        let file = place.join("resolv.conf");
        fs::write(&file, format!("nameserver {OUTSIDE}\n"))?;
        let done = Command::new("sh").args(["-c", RESOLVER]).arg(&file).output()?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// Returns the answer to a question.
    fn answer(&self, message: &[u8]) -> Option<Vec<u8>> {
        let (&[id, id_2, ..], rest) = message.split_first_chunk::<12>()?;
        let (mut labels, mut at) = (Vec::new(), 0);
        loop {
            let length = usize::from(*rest.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            labels.push(String::from_utf8_lossy(rest.get(at..at + length)?).into_owned());
            at += length;
        }
        self.asked.lock().insert(labels.join("."));
        let question = rest.get(..at + 4)?;
        let has_address = question.get(at..at + 2)? == [0, 1];
        let mut answer = vec![id, id_2, 0x85, 0x80, 0, 1, 0, u8::from(has_address), 0, 0, 0, 0];
        answer.extend(question);
        if has_address {
            // For the name of the question: an address, which nobody keeps.
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
            answer.extend(PUBLIC.parse::<Ipv4Addr>().ok()?.octets());
        }
        Some(answer)
    }

    fn was_asked(&self, name: &str) -> bool {
        self.asked.lock().contains(name)
    }
}

/// Starts a controller, an agent and a unit with a container. Returns the agent; none where no container can be made.
fn started(periapt: &Installation, root: &Path, log: &Path) -> anyhow::Result<Option<RunningProcess>> {
    let root = root.to_str().context("a path")?;
    periapt.ok(["image", "pack", root, "--output", "image.tar"])?;
    periapt.ok(["bootstrap", "local", "--listen", "10.77.0.1:17070", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    let mut agent = periapt.agent_without_rights("north", log, ["--workloads", "namespaces"])?;
    ensure!(agent.first_line()? == "ready north", "the agent has not registered");
    let logged = fs::read_to_string(log)?;
    if let Some(reason) = logged.lines().find(|line| line.contains("this host makes no containers")) {
        skipped(reason)?;
        return Ok(None);
    }
    periapt.deploy("probe", ["--resource", "image=image.tar"])?;
    let runs = ["exec", "--unit", "probe/0", "--container", "web", "--", "true"];
    until("the container runs", || Ok(periapt.run(runs)?.code == Some(0)))?;
    Ok(Some(agent))
}

/// Returns true if the container gets the page of a host.
fn reaches(periapt: &Installation, host: &str) -> anyhow::Result<bool> {
    let script = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 60 nc {host} {PORT}");
    let words = ["exec", "--unit", "probe/0", "--container", "web", "--format", "json", "--", "sh", "-c"];
    let done = periapt.run(words.into_iter().chain([script.as_str()]))?;
    let tasks: Value = serde_json::from_str(&done.stdout).with_context(|| format!("{done:?}"))?;
    let task = tasks.as_object().and_then(|tasks| tasks.values().next());
    let results = &task.with_context(|| format!("{done:?}"))?["results"];
    // It has run, whatever came of it.
    ensure!(results["return-code"].is_i64(), "{tasks}");
    Ok(results["stdout"].as_str().is_some_and(|page| page.contains(REACHED)))
}

/// Has a container call hosts outside before, while and after one of them is granted.
fn call(periapt: &Installation, outside: &Outside, names: &NameServer) -> anyhow::Result<()> {
    let (granted, other) = ("pages.example.com", "others.example.com");
    ensure!(!reaches(periapt, granted)?, "nothing is granted");
    ensure!(!names.was_asked(granted) && outside.connections() == 0);

    periapt.ok(["config", "probe", &format!("workload-egress={granted}:{PORT}")])?;
    until("the container reaches the granted name", || reaches(periapt, granted))?;
    ensure!(names.was_asked(granted));
    let before = outside.connections();
    // Both mean the address of the granted name.
    for host in [other, PUBLIC] {
        ensure!(!reaches(periapt, host)?, "{host} is not granted");
    }
    ensure!(!names.was_asked(other) && outside.connections() == before);

    periapt.ok(["config", "probe", "--reset", "workload-egress"])?;
    until("the name is granted no longer", || Ok(!reaches(periapt, granted)?))?;
    let before = outside.connections();
    ensure!(!reaches(periapt, granted)? && outside.connections() == before);
    Ok(())
}

#[test]
fn a_container_reaches_a_host_outside_by_its_name_for_as_long_as_that_is_granted() -> anyhow::Result<()> {
    // From the test's own network, no busybox can be downloaded.
    let root = tempfile::tempdir()?;
    if let Err(reason) = busybox_root(root.path())? {
        return skipped(&reason);
    }
    let name =
        "egress::containers::a_container_reaches_a_host_outside_by_its_name_for_as_long_as_that_is_granted";
    in_own_network(name, &["north"], || {
        let (outside, names) = (Outside::default(), NameServer::default());
        add_address_outside("north", PUBLIC)?;
        outside.start(PUBLIC)?;
        let periapt = on("north")?;
        names.start(periapt.path())?;
        let log = periapt.path().join("agent.log");
        let logged = || fs::read_to_string(&log).unwrap_or_default();
        let Some(agent) = started(&periapt, root.path(), &log).with_context(logged)? else { return Ok(()) };
        call(&periapt, &outside, &names).with_context(logged)?;
        ensure!(agent.end("TERM")? == Some(0));
        Ok(())
    })
}
