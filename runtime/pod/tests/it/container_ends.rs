//! The ends of containers: nothing of them is left.

use std::fs::{self, File};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    container::{Container, Settings, until_gone},
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
    let processes = container.processes();
    // The pod's, the init, the shell, and two that sleep.
    assert_eq!(processes.len(), 5, "{processes:?}");
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
    assert!(is_free(), "it is free once they are gone");
}
