//! The metrics of services and checks, and who reads them.

use serde_json::json;

use super::*;
use crate::message::IdentitiesBody;

const PLAN: &str = "services: {a: {override: replace, command: run}, b: {override: replace, command: other}}\n\
                    checks: {c: {override: replace, period: 1s, timeout: 500ms, threshold: 2, http: {url: 'http://x/'}}}";

fn metrics(pod: &mut Pod) -> Vec<String> {
    let Ok(PodAnswer::Metrics(text)) = pod.ask(PodRequest::Metrics) else { return Vec::new() };
    text.lines().map(str::to_owned).collect()
}

/// Returns the samples without what stands above them.
fn samples(pod: &mut Pod) -> Vec<String> {
    metrics(pod).into_iter().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn starts_states_and_answers_are_counted_for_good() {
    let mut pod = Pod::new("");
    assert_eq!(pod.ask(PodRequest::Metrics), Ok(PodAnswer::Metrics(String::new())));
    pod.add(PLAN).unwrap();
    assert_eq!(
        samples(&mut pod),
        [
            "pebble_service_start_count{service=\"a\"} 0",
            "pebble_service_start_count{service=\"b\"} 0",
            "pebble_service_active{service=\"a\"} 0",
            "pebble_service_active{service=\"b\"} 0",
            "pebble_check_up{check=\"c\"} 1",
            "pebble_check_success_count{check=\"c\"} 0",
            "pebble_check_failure_count{check=\"c\"} 0",
        ]
    );
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(1.0);
    pod.answer_probes(Ok(()));
    for _ in 0..2 {
        pod.probes.clear();
        pod.seconds(1.0);
        pod.answer_probes(Err("refused"));
    }
    // It starts again after its pause.
    pod.exit("run", 1);
    pod.seconds(0.6);
    assert_eq!(
        samples(&mut pod),
        [
            "pebble_service_start_count{service=\"a\"} 2",
            "pebble_service_start_count{service=\"b\"} 0",
            "pebble_service_active{service=\"a\"} 1",
            "pebble_service_active{service=\"b\"} 0",
            "pebble_check_up{check=\"c\"} 0",
            "pebble_check_success_count{check=\"c\"} 1",
            "pebble_check_failure_count{check=\"c\"} 2",
        ]
    );
    // Each metric has its words once, before its samples.
    let all = metrics(&mut pod);
    for (name, kind) in [
        ("pebble_service_start_count", "counter"),
        ("pebble_service_active", "gauge"),
        ("pebble_check_up", "gauge"),
        ("pebble_check_success_count", "counter"),
        ("pebble_check_failure_count", "counter"),
    ] {
        let at = all.iter().position(|line| line.starts_with(&format!("{name}{{"))).unwrap();
        assert_eq!(all[at - 1], format!("# TYPE {name} {kind}"));
        assert!(all[at - 2].starts_with(&format!("# HELP {name} ")), "{all:?}");
    }
    assert_eq!(all.iter().filter(|line| line.starts_with('#')).count(), 10);
}

#[test]
fn an_identity_for_metrics_reads_them_and_nothing_else_and_one_without_trust_does_not() {
    let mut pod = Pod::new(PLAN);
    let identity = |access: &str, user: u32| json!({ "access": access, "local": { "user-id": user } });
    let identities = [("scraper", identity("metrics", 42)), ("nobody", identity("untrusted", 43))];
    let identities = identities.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
    pod.ask(PodRequest::ActOnIdentities(IdentitiesBody { action: "add".to_owned(), identities })).unwrap();
    let of = |user_id| PodCaller { user_id, is_owner: false };
    for (user, request, is_allowed) in [
        (Some(42), PodRequest::Metrics, true),
        (Some(42), PodRequest::Plan, false),
        (Some(43), PodRequest::Metrics, false),
        (Some(44), PodRequest::Metrics, true),
        (None, PodRequest::Metrics, false),
    ] {
        let id = pod.send(of(user), request.clone());
        let answer = pod.answers.remove(&id).unwrap();
        assert_eq!(answer.is_ok(), is_allowed, "{user:?} {request:?}: {answer:?}");
    }
}
