//! The requests.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use wasip2::{
    exports::http::incoming_handler::Guest,
    http::types::{Fields, IncomingRequest, Method, OutgoingBody, OutgoingResponse, ResponseOutparam},
    io::streams::StreamError,
};

use crate::{DIRECTORY, LONGEST, numbers, over};

/// The bytes of one write, as WASI allows.
const CHUNK: usize = 4 << 10;

struct Server;

wasip2::http::proxy::export!(Server);

impl Guest for Server {
    fn handle(request: IncomingRequest, answer: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        let (code, text) = match (request.method(), path.as_str()) {
            (Method::Get, "/") => told(list().map(|notes| (200, notes))),
            (Method::Post, "/") => told(take(&request)),
            (_, "/") => (405, "GET lists the notes, POST adds one\n".to_owned()),
            _ => (404, "there is one place: /\n".to_owned()),
        };
        say(answer, code, &text);
    }
}

fn told(done: io::Result<(u16, String)>) -> (u16, String) {
    done.unwrap_or_else(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (507, "there is no room for it\n".to_owned())
        }
        _ => (500, format!("{error}\n")),
    })
}

/// Returns the numbers of the notes, the newest first.
fn kept() -> io::Result<Vec<u64>> {
    let entries = fs::read_dir(DIRECTORY)?;
    Ok(numbers(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok())))
}

fn list() -> io::Result<String> {
    let mut text = String::new();
    for number in kept()? {
        // One that was removed meanwhile is no note.
        if let Ok(note) = fs::read_to_string(Path::new(DIRECTORY).join(number.to_string())) {
            text.push_str(note.trim_end());
            text.push('\n');
        }
    }
    Ok(text)
}

fn take(request: &IncomingRequest) -> io::Result<(u16, String)> {
    let Some(note) = body(request) else {
        return Ok((413, format!("a note has {LONGEST} bytes at most\n")));
    };
    // A note is a line of the list.
    let note = String::from_utf8_lossy(&note).replace(['\r', '\n'], " ");
    if note.trim().is_empty() {
        return Ok((400, "the note is empty\n".to_owned()));
    }
    let before = kept()?;
    let mut number = before.first().map_or(1, |newest| newest + 1);
    let mut file = loop {
        let path = Path::new(DIRECTORY).join(number.to_string());
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            opened => break opened?,
        }
    };
    file.write_all(note.as_bytes())?;
    file.sync_all()?;
    for number in over(&before) {
        let _ = fs::remove_file(Path::new(DIRECTORY).join(number.to_string()));
    }
    Ok((201, format!("note {number}\n")))
}

/// Returns the body of a request, if it is not too long.
fn body(request: &IncomingRequest) -> Option<Vec<u8>> {
    let body = request.consume().ok()?;
    let stream = body.stream().ok()?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(LONGEST) {
            Ok(piece) => bytes.extend(piece),
            Err(StreamError::Closed) => return Some(bytes),
            Err(StreamError::LastOperationFailed(_)) => return None,
        }
        if bytes.len() as u64 > LONGEST {
            return None;
        }
    }
}

/// Answers with a text. A client that has gone misses it.
fn say(answer: ResponseOutparam, status: u16, text: &str) {
    let fields = Fields::new();
    let _ = fields.append("content-type", b"text/plain; charset=utf-8");
    let response = OutgoingResponse::new(fields);
    let _ = response.set_status_code(status);
    let Ok(body) = response.body() else { return };
    ResponseOutparam::set(answer, Ok(response));
    if let Ok(stream) = body.write() {
        for chunk in text.as_bytes().chunks(CHUNK) {
            if stream.blocking_write_and_flush(chunk).is_err() {
                break;
            }
        }
    }
    let _ = OutgoingBody::finish(body, None);
}
