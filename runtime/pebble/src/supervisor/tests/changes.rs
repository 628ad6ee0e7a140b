//! Changes: aborting them, waiting for them, and their bounds.

use super::*;

#[test]
fn a_change_can_be_aborted() {
    let mut pod = Pod::new(&service(""));
    let (change, task) = begin(&mut pod, exec(None));
    connect(&mut pod, &task);
    pod.result(PodRequest::AbortChange(change.clone()));
    pod.exit("do", 137);
    assert!(pod.change(&change)["err"].as_str().unwrap().contains("aborted"));
    assert!(pod.ask(PodRequest::AbortChange(change)).unwrap_err().message.contains("nothing pending"));
}

#[test]
fn a_wait_ends_with_the_change_or_with_its_time() {
    let mut pod = Pod::new(&service(""));
    let change = pod.act(ServicesAction::Start, &["a"]);
    let short = pod.send(ROOT, PodRequest::WaitChange(change.clone(), Some(Duration::from_millis(500))));
    let long = pod.send(ROOT, PodRequest::WaitChange(change.clone(), Some(Duration::from_secs(4))));
    let gone = pod.send(ROOT, PodRequest::WaitChange(change.clone(), None));
    pod.input(PodInput::Gone(RequestId(gone)));
    pod.seconds(0.6);
    assert_eq!(pod.answers.remove(&short).unwrap().unwrap_err().status, 504);
    pod.seconds(0.5);
    assert!(
        matches!(pod.answers.remove(&long), Some(Ok(PodAnswer::Sync(shown))) if shown["status"] == "Done")
    );
    assert!(pod.answers.is_empty());
    assert!(pod.ask(PodRequest::WaitChange(change, None)).is_ok());
}

#[test]
fn ready_changes_are_dropped_by_age_and_by_number() {
    let limits = PodLimits { changes: 5, ..PodLimits::default() };
    let options = PodSettings { version: String::new(), boot_id: String::new(), seed: 0, limits };
    let mut pod = Pod::with(options, &service(""));
    pod.act(ServicesAction::Start, &["a"]);
    pod.seconds(2.0);
    for _ in 0..20 {
        pod.act(ServicesAction::Start, &["a"]);
    }
    let all = |pod: &mut Pod| {
        pod.result(PodRequest::Changes { select: "all".to_owned(), service: None }).as_array().unwrap().len()
    };
    assert_eq!(all(&mut pod), 6);
    pod.seconds(8.0 * 86_400.0);
    pod.act(ServicesAction::Start, &["a"]);
    assert_eq!(all(&mut pod), 1);
}

#[test]
fn the_tasks_of_all_changes_have_a_bound() {
    let limits = PodLimits { tasks: 10, ..PodLimits::default() };
    let options = PodSettings { version: String::new(), boot_id: String::new(), seed: 0, limits };
    let names: Vec<String> = (0..6).map(|it| format!("s{it}")).collect();
    let services: Vec<_> =
        names.iter().map(|it| format!("{it}: {{override: replace, command: {it}}}")).collect();
    let mut pod = Pod::with(options, &format!("services: {{{}}}", services.join(", ")));
    let body = || ServicesBody { action: ServicesAction::Start, services: names.clone() };
    for is_begun in [true, true, false] {
        let answer = pod.ask(PodRequest::ActOnServices(body()));
        assert_eq!(answer.is_ok(), is_begun, "{answer:?}");
    }
    pod.seconds(2.0);
    for _ in 0..5 {
        pod.ask(PodRequest::ActOnServices(body())).unwrap();
        let tasks: usize = pod.supervisor.changes.all().map(|change| change.tasks.len()).sum();
        assert!(tasks <= 12 + 6, "{tasks}");
    }
}
