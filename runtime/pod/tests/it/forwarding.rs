//! Log targets: servers that take lines by Loki's push API, and some that do not.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::pod::{Pod, until};

/// A server that speaks Loki's push API, until the test's process ends.
struct Loki {
    port: u16,
    heard: Arc<Mutex<Heard>>,
}

/// The pushes that a server has heard, and its answers.
#[derive(Default)]
struct Heard {
    /// The pushes with the statuses of their answers.
    pushes: Vec<(u16, Value)>,
    /// The statuses of the next answers; 204 after them.
    next: Vec<u16>,
}

impl Loki {
    fn start(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Heard { next: statuses.to_vec(), ..Heard::default() }));
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                take(stream.unwrap(), &hears);
            }
        });
        Self { port, heard }
    }

    /// Returns the lines of a service that were answered with a status, in their order.
    fn lines(&self, service: &str, status: u16) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        let pushes = heard.pushes.iter().filter(|(answered, _)| *answered == status);
        let streams = pushes.flat_map(|(_, push)| push["streams"].as_array().unwrap());
        let of_service = streams.filter(|stream| stream["stream"]["pebble_service"] == service);
        let values = of_service.flat_map(|stream| stream["values"].as_array().unwrap());
        values.map(|value| value[1].as_str().unwrap().to_owned()).collect()
    }

    fn answer_next(&self, status: u16) {
        self.heard.lock().unwrap().next.push(status);
    }

    fn target(&self, name: &str) -> String {
        target(name, self.port)
    }
}

/// Takes one push.
fn take(stream: TcpStream, heard: &Mutex<Heard>) {
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

fn target(name: &str, port: u16) -> String {
    format!(
        "  {name}: {{override: replace, type: loki, location: 'http://127.0.0.1:{port}/loki/api/v1/push', \
         services: [all, -other], labels: {{unit: '$APP/0'}}}}\n"
    )
}

/// A pod whose service `said` says the lines of a file, and targets.
struct Scene {
    pod: Pod,
    file: File,
}

impl Scene {
    fn new(targets: &[String]) -> Self {
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

    fn say(&mut self, line: &str) {
        writeln!(self.file, "{line}").unwrap();
    }

    fn warnings(&self) -> String {
        self.pod.client().result("/v1/warnings?select=all").to_string()
    }
}

#[test]
fn lines_reach_a_server_that_was_busy_once_and_slow_or_dead_ones_hold_up_nobody() {
    let loki = Loki::start(&[503]);
    // One server takes connections and says nothing. Another one is gone.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let (silent_port, gone_port) = (silent.local_addr().unwrap().port(), gone.local_addr().unwrap().port());
    drop(gone);
    let mut scene =
        Scene::new(&[target("a-gone", gone_port), target("b-silent", silent_port), loki.target("c")]);
    scene.say("one");
    scene.say("two");
    until("the lines are taken", || loki.lines("said", 204).len() == 2);
    assert_eq!(loki.lines("said", 503)[0], "one");
    assert_eq!(loki.lines("said", 204), ["one", "two"]);
    assert!(loki.lines("other", 204).is_empty(), "its lines go elsewhere");
    {
        let heard = loki.heard.lock().unwrap();
        let stream = &heard.pushes[0].1["streams"][0];
        assert_eq!(stream["stream"], json!({ "pebble_service": "said", "unit": "web/0" }));
        let time: u64 = stream["values"][0][0].as_str().unwrap().parse().unwrap();
        assert!(time > 1_700_000_000_000_000_000, "{time} is no time in nanoseconds");
    }
    scene.say("three");
    until("further lines are taken", || loki.lines("said", 204).len() == 3);
    until("the server that is gone is a warning", || scene.warnings().contains("a-gone"));
    let warnings = scene.warnings();
    assert!(warnings.contains("it answers with status 503"), "{warnings}");
}

#[test]
fn lines_that_a_server_refuses_are_not_sent_again_and_are_a_warning() {
    let loki = Loki::start(&[400]);
    let mut scene = Scene::new(&[loki.target("t")]);
    scene.say("bad");
    until("the line is refused", || loki.lines("said", 400) == ["bad"]);
    scene.say("good");
    until("the next line is taken", || loki.lines("said", 204) == ["good"]);
    let warnings = scene.warnings();
    assert!(warnings.contains("lines are lost: it answers with status 400"), "{warnings}");
    loki.answer_next(429);
    scene.say("often");
    until("a line that came too early is sent again", || loki.lines("said", 204) == ["good", "often"]);
    assert_eq!(loki.lines("said", 429), ["often"]);
}

#[test]
fn the_last_lines_are_sent_when_a_pod_is_told_to_end() {
    let loki = Loki::start(&[]);
    let mut scene = Scene::new(&[loki.target("t")]);
    scene.say("last words");
    until("the line is read", || scene.pod.client().lines().iter().any(|line| line == "last words"));
    scene.pod.signal(Signal::TERM);
    assert_eq!(scene.pod.wait(), Some(0));
    assert_eq!(loki.lines("said", 204), ["last words"]);
}

#[test]
fn a_location_that_pods_do_not_speak_is_a_warning_and_the_layer_is_taken() {
    let pod = Pod::start();
    let client = pod.client();
    client.add_layer(
        "services: {a: {override: replace, command: 'sleep 1000'}}\n\
         log-targets: {t: {override: replace, type: loki, location: 'https://loki-0:3100/push', services: [a]}}",
    );
    let warnings = client.result("/v1/warnings?select=all").to_string();
    assert!(warnings.contains("is one of https; pods speak http alone"), "{warnings}");
    assert!(client.result("/v1/plan?format=yaml").to_string().contains("https://loki-0:3100/push"));
}
