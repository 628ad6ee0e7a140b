//! A registry that answers as a test says, true or not.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use periapt_host_api::Digest;

use crate::made::{MANIFEST, Made};

/// A request without its body.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) host: String,
    headers: Vec<(String, String)>,
}

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    manner: Manner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Whole,
    CutOff,
    Endless,
    Trickling,
    Silent,
}

/// A running registry. Its thread ends with the process of the test.
#[derive(Debug)]
pub(super) struct Lying {
    pub(super) host: String,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl Response {
    pub(super) fn of(status: u16, body: &[u8]) -> Self {
        Self { status, headers: Vec::new(), body: body.to_vec(), manner: Manner::Whole }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(super) fn typed(mut self, media_type: &str) -> Self {
        self.headers.retain(|(name, _)| name != "Content-Type");
        self.with("Content-Type", media_type)
    }

    fn in_manner(manner: Manner) -> Self {
        Self { manner, ..Self::of(200, b"") }
    }

    /// An answer that has no end, and comes fast.
    pub(super) fn endless() -> Self {
        Self::in_manner(Manner::Endless).typed(MANIFEST)
    }

    /// An answer of one byte now and then.
    pub(super) fn trickling() -> Self {
        Self::in_manner(Manner::Trickling)
    }

    /// No answer.
    pub(super) fn silent() -> Self {
        Self::in_manner(Manner::Silent)
    }

    /// The same answer, without its last byte.
    pub(super) fn cut_off(self) -> Self {
        Self { manner: Manner::CutOff, ..self }
    }
}

/// Starts a registry on loopback.
pub(super) fn lying(answer: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Lying {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let (answer, own) = (Arc::new(answer), host.clone());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, answer, host) = (stream.unwrap(), Arc::clone(&answer), own.clone());
            // A client that leaves is no failure.
            thread::spawn(move || drop(converse(&stream, &host, &*answer)));
        }
    });
    Lying { host }
}

fn converse(
    mut stream: &TcpStream,
    host: &str,
    answer: &dyn Fn(&Request) -> Response,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().unwrap()?;
    let mut request = Request {
        path: first.split(' ').nth(1).unwrap().to_owned(),
        host: host.to_owned(),
        headers: Vec::new(),
    };
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let Response { status, headers, body, manner } = answer(&request);
    if manner == Manner::Silent {
        thread::sleep(Duration::from_secs(30));
        return Ok(());
    }
    let mut head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let has_length = matches!(manner, Manner::Whole | Manner::CutOff);
    if has_length {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    match manner {
        Manner::CutOff => stream.write_all(&body[..body.len() - 1]),
        Manner::Endless => loop {
            stream.write_all(&[b' '; 4096])?;
        },
        Manner::Trickling => loop {
            stream.write_all(b"x")?;
            thread::sleep(Duration::from_millis(20));
        },
        Manner::Whole | Manner::Silent => stream.write_all(&body),
    }
}

/// Returns the paths of a registry with one image, each with its content. The manifest is the first, the layer the last.
pub(super) fn blobs(made: &Made) -> Vec<(String, Vec<u8>)> {
    let manifest = made.manifest().to_string().into_bytes();
    let mut paths = vec![
        ("/v2/web/manifests/1".to_owned(), manifest.clone()),
        (format!("/v2/web/manifests/sha256:{}", Digest::of(&manifest)), manifest),
    ];
    for (name, content) in made.blobs() {
        let digest = name.strip_prefix("blobs/sha256/").unwrap();
        paths.push((format!("/v2/web/blobs/sha256:{digest}"), content));
    }
    paths
}

/// Returns the true answer.
pub(super) fn served(request: &Request, paths: &[(String, Vec<u8>)]) -> Response {
    match paths.iter().find(|(path, _)| *path == request.path) {
        None => Response::of(404, br#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#),
        Some((path, content)) if path.contains("/manifests/") => Response::of(200, content).typed(MANIFEST),
        Some((_, content)) => Response::of(200, content),
    }
}
