//! Log targets and checks whose servers speak `https`.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    time::Duration,
};

use periapt_host_api::Timestamp;
use periapt_transport::{Authority, SERVER_VALIDITY};
use serde_json::{Value, json};

use crate::{
    files::push,
    loki::{Loki, Scene, encrypted, target},
    pod::{Pod, until},
};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Pushes the certificate of an authority into the files of a pod, in the place of the one before.
fn trust(pod: &Pod, authority: &Authority) {
    let path = pod.certificates();
    let pushed = push(&pod.client(), &path, json!({}), authority.certificate().as_bytes());
    assert_eq!(pushed.json()["result"], json!([{ "path": path }]));
}

#[test]
fn lines_wait_until_the_authority_of_their_server_is_among_the_files() {
    let (authority, other) = (Authority::generate().unwrap(), Authority::generate().unwrap());
    let loki = Loki::start_encrypted(&authority, "127.0.0.1", Timestamp::now());
    let mut scene = Scene::new(&[loki.target("t")]);
    scene.say("one");
    let absent = "the workload's files have no certificates of authorities";
    until("the target fails", || scene.warnings().contains(absent));
    trust(&scene.pod, &authority);
    until("the line is taken", || loki.lines("said", 204) == ["one"]);
    trust(&scene.pod, &other);
    scene.say("two");
    until("the target fails again", || scene.warnings().contains("of an authority that is not in"));
    trust(&scene.pod, &authority);
    until("the next line is taken", || loki.lines("said", 204) == ["one", "two"]);
}

#[test]
fn servers_whose_certificates_do_not_hold_get_no_line_and_warnings_say_why() {
    let (authority, other) = (Authority::generate().unwrap(), Authority::generate().unwrap());
    let now = Timestamp::now();
    let bad = [
        ("expired", Loki::start_encrypted(&authority, "127.0.0.1", now - SERVER_VALIDITY - DAY)),
        ("early", Loki::start_encrypted(&authority, "127.0.0.1", now + 2 * DAY)),
        ("named", Loki::start_encrypted(&authority, "db.example", now)),
        ("foreign", Loki::start_encrypted(&other, "127.0.0.1", now)),
    ];
    let good = Loki::start_encrypted(&authority, "127.0.0.1", now);
    // A server that speaks first, and no TLS.
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let at_plain = format!("https://{}", plain.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in plain.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(b"220 welcome\r\n");
            open.push(stream);
        }
    });
    let mut targets: Vec<String> = bad.iter().map(|(name, loki)| loki.target(name)).collect();
    targets.extend([target("plain", &at_plain), good.target("good")]);
    let mut scene = Scene::new(&targets);
    trust(&scene.pod, &authority);
    scene.say("secret");
    until("the good server has the line", || good.lines("said", 204) == ["secret"]);
    for (name, reason) in [
        ("expired", "its certificate has expired"),
        ("early", "its certificate is not valid yet"),
        ("named", "its certificate is for"),
        ("foreign", "its certificate is of an authority that is not in"),
        ("plain", "it does not speak TLS 1.2 or 1.3"),
    ] {
        let is_of_target = |warning: &Value| {
            let message = warning["message"].as_str().unwrap();
            message.starts_with(&format!("log target {name:?}: ")) && message.contains(reason)
        };
        until(&format!("{name}: {reason}"), || {
            let warnings = scene.pod.client().result("/v1/warnings?select=all");
            warnings.as_array().unwrap().iter().any(is_of_target)
        });
    }
    for (name, loki) in bad {
        assert!(loki.heard.lock().unwrap().pushes.is_empty(), "{name} was sent lines");
    }
}

#[test]
fn checks_ask_servers_of_https_whose_certificates_hold() {
    let authority = Authority::generate().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let accept = encrypted(&authority, "127.0.0.1", Timestamp::now());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = accept(stream.unwrap());
            let mut buffer = [0; 1024];
            // A client that refuses the certificate sends nothing.
            let Ok(length) = stream.read(&mut buffer) else { continue };
            let answer: &[u8] = match buffer[..length].starts_with(b"GET /moved ") {
                true => b"HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n",
                false => b"HTTP/1.1 204 No Content\r\n\r\n",
            };
            let _ = stream.write_all(answer);
        }
    });
    let pod = Pod::start();
    let client = pod.client();
    trust(&pod, &authority);
    let check = |name: &str, host: &str| {
        format!(
            "  {name}: {{override: replace, period: 50ms, timeout: 10s, threshold: 1, \
             http: {{url: 'https://{host}:{port}/moved'}}}}\n"
        )
    };
    client.add_layer(&format!(
        "checks:\n{}{}",
        check("by-address", "127.0.0.1"),
        check("by-name", "localhost")
    ));
    let of_check = |name: &str, field: &str| {
        let checks = client.result("/v1/checks");
        let check = checks.as_array().unwrap().iter().find(|check| check["name"] == name).unwrap().clone();
        check[field].as_u64().unwrap()
    };
    until("one check succeeds", || of_check("by-address", "successes") > 0);
    until("the other one fails", || of_check("by-name", "failures") > 0);
    assert_eq!(of_check("by-name", "successes"), 0);
    let changes = client.result("/v1/changes?select=all").to_string();
    assert!(changes.contains("its certificate is for"), "{changes}");
}
