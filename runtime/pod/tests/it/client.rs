//! A client, by hand: it can send what no library would.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::Duration,
};

use serde_json::{Value, json};

/// A client of a pod.
pub(crate) struct Client(pub(crate) PathBuf);

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn message(&self) -> String {
        self.json()["result"]["message"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(crate) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.0).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Sends bytes, and reads one response without chunks, or to the end of the connection.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Response {
        let mut stream = self.connect();
        // A pod that refuses early may close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let at = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap_or_else(|| {
            panic!("no response: {:?}", String::from_utf8_lossy(&answer));
        });
        let head = String::from_utf8_lossy(&answer[..at]).into_owned();
        let mut body = answer[at + 4..].to_vec();
        if head.to_lowercase().contains("transfer-encoding: chunked") {
            body = joined(&body);
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Response { status, body }
    }

    pub(crate) fn send(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Response {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        self.raw(&[head.as_bytes(), body].concat())
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.send("GET", path, "application/json", b"")
    }

    pub(crate) fn result(&self, path: &str) -> Value {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", String::from_utf8_lossy(&response.body));
        response.json()["result"].clone()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, "application/json", body.to_string().as_bytes())
    }

    pub(crate) fn add_layer(&self, yaml: &str) {
        let body = json!({ "action": "add", "combine": true, "label": "l", "format": "yaml", "layer": yaml });
        let response = self.post("/v1/layers", &body);
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
    }

    /// Acts on services, waits for the change, and returns it.
    pub(crate) fn act(&self, action: &str, services: &[&str]) -> Value {
        let response = self.post("/v1/services", &json!({ "action": action, "services": services }));
        assert_eq!(response.status, 202, "{}", String::from_utf8_lossy(&response.body));
        self.result(&format!("/v1/changes/{}/wait?timeout=20s", response.json()["change"].as_str().unwrap()))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let response = self.get("/v1/logs?n=-1");
        let text = String::from_utf8(response.body).unwrap();
        let message =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["message"].as_str().unwrap().to_owned();
        text.lines().map(message).collect()
    }
}

/// Joins the chunks of a body.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = chunks.windows(2).position(|it| it == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&chunks[..at]).unwrap(), 16).unwrap();
        if length == 0 {
            break;
        }
        body.extend_from_slice(&chunks[at + 2..at + 2 + length]);
        chunks = &chunks[at + 4 + length..];
    }
    body
}
