//! Sessions of a keeper, with a pod and an operator that the test plays.

use std::sync::Arc;

use periapt_host_api::{ModelUuid, exec_session::ExecTerminal};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream as PodSide,
    sync::watch,
};
use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};
use uuid::Uuid;

use super::*;
use crate::keeper::tests::fake::FakeController;

/// The requests to a played pod, one by one, and the messages to its control websocket.
#[derive(Clone, Default)]
struct Asked(Arc<watch::Sender<Vec<String>>>);

impl Asked {
    fn note(&self, text: String) {
        self.0.send_modify(|asked| asked.push(text));
    }

    async fn comes(&self, part: &str) {
        let has = |asked: &Vec<String>| asked.iter().any(|text| text.contains(part));
        self.0.subscribe().wait_for(has).await.unwrap();
    }
}

/// Plays a pod whose commands say "err", echo their input to its end, and end with exit code 5.
fn pod(asked: &Asked) -> PodStreams {
    let asked = asked.clone();
    PodStreams::played(&"app/0".parse().unwrap(), move |_| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        tokio::spawn(answer(PodSide::from_std(theirs).unwrap(), asked.clone()));
        Ok(ours)
    })
}

async fn answer(mut stream: PodSide, asked: Asked) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    if path == "/v1/exec" {
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        asked.note(String::from_utf8(body).unwrap());
        let begun = "HTTP/1.0 202 Accepted\r\n\r\n{\"change\":\"1\",\"result\":{\"task-id\":\"2\"}}";
        return stream.write_all(begun.as_bytes()).await.unwrap();
    }
    if path.starts_with("/v1/changes/1/wait") {
        let ended = "HTTP/1.0 200 OK\r\n\r\n{\"result\":{\"tasks\":[{\"data\":{\"exit-code\":5}}]}}";
        return stream.write_all(ended.as_bytes()).await.unwrap();
    }
    stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\n\r\n").await.unwrap();
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    if path.ends_with("/stderr") {
        socket.send(Message::binary(b"err".to_vec())).await.unwrap();
        socket.send(Message::text(END)).await.unwrap();
    }
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Text(text) if path.ends_with("/control") => asked.note(text.as_str().to_owned()),
            Message::Binary(_) => socket.send(message).await.unwrap(),
            Message::Text(_) => socket.send(message).await.unwrap(),
            _ => {}
        }
    }
}

fn order(terminal: Option<ExecTerminal>) -> ExecSessionOrder {
    let (container, command) = ("web".parse().unwrap(), vec!["cat".to_owned()]);
    let request = ExecSessionRequest { container, command, terminal };
    ExecSessionOrder { model: ModelUuid(Uuid::nil()), unit: "app/0".parse().unwrap(), request }
}

fn id() -> RequestId {
    RequestId::from_random_bytes([7; 16])
}

fn said(line: &ExecSessionInput) -> Vec<u8> {
    let mut line = serde_json::to_vec(line).unwrap();
    line.push(b'\n');
    line
}

/// Waits for the last part of a session, and returns it with all lines before.
async fn handed(controller: &FakeController) -> (WorkloadLogPart, String, Vec<ExecSessionOutput>) {
    let is_last =
        |part: &(WorkloadLogPart, Bytes)| matches!(part.0, WorkloadLogPart::End | WorkloadLogPart::Failed);
    let mut parts = controller.operator.parts.subscribe();
    let parts = parts.wait_for(|parts| parts.last().is_some_and(is_last)).await.unwrap().clone();
    assert_eq!(parts.first(), Some(&(WorkloadLogPart::Begun, Bytes::new())));
    let data = parts.iter().filter(|part| part.0 == WorkloadLogPart::Data);
    let lines = data.flat_map(|part| part.1.split(|byte| *byte == b'\n')).filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    let (kind, text) = parts.last().unwrap();
    (*kind, String::from_utf8(text.to_vec()).unwrap(), lines)
}

#[tokio::test]
async fn what_an_operator_says_reaches_the_command_and_its_outputs_and_code_come_back() {
    let (asked, controller) = (Asked::default(), FakeController::without_models());
    let streams = pod(&asked);
    let mut sessions = ExecSessions::default();
    sessions.follow(&controller, [(id(), order(None))].into(), |_| Some(streams.clone()));
    for bytes in [&b"one"[..], b"\0\xff\n"] {
        let chunk = ExecBytes::new(bytes.to_vec()).unwrap();
        controller.operator.say(&said(&ExecSessionInput::Stdin(chunk)));
    }
    let size = TerminalSize { columns: 50, rows: 20 };
    let line = said(&ExecSessionInput::Resize(size));
    // A line may come in two pieces.
    let (first, second) = line.split_at(5);
    controller.operator.say(first);
    controller.operator.say(second);
    asked.comes("\"width\":50").await;
    controller.operator.say(&said(&ExecSessionInput::End));
    let (kind, text, lines) = handed(&controller).await;
    assert_eq!((kind, &*text), (WorkloadLogPart::End, "5"));
    assert_eq!(lines.first(), Some(&ExecSessionOutput::Running));
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    for line in lines {
        match line {
            ExecSessionOutput::Stdout(bytes) => stdout.extend(bytes.into_bytes()),
            ExecSessionOutput::Stderr(bytes) => stderr.extend(bytes.into_bytes()),
            _ => {}
        }
    }
    assert_eq!((stdout, stderr), (b"one\0\xff\n".to_vec(), b"err".to_vec()));
    asked.comes("\"split-stderr\":true").await;
}

#[tokio::test]
async fn a_part_for_which_an_operator_has_no_room_is_handed_over_again_and_comes_once() {
    let (asked, controller) = (Asked::default(), FakeController::without_models());
    let streams = pod(&asked);
    *controller.operator.pauses.lock() = 5;
    let mut sessions = ExecSessions::default();
    sessions.follow(&controller, [(id(), order(None))].into(), |_| Some(streams.clone()));
    controller.operator.parts.subscribe().wait_for(|parts| parts.len() >= 2).await.unwrap();
    *controller.operator.pauses.lock() = 7;
    controller.operator.say(&said(&ExecSessionInput::Stdin(ExecBytes::new(b"one".to_vec()).unwrap())));
    controller.operator.say(&said(&ExecSessionInput::End));
    let (kind, text, lines) = handed(&controller).await;
    assert_eq!((kind, &*text), (WorkloadLogPart::End, "5"));
    assert_eq!(*controller.operator.pauses.lock(), 0, "each pause was met");
    let count = |wanted: &ExecSessionOutput| lines.iter().filter(|line| *line == wanted).count();
    let bytes = |text: &[u8]| ExecBytes::new(text.to_vec()).unwrap();
    for line in [
        ExecSessionOutput::Running,
        ExecSessionOutput::Stdout(bytes(b"one")),
        ExecSessionOutput::Stderr(bytes(b"err")),
    ] {
        assert_eq!(count(&line), 1, "{line:?} of {lines:?}");
    }
}

#[tokio::test]
async fn a_session_that_is_gone_hangs_its_command_up_and_kills_it() {
    let (asked, controller) = (Asked::default(), FakeController::without_models());
    let streams = pod(&asked);
    let mut sessions = ExecSessions::default();
    let size = TerminalSize { columns: 99, rows: 33 };
    let terminal = ExecTerminal { size, term: Some("xterm".to_owned()) };
    let orders = BTreeMap::from([(id(), order(Some(terminal)))]);
    sessions.follow(&controller, orders.clone(), |_| Some(streams.clone()));
    controller.operator.parts.subscribe().wait_for(|parts| parts.len() >= 2).await.unwrap();
    sessions.follow(&controller, orders, |_| panic!("it is served"));
    sessions.follow(&controller, BTreeMap::new(), |_| None);
    asked.comes("SIGHUP").await;
    asked.comes("SIGKILL").await;
    let (kind, ..) = handed(&controller).await;
    assert_eq!(kind, WorkloadLogPart::Failed);
    for part in ["\"terminal\":true", "\"width\":99", "\"TERM\":\"xterm\""] {
        asked.comes(part).await;
    }
}

#[tokio::test]
async fn a_session_without_its_pod_or_with_input_that_is_none_fails_with_the_reason() {
    let controller = FakeController::without_models();
    let mut sessions = ExecSessions::default();
    sessions.follow(&controller, [(id(), order(None))].into(), |_| None);
    let (kind, text, _) = handed(&controller).await;
    assert_eq!((kind, &*text), (WorkloadLogPart::Failed, "unit app/0 is not on this agent"));

    let (asked, controller) = (Asked::default(), FakeController::without_models());
    let streams = pod(&asked);
    let mut sessions = ExecSessions::default();
    sessions.follow(&controller, [(id(), order(None))].into(), |_| Some(streams.clone()));
    controller.operator.say(b"nonsense\n");
    let (kind, text, _) = handed(&controller).await;
    assert_eq!(kind, WorkloadLogPart::Failed);
    assert!(text.contains("invalid line of input"), "{text}");
    asked.comes("SIGKILL").await;
}
