//! The ends of containers: nothing of them is left.

use std::{
    fs::{self, File},
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    container::{Container, PATIENCE, Settings, runs, until_gone},
    pod::until,
};

const LAYER: &str =
    "services: {a: {override: replace, command: \"sh -c 'setsid sleep 1000 & sleep 1000; true'\"}}";

fn started() -> Option<(Container, Vec<i32>)> {
    started_with(Settings::default())
}

fn started_with(settings: Settings) -> Option<(Container, Vec<i32>)> {
    let container = Container::start(settings)?;
    let client = container.client();
    client.add_layer(LAYER);
    assert_eq!(client.act("start", &["a"])["status"], "Done");
    // The pod's, the init, the shell, and two that sleep.
    until("all processes run", || container.processes().len() == 5);
    let processes = container.processes();
    Some((container, processes))
}

fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap()
}

#[test]
fn a_container_that_is_asked_to_end_leaves_no_process_mount_cgroup_or_socket() {
    let before = mounts();
    let Some((mut container, processes)) = started() else { return };
    assert_eq!(mounts(), before);
    if container.gaps().is_empty() {
        assert!(!container.cgroups().is_empty());
    }
    container.signal(Signal::TERM);
    assert_eq!(container.guard.wait().unwrap().code(), Some(0));
    until_gone(&processes);
    assert_eq!(container.cgroups(), Vec::<std::path::PathBuf>::new());
    assert!(!container.directory().join("socket").exists());
    assert_eq!(mounts(), before);
}

#[test]
fn a_guard_or_a_pod_that_is_killed_takes_all_processes_with_it() {
    let Some((mut container, processes)) = started() else { return };
    container.signal(Signal::KILL);
    container.guard.wait().unwrap();
    until_gone(&processes);
    let left = container.cgroups();
    // The next guard removes them.
    let Some((mut next, processes)) = started() else { return };
    assert!(left.iter().all(|cgroup| !cgroup.exists()), "{left:?}");
    kill_process(Pid::from_raw(processes[0]).unwrap(), Signal::KILL).unwrap();
    until_gone(&processes);
    assert_eq!(next.guard.wait().unwrap().code(), Some(77));
    assert_eq!(next.cgroups(), Vec::<std::path::PathBuf>::new());
    let reason = std::fs::read_to_string(next.directory().join("error")).unwrap();
    assert!(reason.contains("ended by signal 9"), "{reason}");
}

#[test]
fn a_container_that_loses_its_init_ends() {
    let Some((mut container, processes)) = started() else { return };
    kill_process(Pid::from_raw(processes[1]).unwrap(), Signal::KILL).unwrap();
    until("the guard ends", || matches!(container.guard.try_wait(), Ok(Some(_))));
    until_gone(&processes);
    assert_eq!(container.guard.wait().unwrap().code(), Some(1));
    assert_eq!(container.cgroups(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_lock_of_a_container_is_held_by_the_pod_and_the_init_and_by_no_workload() {
    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().join("lock");
    let Some((mut container, processes)) =
        started_with(Settings { lock: Some(lock.clone()), ..Settings::default() })
    else {
        return;
    };
    let holds = |pid: &i32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|open| open == lock)
    };
    assert_eq!(processes.iter().map(holds).collect::<Vec<_>>(), [true, true, false, false, false]);
    let is_free = || File::open(&lock).unwrap().try_lock().is_ok();
    assert!(!is_free());
    container.signal(Signal::KILL);
    container.guard.wait().unwrap();
    until_gone(&processes);
    until("the lock is free", is_free);
}

#[test]
fn nothing_of_a_workload_runs_once_the_lock_of_its_killed_pod_can_be_taken() {
    // Each of many processes ignores signals, and computes.
    let spin =
        "trap '' TERM INT HUP QUIT; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do while :; do :; done & done; wait";
    let layer = format!("services: {{spin: {{override: replace, command: \"sh -c \\\"{spin}\\\"\"}}}}");
    for is_guard in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join("lock");
        let settings = Settings { lock: Some(lock.clone()), ..Settings::default() };
        let Some(mut container) = Container::start(settings) else { return };
        let client = container.client();
        client.add_layer(&layer);
        assert_eq!(client.act("start", &["spin"])["status"], "Done");
        // The pod's process, the init, the shell, and those that it started.
        until("all processes run", || container.processes().len() == 15);
        let processes = container.processes();
        let open = File::open(&lock).unwrap();
        assert!(open.try_lock().is_err());
        match is_guard {
            true => container.signal(Signal::KILL),
            false => kill_process(Pid::from_raw(processes[0]).unwrap(), Signal::KILL).unwrap(),
        }
        // The first moment counts, in which a process that is late would still run.
        let deadline = Instant::now() + PATIENCE;
        while open.try_lock().is_err() {
            assert!(Instant::now() < deadline, "the lock is held");
        }
        let left: Vec<_> = processes[2..].iter().filter(|pid| runs(**pid)).collect();
        assert!(left.is_empty(), "{left:?} of {processes:?} run, and the lock is free");
        container.guard.wait().unwrap();
        until_gone(&processes);
    }
}

#[test]
fn an_init_ends_with_its_pod_while_processes_of_other_users_run() {
    let Some(container) = Container::with_users(|_| ()) else { return };
    let client = container.client();
    let layer = "services: {a: {override: replace, user: web, command: sleep 1000}}";
    client.add_layer(layer);
    assert_eq!(client.act("start", &["a"])["status"], "Done");
    let processes = container.processes();
    kill_process(Pid::from_raw(processes[0]).unwrap(), Signal::KILL).unwrap();
    until_gone(&processes);
}
