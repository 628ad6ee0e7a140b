//! The streams of a keeper, which come over the socket that the pod's process was started with: nothing else can use
//! them, and they have no path.

use std::{
    io::{self, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd},
        unix::net::UnixStream as Started,
    },
    sync::Arc,
    time::Duration,
};

use axum::Router;
use periapt_helper::send_beside;
use periapt_host_api::{
    container::PodState,
    notice::WaitingNotices,
    pod::{OPENED, PodOrder, PodReport, PodStream, REFUSED},
};
use periapt_pebble::PodCaller;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use tokio::{
    io::{AsyncWriteExt as _, Interest, copy_bidirectional},
    net::UnixStream,
    sync::{Semaphore, mpsc, watch},
    time::{sleep, timeout},
};

use crate::{
    calls::{CallSockets, WorkloadCall, take_all},
    connection::{MAX_CONNECTIONS, serve},
    core::ServiceEnd,
    network::Network,
};

/// The calls that wait for the keeper's socket. Workloads that call faster wait.
const CALLS: usize = 16;

/// The time in which a workload accepts a connection.
const DIAL_TIME: Duration = Duration::from_secs(5);

/// The pause between reports of notices, in which those that repeat become one: a workload that makes them without end
/// causes as few hooks as a charm that asks for events without end.
const NOTICE_PAUSE: Duration = Duration::from_secs(1);

/// The targets of streams.
#[derive(Debug, Clone)]
pub(crate) struct Targets {
    /// The API.
    pub(crate) router: Router,
    /// The way to ports.
    pub(crate) network: Network,
}

/// The news that a pod has for its keeper.
#[derive(Debug)]
pub(crate) struct PodNews {
    /// The sockets on which workloads call other units.
    pub(crate) calls: CallSockets,
    /// The notices that the charm is to be told of.
    pub(crate) notices: watch::Receiver<WaitingNotices>,
    /// The state of services and checks.
    pub(crate) states: watch::Receiver<PodState>,
    /// The services that ended by themselves.
    pub(crate) ends: mpsc::Receiver<ServiceEnd>,
}

/// The news for keepers, one after the other.
struct Passed {
    called: mpsc::Receiver<WorkloadCall>,
    notices: watch::Receiver<WaitingNotices>,
    states: watch::Receiver<PodState>,
    ends: mpsc::Receiver<ServiceEnd>,
}

/// The end of one keeper.
enum Over {
    /// Another keeper has the socket.
    Repeat,
    /// The socket has ended.
    End,
}

/// The socket to a keeper.
#[derive(Debug)]
pub(crate) struct Keeper {
    socket: UnixStream,
    /// The parts of the confinement that the host lacks, as one line.
    lacks: String,
}

impl Keeper {
    /// Takes the socket.
    pub(crate) fn new(socket: Started) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket: UnixStream::from_std(socket)?, lacks: String::new() })
    }

    /// Reports with the pod's start what the host lacks of the confinement.
    pub(crate) fn on_host_that_lacks(self, lacks: String) -> Self {
        Self { lacks, ..self }
    }

    /// Reports that the pod listens, serves the keeper's streams, and passes on what the pod has for its keeper, until the
    /// keeper's socket ends. Another keeper that takes the socket over is told all again.
    pub(crate) async fn serve(mut self, targets: Targets, boot_id: String, news: PodNews) {
        let PodNews { calls: sockets, notices, states, ends } = news;
        let (calls, called) = mpsc::channel(CALLS);
        let mut passed = Passed { called, notices, states, ends };
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let served = async {
            loop {
                match self.serve_one(&targets, &boot_id, &mut passed, &permits).await {
                    Ok(Over::Repeat) => {
                        passed.notices.mark_changed();
                        passed.states.mark_changed();
                    }
                    Ok(Over::End) => return,
                    Err(error) => {
                        tracing::warn!("the keeper's socket failed: {error}");
                        return;
                    }
                }
            }
        };
        let taken = async {
            take_all(sockets, calls).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = served => {}
            () = taken => {}
        }
    }

    /// Serves one keeper.
    async fn serve_one(
        &mut self,
        targets: &Targets,
        boot_id: &str,
        passed: &mut Passed,
        permits: &Arc<Semaphore>,
    ) -> io::Result<Over> {
        self.report(&PodReport::ready(boot_id.to_owned(), &self.lacks)).await?;
        let Passed { called, notices, states, ends } = passed;
        // What waits in this channel is told to this keeper alone: the next one hears all from the beginning.
        let (reports, mut reported) = mpsc::channel(1);
        let told = reports.clone();
        let (notices, states) = (notices.clone(), states.clone());
        let beside = async { tokio::join!(report_notices(notices, reports), report_states(states, told)) };
        tokio::pin!(beside);
        let mut has_news = true;
        loop {
            let next = async {
                let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
                Ok::<_, io::Error>(self.next().await?.map(|next| (next, permit)))
            };
            let next = tokio::select! {
                next = next => next?,
                Some(call) = called.recv() => {
                    self.pass(&call).await?;
                    continue;
                }
                Some((service, reason)) = ends.recv() => {
                    self.report(&PodReport::service_ended(service, &reason)).await?;
                    continue;
                }
                Some(report) = reported.recv() => {
                    self.report(&report).await?;
                    continue;
                }
                _ = &mut beside, if has_news => {
                    has_news = false;
                    continue;
                }
            };
            match next {
                Some(((PodOrder::Open(target), stream), permit)) => {
                    let targets = targets.clone();
                    tokio::spawn(async move {
                        if let Err(error) = lead(target, stream, targets).await {
                            tracing::debug!("a stream of the keeper's ended: {error}");
                        }
                        drop(permit);
                    });
                }
                Some(((PodOrder::Repeat, _), _)) => return Ok(Over::Repeat),
                None => return Ok(Over::End),
            }
        }
    }

    /// Returns the descriptor of the socket.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Reports that the pod cannot begin.
    pub(crate) async fn report_failure(&mut self, reason: &str) {
        // A keeper that has gone needs no report.
        let _ = self.report(&PodReport::failed(reason)).await;
    }

    async fn report(&mut self, report: &PodReport) -> io::Result<()> {
        let mut line = serde_json::to_vec(report)?;
        line.push(b'\n');
        self.socket.write_all(&line).await
    }

    /// Passes a call on, with its stream.
    async fn pass(&self, call: &WorkloadCall) -> io::Result<()> {
        let mut line = serde_json::to_vec(&PodReport::Dial(call.order.clone()))?;
        line.push(b'\n');
        let send = || send_beside(&self.socket, &line, call.stream.as_fd());
        // As few bytes are sent wholly or not at all.
        match self.socket.async_io(Interest::WRITABLE, send).await? == line.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Waits for the next order with its stream; none at the end of the socket.
    async fn next(&self) -> io::Result<Option<(PodOrder, UnixStream)>> {
        let received = self.socket.async_io(Interest::READABLE, || receive(&self.socket)).await?;
        let Some((order, descriptor)) = received else { return Ok(None) };
        let stream = Started::from(descriptor);
        stream.set_nonblocking(true)?;
        Ok(Some((order, UnixStream::from_std(stream)?)))
    }
}

/// Hands out a report of each notice, until the pod ends.
async fn report_notices(mut notices: watch::Receiver<WaitingNotices>, reports: mpsc::Sender<PodReport>) {
    let mut told = 0;
    while notices.changed().await.is_ok() {
        let news: Vec<_> = {
            let notices = notices.borrow_and_update();
            notices.after(told).map(|(number, waiting)| (number, waiting.notice.clone())).collect()
        };
        for (number, notice) in news {
            if reports.send(PodReport::Notice { number, notice }).await.is_err() {
                return;
            }
            told = number;
        }
        sleep(NOTICE_PAUSE).await;
    }
}

/// Hands out a report of each state of services and checks, until the pod ends. The core pauses between them.
async fn report_states(mut states: watch::Receiver<PodState>, reports: mpsc::Sender<PodReport>) {
    while states.changed().await.is_ok() {
        let state = states.borrow_and_update().clone();
        if reports.send(PodReport::State(state)).await.is_err() {
            return;
        }
    }
}

/// Receives one order with its descriptor. The keeper sends both at once, and the kernel joins them to no others.
fn receive(socket: &UnixStream) -> io::Result<Option<(PodOrder, OwnedFd)>> {
    let mut bytes = [0; PodOrder::BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let read = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    if read.bytes == 0 {
        return Ok(None);
    }
    let descriptor = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    match descriptor {
        Some(descriptor) if read.bytes == bytes.len() && !read.flags.contains(ReturnFlags::CTRUNC) => {
            let order = PodOrder::from_bytes(bytes);
            Ok(Some((order.ok_or_else(|| io::Error::other("an unknown order came"))?, descriptor)))
        }
        _ => Err(io::Error::other("an order came without its descriptor")),
    }
}

/// Leads a stream to its target.
async fn lead(target: PodStream, mut stream: UnixStream, targets: Targets) -> io::Result<()> {
    match target {
        PodStream::Pebble => {
            stream.write_all(&[OPENED]).await?;
            // A stream of the keeper's has the rights of the pod's owner.
            let user_id = Some(rustix::process::geteuid().as_raw());
            serve(stream, targets.router, PodCaller { user_id, is_owner: true }).await;
            Ok(())
        }
        PodStream::Port(port) => {
            let dialled = timeout(DIAL_TIME, targets.network.port(port)).await;
            match dialled.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(mut workload) => {
                    stream.write_all(&[OPENED]).await?;
                    copy_bidirectional(&mut stream, &mut workload).await?;
                    Ok(())
                }
                Err(error) => {
                    stream.write_all(&[REFUSED]).await?;
                    Err(error)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::notice::WorkloadNotice;
    use tokio::{
        io::{AsyncBufReadExt as _, BufReader, Lines},
        net::unix::OwnedReadHalf,
        task::JoinHandle,
    };

    use super::*;
    use crate::names::Names;

    fn failed(check: &str) -> WorkloadNotice {
        WorkloadNotice::CheckFailed { check: check.to_owned() }
    }

    /// A pod's side of the socket, with what the pod has for its keeper, and the keeper's side.
    struct Stage {
        notices: watch::Sender<WaitingNotices>,
        states: watch::Sender<PodState>,
        reports: Lines<BufReader<OwnedReadHalf>>,
        /// A duplicate of the keeper's side, as the holder has one.
        held: Started,
        serving: JoinHandle<()>,
        _calling: mpsc::UnboundedSender<OwnedFd>,
        _ending: mpsc::Sender<ServiceEnd>,
    }

    impl Stage {
        fn new() -> Self {
            let (ours, theirs) = Started::pair().unwrap();
            let (notices, told) = watch::channel(WaitingNotices::default());
            let keeper = Keeper::new(theirs).unwrap();
            let (calling, calls) = mpsc::unbounded_channel();
            let (ending, ends) = mpsc::channel(1);
            let (states, shown) = watch::channel(PodState::default());
            let news = PodNews { calls, notices: told, states: shown, ends };
            let targets = Targets { router: Router::new(), network: Network::System(Names::OfSystem) };
            let serving = tokio::spawn(async move { keeper.serve(targets, "b1".to_owned(), news).await });
            ours.set_nonblocking(true).unwrap();
            let held = ours.try_clone().unwrap();
            let (reading, writing) = UnixStream::from_std(ours).unwrap().into_split();
            // Dropping it would end the direction for all duplicates.
            writing.forget();
            let reports = BufReader::new(reading).lines();
            Self { notices, states, reports, held, serving, _calling: calling, _ending: ending }
        }

        async fn next(&mut self) -> PodReport {
            let line = timeout(Duration::from_secs(60), self.reports.next_line()).await.unwrap();
            serde_json::from_str::<PodReport>(&line.unwrap().unwrap()).unwrap()
        }

        fn add(&self, number: u64, check: &str) {
            self.notices.send_modify(|it| drop(it.add(number, number, failed(check))));
        }

        async fn end(self) {
            self.held.shutdown(std::net::Shutdown::Both).unwrap();
            timeout(Duration::from_secs(60), self.serving).await.unwrap().unwrap();
        }
    }

    fn ready() -> PodReport {
        PodReport::ready("b1".to_owned(), "")
    }

    fn notice(number: u64, check: &str) -> PodReport {
        PodReport::Notice { number, notice: failed(check) }
    }

    #[tokio::test]
    async fn notices_are_reported_after_the_start_and_what_repeats_meanwhile_once() {
        let mut stage = Stage::new();
        assert_eq!(stage.next().await, ready());
        stage.add(1, "up");
        assert_eq!(stage.next().await, notice(1, "up"));
        for (number, check) in [(2, "up"), (3, "disk"), (4, "up")] {
            stage.add(number, check);
        }
        assert_eq!((stage.next().await, stage.next().await), (notice(3, "disk"), notice(4, "up")));
        let state = PodState { left_out: 7, ..PodState::default() };
        stage.states.send_replace(state.clone());
        assert_eq!(stage.next().await, PodReport::State(state));
        stage.end().await;
    }

    #[tokio::test]
    async fn a_keeper_that_takes_the_socket_over_is_told_all_again() {
        let mut stage = Stage::new();
        assert_eq!(stage.next().await, ready());
        stage.add(1, "up");
        assert_eq!(stage.next().await, notice(1, "up"));
        stage.add(2, "disk");
        let state = PodState { left_out: 7, ..PodState::default() };
        stage.states.send_replace(state.clone());
        let (beside, _) = Started::pair().unwrap();
        send_beside(&stage.held, &PodOrder::Repeat.to_bytes(), beside.as_fd()).unwrap();
        // What was reported before the order arrived comes first.
        while stage.next().await != ready() {}
        let mut told = Vec::new();
        while told.len() < 3 {
            told.push(stage.next().await);
        }
        let at = |report: &PodReport| told.iter().position(|it| it == report).unwrap();
        assert!(at(&notice(1, "up")) < at(&notice(2, "disk")), "{told:?}");
        assert!(told.contains(&PodReport::State(state)), "{told:?}");
        stage.end().await;
    }
}
