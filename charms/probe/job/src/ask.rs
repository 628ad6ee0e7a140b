//! Requests to other servers. WASI preview 1 has none, so a program makes them by the bindings of `wasi:http`.

use wasip2::{
    http::{
        outgoing_handler,
        types::{ErrorCode, Fields, IncomingResponse, OutgoingRequest, Scheme},
    },
    io::streams::StreamError,
};

/// The most bytes of one read.
const PIECE: u64 = 64 << 10;

/// Asks a server by HTTP, and returns the status and the body.
pub(crate) fn ask(authority: &str) -> Result<String, String> {
    let response = send(authority).map_err(|code| format!("{code:?}"))?;
    let mut answer = format!("{} ", response.status()).into_bytes();
    let body = response.consume().map_err(|()| "the answer has no body")?;
    let stream = body.stream().map_err(|()| "the body cannot be read")?;
    loop {
        match stream.blocking_read(PIECE) {
            Ok(piece) => answer.extend(piece),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(_)) => return Err("the answer broke off".to_owned()),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn send(authority: &str) -> Result<IncomingResponse, ErrorCode> {
    let request = OutgoingRequest::new(Fields::new());
    // Each of these refuses what no request may have; the request then fails as a whole.
    let _ = request.set_scheme(Some(&Scheme::Http));
    let _ = request.set_authority(Some(authority));
    let _ = request.set_path_with_query(Some("/asked"));
    let future = outgoing_handler::handle(request, None)?;
    future.subscribe().block();
    match future.get() {
        Some(Ok(answer)) => answer,
        _ => Err(ErrorCode::InternalError(None)),
    }
}
