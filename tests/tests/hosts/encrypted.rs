//! Log targets and checks that speak `https`, of a container and of a WebAssembly workload behind its fence. Their server is
//! the test's own process, a host outside.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::Arc,
    thread,
};

use anyhow::{Context as _, ensure};
use parking_lot::Mutex;
use periapt_host_api::Timestamp;
use periapt_tests::{
    Installation, OUTSIDE, RunningProcess, busybox_root, in_own_network, packed_parts, skipped,
};
use periapt_transport::{Authority, ServerCertificate, server_config};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::{packets::until, site::on};

/// The port of the server.
const PORT: u16 = 8443;

/// The port of the WebAssembly workload.
const OWN_PORT: u16 = 8080;

/// The files of certificates that pods look for.
const CERTIFICATES: &str = "/etc/ssl/cert.pem";

/// The most bytes of a request's body.
const MOST: usize = 1 << 20;

/// A server that speaks TLS, and answers all requests.
#[derive(Clone, Default)]
struct Server {
    /// The bodies that were posted.
    posted: Arc<Mutex<Vec<String>>>,
    /// The number of other requests.
    asked: Arc<Mutex<usize>>,
}

impl Server {
    /// Starts the server, with a certificate of an authority.
    fn start(&self, authority: &Authority) -> anyhow::Result<()> {
        let (certificate, key) = authority.issue_server(&[OUTSIDE.parse()?], Timestamp::now())?;
        let shown = ServerCertificate::new(&certificate, &key)?;
        let config = server_config(&shown, authority.certificate())?;
        let listener = TcpListener::bind((OUTSIDE, PORT))?;
        let own = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (own, config) = (own.clone(), Arc::clone(&config));
                // A client that refuses the certificate sends nothing.
                thread::spawn(move || own.answer(stream, config));
            }
        });
        Ok(())
    }

    /// Answers one request.
    fn answer(&self, stream: TcpStream, config: Arc<ServerConfig>) -> anyhow::Result<()> {
        let mut reader = BufReader::new(StreamOwned::new(ServerConnection::new(config)?, stream));
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line)? > 2 && head.len() < MOST {
            head.push_str(&line.to_lowercase());
            line.clear();
        }
        ensure!(!head.is_empty(), "no request");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(Ok(0), |length| length.trim().parse::<usize>())?;
        ensure!(length <= MOST, "a body of {length} bytes");
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        match head.starts_with("post ") {
            true => self.posted.lock().push(String::from_utf8(body)?),
            false => *self.asked.lock() += 1,
        }
        Ok(reader.into_inner().write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?)
    }

    fn was_told(&self, parts: &[&str]) -> bool {
        self.posted.lock().iter().any(|body| parts.iter().all(|part| body.contains(part)))
    }
}

/// A unit with a container `web` and a WebAssembly workload `server`.
struct Scene {
    periapt: Installation,
    agent: RunningProcess,
}

impl Scene {
    /// Starts a controller, an agent and the unit, which may reach the server. None where no container can be made.
    fn start(root: &Path, authority: &Authority) -> anyhow::Result<Option<Self>> {
        let periapt = on("north")?;
        let root = root.to_str().context("a path")?;
        periapt.ok(["image", "pack", root, "--output", "image.tar"])?;
        fs::write(periapt.path().join("authority.txt"), authority.certificate())?;
        periapt.ok(["bootstrap", "local", "--listen", "10.77.0.1:17070", "--no-agent"])?;
        periapt.ok(["add-model", "test"])?;
        let log = periapt.path().join("agent.log");
        let options = ["--workloads", "wasm,namespaces", "--egress", "granted"];
        let mut agent = periapt.agent_without_rights("north", &log, options)?;
        ensure!(agent.first_line()? == "ready north", "the agent has not registered");
        let scene = Self { periapt, agent };
        let logged = scene.log()?;
        if let Some(reason) = logged.lines().find(|line| line.contains("this host makes no containers")) {
            skipped(reason)?;
            return Ok(None);
        }
        let server =
            format!("x-periapt: {{workloads: {{server: {{component: server.wasm, http: {OWN_PORT}}}}}}}\n");
        let parts = [("server.wasm", "hostile-workload")];
        let both = |text: &str| format!("{text}{server}");
        let charm = packed_parts("probe", "encrypted", scene.periapt.path(), &parts, both)?;
        let charm = charm.to_str().context("a path")?;
        let resources = ["--resource", "image=image.tar", "--resource", "data=authority.txt"];
        scene.periapt.ok(["deploy", charm].into_iter().chain(resources))?;
        scene.periapt.ok(["model-config", &format!("workload-egress={OUTSIDE}:{PORT}")])?;
        for container in ["web", "server"] {
            scene.asks_until(&format!("{container} GET /v1/system-info"), "boot-id")?;
        }
        Ok(Some(scene))
    }

    fn log(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(self.periapt.path().join("agent.log"))?)
    }

    fn acts(&self, deed: &str) -> anyhow::Result<()> {
        self.periapt.ok(["config", "probe", &format!("script=act: {deed}")])?;
        self.periapt.ok(["run", "probe/0", "act"]).map(drop)
    }

    /// Lets the charm ask a workload, and returns what it logs of the answer.
    fn asks(&self, request: &str) -> anyhow::Result<String> {
        self.acts(&format!("ask {request}"))?;
        let log = self.periapt.ok(["debug-log", "--replay", "--no-tail", "--include", "probe/0"])?;
        let (_, answer) =
            log.rsplit_once(" ask ").with_context(|| format!("no answer to {request} in {log}"))?;
        Ok(answer.to_owned())
    }

    fn asks_until(&self, request: &str, expected: &str) -> anyhow::Result<()> {
        until(&format!("{request} gets {expected}"), || Ok(self.asks(request)?.contains(expected)))
    }

    fn add_layer(&self, container: &str, layer: &Value) -> anyhow::Result<()> {
        let layer = layer.to_string();
        let add = json!({"action": "add", "combine": true, "label": "log", "format": "yaml", "layer": layer});
        let answer = self.asks(&format!("{container} POST /v1/layers {add}"))?;
        ensure!(answer.contains(": 200 "), "{answer}");
        let answer = self.asks(&format!("{container} POST /v1/services {}", json!({"action": "replan"})))?;
        ensure!(answer.contains(": 202 "), "{answer}");
        Ok(())
    }

    /// Returns how system calls of the WebAssembly workload's pod are judged, as the kernel says it: 2 is by a filter.
    fn fence_of_pod(&self) -> anyhow::Result<String> {
        let parent = format!("PPid:\t{}", self.agent.id());
        for entry in fs::read_dir("/proc")?.flatten() {
            let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let status = read("status");
            if status.lines().any(|line| line == parent) && read("cmdline").contains("--private-ports") {
                let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
                return Ok(mode.context("no line of seccomp")?.trim().to_owned());
            }
        }
        anyhow::bail!("there is no pod of a WebAssembly workload")
    }
}

/// Returns a log target of all services.
fn target(container: &str) -> Value {
    json!({"log-targets": {"outside": {
        "override": "replace",
        "type": "loki",
        "location": format!("https://{OUTSIDE}:{PORT}/loki/api/v1/push"),
        "services": ["all"],
        "labels": {"of": container},
    }}})
}

/// The reason why nothing is sent before the charm has pushed the certificate of the authority.
const ABSENT: &str = "the workload's files have no certificates of authorities";

/// Waits until the agent's log has the reason for the target of a container so many times.
fn until_absent(scene: &Scene, times: usize) -> anyhow::Result<()> {
    until("a log target is not trusted", || Ok(scene.log()?.matches(ABSENT).count() >= times))
}

/// Lets a WebAssembly workload's lines go to the server.
fn fenced(scene: &Scene, server: &Server) -> anyhow::Result<()> {
    ensure!(scene.fence_of_pod()? == "2", "the pod has no filter of system calls");
    scene.add_layer("server", &target("server"))?;
    scene.asks_until(&format!("{OWN_PORT} GET /log"), "logged")?;
    until_absent(scene, 1)?;
    ensure!(!server.was_told(&["GET /log"]), "the server is not trusted yet");
    scene.acts(&format!("push server {CERTIFICATES} data"))?;
    until("the workload's lines are taken", || Ok(server.was_told(&["GET /log", "server"])))
}

/// Lets a container's lines go to the server, and checks it.
fn contained(scene: &Scene, server: &Server) -> anyhow::Result<()> {
    let mut layer = target("web");
    let says = "sh -c 'echo a container says so; exec sleep 1000'";
    let says = json!({"says": {"override": "replace", "command": says, "startup": "enabled"}});
    let url = format!("https://{OUTSIDE}:{PORT}/health");
    let check = json!({"override": "replace", "period": "1s", "threshold": 1, "http": {"url": url}});
    let parts = layer.as_object_mut().context("a layer is an object")?;
    parts.extend([("services".to_owned(), says), ("checks".to_owned(), json!({"outside": check}))]);
    let absent = scene.log()?.matches(ABSENT).count();
    scene.add_layer("web", &layer)?;
    scene.asks_until("web GET /v1/checks", r#""status":"down""#)?;
    until_absent(scene, absent + 1)?;
    ensure!(*server.asked.lock() == 0 && !server.was_told(&["a container"]), "it is not trusted yet");
    scene.acts(&format!("push web {CERTIFICATES} data"))?;
    until("the container's lines are taken", || Ok(server.was_told(&["a container says so", "web"])))?;
    scene.asks_until("web GET /v1/checks", r#""status":"up""#)?;
    ensure!(*server.asked.lock() > 0, "the check has asked the server");
    Ok(())
}

#[test]
fn https_trusts_what_charms_push_in_containers_and_behind_the_fence() -> anyhow::Result<()> {
    // From the test's own network, no busybox can be downloaded.
    let root = tempfile::tempdir()?;
    if let Err(reason) = busybox_root(root.path())? {
        return skipped(&reason);
    }
    let name = "encrypted::https_trusts_what_charms_push_in_containers_and_behind_the_fence";
    in_own_network(name, &["north"], || {
        let (authority, server) = (Authority::generate()?, Server::default());
        server.start(&authority)?;
        let Some(scene) = Scene::start(root.path(), &authority)? else { return Ok(()) };
        let told = fenced(&scene, &server).and_then(|()| contained(&scene, &server));
        told.with_context(|| scene.log().unwrap_or_default())?;
        ensure!(scene.agent.end("TERM")? == Some(0));
        Ok(())
    })
}
