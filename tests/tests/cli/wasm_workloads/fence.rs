//! The fence around the process of a pod with WebAssembly workloads.

use std::{
    fs,
    io::Read as _,
    net::Shutdown,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{fs::PermissionsExt as _, net::UnixStream},
    },
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, ensure};
use periapt_helper::{DescriptorLines, send_beside};
use periapt_host_api::pod::{MAX_REPORT_BYTES, OPENED, PodOrder, PodReport, PodStream};
use periapt_tests::binary;
use serde_json::json;
use tempfile::TempDir;

use super::{PATIENCE, Pod, children, component, exchange, kill, lives, told, until, upload};
use crate::text;

/// The port of the server, which is on no network.
const PORT: u16 = 8_080;

/// A pod as an agent starts it.
struct KeptPod {
    process: Child,
    keeper: UnixStream,
    _directory: TempDir,
}

impl KeptPod {
    fn start() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let at = |name: &str| directory.path().join(name);
        fs::write(at("web.wasm"), component("hostile_workload")?)?;
        let (keeper, socket) = UnixStream::pair()?;
        keeper.set_read_timeout(Some(PATIENCE))?;
        let process = Command::new(binary()?)
            .args(["agent", "pod", "--driver", "wasm", "--keeper", "--private-ports"])
            .arg("--root")
            .arg(at("root"))
            .args(["--workload".to_owned(), format!("web={}:{PORT}", at("web.wasm").display())])
            .stdin(Stdio::from(OwnedFd::from(socket)))
            .stdout(Stdio::null())
            .spawn()?;
        let pod = Self { process, keeper, _directory: directory };
        let first = told(&pod.keeper, &mut DescriptorLines::new(MAX_REPORT_BYTES))?;
        ensure!(matches!(first, PodReport::Ready { .. }), "{first:?}");
        Ok(pod)
    }

    /// Asks the server, by a stream of the keeper's.
    fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        let (mut ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(PATIENCE))?;
        let order = PodOrder::Open(PodStream::Port(PORT)).to_bytes();
        ensure!(send_beside(&self.keeper, &order, theirs.as_fd())? == order.len());
        drop(theirs);
        let mut word = [0];
        ours.read_exact(&mut word)?;
        ensure!(word == [OPENED], "nobody listens");
        exchange(ours, "GET", path, b"")
    }

    fn answers(&self) -> bool {
        self.get("/").is_ok_and(|(status, text)| status == 200 && text.contains("hello"))
    }
}

impl Drop for KeptPod {
    fn drop(&mut self) {
        let _ = self.keeper.shutdown(Shutdown::Both);
        if until("the pod ends", || !lives(self.process.id())).is_err() {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

/// Fails if a thread of a process has a right, or lacks a part of the fence that its status shows.
fn ensure_fenced(pid: u32) -> anyhow::Result<()> {
    let none = "0000000000000000";
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that has ended meanwhile has no status.
        let Ok(status) = fs::read_to_string(thread?.path().join("status")) else { continue };
        for (name, expected) in [("CapEff", none), ("CapPrm", none), ("NoNewPrivs", "1"), ("Seccomp", "2")] {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            ensure!(line.with_context(|| format!("no {name}"))?.trim() == expected, "{name}: {status}");
        }
    }
    Ok(())
}

fn mode(path: &Path) -> anyhow::Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o7777)
}

#[test]
fn a_pod_gives_its_rights_up_and_its_server_answers_and_comes_back() -> anyhow::Result<()> {
    let pod = KeptPod::start()?;
    ensure_fenced(pod.process.id())?;
    until("it answers", || pod.answers())?;
    ensure_fenced(pod.process.id())?;
    let [first] = children(pod.process.id())[..] else { anyhow::bail!("not one workload") };
    ensure_fenced(first)?;
    // Many clients at a time, each by a connection that the pod hands over.
    std::thread::scope(|threads| {
        let clients: Vec<_> = (0..20).map(|_| threads.spawn(|| pod.get("/"))).collect();
        clients.into_iter().try_for_each(|client| {
            let (status, _) = client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            ensure!(status == 200, "{status}");
            Ok(())
        })
    })?;
    let (_, escapes) = pod.get("/escapes")?;
    ensure!(
        !escapes.contains("read") && !escapes.contains("wrote") && !escapes.contains("made"),
        "{escapes}"
    );
    kill(first, "KILL")?;
    until("it answers again", || pod.answers())?;
    ensure!(!lives(first) && children(pod.process.id()) != [first]);
    Ok(())
}

#[test]
fn files_of_a_fenced_pod_have_any_mode_and_its_own_owner() -> anyhow::Result<()> {
    let pod = Pod::start()?;
    ensure_fenced(pod.process.id())?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let own = json!({ "path": "/own", "permissions": "606", "user-id": user, "group-id": group });
    for (file, expected) in [
        (json!({ "path": "/usual" }), 0o644),
        (json!({ "path": "/open", "permissions": "666" }), 0o666),
        (own, 0o606),
    ] {
        let answer = upload(&pod, &file, "content")?;
        ensure!(!answer.contains("error"), "{file}: {answer}");
        let path = text(&file, "/path")?;
        ensure!(mode(&pod.at("root").join(path.trim_start_matches('/')))? == expected, "{file}");
    }
    let other = json!({ "path": "/other", "user-id": user + 1, "group-id": group });
    let answer = upload(&pod, &other, "content")?;
    ensure!(answer.contains("permission-denied") && answer.contains("operation not permitted"), "{answer}");
    ensure!(!pod.at("root/other").exists());
    let directory = json!({ "path": "/directory", "permissions": "777", "user-id": user, "group-id": group });
    let made = pod.ask("POST", "/v1/files", &json!({ "action": "make-dirs", "dirs": [directory] }))?;
    ensure!(made.pointer("/result/0/error").is_none(), "{made}");
    ensure!(mode(&pod.at("root/directory"))? == 0o777);
    Ok(())
}
