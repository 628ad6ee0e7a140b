//! HTTP/1.1 on a stream to a workload: one exchange, within bounds.

use std::io::{Read, Write};

use crate::{Context as _, Error, Result, incoming::Incoming};

/// The most bytes of a response's head.
const MAX_HEAD: usize = 64 << 10;

/// The most bytes of the line before a chunk.
const MAX_CHUNK_LINE: usize = 1 << 10;

/// A workload's answer to a request by HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status, such as 200.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Returns true for a status from 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the body as text. Bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpRequest<'a> {
    pub(crate) method: &'a str,
    /// The path with its query.
    pub(crate) path: &'a str,
    /// The type of the body.
    pub(crate) kind: &'a str,
    pub(crate) body: &'a [u8],
}

impl<'a> HttpRequest<'a> {
    /// Creates a request without a body.
    pub(crate) fn get(path: &'a str) -> Self {
        Self { method: "GET", path, kind: "text/plain", body: &[] }
    }
}

/// Sends a request, and reads a response whose body has at most `most` bytes. Returns its type beside it.
pub(crate) fn exchange(
    stream: &mut (impl Read + Write),
    request: &HttpRequest<'_>,
    most: usize,
) -> Result<(String, HttpResponse)> {
    let HttpRequest { method, path, kind, body } = request;
    if !path.starts_with('/') || path.contains(|letter: char| letter.is_ascii_control() || letter == ' ') {
        return Err(Error::new(format!("{path:?} is no path of a request")));
    }
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).context("sending a request")?;
    let mut incoming = Incoming::new(stream);
    let head = Head::receive(&mut incoming)?;
    let too_large = || Error::new(format!("the body of the response has more than {most} bytes"));
    let body = match head.length {
        BodyLength::Known(length) if length > most => return Err(too_large()),
        BodyLength::Known(length) => {
            let mut body = Vec::new();
            incoming.exactly(length, &mut body)?;
            body
        }
        BodyLength::Chunked => chunks(&mut incoming, most)?.ok_or_else(too_large)?,
        BodyLength::Open => incoming.rest(most)?.ok_or_else(too_large)?,
    };
    Ok((head.kind, HttpResponse { status: head.status, body }))
}

/// The length of a body.
#[derive(Debug, PartialEq, Eq)]
enum BodyLength {
    /// So many bytes.
    Known(usize),
    /// Chunks, each with its length.
    Chunked,
    /// All bytes until the stream ends.
    Open,
}

/// The head of a response.
pub(crate) struct Head {
    pub(crate) status: u16,
    /// The type of the body.
    kind: String,
    /// The answer to a websocket's key.
    pub(crate) accept: String,
    length: BodyLength,
}

impl Head {
    pub(crate) fn receive(incoming: &mut Incoming<impl Read>) -> Result<Self> {
        let bytes = incoming.until(b"\r\n\r\n", MAX_HEAD)?;
        let bytes = bytes
            .ok_or_else(|| Error::new(format!("the head of the response has more than {MAX_HEAD} bytes")))?;
        Self::read(&bytes).map_err(Error::new)
    }

    fn read(bytes: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let mut first = lines.next().unwrap_or_default().split(' ');
        let (version, status) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
        let status = status.parse().ok().filter(|_| version.starts_with("HTTP/1."));
        let status: u16 = status.ok_or("the response is no HTTP/1.1")?;
        let length = match status {
            204 | 304 => BodyLength::Known(0),
            _ => BodyLength::Open,
        };
        let mut head = Self { status, kind: String::new(), accept: String::new(), length };
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            match name.as_str() {
                "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => {
                    head.length = BodyLength::Chunked;
                }
                "transfer-encoding" => return Err(format!("the response is encoded as {value:?}")),
                "content-length" if head.length != BodyLength::Chunked => {
                    let bytes = value.parse().map_err(|_| "the response has no valid length".to_owned())?;
                    head.length = BodyLength::Known(bytes);
                }
                "content-type" => value.clone_into(&mut head.kind),
                "sec-websocket-accept" => value.clone_into(&mut head.accept),
                _ => {}
            }
        }
        Ok(head)
    }
}

/// Returns the content of chunks; none if it has more bytes than `most`.
fn chunks(incoming: &mut Incoming<impl Read>, most: usize) -> Result<Option<Vec<u8>>> {
    let wrong = || Error::new("a chunk of the response has no valid length");
    let mut body = Vec::new();
    loop {
        let line = incoming.until(b"\r\n", MAX_CHUNK_LINE)?.ok_or_else(wrong)?;
        let line = std::str::from_utf8(&line).map_err(|_| wrong())?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let length = usize::from_str_radix(digits, 16).ok().filter(|_| is_hex).ok_or_else(wrong)?;
        if length == 0 {
            // Fields may follow the last chunk. Nothing here needs them.
            return Ok(Some(body));
        }
        if length > most.saturating_sub(body.len()) {
            return Ok(None);
        }
        incoming.exactly(length, &mut body)?;
        let mut end = Vec::new();
        incoming.exactly(2, &mut end)?;
        if end != b"\r\n" {
            return Err(wrong());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, io};

    use super::*;

    /// A stream whose other end sends pieces, and reads all that comes.
    struct Scripted {
        pieces: VecDeque<&'static [u8]>,
        sent: Vec<u8>,
    }

    impl Read for Scripted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(piece) = self.pieces.pop_front() else { return Ok(0) };
            let length = piece.len().min(buffer.len());
            buffer[..length].copy_from_slice(&piece[..length]);
            if length < piece.len() {
                self.pieces.push_front(&piece[length..]);
            }
            Ok(length)
        }
    }

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.sent.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answer(pieces: &[&'static [u8]], most: usize) -> Result<(u16, String), String> {
        let mut stream = Scripted { pieces: pieces.iter().copied().collect(), sent: Vec::new() };
        let response = exchange(&mut stream, &HttpRequest::get("/page?x=y"), most);
        assert!(stream.sent.starts_with(b"GET /page?x=y HTTP/1.1\r\nHost: localhost\r\n"));
        response.map(|(_, it)| (it.status, it.text())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_response_is_read_in_each_form_of_its_length() {
        for pieces in [
            // A server that goes on after the body holds nobody up.
            [b"HTTP/1.1 200 OK\r\nContent-".as_slice(), b"Length: 5\r\n\r\nhello and more"],
            [
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nh",
                b"e\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
            ],
            [b"HTTP/1.0 200 OK\r\n\r\nhe", b"llo"],
        ] {
            assert_eq!(answer(&pieces, 5), Ok((200, "hello".to_owned())), "{pieces:?}");
            assert_eq!(answer(&pieces, 4).unwrap_err(), "the body of the response has more than 4 bytes");
        }
        assert_eq!(answer(&[b"HTTP/1.1 204 No Content\r\n\r\n"], 5), Ok((204, String::new())));
    }

    #[test]
    fn a_response_that_is_wrong_or_cut_off_is_an_error() {
        const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let wrong_chunk = "a chunk of the response has no valid length";
        for (piece, error) in [
            ("", "the response was cut off"),
            ("HTTP/1.1 200 OK\r\n", "the response was cut off"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", "the response was cut off"),
            (&format!("{CHUNKED}5\r\nhello\r\n"), "the response was cut off"),
            (&format!("{CHUNKED}5\r\nhe"), "the response was cut off"),
            ("SSH-2.0\r\n\r\n", "the response is no HTTP/1.1"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "the response has no valid length"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "the response is encoded as \"gzip\""),
            (&format!("{CHUNKED}ffffffffffffffffff\r\n"), wrong_chunk),
            (&format!("{CHUNKED}+1\r\na\r\n0\r\n\r\n"), wrong_chunk),
            (&format!("{CHUNKED}-1\r\na\r\n0\r\n\r\n"), wrong_chunk),
            (&format!("{CHUNKED}{}", "0".repeat(2_000)), wrong_chunk),
            (&format!("{CHUNKED}1\r\nab\r\n"), wrong_chunk),
            (&format!("{CHUNKED}7fffffffffffffff\r\nx"), "the body of the response has more than 100 bytes"),
        ] {
            let piece: &'static [u8] = Box::leak(piece.as_bytes().into());
            assert_eq!(answer(&[piece], 100).unwrap_err(), error, "{}", String::from_utf8_lossy(piece));
        }
        let mut stream = Scripted { pieces: VecDeque::new(), sent: Vec::new() };
        let injected = exchange(&mut stream, &HttpRequest::get("/ HTTP/1.1\r\nX: y"), 1);
        assert!(injected.unwrap_err().to_string().contains("is no path of a request"));
        assert!(stream.sent.is_empty());
    }

    #[test]
    fn a_head_without_an_end_is_an_error() {
        let piece: &'static [u8] = Box::leak(vec![b'x'; 64 << 10].into_boxed_slice());
        let error = answer(&[piece, piece], 1).unwrap_err();
        assert_eq!(error, "the head of the response has more than 65536 bytes");
    }

    #[test]
    fn a_large_response_costs_no_more_for_each_byte_than_a_small_one() {
        // With a parser that starts anew at each piece, these chunks would take minutes.
        let mut pieces = vec![b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice()];
        pieces.extend(std::iter::repeat_n(b"1\r\nx\r\n".as_slice(), 50_000));
        pieces.push(b"0\r\n\r\n");
        let (_, body) = answer(&pieces, 1 << 20).unwrap();
        assert_eq!(body.len(), 50_000);
    }
}
