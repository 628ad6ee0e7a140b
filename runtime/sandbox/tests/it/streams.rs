//! Streams from a hook to its unit's workloads.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    sync::Arc,
};

use periapt_hook::{ReplayedCalls, WorkloadTarget};
use periapt_host_api::event::Event;
use periapt_sandbox::HandlerOutcome;

use crate::world::{Hook, RunResult, World, prepared};

/// Runs a hook whose unit has workloads that answer with what they were asked, or none.
async fn ask(script: &str, answers: bool) -> RunResult {
    let world = World { workloads: answers.then_some(answering), ..World::default() };
    let mut hook = Hook::new(Event::ConfigChanged).option("script", script);
    hook.world = Arc::new(world);
    hook.run(&prepared("probe", "probe"), "probe").await
}

fn answering(target: &WorkloadTarget) -> UnixStream {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let target = format!("{target:?}");
    std::thread::spawn(move || {
        let mut asked = Vec::new();
        let mut byte = [0];
        while !asked.ends_with(b"\r\n\r\n") && theirs.read(&mut byte).unwrap() == 1 {
            asked.extend(byte);
        }
        let first = String::from_utf8(asked).unwrap().lines().next().unwrap().to_owned();
        write!(theirs, "HTTP/1.1 200 OK\r\n\r\n{target} was asked {first}").unwrap();
    });
    ours
}

#[tokio::test]
async fn a_hook_speaks_to_a_pebble_and_to_a_port() {
    let result = ask(
        "config-changed: ask web GET /v1/system-info\nconfig-changed: ask 8080 GET /\n\
         config-changed: ask other GET /\nconfig-changed: ask 0 GET /",
        true,
    )
    .await;
    assert_eq!(result.report.outcome, HandlerOutcome::Handled);
    let log = result.log().join("\n");
    assert!(log.contains("200 Pebble(\"web\") was asked GET /v1/system-info HTTP/1.1"), "{log}");
    assert!(log.contains("200 Port(8080) was asked GET / HTTP/1.1"), "{log}");
    assert!(log.contains("the charm declares no container \"other\""), "{log}");
    assert!(log.contains("no workload listens on port 0"), "{log}");

    // What was read is for the journal's sealed part alone.
    let calls = &result.report.gathered.calls;
    let names: Vec<&str> = calls.calls.iter().map(|call| call.function.as_str()).collect();
    for name in ["workloads.connect", "workloads.write", "workloads.read"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let streams: Vec<_> = calls.calls.iter().filter(|call| call.function.starts_with("workloads.")).collect();
    let open = format!("{streams:?} {:?}", calls.answers);
    assert!(!open.contains("was asked"), "{open}");
    assert!(calls.secrets.iter().any(|secret| secret.0.contains("was asked")));
}

#[tokio::test]
async fn a_hook_that_spoke_to_its_workloads_is_replayed_without_them() {
    let script = "config-changed: ask web GET /v1/system-info\nconfig-changed: ask 8080 GET /\n\
                  config-changed: ask other GET /";
    let ran = ask(script, true).await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
    let mut hook = Hook::new(Event::ConfigChanged);
    hook.replay = Some(ran.report.gathered.calls.clone());
    let again = hook.run(&prepared("probe", "probe"), "probe").await;
    assert_eq!(again.report.outcome, HandlerOutcome::Handled);
    let same = ran.report.gathered.calls.calls.len() as u64;
    assert_eq!(again.report.gathered.replayed, Some(ReplayedCalls { same, difference: None }));
    assert_eq!(again.report.costs.fuel, ran.report.costs.fuel);
    assert!(again.log().join("\n").contains("200 Pebble(\"web\") was asked GET /v1/system-info"));
    assert_eq!(again.log(), ran.log());
}

#[tokio::test]
async fn where_no_workloads_run_nobody_listens() {
    let result = ask("config-changed: ask web GET /\nconfig-changed: ask 80 GET /", false).await;
    assert_eq!(result.report.outcome, HandlerOutcome::Handled);
    let log = result.log().join("\n");
    assert_eq!(log.matches("nobody listens: no workloads run here").count(), 2, "{log}");
}

#[tokio::test]
async fn a_workload_that_never_answers_ends_with_the_hooks_time() {
    let world = World { workloads: Some(silent), ..World::default() };
    let mut hook = Hook::new(Event::ConfigChanged).option("script", "config-changed: ask web GET /");
    hook = hook.budgets(|budgets| budgets.wall = std::time::Duration::from_millis(300));
    hook.world = Arc::new(world);
    let result = hook.run(&prepared("probe", "probe"), "probe").await;
    assert!(result.message().contains("timed out"), "{}", result.message());
}

fn silent(_target: &WorkloadTarget) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(5));
        drop(theirs);
    });
    ours
}
