//! The installation under measurement, and the servers in it.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, InstallationGuard, RunningProcess, packed_parts};

use crate::load::Place;

/// The longest wait for a page.
const WITHIN: Duration = Duration::from_secs(120);

/// The port of the page in WebAssembly, as its charm declares.
const PAGE: u16 = 8080;

/// The port of nginx.
const NGINX: u16 = 8081;

/// A controller, and an agent that runs workloads.
pub(crate) struct Site {
    // Before the installation, which ends its own processes.
    _guard: InstallationGuard,
    agent: RunningProcess,
    periapt: Installation,
    has_nginx: bool,
}

/// The program of wasmtime, which serves a component.
pub(crate) struct Wasmtime {
    child: Child,
    address: SocketAddr,
}

impl Wasmtime {
    pub(crate) fn place(&self) -> Place {
        Place { address: self.address, inside: None }
    }
}

impl Drop for Wasmtime {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Site {
    /// Starts a controller and an agent in a new directory below `parent`.
    pub(crate) fn below(parent: &Path) -> anyhow::Result<Self> {
        let periapt = Installation::below(parent)?;
        let guard = InstallationGuard::of(&periapt)?;
        periapt.ok(["bootstrap", "local", "--no-agent"])?;
        periapt.ok(["add-model", "bench"])?;
        let log = periapt.path().join("agent.log");
        let options = ["--workloads", "wasm,namespaces", "--listen-address", "127.0.0.1"];
        let mut agent = periapt.agent_logged("worker", &log, options)?;
        ensure!(agent.first_line()? == "ready worker", "{}", fs::read_to_string(&log)?);
        Ok(Self { _guard: guard, agent, periapt, has_nginx: false })
    }

    /// Returns the directory of the installation.
    pub(crate) fn path(&self) -> &Path {
        self.periapt.path()
    }

    /// Deploys the page in WebAssembly, and returns the time until it is served.
    pub(crate) fn deploy_page(&self) -> anyhow::Result<Duration> {
        let parts = [("web.wasm", "web-page-server")];
        let archive = packed_parts("web-page", "first", self.periapt.path(), &parts, str::to_owned)?;
        self.deployed("web-page", PAGE, &[archive.to_str().context("a path")?])
    }

    /// Deploys nginx with an image, and returns the time until its page is served.
    pub(crate) fn deploy_nginx(&mut self, image: &Path) -> anyhow::Result<Duration> {
        let archive = guests()?.join("python-nginx.charm");
        let (archive, image) = (archive.to_str().context("a path")?, image.to_str().context("a path")?);
        let (resource, port) = (format!("nginx-image={image}"), format!("port={NGINX}"));
        self.has_nginx = true;
        self.deployed("nginx", NGINX, &[archive, "nginx", "--resource", &resource, "--config", &port])
    }

    fn deployed(&self, application: &str, port: u16, words: &[&str]) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.periapt.ok([&["deploy"], words].concat())?;
        self.periapt.ok(["expose", application])?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        while !serves(address) {
            ensure!(began.elapsed() < WITHIN, "{application} serves no page\n{}", self.periapt.logs());
            sleep(Duration::from_millis(10));
        }
        Ok(began.elapsed())
    }

    /// Returns the page in WebAssembly.
    #[expect(clippy::unused_self, reason = "a server of this site")]
    pub(crate) fn page(&self) -> Place {
        Place { address: (Ipv4Addr::LOCALHOST, PAGE).into(), inside: None }
    }

    /// Returns nginx by the agent, and in the network of its container.
    pub(crate) fn nginx(&self) -> anyhow::Result<Option<(Place, Place)>> {
        if !self.has_nginx {
            return Ok(None);
        }
        let address = (Ipv4Addr::LOCALHOST, NGINX).into();
        let found = self.processes()?.into_iter().find(|(_, command)| command.starts_with("nginx: worker"));
        let (process, _) = found.context("nginx runs")?;
        Ok(Some((Place { address, inside: None }, Place { address, inside: Some(process) })))
    }

    /// Lets wasmtime's own program serve the component of the page.
    pub(crate) fn serve_by_wasmtime(&self, program: &Path) -> anyhow::Result<Wasmtime> {
        let component = self.component()?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--addr", &address.to_string(), "-Scli", "--env", "TITLE=A page"])
            .arg(component);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let served = Wasmtime { child: child.with_context(|| format!("{}", program.display()))?, address };
        let began = Instant::now();
        while !serves(address) {
            ensure!(began.elapsed() < WITHIN, "wasmtime serves no page");
            sleep(Duration::from_millis(50));
        }
        Ok(served)
    }

    /// Returns the file of the page's component that a pod runs.
    fn component(&self) -> anyhow::Result<PathBuf> {
        let pod = self.processes()?.into_iter().find_map(|(_, command)| {
            let (_, rest) = command.split_once("--workload web=")?;
            rest.rsplit_once(':').map(|(file, _)| PathBuf::from(file))
        });
        pod.context("a pod with a component runs")
    }

    /// Returns the processes below the agent, with their command lines.
    fn processes(&self) -> anyhow::Result<Vec<(u32, String)>> {
        let (mut found, mut left) = (Vec::new(), vec![self.agent.id()]);
        while let Some(process) = left.pop() {
            let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
            for thread in threads {
                let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
                left.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            }
            let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            found.push((process, String::from_utf8_lossy(&command).replace('\0', " ").trim().to_owned()));
        }
        Ok(found)
    }

    /// Makes units without anything to do, and returns the mean memory of each one's pod, with all that runs in it.
    pub(crate) fn idle(&self, units: usize) -> anyhow::Result<Vec<(&'static str, f64)>> {
        let mut kinds = vec![("WebAssembly, with its server", "web-page")];
        if self.has_nginx {
            kinds.push(("a container, with nginx", "nginx"));
        }
        let mut each = Vec::new();
        for (name, application) in kinds {
            self.periapt.wait_for(["model", "--timeout", "5m"])?;
            let before = self.memory_of_pods()?;
            self.periapt.ok(["add-unit", application, "-n", &units.to_string()])?;
            self.periapt.wait_for(["model", "--timeout", "5m"])?;
            sleep(Duration::from_secs(5));
            each.push((name, (self.memory_of_pods()? - before) / units as f64));
        }
        Ok(each)
    }

    /// Returns the memory of all processes below the agent but its runners: pods and their guards, the networks of units, and
    /// workloads. Each page that is shared counts by its share; in bytes.
    fn memory_of_pods(&self) -> anyhow::Result<f64> {
        let mut bytes = 0.0;
        for (process, command) in self.processes()? {
            if command.contains("agent run") || command.contains("agent runner") {
                continue;
            }
            let shares = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
            let kib = shares.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB"));
            bytes += kib.and_then(|kib| kib.parse::<f64>().ok()).unwrap_or_default() * 1024.0;
        }
        Ok(bytes)
    }
}

/// Returns the directory of charms that were packed before.
fn guests() -> anyhow::Result<PathBuf> {
    Ok(std::env::var_os("PERIAPT_GUESTS").context("PERIAPT_GUESTS")?.into())
}

fn serves(address: SocketAddr) -> bool {
    let asked = || {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.starts_with("HTTP/1.1 200"))
    };
    asked().unwrap_or_default()
}
