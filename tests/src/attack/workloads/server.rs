//! A hostile server in WebAssembly: the guest `charms/hostile/workload`, whose deeds its clients choose.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};

use super::{
    super::row::{AttackRow, StoppedBy},
    ADDRESS, AttackedAgent, HONEST,
    clients::asked,
    connections::{MAX_CONNECTIONS, host_address, is_open},
    contains, figure, forget_peak, processes,
};
use crate::packed_parts;

mod answers;

use answers::{AnswerEnd, ENDS_WITHIN, Seen, at_once, connect, get, seen};

/// The server's port.
const SERVER: u16 = 8098;

/// The clients at a time of an attack that needs the processors.
const CLIENTS: usize = 8;

/// The connections that are to be held open.
const HELD: usize = 2_000;

/// The pause after which a peer that took nothing takes nothing more.
const DEAF: Duration = Duration::from_secs(2);

/// The most bytes of a request's body, and of a response's, as the agent bounds them.
const MAX_REQUEST: usize = 64 << 20;
const MAX_RESPONSE: usize = 1 << 30;

/// The most bytes of a body that may wait on the way to a server that reads none, with those of the system.
const MAX_WAITING: usize = 24 << 20;

/// The most bytes of an answer's head.
const MAX_HEAD: usize = 64 << 10;

/// The most memory of the server's process, in bytes: 512 MiB of all instances, and as much for code and connections.
const MAX_MEMORY: u64 = 1 << 30;

/// The answer of the hostile server to a call of its own.
const ANSWERED: &str = "404 no such mode";

/// The words of a guest whose call has left its process for nowhere. A server that was reached would leave others.
const REFUSALS: [&str; 3] = ["HttpRequestDenied", "HttpRequestUriInvalid", "refused: "];

/// The most mebibytes of one instance.
const MAX_INSTANCE: usize = 128;

/// An attack by a server in WebAssembly, and by clients that help it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAttack {
    /// Computes for ever in each request.
    Compute,
    /// Takes memory without end in each request.
    Memory,
    /// Never reads the body of a request.
    DeafServer,
    /// Answers for ever, and most clients read none of it.
    EndlessAnswer,
    /// Keeps thousands of requests.
    HeldRequests,
    /// Has headers without end, in requests and in answers.
    HugeHeaders,
    /// Fails in each way that there is.
    Traps,
    /// Writes to its log without end.
    EndlessLog,
    /// Connects to what is none of its own: the metadata service, the controller, agents, the host, another model's unit.
    ForbiddenTargets,
    /// Looks for the host's files, and opens sockets.
    Escapes,
    /// Writes past its storage.
    Storage,
}

impl ServerAttack {
    /// All attacks, in the order of the table. The last one ends the server.
    pub const ALL: [Self; 11] = [
        Self::Compute,
        Self::Memory,
        Self::DeafServer,
        Self::EndlessAnswer,
        Self::HeldRequests,
        Self::HugeHeaders,
        Self::Traps,
        Self::EndlessLog,
        Self::ForbiddenTargets,
        Self::Escapes,
        Self::Storage,
    ];

    /// Returns the attack's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "wasm: computing",
            Self::Memory => "wasm: memory",
            Self::DeafServer => "wasm: a deaf server",
            Self::EndlessAnswer => "wasm: endless answers",
            Self::HeldRequests => "wasm: held requests",
            Self::HugeHeaders => "wasm: huge headers",
            Self::Traps => "wasm: traps",
            Self::EndlessLog => "wasm: an endless log",
            Self::ForbiddenTargets => "wasm: other targets",
            Self::Escapes => "wasm: escapes",
            Self::Storage => "wasm: its storage",
        }
    }
}

impl AttackedAgent {
    /// Deploys the hostile server in a model of its own.
    ///
    /// # Errors
    /// It does not start.
    pub fn begin_server(&self) -> anyhow::Result<()> {
        self.periapt.ok(["add-model", "server"])?;
        let parts = [("server.wasm", "hostile-workload")];
        let change = |text: &str| {
            let text = text.replace("containers:\n  web:\n    resource: image\n", "");
            let workload = format!("{{server: {{component: server.wasm, http: {SERVER}}}}}");
            format!("{text}x-periapt: {{workloads: {workload}}}\n")
        };
        let charm = packed_parts("probe", "server", self.periapt.path(), &parts, change)?;
        let charm = charm.to_str().context("a path")?;
        let port = format!("script=start: open-port {SERVER}/tcp");
        let options = ["--storage", "scratch=1,10M", "--config", &port];
        self.periapt.ok([&["deploy", charm, "server"], &options[..]].concat())?;
        self.periapt.ok(["expose", "server"])?;
        self.until("the hostile server answers", || Ok(asked(SERVER).is_ok()))
    }

    /// Removes the hostile server.
    ///
    /// # Errors
    /// A process of it is left.
    pub fn end_server(&self) -> anyhow::Result<()> {
        let words = ["remove-application", "-m", "server", "server", "--no-prompt", "--destroy-storage"];
        self.periapt.ok(words)?;
        self.until("no process of the hostile server is left", || Ok(self.servers()?.is_empty()))
    }

    /// Runs an attack beside clients of the honest page, which ask at least so often. A server that is not ended by it
    /// serves afterwards, in the same process.
    ///
    /// # Errors
    /// The attack or an honest client failed for a reason of its own.
    pub fn attack_by_server(&self, attack: ServerAttack, calls: usize) -> anyhow::Result<AttackRow> {
        self.beside(attack.name(), calls, || {
            let before = self.servers()?;
            let stopped = match attack {
                ServerAttack::Compute => same_requests("requests", "/compute")?,
                ServerAttack::Memory => self.server_memory()?,
                ServerAttack::DeafServer => deaf_server()?,
                ServerAttack::EndlessAnswer => endless_answer()?,
                ServerAttack::HeldRequests => held_requests()?,
                ServerAttack::HugeHeaders => huge_headers()?,
                ServerAttack::Traps => traps()?,
                ServerAttack::EndlessLog => same_requests("requests that log", "/flood")?,
                ServerAttack::ForbiddenTargets => self.server_targets()?,
                ServerAttack::Escapes => escapes()?,
                ServerAttack::Storage => return self.server_storage(),
            };
            self.until("the hostile server answers again", || Ok(asked(SERVER).is_ok()))?;
            let after = self.servers()?;
            Ok(match before == after {
                true => stopped,
                false => StoppedBy::Nobody(format!("its process ended: {before:?}, then {after:?}")),
            })
        })
    }

    /// Returns the processes of the hostile server.
    fn servers(&self) -> anyhow::Result<Vec<u32>> {
        let mark = self.mark();
        processes(|line, environment| {
            contains(line, b"agent\0workload\0server\0") && contains(environment, mark.as_bytes())
        })
    }

    fn server(&self) -> anyhow::Result<u32> {
        match self.servers()?.as_slice() {
            [one] => Ok(*one),
            all => bail!("the hostile server has not one process but {all:?}"),
        }
    }

    fn server_memory(&self) -> anyhow::Result<StoppedBy> {
        let server = self.server()?;
        forget_peak(server)?;
        let answers = at_once(CLIENTS, || get("/memory"))?;
        let peak = figure(server, "VmHWM:")?;
        // An instance that is refused memory answers with what it had, or is ended.
        let is_bounded = |answer: &Seen| match answer.status {
            // The body is one chunk, whose length stands before it.
            Some(200) => {
                let taken = answer.body().lines().nth(1).and_then(|taken| taken.parse::<usize>().ok());
                taken.is_some_and(|taken| taken <= MAX_INSTANCE)
            }
            _ => answer.is_stopped(),
        };
        Ok(match answers.iter().find(|answer| !is_bounded(answer)) {
            None if peak <= MAX_MEMORY => {
                StoppedBy::Bound(format!("{} MiB at most in the server's process", peak >> 20))
            }
            None => StoppedBy::Nobody(format!("its process had {} MiB", peak >> 20)),
            Some(other) => StoppedBy::Nobody(format!("{other:?}")),
        })
    }

    fn server_targets(&self) -> anyhow::Result<StoppedBy> {
        // A server that could ask nobody would be refused everywhere. This one reaches its own port.
        let own = get(&format!("/ask?localhost:{SERVER}"))?;
        ensure!(own.body().contains(ANSWERED), "the hostile server does not reach itself: {own:?}");
        let (host, controller, peers) = (host_address(), self.controller, self.peers);
        let targets = [
            "169.254.169.254:80".to_owned(),
            "[fe80::1]:80".to_owned(),
            format!("127.0.0.1:{controller}"),
            format!("[::1]:{controller}"),
            format!("localhost:{HONEST}"),
            format!("{ADDRESS}:{HONEST}"),
            format!("{ADDRESS}:{peers}"),
            format!("{host}:{controller}"),
            format!("{host}:{peers}"),
            format!("{host}:{HONEST}"),
            format!("web-page-0:{HONEST}"),
            format!("web-page-0.web-page-endpoints.honest.svc.cluster.local:{HONEST}"),
            "1.1.1.1:80".to_owned(),
        ];
        let mut others = Vec::new();
        for target in &targets {
            let answer = get(&format!("/ask?{target}"))?;
            let is_refused = REFUSALS.iter().any(|refusal| answer.body().contains(refusal));
            if !is_refused {
                others.push(format!("{target}: {answer:?}"));
            }
        }
        Ok(match others.is_empty() {
            true => StoppedBy::Refusals(targets.len()),
            false => StoppedBy::Nobody(others.join("; ")),
        })
    }

    fn server_storage(&self) -> anyhow::Result<StoppedBy> {
        // The server is ended meanwhile.
        let _ = get("/fill?/srv/scratch/full");
        let log = ["debug-log", "-m", "server", "--replay", "--no-tail", "--include", "server/0"];
        let told = "its storage scratch/0 holds more than its 10 MiB";
        self.until("the server is told to end", || Ok(self.periapt.ok(log)?.contains(told)))?;
        self.until("the server has ended", || Ok(self.servers()?.is_empty()))?;
        let storage = self.periapt.path().join("worker");
        let written = written_below(&storage, "full")?;
        Ok(match written {
            Some(bytes) => {
                StoppedBy::Bound(format!("the server was ended, with {} MiB written", bytes >> 20))
            }
            None => StoppedBy::Nobody("it was ended, and has written nothing to its storage".to_owned()),
        })
    }
}

/// Returns the seconds of a time in words.
fn seconds(time: Duration) -> String {
    format!("{:.0} s", time.as_secs_f64())
}

/// Judges requests of which each is to be ended by the host.
fn all_stopped(what: &str, began: Instant, answers: &[Seen]) -> StoppedBy {
    match answers.iter().find(|answer| !answer.is_stopped()) {
        None => StoppedBy::Bound(format!("{} {what} ended in {}", answers.len(), seconds(began.elapsed()))),
        Some(other) => StoppedBy::Nobody(format!("{other:?}")),
    }
}

/// Returns the bytes of the first file of a name below a directory.
fn written_below(directory: &Path, name: &str) -> anyhow::Result<Option<u64>> {
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let kind = entry.file_type()?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() && entry.file_name() == name {
                return Ok(Some(entry.metadata()?.len()));
            }
        }
    }
    Ok(None)
}

/// Sends the same request several times at once. Each is to be ended.
fn same_requests(what: &str, path: &str) -> anyhow::Result<StoppedBy> {
    let began = Instant::now();
    Ok(all_stopped(what, began, &at_once(CLIENTS, || get(path))?))
}

/// Sends bodies until nobody takes more of them, and waits for the answer. The server reads nothing of it.
fn deaf_server() -> anyhow::Result<StoppedBy> {
    let began = Instant::now();
    let ended = at_once(CLIENTS, || {
        let mut stream = connect()?;
        stream.set_write_timeout(Some(DEAF))?;
        let _ = write!(
            stream,
            "POST /sleep HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MAX_REQUEST}\r\nConnection: close\r\n\r\n"
        );
        let (piece, mut sent) = (vec![b'x'; 64 << 10], 0);
        while sent < MAX_REQUEST {
            match stream.write(&piece) {
                Ok(length) if length > 0 => sent += length,
                _ => break,
            }
        }
        Ok((sent, seen(&stream)?))
    })?;
    let most = ended.iter().map(|(sent, _)| *sent).max().unwrap_or_default();
    let answers: Vec<Seen> = ended.into_iter().map(|(_, answer)| answer).collect();
    if most > MAX_WAITING {
        return Ok(StoppedBy::Nobody(format!("{most} bytes of a body were taken that nobody read")));
    }
    // A body that says that it is larger than may be is not even begun.
    let mut stream = connect()?;
    let larger = MAX_REQUEST + 1;
    let _ = write!(stream, "POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Length: {larger}\r\n\r\n");
    stream.set_read_timeout(Some(ENDS_WITHIN))?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    if &head != b"HTTP/1.1 413" {
        return Ok(StoppedBy::Nobody(String::from_utf8_lossy(&head).into_owned()));
    }
    Ok(all_stopped(&format!("bodies, {} MiB taken,", most >> 20), began, &answers))
}

fn endless_answer() -> anyhow::Result<StoppedBy> {
    let began = Instant::now();
    let mut idle = Vec::new();
    for _ in 0..CLIENTS {
        let mut stream = connect()?;
        let _ = stream.write_all(b"GET /for-ever HTTP/1.1\r\nHost: localhost\r\n\r\n");
        // It is left open, and nothing is read.
        idle.push(stream);
    }
    let answer = get("/for-ever")?;
    Ok(match answer.end != AnswerEnd::None && answer.read <= MAX_RESPONSE + (MAX_RESPONSE >> 4) {
        true => StoppedBy::Bound(format!(
            "ended after {} MiB in {}, {} not read",
            answer.read >> 20,
            seconds(began.elapsed()),
            idle.len()
        )),
        false => StoppedBy::Nobody(format!("{} bytes, {:?}", answer.read, answer.end)),
    })
}

/// Opens thousands of connections, half of them with a request that is never answered and half with one that never ends.
fn held_requests() -> anyhow::Result<StoppedBy> {
    let (mut held, mut opened) = (Vec::new(), 0);
    for number in 0..HELD {
        let Ok(mut stream) = connect() else { continue };
        let request: &[u8] = match number % 2 {
            0 => b"GET /sleep HTTP/1.1\r\nHost: localhost\r\n\r\n",
            _ => b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Part: ",
        };
        let _ = stream.write_all(request);
        stream.set_read_timeout(Some(Duration::from_millis(10)))?;
        if is_open(&stream) {
            held.push(stream);
            opened += 1;
        }
        // Some were reset a moment later. This process has descriptors for a thousand.
        if held.len() > 2 * MAX_CONNECTIONS {
            held.retain(is_open);
        }
        if held.len() > 2 * MAX_CONNECTIONS {
            break;
        }
    }
    held.retain(is_open);
    let most = held.len();
    Ok(match most <= MAX_CONNECTIONS {
        true => StoppedBy::Bound(format!("{most} of {HELD} connections are open, and {opened} were")),
        false => StoppedBy::Nobody(format!("{most} connections are open")),
    })
}

fn huge_headers() -> anyhow::Result<StoppedBy> {
    let asked = at_once(CLIENTS, || {
        let mut stream = connect()?;
        let piece = [b'x'; 16 << 10];
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: ");
        for _ in 0..64 {
            if stream.write_all(&piece).is_err() {
                break;
            }
        }
        let _ = stream.write_all(b"\r\n\r\n");
        seen(&stream)
    })?;
    if let Some(other) = asked.iter().find(|answer| !answer.is_stopped()) {
        return Ok(StoppedBy::Nobody(format!("{other:?}")));
    }
    let answered = at_once(CLIENTS, || get("/headers"))?;
    let most = answered.iter().map(|answer| answer.read).max().unwrap_or_default();
    Ok(match answered.iter().all(|answer| answer.end != AnswerEnd::None) && most <= MAX_HEAD {
        true => StoppedBy::Bound(format!("{} heads refused, {} KiB in an answer's", asked.len(), most >> 10)),
        false => StoppedBy::Nobody(format!("{most} bytes in the head of an answer")),
    })
}

fn traps() -> anyhow::Result<StoppedBy> {
    let mut failed = 0;
    for path in ["/abort", "/exit", "/recurse", "/silent", "/refuse", "/fields"] {
        for answer in at_once(CLIENTS, || get(path))? {
            if !answer.is_stopped() {
                return Ok(StoppedBy::Nobody(format!("{path}: {answer:?}")));
            }
            failed += 1;
        }
    }
    // An answer that breaks off must not look whole: its last chunk is missing.
    let half = get("/half")?;
    if half.text.ends_with("0\r\n\r\n") {
        return Ok(StoppedBy::Nobody(format!("{half:?}")));
    }
    Ok(StoppedBy::Bound(format!("{failed} requests failed, each alone")))
}

fn escapes() -> anyhow::Result<StoppedBy> {
    let answer = get("/escapes")?;
    Ok(match (answer.status, answer.body()) {
        (Some(200), body) if !body.contains("read") && !body.contains("wrote") && !body.contains("made") => {
            StoppedBy::Bound("no file of the host, no socket".to_owned())
        }
        _ => StoppedBy::Nobody(format!("{answer:?}")),
    })
}
