//! Services: starts and stops, their order, pauses after ends, and the words of a plan on an end.

use periapt_host_api::container::ServiceCurrent;
use serde_json::json;

use super::*;
use crate::{message::SignalsBody, plan::Service, supervisor::services::pause};

#[test]
fn a_service_whose_program_is_missing_says_so_until_it_starts() {
    let mut pod = Pod::new(&service("startup: enabled"));
    let shown = |pod: &Pod| {
        let state = pod.supervisor.state();
        (state.services[0].current, state.services[0].cannot_start.clone())
    };
    let change = pod.act(ServicesAction::Start, &["a"]);
    let (process, _) = pod.running.pop_first().unwrap();
    let missing = "cannot find executable \"run\"";
    pod.input(PodInput::SpawnFailed(process, missing.to_owned()));
    assert_eq!(shown(&pod), (ServiceCurrent::Error, Some(missing.to_owned())));
    let shown_change = pod.change(&change);
    assert!(shown_change["err"].as_str().unwrap().contains(missing), "{shown_change}");
    pod.act(ServicesAction::Start, &["a"]);
    assert_eq!(shown(&pod), (ServiceCurrent::Active, None));
}

#[test]
fn a_service_counts_as_started_after_a_second() {
    let mut pod = Pod::new(&service("environment: {X: y}"));
    let change = pod.act(ServicesAction::Start, &["a"]);
    assert_eq!(pod.running.values().next().unwrap().environment["X"], "y");
    pod.seconds(0.9);
    assert_eq!(pod.status(&change), "Doing");
    pod.seconds(0.2);
    let shown = pod.change(&change);
    assert_eq!((&shown["status"], &shown["ready"]), (&json!("Done"), &json!(true)));
    assert_eq!(shown["summary"], "Start service \"a\"");
    assert_eq!(pod.current("a"), "active");
    let again = pod.act(ServicesAction::Start, &["a"]);
    assert_eq!(pod.status(&again), "Done");
    assert_eq!(pod.running.len(), 1);
}

#[test]
fn a_quick_exit_is_an_error_with_the_output() {
    let mut pod = Pod::new(&service(""));
    let change = pod.act(ServicesAction::Start, &["a"]);
    let process = pod.process("run");
    pod.input(PodInput::Wrote(process, b"no such\nport".to_vec()));
    pod.exit("run", 3);
    let shown = pod.change(&change);
    assert_eq!(shown["status"], "Error");
    let error = shown["err"].as_str().unwrap();
    assert!(
        error.contains("- Start service \"a\" (cannot start service: exited quickly with code 3)"),
        "{error}"
    );
    assert!(shown["tasks"][0]["log"][0].as_str().unwrap().contains("no such\n    port"), "{shown}");
    assert_eq!(pod.current("a"), "error");
    pod.seconds(100.0);
    assert!(pod.running.is_empty(), "it is not tried again");
}

#[test]
fn pauses_grow_to_a_limit_and_begin_anew_after_a_long_run() {
    let mut pod = Pod::new(&service("backoff-limit: 30s, backoff-delay: 1s"));
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(1.5);
    let mut pauses = Vec::new();
    for _ in 0..5 {
        let ended = pod.now;
        pod.exit("run", 1);
        assert_eq!(pod.current("a"), "backoff");
        pod.seconds(20.0);
        assert_eq!(pod.commands(), ["run"]);
        pauses.push((*pod.starts.last().unwrap() - ended).as_secs_f64());
    }
    for (pause, expected) in pauses.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0]) {
        assert!((expected..=expected * 1.1).contains(pause), "{pauses:?}");
    }
    pod.seconds(30.0);
    let ended = pod.now;
    pod.exit("run", 1);
    pod.seconds(1.2);
    let pause = (*pod.starts.last().unwrap() - ended).as_secs_f64();
    assert!((1.0..=1.1).contains(&pause), "{pause}");
}

#[test]
fn services_of_the_pods_own_run_from_its_start_and_layers_go_over_them() {
    let mut pod = Pod::new("");
    pod.input(PodInput::Begin([("web".to_owned(), "web".to_owned())].into()));
    assert_eq!(pod.commands(), ["web"]);
    let plan = pod.result(PodRequest::Plan);
    let plan = plan.as_str().unwrap();
    assert!(plan.contains("web:") && plan.contains("enabled"), "{plan}");
    // Even one that ends at once is started again, and the operator is told why.
    let process = pod.process("web");
    pod.input(PodInput::Wrote(process, b"no such\x1bfile\n".to_vec()));
    pod.exit("web", 1);
    assert_eq!(pod.told, [r#"web: it ended with code 1; its last output: "no such\u{1b}file""#]);
    assert_eq!(pod.current("web"), "backoff");
    pod.seconds(1.0);
    assert_eq!(pod.commands(), ["web"]);
    pod.seconds(2.0);
    pod.add("services: {web: {override: merge, environment: {X: y}}}").unwrap();
    let replan = pod.act(ServicesAction::Replan, &[]);
    pod.exit("web", 0);
    pod.seconds(2.0);
    assert_eq!(pod.status(&replan), "Done");
    assert_eq!(pod.running.values().next().unwrap().environment["X"], "y");
    assert_eq!(pod.told.len(), 1, "an end that was asked for is no news");
}

#[test]
fn a_stop_asks_then_kills_then_gives_up() {
    let mut pod = Pod::new(&service("kill-delay: 2s"));
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(2.0);
    let stop = pod.act(ServicesAction::Stop, &["a"]);
    let process = pod.process("run");
    assert_eq!(pod.signals, [(process, Signal::TERM)]);
    pod.seconds(2.1);
    assert_eq!(pod.signals, [(process, Signal::TERM), (process, Signal::KILL)]);
    pod.seconds(5.1);
    assert!(pod.change(&stop)["err"].as_str().unwrap().contains("still runs after SIGTERM and SIGKILL"));
    let stop = pod.act(ServicesAction::Stop, &["a"]);
    pod.exit("run", 137);
    assert_eq!(pod.status(&stop), "Done");
    assert_eq!(pod.current("a"), "inactive");
}

#[test]
fn a_stop_ends_a_pause_and_a_start_that_is_on_its_way() {
    let mut pod = Pod::new(&service(""));
    let start = pod.act(ServicesAction::Start, &["a"]);
    let stop = pod.act(ServicesAction::Stop, &["a"]);
    assert_eq!(pod.status(&start), "Error");
    pod.exit("run", 143);
    assert_eq!(pod.status(&stop), "Done");
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(2.0);
    pod.exit("run", 1);
    assert_eq!(pod.current("a"), "backoff");
    let stop = pod.act(ServicesAction::Stop, &["a"]);
    assert_eq!(pod.status(&stop), "Done");
    pod.seconds(60.0);
    assert!(pod.running.is_empty());
}

#[test]
fn services_start_in_their_order_and_wait_for_ever_behind_one_that_fails() {
    let mut pod = Pod::new(
        "services:\n  \
         a: {override: replace, command: a, startup: enabled, after: [b], requires: [b]}\n  \
         b: {override: replace, command: b}\n  \
         c: {override: replace, command: c, startup: enabled}",
    );
    let change = pod.act(ServicesAction::Autostart, &[]);
    assert_eq!(pod.commands(), ["b", "c"]);
    pod.seconds(1.1);
    assert_eq!(pod.commands(), ["b", "c", "a"]);
    pod.exit("a", 1);
    assert_eq!(pod.status(&change), "Error");
    let stop = pod.act(ServicesAction::Stop, &["b", "c"]);
    pod.exit("b", 0);
    pod.exit("c", 0);
    assert_eq!(pod.status(&stop), "Done");
    let change = pod.act(ServicesAction::Start, &["a"]);
    pod.exit("b", 1);
    let shown = pod.change(&change);
    let statuses: Vec<_> =
        shown["tasks"].as_array().unwrap().iter().map(|it| it["status"].as_str().unwrap()).collect();
    assert_eq!((statuses, &shown["ready"]), (vec!["Error", "Hold"], &json!(true)));
}

#[test]
fn a_service_stops_before_those_it_requires() {
    let mut pod = Pod::new(
        "services:\n  a: {override: replace, command: a, after: [b], requires: [b]}\n  b: {override: replace, command: b}",
    );
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(3.0);
    pod.act(ServicesAction::Stop, &["b"]);
    assert_eq!(pod.signals, [(pod.process("a"), Signal::TERM)]);
    pod.exit("a", 0);
    assert_eq!(pod.signals.last(), Some(&(pod.process("b"), Signal::TERM)));
}

#[test]
fn a_replan_restarts_what_has_changed_alone() {
    let mut pod = Pod::new(
        "services:\n  a: {override: replace, command: a, startup: enabled}\n  b: {override: replace, command: b, startup: enabled}",
    );
    pod.act(ServicesAction::Replan, &[]);
    pod.seconds(2.0);
    pod.add("services: {a: {override: merge, environment: {X: '1'}}}").unwrap();
    let change = pod.act(ServicesAction::Replan, &[]);
    assert_eq!(pod.signals, [(pod.process("a"), Signal::TERM)]);
    pod.exit("a", 0);
    pod.seconds(2.0);
    assert_eq!(pod.status(&change), "Done");
    assert_eq!(pod.running[&pod.process("a")].environment["X"], "1");
    // The same plan again, though with another word on how it is merged.
    pod.add("services: {a: {override: replace, command: a, startup: enabled, environment: {X: '1'}}}")
        .unwrap();
    let nothing = pod.act(ServicesAction::Replan, &[]);
    let shown = pod.change(&nothing);
    assert_eq!((&shown["status"], &shown["summary"]), (&json!("Done"), &json!("Replan - no services")));
}

#[test]
fn an_end_does_what_the_service_asks_for() {
    for (extra, code, ends) in [
        ("on-failure: ignore", 1, None),
        ("on-success: ignore", 0, None),
        ("on-success: shutdown", 0, Some(0)),
        ("on-failure: shutdown", 1, Some(10)),
        ("on-failure: success-shutdown", 1, Some(0)),
        ("on-success: failure-shutdown", 0, Some(10)),
    ] {
        let mut pod = Pod::new(&service(extra));
        pod.act(ServicesAction::Start, &["a"]);
        pod.seconds(2.0);
        pod.exit("run", code);
        pod.seconds(60.0);
        assert!(pod.running.is_empty(), "{extra}");
        assert_eq!(pod.others, ends.map(PodOutput::Shutdown).into_iter().collect::<Vec<_>>(), "{extra}");
        let refused = pod.ask(PodRequest::ActOnServices(ServicesBody {
            action: ServicesAction::Start,
            services: vec!["a".to_owned()],
        }));
        assert_eq!(refused.is_err_and(|refusal| refusal.status == 503), ends.is_some(), "{extra}");
    }
}

#[test]
fn a_pod_ends_once_its_services_have_stopped() {
    let mut pod = Pod::new(&service(""));
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(2.0);
    pod.input(PodInput::End(0));
    assert_eq!((pod.others.as_slice(), pod.signals.len()), ([].as_slice(), 1));
    pod.exit("run", 0);
    assert_eq!(pod.others, [PodOutput::Shutdown(0)]);
}

#[test]
fn signals_go_to_services_that_run() {
    let mut pod = Pod::new(&service(""));
    let signal = |pod: &mut Pod, name: &str| {
        let body = SignalsBody { signal: name.to_owned(), services: vec!["a".to_owned()] };
        pod.ask(PodRequest::Signal(body)).map_err(|refusal| refusal.message)
    };
    assert!(signal(&mut pod, "SIGHUP").unwrap_err().contains("not running"));
    pod.act(ServicesAction::Start, &["a"]);
    signal(&mut pod, "SIGHUP").unwrap();
    assert_eq!(pod.signals, [(pod.process("run"), Signal::from_name("SIGHUP").unwrap())]);
    assert!(signal(&mut pod, "HUP").unwrap_err().contains("invalid signal name"));
}

#[test]
fn pauses_are_never_shorter_than_their_delay_nor_longer_than_their_limit() {
    let service = Service::default();
    let pauses: Vec<_> = (0..10).map(|attempts| pause(&service, attempts).as_secs_f64()).collect();
    assert_eq!(pauses, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]);
    assert_eq!(pause(&service, u32::MAX), Duration::from_secs(30));
}
