//! Commands of `exec`, through websockets.

use std::{path::PathBuf, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};

use crate::{client::Client, pod::Pod};

type Websocket = WebSocketStream<UnixStream>;

async fn connect(socket: PathBuf, task: &str, name: &str) -> Websocket {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    let key = STANDARD.encode([7; 16]);
    let head = format!(
        "GET /v1/tasks/{task}/websocket/{name} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    WebSocketStream::from_raw_socket(stream, Role::Client, None).await
}

/// A command and its websockets.
pub(crate) struct Command {
    pub(crate) change: String,
    control: Websocket,
    pub(crate) stdio: Websocket,
    stderr: Option<Websocket>,
}

pub(crate) async fn begin(client: &Client, body: Value) -> Command {
    let socket = client.0.clone();
    let has_stderr = body["split-stderr"] == true;
    let response = client.post("/v1/exec", &body);
    assert_eq!(response.status, 202, "{response:?}");
    let answer = response.json();
    let (change, task) =
        (answer["change"].as_str().unwrap().to_owned(), answer["result"]["task-id"].as_str().unwrap());
    Command {
        change,
        control: connect(socket.clone(), task, "control").await,
        stdio: connect(socket.clone(), task, "stdio").await,
        stderr: match has_stderr {
            true => Some(connect(socket, task, "stderr").await),
            false => None,
        },
    }
}

/// Reads a stream to its end.
pub(crate) async fn output(websocket: &mut Websocket) -> String {
    let mut text = String::new();
    let read = async {
        while let Some(Ok(message)) = websocket.next().await {
            match message {
                Message::Binary(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
                Message::Text(end) if end.as_str() == r#"{"command":"end"}"# => break,
                other => panic!("{other:?}"),
            }
        }
    };
    timeout(Duration::from_secs(30), read).await.unwrap();
    text
}

pub(crate) fn ended(client: &Client, change: &str) -> Value {
    client.result(&format!("/v1/changes/{change}/wait?timeout=20s"))
}

/// Runs a command whose output nobody reads, and returns its change at its end.
pub(crate) fn ended_change(client: &Client, body: &Value) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The client is there until the end: without it the command would be killed.
    let command = runtime.block_on(async { begin(client, body.clone()).await });
    ended(client, &command.change)
}

#[tokio::test]
async fn streams_are_carried_both_ways_and_apart() {
    let pod = Pod::start();
    let script = "cat; echo error >&2; exit 5";
    let body = json!({ "command": ["sh", "-c", script], "split-stderr": true });
    let mut command = begin(&pod.client(), body).await;
    let long = "0123456789abcdef".repeat(20_000);
    for piece in [&long[..100_000], &long[100_000..]] {
        command.stdio.send(Message::Binary(piece.as_bytes().to_vec().into())).await.unwrap();
    }
    command.stdio.send(Message::Text(r#"{"command":"end"}"#.into())).await.unwrap();
    assert!(output(&mut command.stdio).await == long);
    assert_eq!(output(command.stderr.as_mut().unwrap()).await, "error\n");
    let change = ended(&pod.client(), &command.change);
    assert_eq!(change["tasks"][0]["data"], json!({ "exit-code": 5 }));
}

#[tokio::test]
async fn a_terminal_is_one_and_has_a_size() {
    let pod = Pod::start();
    let script = "tty; stty size; read line; stty size; echo got $line";
    let body = json!({ "command": ["sh", "-c", script], "terminal": true, "width": 99, "height": 33 });
    let mut command = begin(&pod.client(), body).await;
    let mut text = String::new();
    while !text.contains("33 99") {
        let message = timeout(Duration::from_secs(20), command.stdio.next()).await.unwrap().unwrap().unwrap();
        text.push_str(&String::from_utf8_lossy(&message.into_data()));
    }
    assert!(text.starts_with("/dev/pts/"), "{text}");
    let resize = json!({ "command": "resize", "resize": { "width": 50, "height": 20 } });
    command.control.send(Message::Text(resize.to_string().into())).await.unwrap();
    // A pong says that the order before it was carried out.
    command.control.send(Message::Ping(b"x".to_vec().into())).await.unwrap();
    assert!(matches!(command.control.next().await, Some(Ok(Message::Pong(_)))));
    command.stdio.send(Message::Binary(b"hello\n".to_vec().into())).await.unwrap();
    let rest = output(&mut command.stdio).await;
    assert!(rest.contains("20 50") && rest.contains("got hello"), "{rest}");
    assert_eq!(ended(&pod.client(), &command.change)["tasks"][0]["data"]["exit-code"], 0);
}

#[tokio::test]
async fn a_command_gets_signals_and_orders_that_are_wrong_change_nothing() {
    let pod = Pod::start();
    let script = "trap 'echo hup; exit 9' HUP; echo ready; while :; do sleep 0.05; done";
    let mut command = begin(&pod.client(), json!({ "command": ["sh", "-c", script] })).await;
    assert_eq!(command.stdio.next().await.unwrap().unwrap().into_data(), "ready\n".as_bytes());
    for order in [
        "not json",
        "{}",
        r#"{"command":"signal"}"#,
        r#"{"command":"signal","signal":{"name":"SIGNOTHING"}}"#,
        r#"{"command":"resize","resize":{"width":1,"height":1}}"#,
        r#"{"command":"resize","resize":{"width":-1,"height":100000}}"#,
        r#"{"command":"signal","signal":{"name":"SIGHUP"}}"#,
    ] {
        command.control.send(Message::Text(order.into())).await.unwrap();
    }
    // The signal goes to the whole group: the shell may tell how its `sleep` ended.
    assert!(output(&mut command.stdio).await.ends_with("hup\n"));
    assert_eq!(ended(&pod.client(), &command.change)["tasks"][0]["data"]["exit-code"], 9);
}

#[tokio::test]
async fn a_command_of_a_client_that_goes_away_ends_when_it_writes() {
    let pod = Pod::start();
    let command = begin(&pod.client(), json!({ "command": ["sh", "-c", "while :; do echo x; done"] })).await;
    let Command { change, mut control, stdio, .. } = command;
    control.close(None).await.unwrap();
    drop((control, stdio));
    assert_eq!(ended(&pod.client(), &change)["tasks"][0]["data"]["exit-code"], 128 + 13);
}

#[tokio::test]
async fn a_command_of_a_client_that_dies_is_killed_though_it_writes_nothing() {
    let pod = Pod::start();
    let command = begin(&pod.client(), json!({ "command": ["sleep", "3600"] })).await;
    let Command { change, control, stdio, .. } = command;
    drop((control, stdio));
    assert_eq!(ended(&pod.client(), &change)["tasks"][0]["data"]["exit-code"], 128 + 9);
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_its_stream_alone() {
    let pod = Pod::start();
    let mut command = begin(&pod.client(), json!({ "command": ["cat"] })).await;
    let _ = command.stdio.send(Message::Binary(vec![0; 2 << 20].into())).await;
    assert_eq!(ended(&pod.client(), &command.change)["status"], "Done");
    assert_eq!(pod.client().get("/v1/system-info").status, 200);
}

#[tokio::test]
async fn what_cannot_be_run_is_named_at_once() {
    let pod = Pod::start();
    let client = pod.client();
    for (body, part) in [
        (json!({ "command": [] }), "must specify command"),
        (json!({ "command": ["no-such-program"] }), "cannot find executable \"no-such-program\""),
        (json!({ "command": ["/etc/passwd"] }), "cannot find executable"),
        (json!({ "command": ["true"], "user": "nobody-here" }), "unknown user"),
        (json!({ "command": ["true"], "service-context": "zz" }), "context service \"zz\" not found"),
        (json!({ "command": ["true"], "environment": { "A=B": "c" } }), "must not be empty or contain"),
        (json!({ "command": ["true", "a\u{0}b"] }), "null byte"),
        (json!({ "command": ["true"], "timeout": "soon" }), "no duration"),
        (json!({ "command": "true" }), "cannot decode"),
    ] {
        let refused = client.post("/v1/exec", &body);
        assert!(refused.status == 400 && refused.message().contains(part), "{body}: {refused:?}");
    }
    let command = begin(&pod.client(), json!({ "command": ["true"], "working-dir": "/no/such" })).await;
    assert!(ended(&pod.client(), &command.change)["err"].as_str().unwrap().contains("does not exist"));
}
