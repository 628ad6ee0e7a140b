//! A web server as a component: one page, with a title from the environment, a text from a file, and notes of other
//! units; and a number for Prometheus.
//!
//! Each request has an instance of its own, so nothing stays in memory from one to the next.

#[cfg(target_arch = "wasm32")]
mod notes;

#[cfg(target_arch = "wasm32")]
use wasip2::{
    exports::http::incoming_handler::Guest,
    http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam},
};

/// The bytes of one write, as WASI allows.
#[cfg(target_arch = "wasm32")]
const CHUNK: usize = 4 << 10;

#[cfg(target_arch = "wasm32")]
struct Server;

#[cfg(target_arch = "wasm32")]
wasip2::http::proxy::export!(Server);

#[cfg(target_arch = "wasm32")]
impl Guest for Server {
    fn handle(request: IncomingRequest, answer: ResponseOutparam) {
        match request.path_with_query().as_deref() {
            Some("/") => {
                let title = std::env::var("TITLE").unwrap_or_else(|_| "no title".to_owned());
                let text = std::fs::read_to_string("/page.txt").unwrap_or_default();
                let notes = notes::all(&std::env::var("NOTES").unwrap_or_default());
                say(answer, 200, &format!("{title}\n{text}\n{notes}"));
            }
            Some("/metrics") => {
                // A file that the charm has not pushed yet has no bytes.
                let text = std::fs::read("/page.txt").map_or(0, |text| text.len());
                say(answer, 200, &format!("web_page_text_bytes {text}\n"));
            }
            _ => say(answer, 404, "there are / and /metrics\n"),
        }
    }
}

/// Answers with a text. A client that has gone misses it.
#[cfg(target_arch = "wasm32")]
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
