//! Pods with the driver `wasm`: WebAssembly workloads as processes of the binary, without a controller.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use periapt_helper::{DescriptorLines, WORKLOAD_VARIABLE, WorkloadKind, WorkloadLimits, WorkloadOrder};
use periapt_host_api::pod::{DialOrder, MAX_REPORT_BYTES, OPENED, PodReport, REFUSED};
use periapt_tests::{binary, free_port, module};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::text;

mod fence;

/// The longest wait for a condition.
const PATIENCE: Duration = Duration::from_secs(60);

struct Pod {
    process: Child,
    directory: TempDir,
    port: u16,
}

/// Returns the component of a guest that `tools/guest` built.
fn component(name: &str) -> anyhow::Result<Vec<u8>> {
    Ok(periapt_archive::adapt_workload(&fs::read(module(name)?)?)?)
}

impl Pod {
    fn start() -> anyhow::Result<Self> {
        Self::start_by(None)
    }

    /// Starts the pod with the socket of a keeper.
    fn start_by(keeper: Option<OwnedFd>) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let at = |name: &str| directory.path().join(name);
        fs::write(at("web.wasm"), component("hostile_workload")?)?;
        fs::write(at("charm.wasm"), component("mysql")?)?;
        let port = free_port()?;
        let web = at("web.wasm").display().to_string();
        let (keeper, stdin) = match keeper {
            Some(socket) => (Some("--keeper"), Stdio::from(socket)),
            None => (None, Stdio::null()),
        };
        let process = Command::new(binary()?)
            .args(["agent", "pod", "--driver", "wasm"])
            .args(keeper)
            .stdin(stdin)
            .args(["--socket".into(), at("socket"), "--root".into(), at("root")])
            .args(["--workload".to_owned(), format!("web={web}:{port}")])
            .args(["--workload".to_owned(), format!("job={web}")])
            .args(["--workload".to_owned(), format!("charm={}", at("charm.wasm").display())])
            .env("SECRET_OF_THE_AGENT", "x")
            .stdout(Stdio::null())
            .spawn()?;
        let pod = Self { process, directory, port };
        until("the pod listens", || UnixStream::connect(pod.at("socket")).is_ok())?;
        Ok(pod)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Sends a request to the pod, and returns the result.
    fn ask(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let stream = UnixStream::connect(self.at("socket"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let answer = exchange(stream, method, path, body.to_string().as_bytes())?;
        serde_json::from_str(&answer.1).with_context(|| answer.1.clone())
    }

    /// Replaces the service of the layer, and acts on it. Returns the change.
    fn service(&self, action: &str, layer: &str) -> anyhow::Result<Value> {
        let layer = format!("services: {{s: {{override: replace, {layer}}}}}");
        let body =
            json!({ "action": "add", "combine": true, "label": "l", "format": "yaml", "layer": layer });
        let added = self.ask("POST", "/v1/layers", &body)?;
        ensure!(added.pointer("/status-code") == Some(&json!(200)), "{added}");
        self.act(action)
    }

    fn act(&self, action: &str) -> anyhow::Result<Value> {
        let begun = self.ask("POST", "/v1/services", &json!({ "action": action, "services": ["s"] }))?;
        let wait = format!("/v1/changes/{}/wait?timeout=60s", text(&begun, "/change")?);
        let ended = self.ask("GET", &wait, &json!({}))?;
        ended.pointer("/result").cloned().with_context(|| ended.to_string())
    }

    /// Starts a service that must run.
    fn runs(&self, layer: &str) -> anyhow::Result<()> {
        let change = self.service("restart", layer)?;
        ensure!(is_done(&change), "{change}");
        Ok(())
    }

    /// Asks the workload.
    fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        exchange(stream, "GET", path, b"")
    }

    fn log(&self) -> anyhow::Result<String> {
        let stream = UnixStream::connect(self.at("socket"))?;
        Ok(exchange(stream, "GET", "/v1/logs?n=-1", b"")?.1)
    }

    /// Returns the processes of workloads.
    fn workloads(&self) -> Vec<u32> {
        children(self.process.id())
    }

    fn workload(&self) -> anyhow::Result<u32> {
        match self.workloads().as_slice() {
            [one] => Ok(*one),
            all => bail!("the pod has not one process but {all:?}"),
        }
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = kill(self.process.id(), "TERM");
        let ends = until("the pod ends", || !lives(self.process.id()));
        if ends.is_err() {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

/// Returns the processes that a process has started, and that run.
fn children(parent: u32) -> Vec<u32> {
    let parent = format!("PPid:\t{parent}\n");
    let is_own = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.contains(&parent) && !status.contains("State:\tZ")
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|it| it.file_name().to_str()?.parse().ok()).filter(is_own).collect()
}

fn is_done(change: &Value) -> bool {
    text(change, "/status").is_ok_and(|status| status == "Done")
}

/// Sends a request, and returns the status and the body, whose chunks stay as they are.
fn exchange(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    body: &[u8],
) -> anyhow::Result<(u16, String)> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: web\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8(answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").with_context(|| format!("no response: {answer:?}"))?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
    Ok((status, body.to_owned()))
}

fn kill(pid: u32, signal: &str) -> anyhow::Result<()> {
    let done =
        Command::new("kill").args([format!("-{signal}"), pid.to_string()]).stderr(Stdio::null()).status()?;
    ensure!(done.success(), "kill -{signal} {pid}");
    Ok(())
}

fn lives(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| !status.contains("State:\tZ"))
}

fn until(what: &str, mut condition: impl FnMut() -> bool) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        ensure!(Instant::now() < end, "in vain: {what}");
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns the resident memory of a process, in mebibytes.
fn resident(pid: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1_024)
}

#[test]
fn a_server_answers_and_comes_back_when_it_is_killed() -> anyhow::Result<()> {
    let pod = Pod::start()?;
    fs::create_dir_all(pod.at("root/etc"))?;
    fs::write(pod.at("root/etc/app.conf"), "pushed")?;
    fs::write(pod.at("secret"), "the agent's")?;
    std::os::unix::fs::symlink("../../secret", pod.at("root/etc/link"))?;
    pod.runs("command: web --flag, environment: {LD_PRELOAD: /none.so}, backoff-delay: 50ms")?;
    let answers = || pod.get("/").is_ok_and(|(status, text)| status == 200 && text.contains("hello"));
    until("it answers", answers)?;
    // A workload sees what its layer says, and nothing of the agent; the loader of its process sees neither.
    let (_, seen) = pod.get("/surroundings")?;
    ensure!(seen.contains("web\n--flag\nLD_PRELOAD=/none.so\n") && !seen.contains("SECRET"), "{seen}");
    let environment = fs::read(format!("/proc/{}/environ", pod.workload()?))?;
    ensure!(environment.starts_with(b"PERIAPT_WORKLOAD=") && environment.ends_with(b"}\0"));
    ensure!(pod.get("/read?/etc/app.conf")?.1.contains("pushed"));
    ensure!(pod.get("/read?/etc/link")?.0 == 404, "a link leads out of the root");
    let (_, escapes) = pod.get("/escapes")?;
    ensure!(
        !escapes.contains("read") && !escapes.contains("wrote") && !escapes.contains("made"),
        "{escapes}"
    );
    let first = pod.workload()?;
    kill(first, "KILL")?;
    until("it answers again", answers)?;
    ensure!(pod.workload()? != first && !lives(first));
    ensure!(is_done(&pod.act("stop")?));
    ensure!(pod.get("/").is_err() && pod.workloads().is_empty(), "a server that was stopped is there");
    Ok(())
}

/// Waits for the next line of a pod to its keeper.
fn told(keeper: &UnixStream, lines: &mut DescriptorLines) -> anyhow::Result<PodReport> {
    loop {
        if let Some(line) = lines.line()? {
            return Ok(serde_json::from_slice(&line)?);
        }
        ensure!(lines.receive(keeper)? > 0, "the pod has ended");
    }
}

#[test]
fn a_workload_calls_other_units_by_its_pods_keeper_alone() -> anyhow::Result<()> {
    let (keeper, socket) = UnixStream::pair()?;
    keeper.set_read_timeout(Some(PATIENCE))?;
    let pod = Pod::start_by(Some(socket.into()))?;
    let mut lines = DescriptorLines::new(MAX_REPORT_BYTES);
    ensure!(matches!(told(&keeper, &mut lines)?, PodReport::Ready { .. }));
    // A pod of a keeper starts its workloads by itself.
    until("it answers", || pod.get("/").is_ok())?;
    let others = TcpListener::bind("127.0.0.1:0")?;
    let address = others.local_addr()?.to_string();
    for (target, word, expected) in [
        ("db-0:8080", Some(OPENED), "200 rows"),
        ("db:80", Some(REFUSED), "HttpRequestDenied"),
        ("db:80", None, "failed: "),
        // It has no other way to a server that is there.
        (&*address, Some(REFUSED), "HttpRequestDenied"),
        ("db-1:9", Some(OPENED), "200 rows"),
    ] {
        let answered = std::thread::scope(|threads| {
            let asked = threads.spawn(|| pod.get(&format!("/ask?{target}")));
            // The other workloads of this pod begin, too, and end.
            let report = loop {
                match told(&keeper, &mut lines)? {
                    PodReport::ServiceEnded { .. } | PodReport::State(_) => {}
                    report => break report,
                }
            };
            let (host, port) = target.rsplit_once(':').context("a port")?;
            ensure!(
                report == PodReport::Dial(DialOrder { host: host.to_owned(), port: port.parse()? }),
                "{report:?}"
            );
            let mut stream = UnixStream::from(lines.descriptor().context("no stream")?);
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(word.as_slice())?;
            if word == Some(OPENED) {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte)?;
                    head.extend(byte);
                }
                ensure!(head.starts_with(b"GET /asked HTTP/1.1\r\n"), "{}", String::from_utf8_lossy(&head));
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nrows")?;
            }
            drop(stream);
            asked.join().map_err(|_| anyhow::anyhow!("the client panicked"))?
        })?;
        ensure!(answered.1.contains(expected), "{target}: {answered:?}");
    }
    others.set_nonblocking(true)?;
    ensure!(others.accept().is_err(), "the workload has reached a server of the host");
    Ok(())
}

#[test]
fn a_hostile_server_harms_itself_alone() -> anyhow::Result<()> {
    let pod = Pod::start()?;
    pod.runs("command: web")?;
    until("it answers", || pod.get("/").is_ok())?;
    // Clients that read nothing of an answer without end, and clients that send nothing.
    let mut silent = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(("127.0.0.1", pod.port))?;
        stream.write_all(b"GET /for-ever HTTP/1.1\r\nHost: web\r\n\r\n")?;
        silent.push(stream);
        silent.push(TcpStream::connect(("127.0.0.1", pod.port))?);
    }
    for path in ["/memory", "/abort", "/recurse", "/fields", "/silent", "/memory"] {
        pod.get(path)?;
        ensure!(pod.get("/")?.1.contains("hello"), "{path}");
    }
    for bad in ["GARBAGE\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: \u{e9}\r\n\r\n"] {
        let mut stream = TcpStream::connect(("127.0.0.1", pod.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(bad.as_bytes())?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        ensure!(&answer == b"HTTP/1.1 400", "{bad:?}: {}", String::from_utf8_lossy(&answer));
    }
    let workload = pod.workload()?;
    ensure!(resident(workload)? < 1_024, "{} MiB", resident(workload)?);
    drop(silent);
    ensure!(pod.get("/")?.1.contains("hello"));
    let log = pod.log()?;
    ensure!(log.contains("GET /abort: it aborted") && log.contains("GET /recurse: stack overflow"), "{log}");
    ensure!(pod.workload()? == workload, "the process ended for what a guest did");
    Ok(())
}

#[test]
fn a_command_runs_until_it_ends_or_is_stopped() -> anyhow::Result<()> {
    let pod = Pod::start()?;
    for mode in ["sleep", "compute", "flood"] {
        // SIGTERM ends it, long before it would be killed.
        pod.runs(&format!("command: job {mode}, kill-delay: 10m"))?;
        let workload = pod.workload()?;
        ensure!(is_done(&pod.act("stop")?), "{mode}");
        ensure!(!lives(workload), "{mode}");
    }
    Ok(())
}

#[test]
fn the_process_of_a_command_has_its_exit_code_and_its_output() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("job.wasm");
    fs::write(&file, component("hostile_workload")?)?;
    for (mode, code, stdout, stderr) in [
        ("surroundings", 0, "job\nsurroundings\nNAME=value\n", ""),
        ("cat", 0, "typed", ""),
        ("exit", 1, "", ""),
        ("abort", 134, "", "it aborted"),
        ("none", 1, "", ""),
    ] {
        let order = WorkloadOrder {
            component: file.clone(),
            kind: WorkloadKind::Command,
            arguments: vec!["job".to_owned(), mode.to_owned()],
            environment: vec![("NAME".to_owned(), "value".to_owned())],
            directories: Vec::new(),
            limits: WorkloadLimits::default(),
            calls: None,
        };
        let mut process = Command::new(binary()?)
            .args(["agent", "workload", "job"])
            .env(WORKLOAD_VARIABLE, order.to_text().context("an order")?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // A command that reads nothing may have ended before.
        let _ = process.stdin.take().context("its input")?.write_all(b"typed");
        let done = process.wait_with_output()?;
        let (out, err) = (String::from_utf8(done.stdout)?, String::from_utf8(done.stderr)?);
        ensure!(done.status.code() == Some(code), "{mode}: {:?} {err}", done.status);
        ensure!(out.trim_end() == stdout.trim_end() && err.contains(stderr), "{mode}: {out:?} {err:?}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_run_is_one_clear_error() -> anyhow::Result<()> {
    let pod = Pod::start()?;
    let other = TcpListener::bind(("127.0.0.1", pod.port))?;
    for (layer, error) in [
        ("command: nothing", "there is no workload \"nothing\"; the charm declares: charm, job, web"),
        ("command: web", &format!("port {} is taken", pod.port)),
        ("command: job, user: root", "has no users or groups"),
        ("command: job, working-dir: /srv", "has no working directory but /"),
    ] {
        let change = pod.service("start", layer)?;
        ensure!(text(&change, "/err")?.contains(error), "{layer}: {change}");
    }
    pod.service("start", "command: charm")?;
    let unfit = "the component is not what the charm declares: it does not export wasi:cli/run; its exports: \
                 periapt:charm/handler";
    until("the log has the reason", || pod.log().is_ok_and(|log| log.contains(unfit)))?;
    drop(other);
    fs::remove_file(pod.at("web.wasm"))?;
    let change = pod.service("restart", "command: web")?;
    ensure!(text(&change, "/err")?.contains("there is no component"), "{change}");
    Ok(())
}

#[test]
fn files_of_clients_stay_below_the_root_and_within_their_bounds() -> anyhow::Result<()> {
    let pod = Pod::start()?;
    let make = |path: &str| {
        let order = json!({ "action": "make-dirs", "dirs": [{ "path": path, "make-parents": true }] });
        pod.ask("POST", "/v1/files", &order)
    };
    let made = make("/../../a/../b/./c")?;
    ensure!(made.pointer("/result/0/error").is_none(), "{made}");
    ensure!(pod.at("root/b/c").is_dir() && !pod.at("b").exists() && !pod.at("a").exists());
    let listed = pod.ask("GET", "/v1/files?action=list&path=/..", &json!({}))?;
    ensure!(listed.pointer("/result/0/path") == Some(&json!("/../b")), "{listed}");
    let read = pod.ask("GET", "/v1/files?action=read&path=/../web.wasm", &json!({}));
    ensure!(!read.is_ok_and(|read| read.to_string().contains("asm")), "a file of the host was read");
    // As a sparse file it takes no room on this disk.
    fs::File::create(pod.at("root/large"))?.set_len(256 << 20)?;
    let full = push(&pod, "/more", "x")?;
    ensure!(full.contains("the files of a workload have at most 256 MiB together"), "{full}");
    ensure!(!pod.at("root/more").exists());
    fs::remove_file(pod.at("root/large"))?;
    ensure!(!push(&pod, "/more", "x")?.contains("error") && pod.at("root/more").exists());
    for number in 0..9 {
        let made = make(&format!("/{number}/{}", "d/".repeat(1_000)))?;
        ensure!(made.pointer("/result/0/error").is_none(), "{made}");
    }
    make(&format!("/9/{}", "d/".repeat(980)))?;
    let full = make(&format!("/{}", "e/".repeat(100)))?.to_string();
    ensure!(full.contains("a workload has at most 10000 files"), "{full}");
    Ok(())
}

/// Uploads a file, and returns the answer.
fn push(pod: &Pod, path: &str, content: &str) -> anyhow::Result<String> {
    upload(pod, &json!({ "path": path }), content)
}

/// Uploads a file with its settings, and returns the answer.
fn upload(pod: &Pod, file: &Value, content: &str) -> anyhow::Result<String> {
    let path = text(file, "/path")?;
    let order = json!({ "action": "write", "files": [file] });
    let part =
        |head: &str, body: &str| format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{body}\r\n");
    let body = [
        part("name=\"request\"", &order.to_string()),
        part(&format!("name=\"files\"; filename=\"{path}\""), content),
        "--b--\r\n".to_owned(),
    ]
    .concat();
    let mut stream = UnixStream::connect(pod.at("socket"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST /v1/files HTTP/1.1\r\nHost: web\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=b\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn workloads_end_with_their_pod_however_it_ends() -> anyhow::Result<()> {
    let mut pod = Pod::start()?;
    pod.runs("command: web")?;
    let workload = pod.workload()?;
    kill(pod.process.id(), "KILL")?;
    pod.process.wait()?;
    until("the workload ends", || !lives(workload))?;
    Ok(())
}

#[test]
fn the_process_of_a_workload_needs_an_order() -> anyhow::Result<()> {
    let done = Command::new(binary()?).args(["agent", "workload", "web"]).stdin(Stdio::null()).output()?;
    let told = String::from_utf8(done.stderr)?;
    ensure!(done.status.code() == Some(1) && told.contains("is started by a pod, with an order"), "{told}");
    let missing = Command::new(binary()?)
        .args(["agent", "pod", "--driver", "wasm", "--socket"])
        .arg(Path::new("/nonexistent/socket"))
        .output()?;
    ensure!(missing.status.code() == Some(2), "{missing:?}");
    Ok(())
}
