//! The task that owns the pure core, and turns its outputs into deeds.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use periapt_host_api::{container::PodState, notice::WaitingNotices};
use periapt_pebble::{
    Exit, LogTargetState, PodAnswer, PodCaller, PodInput, PodOutput, PodRefusal, PodRequest, PodTime,
    ProcessId, RequestId, Spawn, Stdio, Supervisor, TaskId, WebsocketName,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    authorities::Authorities,
    driver::{Order, Orders, Report, Streams, Terminals, terminal},
    event::{Event, Reply},
    network::Network,
    options::PodError,
    outward::Outward,
    probe, push,
    session::{self, Sockets},
    streams::{Use, follow, reader, writer},
};

/// The requests and answers that wait for the core. Connections that send more wait.
const QUEUE: usize = 256;

/// The pieces of output that wait for the core, in a queue of their own: services that write without a pause wait for
/// each other, and requests do not wait for them.
const OUTPUT_QUEUE: usize = 16;

/// The ends of services that wait to be told.
const ENDS_QUEUE: usize = 8;

/// The least time between two ends of services that the operator is told.
const TOLD_PAUSE: Duration = Duration::from_secs(1);

/// A service that ended by itself, and the reason in words.
pub(crate) type ServiceEnd = (String, String);

/// The least time between two states of the pod for its keeper: services that change without a pause cost little.
const STATE_PAUSE: Duration = Duration::from_secs(1);

/// A pause that is as good as none.
const FAR: Duration = Duration::from_secs(24 * 3_600);

/// The way to the core, for connections.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    events: mpsc::Sender<Event>,
    next: Arc<AtomicU64>,
    lines: watch::Receiver<u64>,
    notices: watch::Receiver<WaitingNotices>,
    states: watch::Receiver<PodState>,
}

impl Handle {
    /// Asks the core. A caller that is dropped while it waits is forgotten.
    pub(crate) async fn ask(&self, caller: PodCaller, request: PodRequest) -> Reply {
        let id = RequestId(self.next.fetch_add(1, Ordering::Relaxed));
        let (reply, answer) = oneshot::channel();
        let ends = || Reply { result: Err(PodRefusal::busy("the pod ends")), socket: None };
        if self.events.send(Event::Ask { id, caller, request, reply }).await.is_err() {
            return ends();
        }
        let gone = Gone { id, events: self.events.clone(), is_answered: false };
        let answer = answer.await;
        gone.answered();
        answer.unwrap_or_else(|_| ends())
    }

    /// Returns the number of the next line of output, as it grows.
    pub(crate) fn lines(&self) -> watch::Receiver<u64> {
        self.lines.clone()
    }

    /// Returns the notices for the charm, as they come.
    pub(crate) fn notices(&self) -> watch::Receiver<WaitingNotices> {
        self.notices.clone()
    }

    /// Returns the state of services and checks, as it changes.
    pub(crate) fn states(&self) -> watch::Receiver<PodState> {
        self.states.clone()
    }
}

/// A request that waits.
struct Gone {
    id: RequestId,
    events: mpsc::Sender<Event>,
    is_answered: bool,
}

impl Gone {
    fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        if !self.is_answered {
            let (id, events) = (self.id, self.events.clone());
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { events.send(Event::Input(PodInput::Gone(id))).await });
            }
        }
    }
}

/// The ways of the pod's own connections.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    /// The way of checks.
    pub(crate) network: Network,
    /// The way of log targets.
    pub(crate) outward: Outward,
    /// The authorities by which servers of `https` are known.
    pub(crate) authorities: Authorities,
    /// The terminals of commands.
    pub(crate) terminals: Terminals,
}

/// The core and what it drives.
#[derive(Debug)]
pub(crate) struct Core {
    supervisor: Supervisor,
    began: Instant,
    events: mpsc::Receiver<Event>,
    sender: mpsc::Sender<Event>,
    /// Output of services and the ends of their processes, in their order.
    output: mpsc::Receiver<Event>,
    output_sender: mpsc::Sender<Event>,
    orders: Orders,
    reports: mpsc::UnboundedReceiver<Report>,
    asked: BTreeMap<RequestId, (oneshot::Sender<Reply>, Option<WebsocketName>)>,
    sockets: BTreeMap<TaskId, Sockets>,
    /// The places for the exit codes of processes that run.
    live: BTreeMap<ProcessId, oneshot::Sender<i32>>,
    /// The tokens that close the streams of commands, whose processes may have ended.
    open: BTreeMap<ProcessId, CancellationToken>,
    lines: watch::Sender<u64>,
    ways: Ways,
    /// The pod's own services, by name, with their commands.
    services: BTreeMap<String, String>,
    ends: mpsc::Sender<ServiceEnd>,
    /// The time at which the operator was last told of a service that ended.
    told: Option<Instant>,
    notices: watch::Sender<WaitingNotices>,
    states: watch::Sender<PodState>,
    /// The number of changes of the last state for the keeper, and the earliest time of the next one.
    told_state: (u64, Instant),
    code: Option<i32>,
    lost: Option<String>,
}

impl Core {
    /// Creates the task, the way to it, and the ends of services for the operator.
    pub(crate) fn new(
        supervisor: Supervisor,
        orders: Orders,
        reports: mpsc::UnboundedReceiver<Report>,
        ways: Ways,
        services: BTreeMap<String, String>,
    ) -> (Self, Handle, mpsc::Receiver<ServiceEnd>) {
        let (sender, events) = mpsc::channel(QUEUE);
        let (output_sender, output) = mpsc::channel(OUTPUT_QUEUE);
        let (lines, receiver) = watch::channel(0);
        let (ends, ended) = mpsc::channel(ENDS_QUEUE);
        let (notices, told) = watch::channel(WaitingNotices::default());
        let (states, shown) = watch::channel(PodState::default());
        let handle = Handle {
            events: sender.clone(),
            next: Arc::default(),
            lines: receiver,
            notices: told,
            states: shown,
        };
        let core = Self {
            supervisor,
            began: Instant::now(),
            events,
            sender,
            output,
            output_sender,
            orders,
            reports,
            asked: BTreeMap::new(),
            sockets: BTreeMap::new(),
            live: BTreeMap::new(),
            open: BTreeMap::new(),
            lines,
            ways,
            services,
            ends,
            told: None,
            notices,
            states,
            told_state: (0, Instant::now()),
            code: None,
            lost: None,
        };
        (core, handle, ended)
    }

    /// Runs until the pod ends, and returns its exit code.
    pub(crate) async fn run(mut self, cancel: CancellationToken) -> Result<i32, PodError> {
        let mut child_ended = signal(SignalKind::child()).map_err(PodError::Setup)?;
        let mut is_cancelled = false;
        let services = std::mem::take(&mut self.services);
        if !services.is_empty() {
            self.step(PodInput::Begin(services));
        }
        loop {
            if let Some(code) = self.code {
                return Ok(code);
            }
            if let Some(reason) = self.lost.take() {
                return Err(PodError::Lost(reason));
            }
            let wake = self.supervisor.next_wake().map(|at| self.began + at);
            let wake = wake.unwrap_or_else(|| Instant::now() + FAR);
            let (told, next) = self.told_state;
            let has_state = self.supervisor.state_changes() != told;
            tokio::select! {
                Some(event) = self.events.recv() => match event {
                    Event::Input(input) => self.step(input),
                    Event::Ask { id, caller, request, reply } => {
                        let name = match &request {
                            PodRequest::Websocket(_, name) => Some(*name),
                            _ => None,
                        };
                        self.asked.insert(id, (reply, name));
                        self.step(PodInput::Request { id, caller, request });
                    }
                },
                Some(Event::Input(input)) = self.output.recv() => self.step(input),
                Some(report) = self.reports.recv() => self.report(report),
                _ = child_ended.recv() => {
                    let _ = self.orders.send(Order::Reap);
                }
                () = sleep_until(next), if has_state => self.tell_state(),
                () = sleep_until(wake) => self.step(PodInput::Tick),
                () = cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    self.step(PodInput::End(0));
                }
            }
        }
    }

    /// Tells the keeper the state of services and checks.
    fn tell_state(&mut self) {
        self.told_state = (self.supervisor.state_changes(), Instant::now() + STATE_PAUSE);
        let state = self.supervisor.state();
        self.states.send_if_modified(|told| {
            let differs = *told != state;
            *told = state;
            differs
        });
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Spawned(process) => self.step(PodInput::Spawned(process)),
            Report::Failed(process, message) => {
                // The task that follows the process ends with its sender.
                self.live.remove(&process);
                self.open.remove(&process);
                self.step(PodInput::SpawnFailed(process, message));
            }
            Report::Lost(reason) => self.lost = Some(reason),
            // The task that follows the process tells the core, once the output has been read.
            Report::Exited(process, code) => {
                if let Some(exit) = self.live.remove(&process) {
                    let _ = exit.send(code);
                }
            }
        }
    }

    fn step(&mut self, input: PodInput) {
        match &input {
            PodInput::Gone(id) => {
                self.asked.remove(id);
            }
            PodInput::Exited(process, _) => {
                self.open.remove(process);
            }
            _ => {}
        }
        let now = PodTime { since_start: self.began.elapsed(), date: jiff::Timestamp::now() };
        let outputs = self.supervisor.step(now, input);
        // Answers first: the last websocket that is granted starts its command in the same step.
        let (answers, deeds): (Vec<_>, Vec<_>) =
            outputs.into_iter().partition(|output| matches!(output, PodOutput::Respond(..)));
        answers.into_iter().chain(deeds).for_each(|output| self.perform(output));
        let next = self.supervisor.next_log_line();
        self.lines.send_if_modified(|line| std::mem::replace(line, next) != next);
    }

    fn perform(&mut self, output: PodOutput) {
        match output {
            PodOutput::Respond(id, result) => {
                let Some((reply, name)) = self.asked.remove(&id) else { return };
                let socket = match (&result, name) {
                    (Ok(PodAnswer::Websocket(task)), Some(name)) => {
                        Some(self.sockets.entry(*task).or_default().expect(name))
                    }
                    _ => None,
                };
                let _ = reply.send(Reply { result, socket });
            }
            PodOutput::Spawn(process, spawn) => {
                if let Err(error) = self.spawn(process, spawn) {
                    self.open.remove(&process);
                    let message = format!("cannot open streams: {error}");
                    let events = self.sender.clone();
                    tokio::spawn(async move {
                        events.send(Event::Input(PodInput::SpawnFailed(process, message))).await
                    });
                }
            }
            PodOutput::Signal(process, signal) => {
                let _ = self.orders.send(Order::Signal(process, signal));
            }
            PodOutput::Abandon(process) => {
                if let Some(open) = self.open.remove(&process) {
                    open.cancel();
                }
            }
            PodOutput::Forget(task) => {
                self.sockets.remove(&task);
            }
            PodOutput::Probe(id, question, timeout) => {
                let (events, ways) = (self.sender.clone(), self.ways.clone());
                tokio::spawn(async move {
                    let result = probe::ask(question, ways.network, ways.authorities, timeout).await;
                    let _ = events.send(Event::Input(PodInput::Probed(id, result))).await;
                });
            }
            PodOutput::Push(id, lines) => {
                let (events, ways) = (self.sender.clone(), self.ways.clone());
                tokio::spawn(async move {
                    let result = push::send(&lines, &ways.outward, &ways.authorities).await;
                    let _ = events.send(Event::Input(PodInput::Pushed(id, result))).await;
                });
            }
            PodOutput::LogTarget(name, LogTargetState::Takes { lost }) => {
                tracing::info!(log_target = ?name, lost, "a log target takes lines again");
            }
            PodOutput::LogTarget(name, LogTargetState::Fails(reason)) => {
                tracing::warn!(log_target = ?name, reason, "a log target does not get its lines");
            }
            PodOutput::ServiceEnded(service, reason) => {
                let now = Instant::now();
                // A service may end many times a second.
                if self.told.is_none_or(|told| now.duration_since(told) >= TOLD_PAUSE) {
                    self.told = Some(now);
                    // A keeper that takes none of them knows already that services end.
                    let _ = self.ends.try_send((service, reason));
                }
            }
            PodOutput::Notice(notice) => self.notices.send_modify(|notices| {
                notices.push(notice);
            }),
            PodOutput::Shutdown(code) => self.code = Some(code),
        }
    }

    fn spawn(&mut self, process: ProcessId, spawn: Box<Spawn>) -> io::Result<()> {
        let (exit, ended) = oneshot::channel();
        let events = self.sender.clone();
        let streams = match &spawn.stdio {
            Stdio::Log | Stdio::Tail => {
                let of = if spawn.stdio == Stdio::Log { Use::Log } else { Use::Tail };
                let (output, stdout) = pipe()?;
                let stderr = stdout.try_clone()?;
                tokio::spawn(follow(process, reader(output)?, ended, self.output_sender.clone(), of));
                Streams { stdin: File::open("/dev/null")?.into(), stdout, stderr, is_terminal: false }
            }
            Stdio::Websockets { task, split_stderr, terminal } => {
                let sockets = self.sockets.remove(task).unwrap_or_default();
                let orders = self.orders.clone();
                let (pipes, streams) = match (terminal, self.ways.terminals) {
                    (Some((columns, rows)), Terminals::Offered) => {
                        let (ours, theirs) = terminal::open(*columns, *rows)?;
                        let streams = Streams {
                            stdin: theirs.try_clone()?,
                            stdout: theirs.try_clone()?,
                            stderr: theirs,
                            is_terminal: true,
                        };
                        (session::Pipes::terminal(ours)?, streams)
                    }
                    (None, _) | (Some(_), Terminals::Absent) => {
                        let (stdin, input) = pipe()?;
                        let (output, stdout) = pipe()?;
                        let (errors, stderr) = match split_stderr {
                            true => {
                                let (errors, stderr) = pipe()?;
                                (Some(reader(errors)?), stderr)
                            }
                            false => (None, stdout.try_clone()?),
                        };
                        let pipes = session::Pipes::new(writer(input)?, reader(output)?, errors);
                        (pipes, Streams { stdin, stdout, stderr, is_terminal: terminal.is_some() })
                    }
                };
                let abandon = CancellationToken::new();
                self.open.insert(process, abandon.clone());
                let session = session::run(process, sockets, pipes, ended, orders, abandon);
                tokio::spawn(async move {
                    if let Some(code) = session.await {
                        let exit = Exit { code, tail: String::new() };
                        let _ = events.send(Event::Input(PodInput::Exited(process, exit))).await;
                    }
                });
                streams
            }
        };
        self.live.insert(process, exit);
        let _ = self.orders.send(Order::Spawn(process, spawn, streams));
        Ok(())
    }
}

/// Opens a pipe: the side to read, and the side to write.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}
