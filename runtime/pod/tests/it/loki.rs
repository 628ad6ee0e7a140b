//! Servers that take lines by Loki's push API, and a pod that forwards lines to them.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use periapt_host_api::Timestamp;
use periapt_transport::{Authority, ServerCertificate, server_config};
use rustls::{ServerConnection, StreamOwned};
use serde_json::Value;

use crate::pod::Pod;

/// A server that speaks Loki's push API, until the test's process ends.
pub(crate) struct Loki {
    /// The scheme and the authority of its URL.
    server: String,
    pub(crate) heard: Arc<Mutex<Heard>>,
}

/// The pushes that a server has heard, and its answers.
#[derive(Default)]
pub(crate) struct Heard {
    /// The pushes with the statuses of their answers.
    pub(crate) pushes: Vec<(u16, Value)>,
    /// The statuses of the next answers; 204 after them.
    next: Vec<u16>,
}

impl Loki {
    pub(crate) fn start(statuses: &[u16]) -> Self {
        Self::serve("http", statuses, |stream| stream)
    }

    /// Starts a server that speaks TLS, with a certificate that an authority has issued for a name.
    pub(crate) fn start_encrypted(authority: &Authority, name: &str, issued: Timestamp) -> Self {
        Self::serve("https", &[], encrypted(authority, name, issued))
    }

    fn serve<S: Read + Write>(
        scheme: &str,
        statuses: &[u16],
        accept: impl Fn(TcpStream) -> S + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("{scheme}://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Heard { next: statuses.to_vec(), ..Heard::default() }));
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                take(accept(stream.unwrap()), &hears);
            }
        });
        Self { server, heard }
    }

    /// Returns the lines of a service that were answered with a status, in their order.
    pub(crate) fn lines(&self, service: &str, status: u16) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        let pushes = heard.pushes.iter().filter(|(answered, _)| *answered == status);
        let streams = pushes.flat_map(|(_, push)| push["streams"].as_array().unwrap());
        let of_service = streams.filter(|stream| stream["stream"]["pebble_service"] == service);
        let values = of_service.flat_map(|stream| stream["values"].as_array().unwrap());
        values.map(|value| value[1].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn answer_next(&self, status: u16) {
        self.heard.lock().unwrap().next.push(status);
    }

    pub(crate) fn target(&self, name: &str) -> String {
        target(name, &self.server)
    }
}

/// Returns the server's side of TLS, with a certificate that an authority has issued for a name.
pub(crate) fn encrypted(
    authority: &Authority,
    name: &str,
    issued: Timestamp,
) -> impl Fn(TcpStream) -> StreamOwned<ServerConnection, TcpStream> + Send + use<> {
    let (certificate, key) = authority.issue_server(&[name.parse().unwrap()], issued).unwrap();
    let shown = ServerCertificate::new(&certificate, &key).unwrap();
    let config = server_config(&shown, authority.certificate()).unwrap();
    move |stream| StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream)
}

/// Takes one push.
fn take(stream: impl Read + Write, heard: &Mutex<Heard>) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        head.push_str(&line.to_lowercase());
        line.clear();
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    // A client that has gone sends none.
    let Some(length) = length.and_then(|length| length.trim().parse::<usize>().ok()) else { return };
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    assert!(head.starts_with("post /loki/api/v1/push http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    let push = serde_json::from_slice(&body).unwrap();
    let status = {
        let mut heard = heard.lock().unwrap();
        let status = if heard.next.is_empty() { 204 } else { heard.next.remove(0) };
        heard.pushes.push((status, push));
        status
    };
    let answer = match status {
        204 => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        status => format!("HTTP/1.1 {status} No\r\nContent-Length: 8\r\n\r\nnot this"),
    };
    let _ = reader.into_inner().write_all(answer.as_bytes());
}

/// Returns a target of all services but `other`, at a server.
pub(crate) fn target(name: &str, server: &str) -> String {
    format!(
        "  {name}: {{override: replace, type: loki, location: '{server}/loki/api/v1/push', \
         services: [all, -other], labels: {{unit: '$APP/0'}}}}\n"
    )
}

/// A pod whose service `said` says the lines of a file, and targets.
pub(crate) struct Scene {
    pub(crate) pod: Pod,
    file: File,
}

impl Scene {
    pub(crate) fn new(targets: &[String]) -> Self {
        let pod = Pod::start();
        let path = pod.directory().join("said");
        let file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        pod.client().add_layer(&format!(
            "services:\n  \
             said: {{override: replace, command: 'tail -n +1 -f {}', environment: {{APP: web}}}}\n  \
             other: {{override: replace, command: \"sh -c 'echo no; exec sleep 1000'\"}}\n\
             log-targets:\n{}",
            path.display(),
            targets.concat()
        ));
        let change = pod.client().act("start", &["said", "other"]);
        assert_eq!(change["status"], "Done", "{change}");
        Self { pod, file }
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.file, "{line}").unwrap();
    }

    pub(crate) fn warnings(&self) -> String {
        self.pod.client().result("/v1/warnings?select=all").to_string()
    }
}
