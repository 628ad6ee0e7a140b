//! The notes of other units, which their servers tell.

use wasip2::{
    http::{
        outgoing_handler,
        types::{ErrorCode, Fields, OutgoingRequest, RequestOptions, Scheme},
    },
    io::streams::StreamError,
};

/// The nanoseconds in which a server must answer. The page is shown without what is late.
const WITHIN: u64 = 2_000_000_000;

/// The most bytes of one server's notes that are shown.
const MOST: usize = 64 << 10;

/// The bytes of one read.
const PIECE: u64 = 4 << 10;

/// Returns the notes of the servers at some places, which are separated by spaces.
pub(crate) fn all(places: &str) -> String {
    places
        .split_whitespace()
        .map(|place| of(place).unwrap_or_else(|reason| format!("{place}: {reason}\n")))
        .collect()
}

fn of(place: &str) -> Result<String, String> {
    let request = OutgoingRequest::new(Fields::new());
    let asked = request
        .set_scheme(Some(&Scheme::Http))
        .and_then(|()| request.set_authority(Some(place)))
        .and_then(|()| request.set_path_with_query(Some("/")));
    asked.map_err(|()| "this is no place of a server".to_owned())?;
    let options = RequestOptions::new();
    // Times that the host does not know bound nothing, and the host's own do.
    let _ = options.set_connect_timeout(Some(WITHIN));
    let _ = options.set_first_byte_timeout(Some(WITHIN));
    let failed = |code: ErrorCode| format!("no notes ({code:?})");
    let coming = outgoing_handler::handle(request, Some(options)).map_err(failed)?;
    coming.subscribe().block();
    let response = match coming.get() {
        Some(Ok(response)) => response.map_err(failed)?,
        Some(Err(())) | None => return Err("no answer".to_owned()),
    };
    match response.status() {
        200 => {}
        status => return Err(format!("the server answers with status {status}")),
    }
    let body = response.consume().map_err(|()| "no answer".to_owned())?;
    let stream = body.stream().map_err(|()| "no answer".to_owned())?;
    let mut notes = Vec::new();
    while notes.len() < MOST {
        match stream.blocking_read(PIECE) {
            Ok(piece) => notes.extend(piece),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(error)) => return Err(error.to_debug_string()),
        }
    }
    Ok(String::from_utf8_lossy(&notes).into_owned())
}
