//! HTTP/1.1 as `curl` sends it: requests that the client crate cannot send.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// Returns a response that came by another way.
    pub(crate) fn new(status: u16, body: Vec<u8>) -> Self {
        Self { status, head: String::new(), body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

pub(crate) async fn request(
    address: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    whole(sent(TcpStream::connect(address).await.unwrap(), address, line, headers, body).await).await
}

/// Sends a request without a body from an address of the host's own.
pub(crate) async fn request_from(
    from: Ipv4Addr,
    address: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
) -> Response {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    whole(sent(socket.connect(address).await.unwrap(), address, line, headers, "").await).await
}

async fn whole(mut stream: TcpStream) -> Response {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head, body: bytes[end + 4..].to_vec() }
}

/// Sends a request, and reads the whole of a refusal, but only the head of another answer: a stream does not end.
pub(crate) async fn answered(
    address: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    let mut stream = sent(TcpStream::connect(address).await.unwrap(), address, line, headers, body).await;
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "{line} is answered");
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    if status >= 400 {
        stream.read_to_end(&mut bytes).await.unwrap();
    }
    Response { status, head, body: bytes[end + 4..].to_vec() }
}

async fn sent(
    mut stream: TcpStream,
    address: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> TcpStream {
    let mut text = format!("{line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "host") {
        text.push_str(&format!("host: {address}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("\r\n{body}"));
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Sends a request with a partial body. Returns once the controller waits for the rest.
pub(crate) async fn stalled(address: SocketAddr, line: &str) -> TcpStream {
    begun(address, line, "PK").await
}

/// Sends a request without its body. Returns once the controller waits for it.
pub(crate) async fn silent(address: SocketAddr, line: &str) -> TcpStream {
    begun(address, line, "").await
}

async fn begun(address: SocketAddr, line: &str, body: &str) -> TcpStream {
    let head = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 1000000\r\nexpect: 100-continue\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut told = [0; 12];
    stream.read_exact(&mut told).await.unwrap();
    assert_eq!(&told, b"HTTP/1.1 100", "the body is read");
    stream
}
