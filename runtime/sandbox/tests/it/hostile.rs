//! The outcome of each guest of the catalogue. A guest without a function here does not compile.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use periapt_host_api::event::Event;
use periapt_sandbox::{Bounds, Budgets, Filesystem, HandlerOutcome, HookErrorKind, Prepared, StorageMount};

use crate::world::{Hook, RunResult, World, prepared};

static HOSTILE: LazyLock<Prepared> = LazyLock::new(|| prepared("hostile", "hostile"));

macro_rules! tests {
    ($($name:ident)*) => {
        $(#[tokio::test]
        async fn $name() {
            endings::$name(guest(stringify!($name))).await;
        })*
    };
}
hostile_modes!(tests);

fn guest(mode: &str) -> Hook {
    Hook::new(Event::Start).option("mode", mode)
}

async fn run(hook: Hook) -> RunResult {
    let budgets = hook.budgets.clone();
    let ran = hook.run(&HOSTILE, "hostile").await;
    let costs = &ran.report.costs;
    assert!(costs.fuel <= budgets.fuel, "{costs:?}");
    assert!(costs.memory <= budgets.memory, "{costs:?}");
    assert!(costs.host_calls <= budgets.host_calls + 1, "{costs:?}");
    if let HandlerOutcome::Failed(error) = &ran.report.outcome {
        assert!(!error.message.contains("escaped"), "{error}");
    }
    ran
}

async fn ends(hook: Hook, kind: HookErrorKind, message: &str) {
    let ran = run(hook).await;
    match &ran.report.outcome {
        HandlerOutcome::Failed(error) => {
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.message.starts_with(message), "{error}");
        }
        outcome => panic!("it did not fail: {outcome:?}"),
    }
}

async fn is_contained(hook: Hook) -> RunResult {
    let ran = run(hook).await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
    ran
}

/// Checks that a flooded log is bounded, and that its last line reports it.
async fn floods_the_log(hook: Hook) {
    let ran = is_contained(hook.budgets(|budgets| *budgets = Budgets::default())).await;
    let log = ran.log();
    let bytes: usize = log.iter().map(String::len).sum();
    assert!(bytes < 2 << 20, "{bytes}");
    let last = log.last().unwrap();
    assert!(last.contains("the hook's log is full"), "{last}");
    assert!(ran.report.costs.log_bytes > bytes as u64, "the dropped lines count as written");
}

/// Runs a guest with storage of 64 blocks and 32 files beside a secret, where the host has laid links that lead
/// out. Checks that it is contained within the limits, that the count equals the content, and that the secret is
/// unchanged.
async fn stays_in_its_storage(hook: Hook) {
    stays_within(hook, Bounds { bytes: 64 * 4096, files: 32 }).await;
}

/// Does the same with other limits.
async fn stays_within(mut hook: Hook, bounds: Bounds) {
    let outside = tempfile::tempdir().unwrap();
    let inside = outside.path().join("data-0");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(outside.path().join("secret"), "of the host").unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), inside.join("link-to-secret")).unwrap();
    std::os::unix::fs::symlink(outside.path(), inside.join("link-out")).unwrap();
    let filesystem = Arc::new(Filesystem::open(&inside, bounds).unwrap());
    let mount = StorageMount {
        filesystem: Arc::clone(&filesystem),
        location: "/srv/data".to_owned(),
        read_only: false,
    };
    hook.storage.push(mount);
    is_contained(hook).await;
    let used = filesystem.used();
    assert!(used.bytes <= bounds.bytes && used.files <= bounds.files, "{used:?}");
    drop(filesystem);
    assert_eq!(Filesystem::open(&inside, bounds).unwrap().used(), used);
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"of the host");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 2);
}

mod endings {
    use super::*;

    pub(super) async fn endless_loop(hook: Hook) {
        ends(hook, HookErrorKind::CpuBudget, "cpu budget exceeded: a hook may compute for 500 ms").await;
    }

    pub(super) async fn sleep(mut hook: Hook) {
        hook.world = Arc::new(World { real_time: true, ..World::default() });
        let hook = hook.budgets(|budgets| budgets.wall = Duration::from_millis(50));
        ends(hook, HookErrorKind::TimedOut, "timed out: a hook may take 50 ms").await;
    }

    pub(super) async fn block_read(hook: Hook) {
        is_contained(hook).await;
    }

    pub(super) async fn memory_bomb(hook: Hook) {
        let hook = hook.budgets(|budgets| budgets.memory = 32 << 20);
        ends(hook, HookErrorKind::OutOfMemory, "out of memory: a hook may use 32 MiB").await;
    }

    pub(super) async fn recursion(hook: Hook) {
        ends(hook, HookErrorKind::StackOverflow, "stack overflow: too many nested calls").await;
    }

    pub(super) async fn large_frames(hook: Hook) {
        ends(hook, HookErrorKind::Trapped, "trapped: out of bounds memory access").await;
    }

    pub(super) async fn handles(hook: Hook) {
        ends(hook, HookErrorKind::Limit, "too many handles: a hook may hold 1000").await;
    }

    pub(super) async fn random_flood(hook: Hook) {
        ends(hook, HookErrorKind::Limit, "requested len 1099511627776 exceeds limit 65536").await;
    }

    pub(super) async fn tmp_flood(hook: Hook) {
        is_contained(hook).await;
    }

    pub(super) async fn tmp_files(hook: Hook) {
        is_contained(hook.budgets(|budgets| budgets.tmp_files = 100)).await;
    }

    pub(super) async fn storage_flood(hook: Hook) {
        stays_in_its_storage(hook).await;
    }

    pub(super) async fn storage_sparse(hook: Hook) {
        stays_in_its_storage(hook).await;
    }

    pub(super) async fn storage_files(hook: Hook) {
        stays_in_its_storage(hook).await;
    }

    pub(super) async fn storage_deep(hook: Hook) {
        stays_in_its_storage(hook).await;
    }

    pub(super) async fn storage_unnamed(hook: Hook) {
        stays_in_its_storage(hook).await;
    }

    pub(super) async fn storage_listings(hook: Hook) {
        let hook = hook.budgets(|budgets| budgets.memory = 8 << 20);
        stays_within(hook, Bounds { bytes: 1_100 * 4096, files: 1_100 }).await;
    }

    pub(super) async fn storage_nothing(hook: Hook) {
        stays_in_its_storage(hook).await;
    }

    pub(super) async fn storage_sync(mut hook: Hook) {
        let directory = tempfile::tempdir().unwrap();
        let bounds = Bounds { bytes: 64 * 4096, files: 32 };
        hook.storage.push(StorageMount {
            filesystem: Arc::new(Filesystem::open(directory.path(), bounds).unwrap()),
            location: "/srv/data".to_owned(),
            read_only: false,
        });
        // The limit on the number of calls alone would allow far more.
        let hook = hook.budgets(|budgets| {
            budgets.fuel = Budgets::cpu(Duration::from_millis(50));
            budgets.host_calls = 1_000;
        });
        ends(hook, HookErrorKind::CpuBudget, "cpu budget exceeded").await;
    }

    pub(super) async fn storage_wander(hook: Hook) {
        stays_in_its_storage(hook).await;
    }

    pub(super) async fn log_flood(hook: Hook) {
        floods_the_log(hook).await;
    }

    pub(super) async fn stdout_flood(hook: Hook) {
        floods_the_log(hook).await;
    }

    pub(super) async fn stderr_flood(hook: Hook) {
        floods_the_log(hook).await;
    }

    pub(super) async fn status_flood(hook: Hook) {
        ends(hook, HookErrorKind::Failed, "a hook may set at most 200 statuses").await;
    }

    pub(super) async fn event_flood(hook: Hook) {
        ends(hook, HookErrorKind::Failed, "the unit waits for 64 events; no more are allowed").await;
    }

    pub(super) async fn host_call_flood(hook: Hook) {
        let hook = hook.budgets(|budgets| budgets.host_calls = 10_000);
        ends(hook, HookErrorKind::HostCalls, "too many host calls: a hook may make 10000").await;
    }

    pub(super) async fn tool_flood(hook: Hook) {
        let hook = hook.budgets(|budgets| budgets.host_calls = 10_000);
        ends(hook, HookErrorKind::HostCalls, "too many host calls: a hook may make 10000").await;
    }

    pub(super) async fn oversized_value(hook: Hook) {
        ends(hook, HookErrorKind::Limit, "too large: a call may bring 2 MiB in periapt_sdk::").await;
    }

    pub(super) async fn oversized_effects(hook: Hook) {
        ends(hook, HookErrorKind::Failed, "bag of u/0 in peer:1: the settings would take ").await;
    }

    pub(super) async fn oversized_key(hook: Hook) {
        ends(hook, HookErrorKind::Limit, "too large: a call may bring 2 MiB").await;
    }

    pub(super) async fn oversized_tool_arguments(hook: Hook) {
        ends(hook, HookErrorKind::Limit, "too large: a call may bring 2 MiB").await;
    }

    pub(super) async fn oversized_log_line(hook: Hook) {
        ends(hook, HookErrorKind::Limit, "too large: a call may bring 2 MiB").await;
    }

    pub(super) async fn oversized_status(hook: Hook) {
        ends(hook, HookErrorKind::Limit, "too large: a call may bring 2 MiB").await;
    }

    pub(super) async fn oversized_failure(hook: Hook) {
        ends(hook, HookErrorKind::Limit, "too large: a call may bring 2 MiB").await;
    }

    pub(super) async fn trap(hook: Hook) {
        ends(
            hook,
            HookErrorKind::Trapped,
            "trapped: aborted in <hostile::Hostile as periapt_sdk::charm::Charm>::otherwise",
        )
        .await;
    }

    pub(super) async fn panics(hook: Hook) {
        ends(hook, HookErrorKind::Panicked, "panicked: the author should read this (at ").await;
    }

    pub(super) async fn exit(hook: Hook) {
        ends(hook, HookErrorKind::Exited, "exited with code 0 before its handler returned").await;
    }

    pub(super) async fn bad_utf8(hook: Hook) {
        ends(
            hook,
            HookErrorKind::Limit,
            "invalid utf-8 sequence of 1 bytes from index 2 in hostile::guests::abi::bad_utf8",
        )
        .await;
    }

    pub(super) async fn bad_pointer(hook: Hook) {
        ends(
            hook,
            HookErrorKind::Limit,
            "string pointer/length out of bounds of memory in hostile::guests::abi::bad_pointer",
        )
        .await;
    }

    pub(super) async fn wander(hook: Hook) {
        is_contained(hook).await;
    }
}

#[tokio::test]
async fn a_module_that_loops_before_its_first_hook_ends_at_the_cpu_budget() {
    let start = prepared("hostile_start", "hostile/start");
    let ran = Hook::new(Event::Install).run(&start, "hostile/start").await;
    assert!(ran.message().starts_with("cpu budget exceeded"), "{}", ran.message());
}

#[tokio::test]
async fn after_all_that_the_same_sandbox_runs_a_harmless_hook() {
    run(guest("memory_bomb")).await;
    run(guest("recursion")).await;
    is_contained(guest("")).await;
}
