//! Contents of files, as parts of a form: first the files, then what became of each path.

use std::{convert::Infallible, fs::File, io::Read as _, path::PathBuf};

use axum::{
    body::Body,
    http::{HeaderValue, header::CONTENT_TYPE},
    response::Response,
};
use bytes::Bytes;
use periapt_pebble::PodRefusal;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::{
    api::answer::refused,
    files::{FileError, Place, open_to_read},
};

/// The bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// The pieces that wait for a client.
const QUEUE: usize = 4;

/// Sends files. A client that goes away ends it.
pub(super) fn read(root: PathBuf, paths: Vec<String>, permit: OwnedSemaphorePermit) -> Response {
    let mut random = [0; 16];
    if let Err(error) = getrandom::fill(&mut random) {
        return refused(PodRefusal { status: 500, kind: None, message: error.to_string() });
    }
    let boundary: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let Ok(kind) = HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}")) else {
        return refused(PodRefusal { status: 500, kind: None, message: "no boundary".to_owned() });
    };
    let (sender, receiver) = mpsc::channel::<Bytes>(QUEUE);
    tokio::task::spawn_blocking(move || {
        let _ = send(&root, &paths, &boundary, &sender);
        drop(permit);
    });
    let stream = futures_util::stream::unfold(receiver, |mut receiver| async move {
        let piece = receiver.recv().await?;
        Some((Ok::<_, Infallible>(piece), receiver))
    });
    let mut response = Response::new(Body::from_stream(stream));
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Sends the parts; none if the client has gone.
fn send(root: &std::path::Path, paths: &[String], boundary: &str, to: &mpsc::Sender<Bytes>) -> Option<()> {
    let mut items: Vec<Value> = Vec::with_capacity(paths.len());
    for path in paths {
        let result = match Place::of(root, path).and_then(|place| open_to_read(&place)) {
            Ok(file) => send_file(path, file, boundary, to)?,
            Err(error) => Err(error),
        };
        items.push(FileError::item(path, &result));
    }
    let response = json!({ "type": "sync", "status-code": 200, "status": "OK", "result": items });
    let head = "Content-Type: application/json\r\nContent-Disposition: form-data; name=\"response\"\r\n\r\n";
    to.blocking_send(format!("--{boundary}\r\n{head}{response}\r\n--{boundary}--\r\n").into()).ok()
}

/// Sends one file; none if the client has gone.
fn send_file(
    path: &str,
    mut file: File,
    boundary: &str,
    to: &mpsc::Sender<Bytes>,
) -> Option<Result<(), FileError>> {
    let name = path.replace('\\', "\\\\").replace('"', "\\\"").replace(['\r', '\n'], "_");
    let head = format!(
        "--{boundary}\r\nContent-Type: application/octet-stream\r\nContent-Disposition: form-data; name=\"files\"; \
         filename=\"{name}\"\r\n\r\n"
    );
    to.blocking_send(head.into()).ok()?;
    let mut buffer = vec![0; CHUNK];
    let result = loop {
        match file.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(length) => {
                to.blocking_send(Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default())).ok()?;
            }
            Err(error) => break Err(FileError::of("read", path, &error)),
        }
    };
    to.blocking_send("\r\n".into()).ok()?;
    Some(result)
}
