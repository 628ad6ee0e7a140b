//! Workloads that are commands.

use std::time::{Duration, Instant};

use periapt_sandbox::workload::{
    CommandEnd, CommandWorkload, CompiledWorkload, WorkloadEngine, WorkloadInputs, WorkloadPool,
};
use rustix::time::{ClockId, clock_gettime};

use crate::{
    workloads::{GUEST, inputs, pool, text, workload},
    world::component,
};

/// Runs the command with arguments, and returns its end and its log.
async fn run(arguments: &[&str]) -> (CommandEnd, String) {
    run_in(&GUEST, arguments).await
}

async fn run_in(
    (engine, guest): &(WorkloadEngine, CompiledWorkload),
    arguments: &[&str],
) -> (CommandEnd, String) {
    let directory = tempfile::tempdir().unwrap();
    let (given, mut log) = inputs(directory.path());
    let all = std::iter::once("job").chain(arguments.iter().copied());
    let given = WorkloadInputs { arguments: all.map(str::to_owned).collect(), ..given };
    let end = CommandWorkload::new(engine, guest, given).unwrap().run().await;
    (end, text(&mut log))
}

#[tokio::test]
async fn a_command_has_its_surroundings_alone_and_its_output_is_its_log() {
    let done = |text: &str| (CommandEnd::Exited(0), text.to_owned());
    assert_eq!(run(&["surroundings"]).await, done("job\nsurroundings\nNAME=value\n"));
    assert_eq!(run(&["read", "/data/file"]).await, done("content"));
    assert_eq!(run(&["escapes"]).await, done(""));
}

#[tokio::test]
async fn a_command_ends_with_its_code_or_with_a_reason() {
    assert_eq!(run(&[]).await.0, CommandEnd::Exited(1));
    // WASI 0.2 tells success and failure apart, and no more.
    assert_eq!(run(&["exit"]).await.0, CommandEnd::Exited(1));
    for (mode, reason) in [("abort", "it aborted"), ("recurse", "stack overflow")] {
        let (end, log) = run(&[mode]).await;
        let CommandEnd::Failed(told) = &end else { panic!("{mode}: {end:?}") };
        assert!(told.starts_with(reason), "{told}");
        assert!(log.ends_with(&format!("{told}\n")), "{log}");
    }
    let (end, log) = run(&["memory"]).await;
    assert_eq!(end, CommandEnd::Exited(0));
    let taken: u64 = log.trim().strip_suffix(" MiB").unwrap().parse().unwrap();
    assert!((32..64).contains(&taken), "{log}");
}

#[tokio::test]
async fn a_command_that_never_ends_ends_with_its_future() {
    for mode in ["sleep", "compute", "flood"] {
        let left = tokio::time::timeout(Duration::from_millis(200), run(&[mode])).await;
        assert!(left.is_err(), "{mode}: {left:?}");
    }
    assert_eq!(run(&["exit"]).await.0, CommandEnd::Exited(1));
}

/// Returns the CPU time that this process has used.
fn used() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_compute_without_end_keep_to_the_share_of_their_process() {
    const TENTH: u32 = 100;
    let shared = workload(WorkloadPool { cpu: Some(TENTH), ..pool() });
    let (began, before) = (Instant::now(), used());
    let both = async { tokio::join!(run_in(&shared, &["compute"]), run_in(&shared, &["compute"])) };
    assert!(tokio::time::timeout(Duration::from_secs(3), both).await.is_err(), "they compute without end");
    let (took, used) = (began.elapsed(), used() - before);
    // Each may compute for one tick more before it waits.
    assert!(used < took / 5, "{used:?} of {took:?}");
    // Without the share both would have computed all the time.
    assert!(used > Duration::from_millis(20), "they compute, {used:?}");
}

#[test]
fn a_component_that_is_no_command_is_one_clear_error() {
    let (engine, _) = &*GUEST;
    let charm = engine.compile(&component("mysql")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (inputs, _log) = inputs(directory.path());
    let error = CommandWorkload::new(engine, &charm, inputs).unwrap_err();
    assert!(error.to_string().starts_with("it does not export wasi:cli/run; its exports: "), "{error}");
}
