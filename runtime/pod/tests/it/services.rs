//! Services as processes.

use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use crate::pod::{Pod, lives, until};

fn pid(path: &Path) -> Option<u32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[test]
fn a_service_that_is_killed_comes_back_and_its_output_is_kept() {
    let pod = Pod::start();
    let client = pod.client();
    let file = pod.directory().join("pid");
    client.add_layer(&format!(
        "services: {{a: {{override: replace, command: \"sh -c 'echo $$ > {0}; echo hello $X; exec sleep 1000'\", \
         environment: {{X: world}}, backoff-delay: 50ms}}}}",
        file.display()
    ));
    assert_eq!(client.act("start", &["a"])["status"], "Done");
    until("it has spoken", || client.lines() == ["hello world"]);
    let first = pid(&file).unwrap();
    assert!(
        std::process::Command::new("kill").args(["-KILL", &first.to_string()]).status().unwrap().success()
    );
    until("it comes back", || pid(&file).is_some_and(|pid| pid != first && lives(pid)));
    assert!(!lives(first));
    until("it is active", || client.result("/v1/services?names=a")[0]["current"] == "active");
    assert_eq!(client.act("stop", &["a"])["status"], "Done");
    assert!(!lives(pid(&file).unwrap()));
    assert_eq!(client.result("/v1/services")[0]["current"], "inactive");
}

#[test]
fn metrics_are_text_for_prometheus() {
    let pod = Pod::start();
    let client = pod.client();
    client.add_layer("services: {a: {override: replace, command: sleep 1000}}");
    assert_eq!(client.act("start", &["a"])["status"], "Done");
    let response = client.get("/v1/metrics");
    assert_eq!(response.status, 200);
    let text = String::from_utf8(response.body).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        lines,
        ["pebble_service_start_count{service=\"a\"} 1", "pebble_service_active{service=\"a\"} 1"]
    );
    assert!(text.ends_with('\n') && text.contains("# TYPE pebble_service_active gauge\n"), "{text}");
    assert_eq!(client.send("POST", "/v1/metrics", "text/plain", b"").status, 405);
}

#[test]
fn a_program_or_a_user_that_is_not_there_is_named() {
    let pod = Pod::start();
    let client = pod.client();
    for (layer, part) in [
        ("services: {a: {override: replace, command: /no/such/program}}", "cannot find executable"),
        ("services: {a: {override: replace, command: 'true', user: nobody-here}}", "unknown user"),
        ("services: {a: {override: replace, command: 'true', group: root}}", "not just group"),
        ("services: {a: {override: replace, command: 'true', working-dir: /no/such}}", "does not exist"),
        (
            "services: {a: {override: replace, command: \"sh -c 'echo out of eggs; exit 3'\"}}",
            "exited quickly with code 3",
        ),
    ] {
        client.add_layer(layer);
        let change = client.act("start", &["a"]);
        assert_eq!(change["status"], "Error", "{layer}");
        assert!(change["err"].as_str().unwrap().contains(part), "{layer}: {change}");
    }
    let changes = client.result("/v1/changes?select=all&for=a");
    assert!(changes.to_string().contains("out of eggs"), "{changes}");
}

#[test]
fn checks_ask_real_workloads() {
    let pod = Pod::start();
    let client = pod.client();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            use std::io::{Read as _, Write as _};
            let mut stream = stream.unwrap();
            let mut buffer = [0; 1024];
            let length = stream.read(&mut buffer).unwrap_or(0);
            let head = String::from_utf8_lossy(&buffer[..length]).to_lowercase();
            let answer: &[u8] = match () {
                () if head.starts_with("get /moved") => {
                    b"HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n"
                }
                () if head.starts_with("get /ok") && head.contains("x-key: 1") => {
                    b"HTTP/1.1 204 No Content\r\n\r\n"
                }
                () => b"HTTP/1.1 500 Error\r\nContent-Length: 0\r\n\r\n",
            };
            let _ = stream.write_all(answer);
        }
    });
    let check = |name: &str, question: &str| {
        format!("  {name}: {{override: replace, period: 50ms, timeout: 20s, threshold: 1, {question}}}\n")
    };
    let checks = [
        check("moved", &format!("http: {{url: 'http://127.0.0.1:{port}/moved', headers: {{X-Key: '1'}}}}")),
        check("wrong", &format!("http: {{url: 'http://127.0.0.1:{port}/other'}}")),
        check("tcp", &format!("tcp: {{port: {port}, host: 127.0.0.1}}")),
        check("nobody", "tcp: {port: 1, host: 127.0.0.1}"),
        check("scheme", "http: {url: 'ftp://127.0.0.1/'}"),
        check("exec", "exec: {command: \"sh -c 'echo sick; exit 7'\"}"),
    ];
    client.add_layer(&format!("checks:\n{}", checks.concat()));
    until("all checks have run", || {
        let checks = client.result("/v1/checks");
        let checks = checks.as_array().unwrap();
        checks
            .iter()
            .all(|check| check["successes"].as_u64().unwrap() + check["failures"].as_u64().unwrap() > 0)
    });
    let checks = client.result("/v1/checks");
    let down: Vec<_> = checks
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["status"] == "down")
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    assert_eq!(down, ["exec", "nobody", "scheme", "wrong"]);
    let changes = client.result("/v1/changes?select=all").to_string();
    for part in ["exit status 7; sick", "non-2xx status code 500", "only http://"] {
        assert!(changes.contains(part), "{part}: {changes}");
    }
    assert_eq!(client.get("/v1/health").status, 502);
    assert_eq!(client.get("/v1/health?names=tcp&names=moved").status, 200);
}

#[test]
fn nothing_is_left_behind_when_a_pod_ends() {
    let mut pod = Pod::start();
    let client = pod.client();
    let (service, daemon) = (pod.directory().join("service"), pod.directory().join("daemon"));
    client.add_layer(&format!(
        "services: {{a: {{override: replace, kill-delay: 200ms, command: \"sh -c 'trap : TERM; echo $$ > {}; \
         setsid sh -c \\\"echo \\\\$\\\\$ > {}; exec sleep 1000\\\" & while :; do sleep 1; done'\"}}}}",
        service.display(),
        daemon.display()
    ));
    assert_eq!(client.act("start", &["a"])["status"], "Done");
    until("both run", || pid(&service).is_some_and(lives) && pid(&daemon).is_some_and(lives));
    let pids = [pid(&service).unwrap(), pid(&daemon).unwrap()];
    pod.signal(Signal::TERM);
    assert_eq!(pod.wait(), Some(0));
    assert!(pids.iter().all(|pid| !lives(*pid)), "{pids:?}");
}

#[test]
fn services_end_with_a_pod_that_is_killed() {
    let mut pod = Pod::start();
    let client = pod.client();
    let file = pod.directory().join("pid");
    client.add_layer(&format!(
        "services: {{a: {{override: replace, command: \"sh -c 'echo $$ > {}; exec sleep 1000'\"}}}}",
        file.display()
    ));
    client.act("start", &["a"]);
    until("the service has begun", || pid(&file).is_some());
    let service = pid(&file).unwrap();
    pod.signal(Signal::KILL);
    pod.wait();
    until("the service has ended", || !lives(service));
}

#[test]
fn a_service_can_end_the_pod() {
    let mut pod = Pod::start();
    let client = pod.client();
    // It ends long after the second in which a start fails, also on a slow machine.
    client.add_layer(
        "services: {a: {override: replace, command: \"sh -c 'sleep 5; exit 1'\", on-failure: shutdown}}",
    );
    client.post("/v1/services", &json!({ "action": "start", "services": ["a"] }));
    assert_eq!(pod.wait(), Some(10));
}
