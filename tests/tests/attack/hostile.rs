//! Hostile callers of a controller: each is stopped, and costs nobody else their calls.

use anyhow::ensure;
use periapt_tests::{Attack, AttackScale, AttackedController, StoppedBy, attack};

/// Past each bound, and not much more.
const SCALE: AttackScale = AttackScale {
    flood: 6_000,
    holders: 2,
    streams: 160,
    connections: 260,
    honest_calls: 20,
    until_ended: false,
};

/// The most that the controller may grow by, in bytes. A flood that it kept would take more.
const GROWTH: u64 = 96 << 20;

/// Returns true if an attack was stopped as it should be.
type IsExpected = fn(&StoppedBy) -> bool;

async fn stopped(attacks: &[(Attack, IsExpected)]) -> anyhow::Result<()> {
    let target = AttackedController::bootstrapped().await?;
    for (each, is_expected) in attacks {
        let row = attack(&target, *each, SCALE).await?;
        ensure!(is_expected(&row.stopped), "{}: {}", row.name, row.stopped);
        ensure!(row.growth() < GROWTH, "{}: the controller grew by {} bytes", row.name, row.growth());
        ensure!(row.latencies.len() >= SCALE.honest_calls, "{}: the honest caller was served", row.name);
    }
    Ok(())
}

fn is_closed(by: &StoppedBy) -> bool {
    matches!(by, StoppedBy::ConnectionClosed { .. })
}

fn is_calmed(by: &StoppedBy) -> bool {
    const ENHANCE_YOUR_CALM: u32 = 11;
    matches!(by, StoppedBy::ConnectionClosed { reason: Some(ENHANCE_YOUR_CALM), .. })
}

fn all_refused(by: &StoppedBy) -> bool {
    matches!(by, StoppedBy::Refusals(1..))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_costs_its_own_connection() -> anyhow::Result<()> {
    stopped(&[
        (Attack::RapidReset, is_closed),
        (Attack::ContinuationFlood, is_calmed),
        (Attack::SettingsFlood, is_closed),
        (Attack::PingFlood, is_closed),
        (Attack::PriorityFlood, is_closed),
        (Attack::WindowUpdateFlood, is_closed),
        (Attack::EmptyDataFlood, is_closed),
        (Attack::UnknownFrameFlood, is_closed),
        (Attack::HeaderBomb, is_calmed),
    ])
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_or_refused_keeps_nobody_out() -> anyhow::Result<()> {
    // The reasons that HTTP/2 has for a stream past the bound: the second, if its body came before the refusal went out.
    const STREAM_CLOSED: u32 = 5;
    const REFUSED_STREAM: u32 = 7;
    const PAST_THE_BOUND: usize = SCALE.holders * (SCALE.streams - 128);
    let past_the_bound = |by: &StoppedBy| match by {
        StoppedBy::StreamsEnded { resets, .. } => {
            resets.keys().all(|reason| [STREAM_CLOSED, REFUSED_STREAM].contains(reason))
                && resets.values().sum::<usize>() == PAST_THE_BOUND
        }
        _ => false,
    };
    stopped(&[
        (Attack::StalledStreams, past_the_bound),
        (Attack::SlowBodies, past_the_bound),
        (Attack::IdleConnections, |by| *by == StoppedBy::ConnectionsClosed(SCALE.connections - 256)),
        (Attack::LongHeaders, all_refused),
        (Attack::StrangersRequests, all_refused),
    ])
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_without_the_right_is_refused_each_request() -> anyhow::Result<()> {
    stopped(&[
        (Attack::OtherTenant, all_refused),
        (Attack::RevokedSession, all_refused),
        (Attack::StaleAgent, all_refused),
    ])
    .await
}
