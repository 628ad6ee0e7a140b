//! One HTTP/1.1 request of a connection with TLS, as a test's issuer reads and answers it.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The timeout of a client that sends nothing.
const SENDS_WITHIN: Duration = Duration::from_secs(30);

/// The most bytes of a request.
const MAX_REQUEST: u64 = 64 << 10;

/// A request, as far as the issuer uses it.
pub(super) struct WireRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) authorization: Option<String>,
    pub(super) form: BTreeMap<String, String>,
}

/// The status and the text of an answer.
pub(super) type WireAnswer = (u16, String);

/// Answers one request, and closes the connection.
pub(super) fn serve_one(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    answer: impl FnOnce(&WireRequest) -> anyhow::Result<WireAnswer>,
) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(SENDS_WITHIN))?;
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(config)?, stream));
    let request = read(&mut stream)?;
    let (status, text) = answer(&request).unwrap_or_else(|error| (500, format!("{error:#}")));
    let mut stream = stream.into_inner();
    let location = if status == 302 { "Location: https://127.0.0.1/elsewhere\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} Answer\r\nContent-Length: {}\r\n{location}Connection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())?;
    stream.conn.send_close_notify();
    stream.flush()?;
    Ok(())
}

fn read(stream: &mut BufReader<StreamOwned<ServerConnection, TcpStream>>) -> anyhow::Result<WireRequest> {
    let mut bounded = stream.take(MAX_REQUEST);
    let mut line = || -> anyhow::Result<String> {
        let mut line = String::new();
        bounded.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next().context("no method")?, words.next().context("no path")?);
    let (mut authorization, mut length) = (None, 0);
    loop {
        let header = line()?;
        let Some((name, value)) = header.split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse()?,
            _ => {}
        }
    }
    let mut content = vec![0; usize::try_from(MAX_REQUEST)?.min(length)];
    bounded.read_exact(&mut content)?;
    let content = String::from_utf8(content)?;
    let pairs = content.split('&').filter_map(|pair| pair.split_once('='));
    let form = pairs.map(|(name, value)| (name.to_owned(), unescaped(value))).collect();
    Ok(WireRequest { method, path, authorization, form })
}

/// Returns the text of a form's value.
fn unescaped(value: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), value.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        let digits = others.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(match (first, code) {
            (_, Some(code)) => code,
            (b'+', None) => b' ',
            (other, None) => *other,
        });
        rest = if code.is_some() { others.get(2..).unwrap_or_default() } else { others };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
