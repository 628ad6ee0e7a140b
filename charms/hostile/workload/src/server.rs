//! The server. The path is the mode.

use std::io::Write as _;

use wasip2::{
    exports::http::incoming_handler::Guest,
    http::{
        outgoing_handler,
        types::{
            ErrorCode, Fields, IncomingBody, IncomingRequest, OutgoingBody, OutgoingRequest,
            OutgoingResponse, ResponseOutparam, Scheme,
        },
    },
    io::streams::{OutputStream, StreamError},
};

use crate::{Workload, modes};

/// The bytes of a chunk.
const CHUNK: usize = 4 << 10;

/// The most mebibytes that are written to a file: several times the bounds of tests, and no harm to the test's host.
const MOST_WRITTEN: usize = 64;

impl Guest for Workload {
    fn handle(request: IncomingRequest, answer: ResponseOutparam) {
        let target = request.path_with_query().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        match path {
            "/" => say(answer, 200, "hello\n"),
            "/surroundings" => say(answer, 200, &modes::surroundings()),
            "/escapes" => say(answer, 200, &modes::escapes()),
            "/read" => match std::fs::read_to_string(query) {
                Ok(text) => say(answer, 200, &text),
                Err(error) => say(answer, 404, &format!("{error}\n")),
            },
            "/echo" => echo(&request, answer),
            "/length" => say(answer, 200, &format!("{}\n", length(&request))),
            "/log" => {
                println!("GET /log");
                eprintln!("an error");
                say(answer, 200, "logged\n");
            }
            "/compute" => modes::compute(),
            "/memory" => say(answer, 200, &format!("{}\n", modes::take_memory())),
            "/recurse" => say(answer, 200, &format!("{}\n", modes::recurse(0))),
            "/sleep" => std::thread::sleep(std::time::Duration::from_secs(3_600)),
            "/nap" => nap(answer, 100),
            "/long-nap" => nap(answer, 2_000),
            "/flood" => modes::flood(),
            "/silent" => drop(answer),
            "/abort" => std::process::abort(),
            "/exit" => std::process::exit(3),
            "/refuse" => ResponseOutparam::set(answer, Err(ErrorCode::ConfigurationError)),
            "/for-ever" => {
                let (_body, stream) = begin(answer, 200, Fields::new());
                while send(&stream, &[b'x'; CHUNK]).is_ok() {}
            }
            "/half" => {
                let (_body, stream) = begin(answer, 200, Fields::new());
                let _ = send(&stream, b"half");
                std::process::abort();
            }
            "/headers" => {
                let (fields, value) = (Fields::new(), vec![b'x'; 1 << 10]);
                while fields.append("x-large", &value).is_ok() {}
                let (body, stream) = begin(answer, 200, fields);
                drop(stream);
                let _ = OutgoingBody::finish(body, None);
            }
            "/fill" => say(answer, 200, &format!("{}\n", fill(query))),
            "/fields" => say(answer, 200, &format!("{}\n", fill_fields())),
            "/ask" => ask(answer, query),
            _ => say(answer, 404, "no such mode\n"),
        }
    }
}

fn begin(answer: ResponseOutparam, status: u16, fields: Fields) -> (OutgoingBody, OutputStream) {
    let response = OutgoingResponse::new(fields);
    let _ = response.set_status_code(status);
    let Ok(body) = response.body() else { std::process::abort() };
    ResponseOutparam::set(answer, Ok(response));
    let Ok(stream) = body.write() else { std::process::abort() };
    (body, stream)
}

/// Answers after so many milliseconds.
fn nap(answer: ResponseOutparam, milliseconds: u64) {
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
    say(answer, 200, "awake\n");
}

fn say(answer: ResponseOutparam, status: u16, text: &str) {
    let (body, stream) = begin(answer, status, Fields::new());
    let _ = send(&stream, text.as_bytes());
    drop(stream);
    let _ = OutgoingBody::finish(body, None);
}

fn send(stream: &OutputStream, bytes: &[u8]) -> Result<(), StreamError> {
    for chunk in bytes.chunks(CHUNK) {
        stream.blocking_write_and_flush(chunk)?;
    }
    Ok(())
}

/// Calls a function with each piece of a body.
fn pieces(body: &IncomingBody, mut each: impl FnMut(&[u8])) {
    let Ok(stream) = body.stream() else { return };
    while let Ok(piece) = stream.blocking_read(64 << 10) {
        each(&piece);
    }
}

fn echo(request: &IncomingRequest, answer: ResponseOutparam) {
    let Ok(incoming) = request.consume() else { return };
    let (body, stream) = begin(answer, 200, Fields::new());
    pieces(&incoming, |piece| {
        let _ = send(&stream, piece);
    });
    drop(stream);
    let _ = OutgoingBody::finish(body, None);
}

fn length(request: &IncomingRequest) -> usize {
    let mut length = 0;
    if let Ok(body) = request.consume() {
        pieces(&body, |piece| length += piece.len());
    }
    length
}

/// Writes a file until that is refused, and returns how many mebibytes it has.
fn fill(path: &str) -> usize {
    let Ok(mut file) = std::fs::File::create(path) else { return 0 };
    let piece = vec![b'x'; 1 << 20];
    let mut written = 0;
    while written < MOST_WRITTEN && file.write_all(&piece).is_ok() {
        written += 1;
    }
    written
}

/// Fills maps of fields until one is refused, and then makes more maps than it may have.
fn fill_fields() -> usize {
    let mut maps = Vec::new();
    loop {
        let map = Fields::new();
        let value = vec![b'x'; 1 << 10];
        while map.append("name", &value).is_ok() {}
        maps.push(map);
        if maps.len() > 100_000 {
            return maps.len();
        }
    }
}

/// Asks another server, and tells what came of it.
fn ask(answer: ResponseOutparam, authority: &str) {
    let request = OutgoingRequest::new(Fields::new());
    let _ = request.set_scheme(Some(&Scheme::Http));
    let _ = request.set_authority(Some(authority));
    let _ = request.set_path_with_query(Some("/asked"));
    let text = match outgoing_handler::handle(request, None) {
        Err(code) => format!("refused: {code:?}\n"),
        Ok(future) => {
            future.subscribe().block();
            match future.get() {
                Some(Ok(Ok(response))) => {
                    let mut text = format!("{} ", response.status());
                    if let Ok(body) = response.consume() {
                        pieces(&body, |piece| text.push_str(&String::from_utf8_lossy(piece)));
                    }
                    text
                }
                Some(Ok(Err(code))) => format!("failed: {code:?}\n"),
                _ => "nothing\n".to_owned(),
            }
        }
    };
    say(answer, 200, &text);
}
