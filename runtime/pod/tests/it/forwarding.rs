//! Log targets: servers that take lines by Loki's push API, and some that do not.

use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::json;

use crate::{
    loki::{Loki, Scene, target},
    pod::{Pod, until},
};

#[test]
fn lines_reach_a_server_that_was_busy_once_and_slow_or_dead_ones_hold_up_nobody() {
    let loki = Loki::start(&[503]);
    // One server takes connections and says nothing. Another one is gone.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let (silent_port, gone_port) = (silent.local_addr().unwrap().port(), gone.local_addr().unwrap().port());
    drop(gone);
    let at = |port: u16| format!("http://127.0.0.1:{port}");
    let targets = [target("a-gone", &at(gone_port)), target("b-silent", &at(silent_port)), loki.target("c")];
    let mut scene = Scene::new(&targets);
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
         log-targets: {t: {override: replace, type: loki, location: 'ftp://loki-0:3100/push', services: [a]}}",
    );
    let warnings = client.result("/v1/warnings?select=all").to_string();
    assert!(warnings.contains("is no URL that begins with http:// or https://"), "{warnings}");
    assert!(client.result("/v1/plan?format=yaml").to_string().contains("ftp://loki-0:3100/push"));
}
