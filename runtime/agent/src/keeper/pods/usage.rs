//! The use that pods make of the host, which is looked at now and then (`docs/decisions/0098-*`).

use std::time::Duration;

use periapt_helper::PodUsage;
use periapt_host_api::container::ContainerUsage;
use tokio::{task::spawn_blocking, time::sleep};

use super::{ModelTraffic, PodId, WorkloadStates, process::PodOrigin, room::StorageRoom};

/// The time from a pod's start to its first sample. The pauses double from then on: an operator sees a new workload soon,
/// and one that runs for long costs the controller twelve reports an hour.
const FIRST: Duration = Duration::from_secs(10);

/// The longest pause between samples.
const LONGEST: Duration = Duration::from_secs(300);

/// The unit in which memory is told: less is no news.
const MEMORY_STEP: u64 = 1 << 20;

/// The unit in which processor time is told, in milliseconds. An idle workload uses less in minutes, and costs no report.
const CPU_STEP_MS: u64 = 100;

/// Samples what a pod uses, for ever.
pub(super) async fn sample(
    pod: &PodId,
    (process, origin): (u32, PodOrigin),
    room: &StorageRoom,
    (states, traffic): (&WorkloadStates, &ModelTraffic),
) {
    let read = || spawn_blocking(move || PodUsage::of_pod(process));
    // Earlier processes of the container have used some, too.
    let before = states.used(pod).map_or(0, |usage| usage.cpu_ms);
    // The keeper that started it has reported what it used until now.
    let used_before = match origin {
        PodOrigin::Started => 0,
        PodOrigin::TakenOver => {
            let Ok(used) = read().await else { return };
            used.cpu_us
        }
    };
    let mut pause = FIRST;
    loop {
        sleep(pause).await;
        pause = LONGEST.min(pause.saturating_mul(2));
        let Ok(PodUsage { memory, cpu_us }) = read().await else { return };
        let storage = room.used().await;
        let cpu_us = cpu_us.saturating_sub(used_before);
        let usage = ContainerUsage {
            memory: memory.next_multiple_of(MEMORY_STEP),
            cpu_ms: before.saturating_add(cpu_us / 1_000 / CPU_STEP_MS * CPU_STEP_MS),
            storage,
        };
        states.uses(pod, usage, traffic.of(&pod.0).counts());
    }
}
