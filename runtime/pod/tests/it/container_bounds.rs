//! The bounds of a workload in a container.

use serde_json::json;

use crate::{
    container::{Container, Settings, until_gone},
    pod::until,
};

#[test]
fn a_fork_bomb_is_bounded_and_the_pod_stays() {
    let Some(mut container) = Container::start(Settings { processes: 64, ..Settings::default() }) else {
        return;
    };
    let client = container.client();
    // Each of its processes leaves its group: none ends with the service.
    let script = "setsid sh -c 'while :; do setsid sleep 1000 & done'; sleep 1000";
    let command = format!("sh -c \"{script}\"");
    let bomb = json!({ "override": "replace", "command": command });
    client.add_layer(&json!({ "services": { "bomb": bomb } }).to_string());
    client.act("start", &["bomb"]);
    until("the bomb is at its bound", || container.processes().len() >= 60);
    // The pod's process is none of those that are counted. Without cgroups, the threads of the pod have room beside.
    let most = if container.gap("limit of processes").is_some() { 65 + 80 } else { 65 };
    for _ in 0..20 {
        let processes = container.processes().len();
        assert!(processes <= most, "{processes}");
        assert_eq!(client.get("/v1/system-info").status, 200);
    }
    let processes = container.processes();
    container.signal(rustix::process::Signal::TERM);
    assert_eq!(container.guard.wait().unwrap().code(), Some(0));
    until_gone(&processes);
}

#[test]
fn memory_is_bounded_and_the_pod_stays() {
    let Some(container) = Container::start(Settings { memory: 48 << 20, ..Settings::default() }) else {
        return;
    };
    if container.gap("limit of memory").is_some() {
        return;
    }
    let (_, code) = container.sh("tail /dev/zero");
    assert_eq!(code, 128 + 9);
    assert_eq!(container.told("echo it goes on"), "it goes on");
}

#[test]
fn new_files_are_bounded_in_bytes_and_in_number() {
    let Some(container) = Container::start(Settings { disk: 4 << 20, ..Settings::default() }) else { return };
    let (text, code) = container.sh("dd if=/dev/zero of=/srv/large bs=1M count=16 2>&1");
    assert!(code != 0 && text.contains("No space left"), "{text}");
    container.told("rm /srv/large; echo x > /srv/small");
    let (text, code) =
        container.sh("i=0; while [ $i -lt 5000 ]; do : > /srv/$i || exit 9; i=$((i + 1)); done 2>&1");
    assert!(code != 0 && text.contains("No space left"), "{text}");
    container.told("cd /srv; rm [0-9]*; echo x > /srv/again");
    let (text, code) = container.sh("dd if=/dev/zero of=/dev/large bs=1M count=1 2>&1");
    assert!(code != 0 && text.contains("No space left"), "{text}");
    let large = vec![0; 8 << 20];
    let pushed = crate::files::push(&container.client(), "/pushed", json!({}), &large);
    assert!(crate::files::error(&pushed).1.contains("no space left"), "{pushed:?}");
    assert_eq!(container.told("ls /pushed /.periapt* 2>/dev/null | wc -l"), "0");
}
