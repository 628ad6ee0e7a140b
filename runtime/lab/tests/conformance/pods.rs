//! Containers with real cores of pods: the order of their events among other hooks, and the state of charm and workload
//! after deaths.

use std::time::Duration;

use periapt_host_api::{ContainerName, event::Event};
use periapt_lab::{Action, Hook, HookRunState, Lab, LabError, ProbeAnswer};
use periapt_pebble::{AddLayer, NoticeBody, PodAnswer, PodRequest, ServicesAction, ServicesBody};
use proptest::prelude::*;

use crate::{
    bench::{charm, lab},
    workloads::{SERVED, later},
};

pub(crate) const CONTAINERS: [&str; 2] = ["side", "web"];

/// The services of each container. Their programs are named after container and service.
pub(crate) const SERVICES: [&str; 2] = ["serve", "work"];

/// Returns the URL of a container's check.
pub(crate) fn url(container: &str) -> String {
    format!("http://{container}/up")
}

/// Returns the charm's layer for a container.
fn layer(container: &str, colour: &str) -> String {
    let service = |name: &str| {
        let start = "override: replace, startup: enabled";
        format!("  {name}: {{{start}, command: {container}-{name}, environment: {{COLOUR: {colour}}}}}\n")
    };
    let check = format!("period: 10s, timeout: 2s, threshold: 2, http: {{url: '{}'}}", url(container));
    let services: String = SERVICES.map(service).concat();
    format!("services:\n{services}checks:\n  up: {{override: replace, {check}}}\n")
}

/// Orders Pebble to do something, and waits until it has, as charms do.
fn act(hook: &mut Hook<'_>, container: &str, action: ServicesAction, of: &[&str]) -> Result<(), String> {
    let services = of.iter().map(|name| (*name).to_owned()).collect();
    let begun = hook.pebble(container, PodRequest::ActOnServices(ServicesBody { action, services }))?;
    let PodAnswer::Async(change, _) = begun else { return Err(format!("no change: {begun:?}")) };
    let wait = PodRequest::WaitChange(change.to_string(), Some(Duration::from_secs(30)));
    match hook.pebble(container, wait)? {
        PodAnswer::Sync(shown) => shown.get("err").map_or(Ok(()), |error| Err(error.to_string())),
        other => Err(format!("no change: {other:?}")),
    }
}

/// Sets a container up with the present settings.
fn set_up(hook: &mut Hook<'_>, container: &str) -> Result<(), String> {
    let colour = hook.tool("config-get colour")?.trim().to_owned();
    let layer = AddLayer {
        action: "add".to_owned(),
        combine: true,
        label: "charm".to_owned(),
        format: "yaml".to_owned(),
        layer: layer(container, &colour),
    };
    hook.pebble(container, PodRequest::AddLayer(layer))?;
    act(hook, container, ServicesAction::Replan, &[])
}

/// Handles events as sidecar charms do: a container is set up once its Pebble listens, and again with other settings.
fn handler(hook: &mut Hook<'_>) -> Result<(), String> {
    match hook.event().clone() {
        Event::PebbleReady { container } => set_up(hook, container.as_str()),
        Event::ConfigChanged => {
            for container in CONTAINERS {
                if hook.pebble(container, PodRequest::SystemInfo).is_ok() {
                    set_up(hook, container)?;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Deploys `a/0` with two containers and runs it to rest.
pub(crate) fn deploy(lab: &mut Lab) -> Result<(), LabError> {
    lab.run_containers();
    lab.deploy("a", &charm(SERVED).with_handler(handler), 1)?;
    lab.run_until_idle()
}

fn served() -> Lab {
    let mut lab = lab();
    deploy(&mut lab).unwrap();
    assert_eq!(later(&lab), ["side-pebble-ready", "web-pebble-ready"]);
    lab
}

/// Returns the hooks after those of [`served`].
fn news(lab: &Lab) -> Vec<String> {
    later(lab).split_off(2)
}

/// Returns the programs that run in a container, with their settings, by name.
pub(crate) fn running(lab: &Lab, container: &str) -> Vec<(String, String)> {
    let processes = lab.processes("a/0", container).unwrap();
    let program =
        |spawn: periapt_pebble::Spawn| (spawn.command[0].clone(), spawn.environment["COLOUR"].clone());
    let mut running: Vec<_> = processes.into_iter().map(program).collect();
    running.sort();
    running
}

/// Returns the programs of a container that the charm has set up.
pub(crate) fn all(container: &str, colour: &str) -> Vec<(String, String)> {
    SERVICES.map(|name| (format!("{container}-{name}"), colour.to_owned())).to_vec()
}

/// Lets a workload make a notice, or repeat it.
pub(crate) fn notify(lab: &mut Lab, container: &str, key: &str) -> Result<(), LabError> {
    let body = NoticeBody {
        action: "add".to_owned(),
        kind: "custom".to_owned(),
        key: format!("example.com/{key}"),
        repeat_after: None,
        data: Default::default(),
    };
    lab.pebble("a/0", container, PodRequest::Notify(body)).map(|_| ())
}

fn boot_id(lab: &Lab) -> String {
    lab.boot_id("a/0", "web").unwrap().to_owned()
}

fn seconds(lab: &mut Lab, seconds: u64) {
    lab.advance(Duration::from_secs(seconds)).unwrap();
}

#[test]
fn y01_a_core_that_begins_anew_is_told_once_and_set_up_again() {
    let mut lab = served();
    assert_eq!(running(&lab, "web"), all("web", "red"));
    let first = boot_id(&lab);
    lab.end_workload("a/0", "web").unwrap();
    lab.run_until_idle().unwrap();
    assert!(running(&lab, "web").is_empty() && lab.boot_id("a/0", "web").is_err());
    seconds(&mut lab, 1);
    assert_ne!(boot_id(&lab), first);
    assert_eq!(news(&lab), ["web-pebble-ready"]);
    assert_eq!(running(&lab, "web"), all("web", "red"));
    let web: ContainerName = "web".parse().unwrap();
    assert_eq!(lab.unit("a/0").unwrap().record.workloads[&web].boot_id, boot_id(&lab));
}

#[test]
fn y03_the_pebble_ready_of_a_core_precedes_changes_of_settings_and_members() {
    let mut lab = served();
    lab.deploy("b", &charm("name: b\nprovides: {db: {interface: sql}}\n"), 1).unwrap();
    lab.run_until_idle().unwrap();
    lab.hold("a/0").unwrap();
    lab.end_workload("a/0", "web").unwrap();
    seconds(&mut lab, 1);
    lab.integrate("a:db", "b:db").unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(
        news(&lab),
        [
            "db-relation-created",
            "web-pebble-ready",
            "config-changed",
            "db-relation-joined b/0",
            "db-relation-changed b/0",
        ]
    );
    assert_eq!((running(&lab, "web"), running(&lab, "side")), (all("web", "blue"), all("side", "blue")));
}

#[test]
fn y05_notices_of_a_core_are_told_after_all_else_in_their_order() {
    let mut lab = served();
    lab.hold("a/0").unwrap();
    lab.answer_probes(&url("web"), ProbeAnswer::Fails);
    seconds(&mut lab, 25);
    notify(&mut lab, "web", "a").unwrap();
    lab.end_workload("a/0", "side").unwrap();
    seconds(&mut lab, 1);
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(
        news(&lab),
        ["side-pebble-ready", "config-changed", "web-pebble-check-failed", "web-pebble-custom-notice"]
    );
}

#[test]
fn y07_a_check_that_is_silent_and_answers_again_is_told_both() {
    let mut lab = served();
    lab.hold("a/0").unwrap();
    lab.answer_probes(&url("web"), ProbeAnswer::Silent);
    seconds(&mut lab, 25);
    lab.answer_probes(&url("web"), ProbeAnswer::Well);
    seconds(&mut lab, 12);
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(news(&lab), ["web-pebble-check-failed", "web-pebble-check-recovered"]);
}

#[test]
fn y10_pods_outlive_their_keeper_and_the_next_one_tells_nothing_twice() {
    let mut lab = served();
    notify(&mut lab, "web", "a").unwrap();
    lab.run_until_idle().unwrap();
    let first = boot_id(&lab);
    lab.kill_agent("host").unwrap();
    notify(&mut lab, "web", "b").unwrap();
    assert_eq!(lab.kill_program("a/0", "web", "web-serve").unwrap(), 1);
    seconds(&mut lab, 5);
    assert_eq!(running(&lab, "web"), all("web", "red"), "services come back without a keeper");
    lab.start_agent("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(boot_id(&lab), first);
    assert_eq!(news(&lab), ["web-pebble-custom-notice"; 2]);
    let ids = lab.trace().iter().filter_map(|traced| match &traced.event {
        Event::PebbleCustomNotice { key, .. } => Some(key.clone()),
        _ => None,
    });
    assert_eq!(ids.collect::<Vec<_>>(), ["example.com/a", "example.com/b"]);
}

#[test]
fn a_pod_that_its_unit_does_not_know_is_not_taken_over() {
    let mut lab = served();
    lab.hold("a/0").unwrap();
    lab.end_workload("a/0", "web").unwrap();
    seconds(&mut lab, 1);
    let unknown = boot_id(&lab);
    lab.kill_agent("host").unwrap();
    lab.start_agent("host").unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_ne!(boot_id(&lab), unknown);
    assert_eq!(news(&lab), ["web-pebble-ready"]);
    assert_eq!(running(&lab, "web"), all("web", "red"));
}

#[test]
fn a_hook_that_is_cut_short_has_changed_its_pod_and_runs_again() {
    let mut lab = served();
    lab.hold("a/0").unwrap();
    lab.end_workload("a/0", "web").unwrap();
    seconds(&mut lab, 1);
    assert!(running(&lab, "web").is_empty());
    assert!(lab.start_hook("a/0").unwrap());
    assert_eq!(running(&lab, "web"), all("web", "red"), "Pebble acts at once, before the commit");
    lab.crash_runner("host").unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    let last =
        lab.trace().iter().rev().take(2).map(|traced| (traced.to_string(), traced.attempt, traced.state));
    let ready = || "web-pebble-ready".to_owned();
    let expected = [(ready(), 2, HookRunState::Committed), (ready(), 1, HookRunState::Lost)];
    assert_eq!(last.collect::<Vec<_>>(), expected);
    assert_eq!(running(&lab, "web"), all("web", "red"));
}

#[test]
fn the_changes_of_a_failed_hook_in_its_pod_stay() {
    let mut lab = served();
    let stop = Action::run(|hook| act(hook, "web", ServicesAction::Stop, &["work"]));
    lab.script("a/0", "config-changed", vec![stop, Action::fail("out of luck")]).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(running(&lab, "web"), [("web-serve".to_owned(), "red".to_owned())]);
    lab.unscript_all();
    seconds(&mut lab, 60);
    assert_eq!(news(&lab).last().unwrap(), "config-changed");
    assert_eq!(running(&lab, "web"), all("web", "blue"));
}

#[test]
fn a_workload_that_makes_notices_without_end_is_told_of_the_newest_and_of_its_check() {
    let mut lab = served();
    lab.hold("a/0").unwrap();
    lab.answer_probes(&url("web"), ProbeAnswer::Fails);
    seconds(&mut lab, 25);
    for number in 0..200 {
        notify(&mut lab, "web", &format!("n{number}")).unwrap();
    }
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    let told = news(&lab);
    assert_eq!((told[0].as_str(), told.len()), ("web-pebble-check-failed", 1 + 64));
    let newest = lab.trace().iter().rev().take(64).rev().map(|traced| match &traced.event {
        Event::PebbleCustomNotice { key, .. } => key.clone(),
        other => other.to_string(),
    });
    let expected: Vec<_> = (136..200).map(|number| format!("example.com/n{number}")).collect();
    assert_eq!(newest.collect::<Vec<_>>(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The gaps keep clear of the 30 s after which the first pause comes again.
    #[test]
    fn a_service_that_is_killed_is_up_again_after_its_pause(
        seed: u64, gaps in proptest::collection::vec(prop_oneof![0..20_000_u64, 40_000..60_000_u64], 1..8)
    ) {
        let mut lab = Lab::new(seed).unwrap();
        deploy(&mut lab).unwrap();
        let mut kills = 0;
        for gap in gaps {
            lab.advance(Duration::from_millis(gap)).unwrap();
            kills = if gap >= 40_000 { 0 } else { kills };
            let pause = (500_u64 << kills).min(30_000);
            prop_assert_eq!(lab.kill_program("a/0", "web", "web-serve").unwrap(), 1);
            lab.advance(Duration::from_millis(pause - 1)).unwrap();
            prop_assert_eq!(running(&lab, "web"), all("web", "red")[1..].to_vec());
            lab.advance(Duration::from_millis(pause / 10 + 3)).unwrap();
            prop_assert_eq!(running(&lab, "web"), all("web", "red"));
            kills += 1;
        }
        prop_assert_eq!(news(&lab).iter().filter(|hook| hook.contains("pebble")).count(), 0);
    }
}
