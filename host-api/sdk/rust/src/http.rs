//! HTTP/1.1 on a stream to a workload: one exchange, within bounds.

use std::io::{self, Read, Write};

use crate::{Context as _, Error, Result};

/// The most bytes of a response's head.
const MAX_HEAD: usize = 64 << 10;

/// The bytes of one read.
const PIECE: usize = 64 << 10;

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

/// Sends a request, and reads a response whose body has at most `most` bytes.
pub(crate) fn exchange(
    stream: &mut (impl Read + Write),
    request: &HttpRequest<'_>,
    most: usize,
) -> Result<HttpResponse> {
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
    let mut received = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let length = read(stream, &mut piece).context("reading a response")?;
        received.extend_from_slice(piece.get(..length).unwrap_or_default());
        if let Some(response) = parse(&received, length == 0, most).map_err(Error::new)? {
            return Ok(response);
        }
    }
}

fn read(stream: &mut impl Read, piece: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Reads a response from the bytes that have come; none if more must come.
fn parse(received: &[u8], is_all: bool, most: usize) -> Result<Option<HttpResponse>, String> {
    let cut_off = || "the response was cut off".to_owned();
    let Some(end) = received.windows(4).take(MAX_HEAD).position(|bytes| bytes == b"\r\n\r\n") else {
        return match (received.len() > MAX_HEAD, is_all) {
            (true, _) => Err(format!("the head of the response has more than {MAX_HEAD} bytes")),
            (false, true) => Err(cut_off()),
            (false, false) => Ok(None),
        };
    };
    let (head, rest) = received.split_at_checked(end + 4).ok_or_else(cut_off)?;
    let head = Head::read(head)?;
    let too_large = || format!("the body of the response has more than {most} bytes");
    let body = match head.length {
        BodyLength::Known(length) if length > most => return Err(too_large()),
        BodyLength::Known(length) => rest.get(..length).map(<[u8]>::to_vec),
        BodyLength::Chunked => chunks(rest, most, too_large)?,
        BodyLength::Open if rest.len() > most => return Err(too_large()),
        BodyLength::Open => is_all.then(|| rest.to_vec()),
    };
    match body {
        Some(body) => Ok(Some(HttpResponse { status: head.status, body })),
        None if is_all => Err(cut_off()),
        None => Ok(None),
    }
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

struct Head {
    status: u16,
    length: BodyLength,
}

impl Head {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let mut first = lines.next().unwrap_or_default().split(' ');
        let (version, status) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
        let status = status.parse().ok().filter(|_| version.starts_with("HTTP/1."));
        let status: u16 = status.ok_or("the response is no HTTP/1.1")?;
        let mut length = match status {
            204 | 304 => BodyLength::Known(0),
            _ => BodyLength::Open,
        };
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            match name.as_str() {
                "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => length = BodyLength::Chunked,
                "transfer-encoding" => return Err(format!("the response is encoded as {value:?}")),
                "content-length" if length != BodyLength::Chunked => {
                    let bytes = value.parse().map_err(|_| "the response has no valid length".to_owned())?;
                    length = BodyLength::Known(bytes);
                }
                _ => {}
            }
        }
        Ok(Self { status, length })
    }
}

/// Returns the content of chunks; none if more must come.
fn chunks(mut rest: &[u8], most: usize, too_large: impl Fn() -> String) -> Result<Option<Vec<u8>>, String> {
    let wrong = || "a chunk of the response has no valid length".to_owned();
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|bytes| bytes == b"\r\n") else {
            return if rest.len() > PIECE { Err(wrong()) } else { Ok(None) };
        };
        let (line, after) = rest.split_at_checked(end).ok_or_else(wrong)?;
        let line = std::str::from_utf8(line).map_err(|_| wrong())?;
        let length = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16);
        let length = length.map_err(|_| wrong())?;
        if length == 0 {
            // Fields may follow the last chunk. Nothing here needs them.
            return Ok(Some(body));
        }
        if length > most.saturating_sub(body.len()) {
            return Err(too_large());
        }
        let content = after.get(2..).unwrap_or_default();
        let Some((content, next)) = content.split_at_checked(length) else { return Ok(None) };
        body.extend_from_slice(content);
        match next {
            [b'\r', b'\n', next @ ..] => rest = next,
            [] | [b'\r'] => return Ok(None),
            _ => return Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream whose other end sends pieces, and reads all that comes.
    struct Scripted {
        pieces: Vec<&'static [u8]>,
        sent: Vec<u8>,
    }

    impl Read for Scripted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.pieces.is_empty() {
                return Ok(0);
            }
            let piece = self.pieces.remove(0);
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
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
        let mut stream = Scripted { pieces: pieces.to_vec(), sent: Vec::new() };
        let response = exchange(&mut stream, &HttpRequest::get("/page?x=y"), most);
        assert!(stream.sent.starts_with(b"GET /page?x=y HTTP/1.1\r\nHost: localhost\r\n"));
        response.map(|it| (it.status, it.text())).map_err(|error| error.to_string())
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
        for (piece, error) in [
            (b"".as_slice(), "the response was cut off"),
            (b"HTTP/1.1 200 OK\r\n", "the response was cut off"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", "the response was cut off"),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                "the response was cut off",
            ),
            (b"SSH-2.0\r\n\r\n", "the response is no HTTP/1.1"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "the response has no valid length"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "the response is encoded as \"gzip\""),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
                "a chunk of the response has no valid length",
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
                "a chunk of the response has no valid length",
            ),
        ] {
            assert_eq!(answer(&[piece], 100).unwrap_err(), error, "{}", String::from_utf8_lossy(piece));
        }
        let mut stream = Scripted { pieces: Vec::new(), sent: Vec::new() };
        let injected = exchange(&mut stream, &HttpRequest::get("/ HTTP/1.1\r\nX: y"), 1);
        assert!(injected.unwrap_err().to_string().contains("is no path of a request"));
        assert!(stream.sent.is_empty());
    }

    #[test]
    fn a_head_without_an_end_is_an_error() {
        let piece: &'static [u8] = Box::leak(vec![b'x'; PIECE].into_boxed_slice());
        let error = answer(&[piece, piece], 1).unwrap_err();
        assert_eq!(error, "the head of the response has more than 65536 bytes");
    }
}
