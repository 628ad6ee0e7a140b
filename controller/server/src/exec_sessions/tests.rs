//! Sessions of operators, with an agent that the test plays.

use std::convert::Infallible;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use periapt_host_api::{ModelUuid, RequestId, exec_session::ExecSessionRequest, workload_log::PartAnswer};
use tokio::time::sleep;
use uuid::Uuid;

use super::{watched::IDLE, *};
use crate::clock::SystemRandomSource;

/// The first line of each answer.
const RUNNING: &str = "\"running\"\n";

/// The parts that wait for an operator.
const PARTS: usize = 4;

/// A pause of an operator's reader, longer than all bounds but that of a silence of both sides.
const PAUSE: Duration = Duration::from_secs(3_600);

fn agent() -> AgentName {
    "a1".parse().unwrap()
}

struct Scene {
    orders: WorkloadOrders,
    presence: Presence,
    stop: CancellationToken,
    /// Cancelled once the controller falls behind its log.
    lost: CancellationToken,
}

impl Scene {
    fn new() -> Self {
        let orders = WorkloadOrders::new(Arc::new(SystemRandomSource));
        let (stop, lost) = (CancellationToken::new(), CancellationToken::new());
        Self { orders, presence: Presence::default(), stop, lost }
    }

    fn open(&self, rest: Body) -> (ExecSession, oneshot::Receiver<String>) {
        let request = ExecSessionRequest {
            container: "web".parse().unwrap(),
            command: vec!["sh".to_owned()],
            terminal: None,
        };
        let model = ModelUuid(Uuid::nil());
        let order = ExecSessionOrder { model, unit: "app/0".parse().unwrap(), request };
        let parts = SessionParts {
            orders: &self.orders,
            presence: self.presence.clone(),
            stop: self.stop.clone(),
            lost: self.lost.clone().cancelled_owned().boxed(),
        };
        let who = (agent(), "jane".parse().unwrap());
        ExecSession::open(parts, who, order, (Bytes::from_static(b"first"), rest)).unwrap()
    }

    /// Opens a session, and has its agent begin the command.
    async fn running(&self, rest: Body) -> (RunningSession, oneshot::Receiver<String>) {
        let (session, ended) = self.open(rest);
        self.pass(WorkloadLogPart::Begun, "").await;
        self.pass(WorkloadLogPart::Data, RUNNING).await;
        let (first, session) = session.begun().await.unwrap();
        assert_eq!(first, RUNNING);
        (session, ended)
    }

    fn id(&self) -> RequestId {
        *self.orders.sessions_of(&agent()).keys().next().unwrap()
    }

    async fn pass(&self, part: WorkloadLogPart, text: &'static str) {
        self.orders.pass(&agent(), self.id(), (part, Bytes::from_static(text.as_bytes()))).await.unwrap();
    }
}

/// Returns a content that goes on after these bytes.
fn open_content(bytes: &'static [u8]) -> Body {
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(bytes))]);
    Body::from_stream(first.chain(stream::pending()))
}

fn text(line: Option<Bytes>) -> String {
    String::from_utf8(line.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn what_is_said_goes_both_ways_and_the_exit_code_is_the_last_line() {
    let scene = Scene::new();
    let _here = scene.presence.connected(agent());
    let (mut session, ended) = scene.running(open_content(b"second")).await;
    let mut heard = Vec::new();
    while heard.len() < 11 {
        heard.extend(scene.orders.input(&agent(), scene.id()).await.unwrap());
    }
    assert_eq!(heard, b"firstsecond");
    scene.pass(WorkloadLogPart::Data, "line").await;
    assert_eq!(text(session.next().await), "line");
    scene.pass(WorkloadLogPart::End, "7").await;
    assert_eq!(text(session.next().await), "{\"exit\":7}\n");
    assert_eq!(session.next().await, None);
    assert_eq!(ended.await.unwrap(), "exit code 7");
    drop(session);
    assert!(scene.orders.sessions_of(&agent()).is_empty());
}

#[tokio::test]
async fn a_command_that_does_not_begin_is_refused_with_the_agents_reason() {
    let scene = Scene::new();
    let (session, ended) = scene.open(open_content(b""));
    scene.pass(WorkloadLogPart::Begun, "").await;
    scene.pass(WorkloadLogPart::Failed, "cannot find executable \"nosuch\"").await;
    assert!(session.begun().await.map(drop).unwrap_err().message.contains("nosuch"));
    assert!(ended.await.unwrap().contains("nosuch"));
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_session() {
    let scene = Scene::new();
    let (leaves, left) = oneshot::channel::<()>();
    let rest = left.into_stream().filter_map(|_| async { None::<Result<Bytes, Infallible>> });
    let (mut session, ended) = scene.running(Body::from_stream(rest)).await;
    drop(leaves);
    assert_eq!(session.next().await, None);
    drop(session);
    assert!(ended.await.is_err(), "it has left before an end");
    assert!(scene.orders.sessions_of(&agent()).is_empty());
    let (session, ended) = scene.open(Body::empty());
    assert!(session.begun().await.map(drop).unwrap_err().message.contains("the client has left"));
    assert_eq!(ended.await.unwrap(), "the client has left");
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_with_its_agent_and_its_controller_and_after_a_long_silence() {
    let scene = Scene::new();
    let here = scene.presence.connected(agent());
    let (silent, _) = scene.open(open_content(b""));
    assert_eq!(silent.begun().await.map(drop).unwrap_err().code, ErrorCode::TryAgain);
    let (taken, _) = scene.open(open_content(b""));
    scene.pass(WorkloadLogPart::Begun, "").await;
    assert_eq!(taken.begun().await.map(drop).unwrap_err().code, ErrorCode::OutcomeUnknown);
    let (mut lost, _ended) = scene.running(open_content(b"")).await;
    assert!(text(lost.next().await).contains("does not serve the session any more"));
    drop(lost);
    let (mut idle, _ended) = scene.running(open_content(b"")).await;
    let (orders, id, began) = (scene.orders.clone(), scene.id(), Instant::now());
    let asks = tokio::spawn(async move { while orders.input(&agent(), id).await.is_ok() {} });
    assert!(text(idle.next().await).contains("nothing was said for 4 hours"));
    assert!(began.elapsed() >= IDLE);
    assert_eq!(idle.next().await, None);
    drop((idle, here));
    asks.await.unwrap();
    let (mut away, _ended) = scene.running(open_content(b"")).await;
    assert!(text(away.next().await).contains("not connected any more"));
    drop(away);
    scene.stop.cancel();
    let (mut stopped, _ended) = scene.running(open_content(b"")).await;
    assert!(text(stopped.next().await).contains("the controller stops"));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_holds_its_command_up_and_gets_every_line_later() {
    const LINES: usize = 1_000;
    let scene = Scene::new();
    let here = scene.presence.connected(agent());
    let (mut session, ended) = scene.running(open_content(b"")).await;
    let (orders, id) = (scene.orders.clone(), scene.id());
    let (count, counted) = tokio::sync::watch::channel(0_usize);
    let says = tokio::spawn(async move {
        let lines = (0..LINES).map(|line| (WorkloadLogPart::Data, Bytes::from(format!("{line}\n"))));
        for part in lines.chain([(WorkloadLogPart::End, Bytes::from_static(b"3"))]) {
            while orders.pass(&agent(), id, part.clone()).await.unwrap() == PartAnswer::NoRoom {}
            count.send_modify(|count| *count += 1);
        }
    });
    sleep(PAUSE).await;
    assert_eq!(*counted.borrow(), PARTS, "no more is taken than there is room for");
    // Another pause after a part was taken costs nothing, either.
    assert_eq!(text(session.next().await), "0\n");
    sleep(PAUSE).await;
    for line in 1..LINES {
        assert_eq!(text(session.next().await), format!("{line}\n"));
    }
    says.await.unwrap();
    // The command has ended, and so does its agent: the rest waits.
    drop(here);
    sleep(PAUSE).await;
    assert_eq!(text(session.next().await), "{\"exit\":3}\n");
    assert_eq!(session.next().await, None);
    assert_eq!(ended.await.unwrap(), "exit code 3");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_keeps_no_session_that_must_end() {
    type Ends = fn(&Scene, &RunningSession);
    let ends: [(Ends, &str); 4] = [
        (|_, session| session.stream().revoked.cancel(), ""),
        (|scene, _| scene.lost.cancel(), ""),
        (|_, _| {}, "is not connected any more"),
        (|scene, _| scene.stop.cancel(), "the controller stops"),
    ];
    for (end, told) in ends {
        let scene = Scene::new();
        let here = scene.presence.connected(agent());
        let (mut session, ended) = scene.running(open_content(b"")).await;
        let id = scene.id();
        for _ in 0..PARTS {
            scene.pass(WorkloadLogPart::Data, "line").await;
        }
        end(&scene, &session);
        drop(here);
        session.stream().over.cancelled().await;
        // Its input goes to no agent any more, and the audit log has the end.
        assert!(scene.orders.sessions_of(&agent()).is_empty());
        assert_eq!(scene.orders.input(&agent(), id).await.unwrap_err().code, ErrorCode::NotFound);
        assert_eq!(ended.await.is_ok_and(|end| end.contains(told)), !told.is_empty());
        // The parts before are the reader's.
        for _ in 0..PARTS {
            assert_eq!(text(session.next().await), "line");
        }
        match told {
            "" => assert_eq!(session.next().await, None),
            told => assert!(text(session.next().await).contains(told)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_was_started_again_is_told_at_once_though_the_reader_takes_nothing() {
    let scene = Scene::new();
    let _here = scene.presence.connected(agent());
    let (session, _ended) = scene.running(open_content(b"")).await;
    for _ in 0..PARTS {
        scene.pass(WorkloadLogPart::Data, "line").await;
    }
    let agent = agent();
    let again = scene.orders.pass(&agent, scene.id(), (WorkloadLogPart::Begun, Bytes::new()));
    let refused = again.now_or_never().expect("it waits for room").unwrap_err();
    assert_eq!(refused.code, ErrorCode::AlreadyExists);
    drop(session);
}
