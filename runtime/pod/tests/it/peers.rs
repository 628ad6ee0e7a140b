//! Peers that are wrong, silent or greedy.

use std::{
    io::{Read as _, Write as _},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::pod::{Pod, until};

#[test]
fn bytes_that_are_wrong_get_an_error_and_the_pod_goes_on() {
    let pod = Pod::start();
    let client = pod.client();
    for (bytes, status) in [
        (b"\0\xff\r\n\r\n".as_slice(), 400),
        (b"GET /v1/plan HTTP/9.9\r\n\r\n", 400),
        (b"GET /v1/nothing HTTP/1.0\r\n\r\n", 404),
        (b"PUT /v1/plan HTTP/1.0\r\n\r\n", 405),
        (b"POST /v1/layers HTTP/1.0\r\nContent-Length: 4\r\n\r\nnull", 400),
        (b"GET /v1/tasks/1/websocket/stdio HTTP/1.0\r\n\r\n", 400),
        (b"GET /v1/tasks/1/websocket/other HTTP/1.0\r\n\r\n", 404),
        (b"GET /v1/changes/99999999999999999999 HTTP/1.0\r\n\r\n", 404),
        (b"GET /v1/changes/%ff HTTP/1.0\r\n\r\n", 400),
        (b"GET /v1/notices?after=never HTTP/1.0\r\n\r\n", 400),
        (b"GET /v1/health?level=high HTTP/1.0\r\n\r\n", 400),
    ] {
        let response = client.raw(bytes);
        assert_eq!(response.status, status, "{}: {response:?}", String::from_utf8_lossy(bytes));
    }
    let head = [b"GET / HTTP/1.0\r\nX: ".as_slice(), &vec![b'a'; 200_000]].concat();
    assert_eq!(client.raw(&head).status, 431);
    assert_eq!(client.get("/v1/system-info").status, 200);
}

#[test]
fn what_is_too_large_is_refused() {
    let pod = Pod::start();
    let client = pod.client();
    let layer = json!({ "action": "add", "combine": true, "label": "l", "format": "yaml", "layer": "#".repeat(2 << 20) });
    let refused = client.post("/v1/layers", &layer);
    assert!(refused.status == 400 && refused.message().contains("at most"), "{refused:?}");
    let refused = client.send("POST", "/v1/layers", "application/json", &vec![b' '; 9 << 20]);
    assert_eq!(refused.status, 400);
    let data =
        json!({ "action": "add", "type": "custom", "key": "a.b/c", "data": { "x": "y".repeat(5_000) } });
    assert!(client.post("/v1/notices", &data).message().contains("bytes or less"));
    let command = json!({ "command": ["true", "x".repeat(600_000)] });
    assert!(client.post("/v1/exec", &command).message().contains("more than"));
}

#[test]
fn silent_peers_keep_nobody_else_from_the_pod() {
    let pod = Pod::start();
    let client = pod.client();
    let before = pod.descriptors();
    let mut silent = Vec::new();
    for bytes in [b"".as_slice(), b"GET /v1/pl", b"POST /v1/layers HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{"]
    {
        for _ in 0..50 {
            let mut stream = client.connect();
            stream.write_all(bytes).unwrap();
            silent.push(stream);
        }
    }
    assert_eq!(client.get("/v1/plan?format=yaml").status, 200);
    drop(silent);
    until("their descriptors are closed", || pod.descriptors() <= before);
}

#[test]
fn a_client_that_goes_away_while_it_waits_is_forgotten() {
    let pod = Pod::start();
    let client = pod.client();
    client.add_layer("checks: {c: {override: replace, period: 1000s, exec: {command: 'true'}}}");
    // More than may wait at a time.
    for _ in 0..5 {
        let waiting: Vec<_> = (0..100)
            .map(|_| {
                let mut stream = client.connect();
                stream.write_all(b"GET /v1/changes/1/wait HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
                stream
            })
            .collect();
        drop(waiting);
    }
    until("there is room for one that waits", || client.get("/v1/changes/1/wait?timeout=1ms").status == 504);
}

#[test]
fn commands_that_nobody_connects_to_make_room_again() {
    let pod = Pod::start();
    let client = pod.client();
    let begin = || client.post("/v1/exec", &json!({ "command": ["true"] })).status;
    let began = Instant::now();
    assert!((0..64).all(|_| begin() == 202));
    // The first one makes room again after 5 s, which all may take on a slow machine.
    let status = begin();
    assert!(status == 503 || began.elapsed() >= Duration::from_secs(5), "{status}");
    until("their time is over", || begin() == 202);
}

#[test]
fn a_reader_of_logs_sees_what_comes() {
    let pod = Pod::start();
    let client = pod.client();
    client.add_layer(
        "services: {a: {override: replace, command: \"sh -c 'while :; do echo tick; sleep 0.1; done'\"}}",
    );
    let mut follower = client.connect();
    follower.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    follower.write_all(b"GET /v1/logs?follow=true HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    client.act("start", &["a"]);
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while seen.matches("tick").count() < 3 {
        let length = follower.read(&mut buffer).unwrap();
        assert!(length > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
}

#[test]
fn an_upload_is_answered_once_all_of_it_has_come() {
    let pod = Pod::start();
    let path = pod.directory().join("file").display().to_string();
    let order = json!({ "action": "write", "files": [{ "path": path }] });
    let form = format!(
        "--b\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n{order}\r\n--b\r\nContent-Disposition: \
         form-data; name=\"files\"; filename=\"{path}\"\r\n\r\ncontent\r\n--b--\r\n"
    );
    let head = "POST /v1/files HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\
                Content-Type: multipart/form-data; boundary=b\r\n\r\n";
    let mut stream = pod.client().connect();
    stream.write_all(format!("{head}{:x}\r\n{form}\r\n", form.len()).as_bytes()).unwrap();
    until("the file is there", || std::fs::read_to_string(&path).is_ok_and(|content| content == "content"));
    // The last chunk is still to come: an answer would close the connection under it.
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    stream.read(&mut [0; 1]).unwrap_err();
    stream.write_all(b"0\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
