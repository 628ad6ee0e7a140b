//! Limits that concern several hooks.

use std::sync::Arc;

use periapt_host_api::event::Event;
use periapt_sandbox::{Budgets, Busy, HandlerOutcome, HookErrorKind, Options, PoolStatistics, Sandbox};

use crate::world::{Hook, World, component, prepared};

const YAML: &str = include_str!("../../../../charms/hostile/charmcraft.yaml");

#[tokio::test]
async fn a_full_pool_is_no_failure_of_the_hook() {
    let sandbox = Sandbox::new(Options { hooks_in_flight: 1, ..Options::default() }).unwrap();
    let loaded = sandbox.compile_in_process(&component("hostile")).unwrap();
    let prepared = sandbox.prepare(&loaded, None).unwrap();
    let mut sleeper = Hook::new(Event::Start).option("mode", "sleep");
    sleeper.world = Arc::new(World { real_time: true, ..World::default() });
    let mut first = Box::pin(sleeper.run_in(&sandbox, &prepared, YAML));
    // The first poll instantiates the hook, which then sleeps.
    assert!(futures_poll(first.as_mut()).await.is_none());
    let second = Hook::new(Event::Start).run_in(&sandbox, &prepared, YAML).await;
    assert_eq!(second.map(|_| ()).unwrap_err(), Busy);
    // Dropping the future ends the hook and frees its place in the pool.
    drop(first);
    let third = Hook::new(Event::Start).run_in(&sandbox, &prepared, YAML).await.unwrap();
    assert_eq!(third.report.outcome, HandlerOutcome::Handled);
}

#[tokio::test]
async fn units_that_have_nothing_to_do_hold_nothing() {
    let resident_bytes = 1 << 20;
    let options = Options { hooks_in_flight: 4, resident_bytes, ..Options::default() };
    let sandbox = Sandbox::new(options).unwrap();
    let loaded = sandbox.compile_in_process(&component("hostile")).unwrap();
    let prepared = sandbox.prepare(&loaded, None).unwrap();
    assert_eq!(sandbox.pool_statistics(), PoolStatistics::default());
    let mut held = Vec::new();
    for _ in 0..20 {
        let ran = Hook::new(Event::Start).run_in(&sandbox, &prepared, YAML).await.unwrap();
        assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
        held.push(sandbox.pool_statistics());
    }
    let PoolStatistics { instances, slots, bytes } = held[0];
    assert_eq!(instances, 0, "an instance ends with its hook");
    assert!(slots > 0 && bytes <= u64::from(slots) * resident_bytes, "{bytes} in {slots}");
    // Each hook reused the slot of the previous one, of any unit.
    assert!(held.iter().all(|held| (held.instances, held.slots) == (0, slots)), "{held:?}");
    drop((prepared, loaded));
    assert_eq!(sandbox.pool_statistics().bytes, 0, "without its component nothing is kept");
}

/// Polls a future until it waits for time or for an external event.
async fn futures_poll<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        use std::{pin::Pin, task::Poll};
        Poll::Ready(match Pin::new(&mut future).poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test(flavor = "current_thread")]
async fn a_hook_that_computes_lets_others_run_on_the_same_thread() {
    let (hostile, probe) = (prepared("hostile", "hostile"), prepared("probe", "probe"));
    let spin = Hook::new(Event::Start).option("mode", "endless_loop");
    // The hook computes for at least half a second, which is a hundred ticks.
    let mut spinning = Box::pin(spin.run(&hostile, "hostile"));
    // The first poll returns although the hook is still computing. A hook that kept the thread would return
    // only at the end of its budget.
    assert!(futures_poll(spinning.as_mut()).await.is_none(), "the hook kept its thread");
    let ran = Hook::new(Event::Install).run(&probe, "probe").await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
    // The hook was computing: it continues at each poll until its budget ends it.
    let mut turns = 1;
    let ran = loop {
        turns += 1;
        if let Some(ran) = futures_poll(spinning.as_mut()).await {
            break ran;
        }
    };
    let HandlerOutcome::Failed(error) = ran.report.outcome else { panic!("{:?}", ran.report.outcome) };
    assert_eq!(error.kind, HookErrorKind::CpuBudget, "{error}");
    assert!(turns > 3, "it gave way in {turns} turns only");
}

#[tokio::test]
async fn memory_counts_over_the_whole_instance() {
    let probe = prepared("probe", "probe");
    let ran = Hook::new(Event::Install).run(&probe, "probe").await;
    let used = ran.report.costs.memory;
    assert!(used >= 64 << 10, "{used}");
    let hook = Hook::new(Event::Install).budgets(|budgets| budgets.memory = used - 1);
    let ran = hook.run(&probe, "probe").await;
    assert!(ran.message().starts_with("out of memory"), "{}", ran.message());
}

#[tokio::test]
async fn a_budget_of_what_a_hook_uses_is_enough_and_less_is_not() {
    let probe = prepared("probe", "probe");
    let needed = Hook::new(Event::Install).run(&probe, "probe").await.report.costs;
    let exactly = |fuel, calls| {
        Hook::new(Event::Install).budgets(|budgets| {
            budgets.fuel = fuel;
            budgets.host_calls = calls;
        })
    };
    let ran = exactly(needed.fuel, needed.host_calls).run(&probe, "probe").await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
    let ran = exactly(needed.fuel / 2, needed.host_calls).run(&probe, "probe").await;
    assert!(ran.message().starts_with("cpu budget exceeded"), "{}", ran.message());
    let ran = exactly(needed.fuel, needed.host_calls - 1).run(&probe, "probe").await;
    assert!(ran.message().starts_with("too many host calls"), "{}", ran.message());
}

#[tokio::test]
async fn a_hook_pays_for_what_it_writes_however_often_the_epoch_ticks() {
    let hook = Hook::new(Event::Start).option("mode", "tmp_flood");
    let ran = hook.run(&prepared("hostile", "hostile"), "hostile").await;
    let (fuel, written) = (ran.report.costs.fuel, Budgets::default().tmp_bytes);
    assert!(fuel > 10 * written, "{fuel} units for {written} bytes");
}

#[tokio::test]
async fn a_hook_that_only_writes_ends_at_its_cpu_budget() {
    let hook = Hook::new(Event::Start).option("mode", "tmp_flood");
    let hook = hook.budgets(|budgets| budgets.fuel = 100_000_000);
    let ran = hook.run(&prepared("hostile", "hostile"), "hostile").await;
    let HandlerOutcome::Failed(error) = ran.report.outcome else { panic!("{:?}", ran.report.outcome) };
    assert_eq!(error.kind, HookErrorKind::CpuBudget, "{error}");
}
