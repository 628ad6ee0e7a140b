//! Checks: their failures and recoveries, and the state that the operator sees.

use periapt_host_api::{
    container::{CheckStatus, ServiceCurrent},
    notice::WorkloadNotice,
};
use serde_json::json;

use super::*;
use crate::{
    message::{ChecksAction, ChecksBody, NoticesQuery},
    plan::CheckLevel,
};

const CHECKED: &str = "services: {a: {override: replace, command: run, on-check-failure: {c: restart}}}\n\
                       checks: {c: {override: replace, period: 1s, timeout: 500ms, threshold: 2, level: alive, http: {url: 'http://x/'}}}";

#[test]
fn a_check_that_fails_is_told_and_recovers() {
    let mut pod = Pod::new(CHECKED);
    pod.act(ServicesAction::Start, &["a"]);
    let perform = pod.check("c")["change-id"].as_str().unwrap().to_owned();
    pod.seconds(1.0);
    pod.answer_probes(Ok(()));
    assert_eq!(pod.check("c")["successes"], 1);
    pod.seconds(1.0);
    pod.answer_probes(Err("refused"));
    assert_eq!((&pod.check("c")["status"], &pod.check("c")["failures"]), (&json!("up"), &json!(1)));
    assert_eq!(pod.ask(PodRequest::Health { level: None, names: vec![] }), Ok(PodAnswer::Health(true)));
    // The second failure is an answer that does not come.
    pod.seconds(1.6);
    let down = pod.check("c");
    assert_eq!((&down["status"], &down["failures"]), (&json!("down"), &json!(2)));
    assert_eq!(pod.status(&perform), "Error");
    for (level, is_healthy) in [(None, false), (Some(CheckLevel::Ready), false)] {
        assert_eq!(pod.ask(PodRequest::Health { level, names: vec![] }), Ok(PodAnswer::Health(is_healthy)));
    }
    assert_eq!(pod.signals, [(pod.process("run"), Signal::TERM)]);
    pod.exit("run", 0);
    pod.seconds(0.6);
    assert_eq!(pod.commands(), ["run"], "it starts again after its pause");
    let recover = down["change-id"].as_str().unwrap().to_owned();
    assert_eq!(pod.status(&recover), "Doing");
    pod.probes.clear();
    pod.seconds(1.0);
    pod.answer_probes(Ok(()));
    assert_eq!(pod.status(&recover), "Done");
    let up = pod.check("c");
    assert_eq!((&up["status"], &up["failures"], &up["successes"]), (&json!("up"), &json!(0), &json!(1)));
    let notices = pod.result(PodRequest::Notices(Box::new(NoticesQuery {
        keys: vec![perform, recover],
        ..NoticesQuery::default()
    })));
    let data: Vec<_> = notices.as_array().unwrap().iter().map(|it| it["last-data"].clone()).collect();
    let of = |kind: &str| json!({ "kind": kind, "check-name": "c" });
    assert_eq!(data, [of("perform-check"), of("recover-check")]);
    let check = "c".to_owned();
    let told =
        [WorkloadNotice::CheckFailed { check: check.clone() }, WorkloadNotice::CheckRecovered { check }];
    assert_eq!(pod.others, told.map(PodOutput::Notice));
}

#[test]
fn the_state_of_services_and_checks_changes_with_them_and_not_with_each_failure() {
    let mut pod = Pod::new(
        "services: {a: {override: replace, command: run, startup: enabled}}\n\
         checks: {up: {override: replace, period: 10s, timeout: 9s, threshold: 2, http: {url: \"http://localhost/\"}}}",
    );
    let shown = |pod: &Pod| {
        let state = pod.supervisor.state();
        let (service, check) = (&state.services[0], &state.checks[0]);
        (service.current, service.restarts, check.status, check.failures)
    };
    assert_eq!(shown(&pod), (ServiceCurrent::Inactive, 0, CheckStatus::Up, 0));
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(2.0);
    pod.exit("run", 1);
    assert_eq!(shown(&pod), (ServiceCurrent::Backoff, 0, CheckStatus::Up, 0));
    pod.seconds(2.0);
    assert_eq!(shown(&pod), (ServiceCurrent::Active, 1, CheckStatus::Up, 0));
    let fail = |pod: &mut Pod| {
        pod.seconds(10.0);
        let before = pod.supervisor.state_changes();
        pod.answer_probes(Err("refused"));
        pod.supervisor.state_changes() - before
    };
    let first = fail(&mut pod);
    assert_eq!((first, shown(&pod)), (0, (ServiceCurrent::Active, 1, CheckStatus::Up, 1)));
    let second = fail(&mut pod);
    assert_eq!((second, shown(&pod)), (1, (ServiceCurrent::Active, 1, CheckStatus::Down, 2)));
    let third = fail(&mut pod);
    assert_eq!((third, shown(&pod)), (0, (ServiceCurrent::Active, 1, CheckStatus::Down, 2)));
    pod.act(ServicesAction::Stop, &["a"]);
    pod.exit("run", 0);
    assert_eq!(shown(&pod).0, ServiceCurrent::Inactive);
}

#[test]
fn a_check_that_is_stopped_while_it_is_down_tells_nothing_more() {
    let mut pod = Pod::new(CHECKED);
    pod.seconds(1.0);
    pod.answer_probes(Err("refused"));
    pod.seconds(1.0);
    pod.answer_probes(Err("refused"));
    assert_eq!(pod.others.len(), 1, "{:?}", pod.others);
    let checks = vec!["c".to_owned()];
    pod.result(PodRequest::ActOnChecks(ChecksBody { action: ChecksAction::Stop, checks }));
    pod.seconds(5.0);
    assert_eq!(pod.others.len(), 1, "{:?}", pod.others);
}

#[test]
fn a_late_answer_of_a_probe_counts_for_nothing() {
    let mut pod = Pod::new(CHECKED);
    pod.seconds(1.0);
    let late = std::mem::take(&mut pod.probes);
    pod.seconds(0.6);
    assert_eq!(pod.check("c")["failures"], 1);
    pod.input(PodInput::Probed(late[0].0, Ok(())));
    assert_eq!(pod.check("c")["failures"], 1);
}

#[test]
fn a_check_is_stopped_and_started() {
    let mut pod = Pod::new(CHECKED);
    let act = |pod: &mut Pod, action| {
        pod.result(PodRequest::ActOnChecks(ChecksBody { action, checks: vec!["c".to_owned()] }))["changed"]
            .clone()
    };
    let change = pod.check("c")["change-id"].as_str().unwrap().to_owned();
    assert_eq!(act(&mut pod, ChecksAction::Start), json!([]));
    assert_eq!(act(&mut pod, ChecksAction::Stop), json!(["c"]));
    assert_eq!(pod.status(&change), "Hold");
    assert_eq!((&pod.check("c")["status"], pod.check("c").get("change-id")), (&json!("inactive"), None));
    pod.seconds(10.0);
    assert!(pod.probes.is_empty());
    pod.act(ServicesAction::Replan, &[]);
    assert_eq!(pod.check("c")["status"], "up");
}

#[test]
fn the_process_of_a_check_that_takes_too_long_is_killed() {
    let mut pod =
        Pod::new("checks: {c: {override: replace, period: 1s, timeout: 200ms, exec: {command: ask}}}");
    pod.seconds(1.0);
    let process = pod.process("ask");
    pod.seconds(0.3);
    assert_eq!(pod.signals, [(process, Signal::KILL)]);
    assert_eq!(pod.check("c")["failures"], 1);
    pod.exit("ask", 137);
    assert_eq!(pod.check("c")["failures"], 1);
}
