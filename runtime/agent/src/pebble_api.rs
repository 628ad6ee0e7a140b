//! Pebble's API as runner and keeper call it, each request on a stream of its own. A container's answers are bounded.

use std::{io, os::unix::net::UnixStream as Opened};

use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::protocol::{Role, WebSocketConfig},
};

/// The most bytes of an answer: the container could send it without end.
const MAX_ANSWER: u64 = 1 << 20;

/// The most bytes of the head of a websocket.
const MAX_HEAD: usize = 16 << 10;

/// The most bytes of a message on a websocket: Pebble sends far smaller ones.
const MAX_MESSAGE: usize = 1 << 20;

/// The key of all handshakes. It keeps caches from answering, of which there are none on this way.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAA==";

/// The status of a wait that has taken its time.
const TIMED_OUT: &str = "504";

pub(crate) type Socket = WebSocketStream<UnixStream>;

/// The reason that a command in a container has no exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContainerError {
    /// No stream to the container could be opened.
    #[error("{0}")]
    Unreachable(String),
    /// A stream broke.
    #[error("the container's Pebble does not answer: {0}")]
    Broken(#[from] io::Error),
    /// Pebble refused the command, for example because the container has no such program.
    #[error("{0}")]
    Refused(String),
    /// Pebble answered something else.
    #[error("the container's Pebble gave an unknown answer")]
    Unknown,
}

/// An answer with its result.
#[derive(Deserialize)]
pub(crate) struct Answer<T> {
    /// The change that the request began.
    #[serde(default)]
    pub(crate) change: Option<String>,
    pub(crate) result: T,
}

/// The result of a command that was started.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Started {
    pub(crate) task_id: String,
}

/// A change.
#[derive(Deserialize)]
pub(crate) struct Change {
    /// The errors of its tasks, in words.
    #[serde(default)]
    pub(crate) err: Option<String>,
    #[serde(default)]
    pub(crate) tasks: Vec<Task>,
}

#[derive(Deserialize)]
pub(crate) struct Task {
    #[serde(default)]
    pub(crate) data: TaskData,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct TaskData {
    pub(crate) exit_code: Option<i32>,
}

#[derive(Deserialize)]
struct Problem {
    message: String,
}

/// The way to the Pebble of a container.
pub(crate) trait PebbleWay: Send + Sync {
    /// Opens a stream.
    fn open(&self) -> BoxFuture<'_, Result<Opened, ContainerError>>;
}

/// The API of the Pebble of a container.
pub(crate) struct Api<'a> {
    pub(crate) way: &'a dyn PebbleWay,
}

impl Api<'_> {
    /// Sends a request, and returns the answer.
    pub(crate) async fn ask<T: for<'de> Deserialize<'de>>(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<T, ContainerError> {
        let (status, body) = self.exchange(method, path, body).await?;
        decoded(&status, &body)
    }

    /// Returns the text that Pebble shows under a path.
    pub(crate) async fn text(&self, path: &str) -> Result<String, ContainerError> {
        let (status, body) = self.exchange("GET", path, "").await?;
        match status.starts_with('2') {
            true => Ok(body),
            false => Err(decoded::<Answer<()>>(&status, &body).err().unwrap_or(ContainerError::Unknown)),
        }
    }

    /// Waits for a change.
    pub(crate) async fn wait(&self, change: &str) -> Result<Change, ContainerError> {
        let path = format!("/v1/changes/{}/wait?timeout=4s", number(change)?);
        loop {
            let (status, body) = self.exchange("GET", &path, "").await?;
            if status != TIMED_OUT {
                return decoded::<Answer<Change>>(&status, &body).map(|answer| answer.result);
            }
        }
    }

    /// Connects a websocket of a task.
    pub(crate) async fn websocket(&self, task: &str, name: &str) -> Result<Socket, ContainerError> {
        let task = number(task)?;
        let mut stream = self.open().await?;
        let request = format!(
            "GET /v1/tasks/{task}/websocket/{name} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        // Byte by byte: what follows belongs to the websocket.
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() > MAX_HEAD {
                return Err(ContainerError::Unknown);
            }
            head.push(stream.read_u8().await?);
        }
        if !head.starts_with(b"HTTP/1.1 101 ") {
            return Err(ContainerError::Unknown);
        }
        let config =
            WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await)
    }

    /// Sends a request on a stream of its own, and returns the status and the body of the answer.
    async fn exchange(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<(String, String), ContainerError> {
        let mut stream = self.open().await?;
        let length = body.len();
        // In HTTP/1.0 a body has no chunks, and ends with the stream.
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(ContainerError::Unknown)?;
        let status = head.split(' ').nth(1).ok_or(ContainerError::Unknown)?;
        Ok((status.to_owned(), body.to_owned()))
    }

    async fn open(&self) -> Result<UnixStream, ContainerError> {
        let opened = self.way.open().await?;
        opened.set_nonblocking(true)?;
        Ok(UnixStream::from_std(opened)?)
    }
}

fn decoded<T: for<'de> Deserialize<'de>>(status: &str, body: &str) -> Result<T, ContainerError> {
    if status.starts_with('2') {
        return serde_json::from_str(body).map_err(|_| ContainerError::Unknown);
    }
    let problem: Answer<Problem> = serde_json::from_str(body).map_err(|_| ContainerError::Unknown)?;
    Err(ContainerError::Refused(problem.result.message))
}

/// Returns the id of a task or a change, which becomes part of a path, if it has the form of one.
fn number(id: &str) -> Result<&str, ContainerError> {
    let is_number = !id.is_empty() && id.len() < 20 && id.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(id).ok_or(ContainerError::Unknown)
}
