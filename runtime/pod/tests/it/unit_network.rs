//! The network that the containers of one unit share.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    container::{Container, Settings, runs, skipped, until_gone},
    pod::until,
};

/// A request for the page of a server at `localhost`.
const ASK: &str = "printf 'GET /page HTTP/1.0\\r\\n\\r\\n' | nc 127.0.0.1 8080";

/// The server.
const SERVE: &str = "httpd -p 127.0.0.1:8080 -h /srv";

/// A directory in which each user can make that of a network.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    place
}

fn settings(place: &TempDir) -> Settings {
    Settings { unit_network: Some(place.path().join("network")), ..Settings::default() }
}

/// Returns the process of the network, which has no child.
fn network_of(starter: &Container) -> i32 {
    let is_network = |pid: &&i32| {
        let session = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Behind the name: state, parent, group, session.
        let session =
            session.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3)?.parse().ok());
        session == Some(**pid)
    };
    let processes = starter.processes();
    *processes.iter().find(is_network).unwrap_or_else(|| panic!("no session of its own in {processes:?}"))
}

fn end(container: &mut Container, signal: Signal) {
    container.signal(signal);
    container.guard.wait().unwrap();
}

fn is_asked(container: &Container) -> bool {
    container.sh(ASK).0.ends_with("upper")
}

#[test]
fn containers_of_a_unit_reach_each_other_at_localhost_and_share_nothing_else() {
    let place = place();
    let Some(web) = Container::start(settings(&place)) else { return };
    let Some(side) = Container::start(settings(&place)) else { return };
    let alone = Container::start(Settings::default()).unwrap();
    web.told(SERVE);
    until("the server answers", || is_asked(&web));
    assert!(is_asked(&side), "{:?}", side.sh(ASK));
    assert!(!is_asked(&alone), "a container of another unit");
    let (told, code) = side.sh(&format!("{SERVE} 2>&1"));
    assert!(code != 0 && told.contains("in use"), "the port is taken: {told}");
    // Files and processes are each container's own.
    side.told("echo changed > /srv/page; touch /tmp/side");
    assert!(is_asked(&side), "the page is that of the other container");
    assert_eq!(web.sh("test -e /tmp/side").1, 1);
    assert_eq!(side.told("ps | grep -c '[h]ttpd' || true"), "0");
    assert_eq!(side.sh("kill -0 $(cat /srv/pid) 2>/dev/null").1, 1);
    // Users are the same, and the files of both are shifted to them.
    for container in [&web, &side].into_iter().filter(|container| container.gap("users").is_none()) {
        assert_eq!(container.told("stat -c '%u %g' /srv; id -u"), "33 34\n0");
    }
    // A workload has no more rights over the network than in one of its own.
    for script in ["ip link set lo down", "nc -l -p 1 -s 198.18.0.1 & ip addr add 10.0.0.1/8 dev lo"] {
        assert_ne!(side.sh(script).1, 0, "{script}");
    }
}

#[test]
fn a_container_joins_again_and_the_network_ends_with_the_last_one() {
    let place = place();
    let Some(mut web) = Container::start(settings(&place)) else { return };
    let Some(mut side) = Container::start(settings(&place)) else { return };
    let network = network_of(&web);
    side.told(SERVE);
    until("the server answers", || is_asked(&web));
    // The guard that started the network is killed: the network and the other container go on.
    let before: Vec<_> = web.processes().into_iter().filter(|pid| *pid != network).collect();
    end(&mut web, Signal::KILL);
    until_gone(&before);
    assert!(runs(network) && is_asked(&side));
    let mut web = Container::start(settings(&place)).unwrap();
    assert!(is_asked(&web));
    let others = [side.processes(), web.processes()].concat();
    end(&mut side, Signal::TERM);
    assert!(!is_asked(&web), "its server has ended");
    web.told(SERVE);
    until("the new server answers", || is_asked(&web));
    assert!(runs(network));
    end(&mut web, Signal::TERM);
    until_gone(&[vec![network], others].concat());
    until("the directory of the network is gone", || !place.path().join("network").exists());
}

#[test]
fn containers_end_with_their_network_and_make_a_new_one() {
    let place = place();
    let Some(web) = Container::start(settings(&place)) else { return };
    let Some(side) = Container::start(settings(&place)) else { return };
    let (network, all) = (network_of(&web), [web.processes(), side.processes()].concat());
    rustix::process::kill_process(rustix::process::Pid::from_raw(network).unwrap(), Signal::KILL).unwrap();
    for mut container in [web, side] {
        container.guard.wait().unwrap();
        let error = fs::read_to_string(container.directory().join("error")).unwrap();
        assert_eq!(error, "the network that the unit's containers share has ended");
    }
    until_gone(&all);
    let again = [(); 2].map(|()| Container::start(settings(&place)).unwrap());
    again[0].told(SERVE);
    until("the server answers", || is_asked(&again[1]));
}

#[test]
fn guards_that_begin_at_once_make_one_network() {
    let place = place();
    let launched = [(); 4].map(|()| Container::launch(settings(&place), |_| ()));
    let Some([first, others @ ..]) = launched
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .map(|all| <[Container; 4]>::try_from(all).unwrap_or_else(|_| panic!("there are four")))
    else {
        return;
    };
    if !first.has_begun() {
        return;
    }
    first.told(SERVE);
    until("the server answers", || is_asked(&first));
    for other in others {
        assert!(other.has_begun() && is_asked(&other));
    }
}

#[test]
fn a_forwarded_port_is_taken_and_containers_with_other_ports_wait_for_the_next_network() {
    let place = place();
    let with = |port: u16| Settings { forwarded_ports: [port].into(), ..settings(&place) };
    let Some(mut web) = Container::start(with(8080)) else { return };
    if !web.told("cat /etc/resolv.conf").contains("198.18.0.1") {
        // The kernel cannot redirect: there is no gate.
        return;
    }
    let (told, code) = web.sh(&format!("{SERVE} 2>&1"));
    assert!(code != 0 && told.contains("in use"), "the port is taken: {told}");
    let next = Container::launch(with(8081), |_| ()).unwrap();
    let network = network_of(&web);
    end(&mut web, Signal::TERM);
    until_gone(&[network]);
    assert!(next.has_begun());
    next.told(SERVE);
    until("the server answers", || is_asked(&next));
    let (told, code) = next.sh("httpd -p 127.0.0.1:8081 2>&1");
    assert!(code != 0 && told.contains("in use"), "the port is taken: {told}");
}

#[test]
fn ports_are_forwarded_in_the_network_of_a_unit_alone() {
    let alone = Settings { forwarded_ports: [8080].into(), ..Settings::default() };
    let Some(container) = Container::launch(alone, |_| ()) else { return };
    let error = container.refusal();
    assert!(error.contains("ports are forwarded in the network of a unit alone"), "{error}");
}

#[test]
fn a_user_without_rights_has_it_too() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = place();
    let as_user = || Settings { user: Some(4_321), ..settings(&place) };
    let Some(web) = Container::start(as_user()) else { return };
    let side = Container::start(as_user()).unwrap();
    web.told(SERVE);
    until("the server answers", || is_asked(&side));
    assert!(side.gap("users").is_some_and(|gap| gap.contains("root alone")));
}

#[test]
fn a_place_that_no_network_can_have_is_one_error() {
    let place = place();
    fs::write(place.path().join("network"), "a file").unwrap();
    let Some(container) = Container::launch(settings(&place), |_| ()) else { return };
    let error = container.refusal();
    assert!(error.starts_with("cannot join the network of the unit: "), "{error}");
    assert!(Path::new(&place.path().join("network")).is_file());
}

#[test]
fn a_network_that_cannot_be_set_up_is_one_error_and_leaves_nothing() {
    let of_unit = "cannot set up the container: the network of the unit: ";
    for (fault, reason) in [
        ("no-proc", "cannot open the namespace of users: No such file or directory"),
        ("ends", "its process ends as it begins"),
    ] {
        let place = place();
        let settings_with = Settings { network_fault: Some(fault.to_owned()), ..settings(&place) };
        let Some(container) = Container::launch(settings_with, |_| ()) else { return };
        let error = container.refusal();
        if error.contains("user namespace") {
            return skipped(&error);
        }
        assert!(error.strip_prefix(of_unit).is_some_and(|rest| rest.starts_with(reason)), "{fault}: {error}");
        assert!(!place.path().join("network").exists(), "{fault}: the directory is left");
        // The next attempt, as an agent makes it after a pause, finds nothing in its way.
        let Some(next) = Container::start(settings(&place)) else { return };
        next.told(SERVE);
        until("the server answers", || is_asked(&next));
    }
}
