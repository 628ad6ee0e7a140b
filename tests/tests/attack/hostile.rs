//! Hostile callers of a controller: each is stopped, and costs nobody else their calls.

use anyhow::ensure;
use periapt_tests::{Attack, AttackScale, AttackedController, attack};

/// Past each bound, and not much more.
const SCALE: AttackScale = AttackScale {
    flood: 6_000,
    holders: 2,
    streams: 160,
    connections: 260,
    honest_calls: 20,
    until_ended: false,
};

async fn stopped(attacks: &[Attack]) -> anyhow::Result<()> {
    let target = AttackedController::bootstrapped().await?;
    for each in attacks {
        let row = attack(&target, *each, SCALE).await?;
        row.check()?;
        ensure!(row.latencies.len() >= SCALE.honest_calls, "{}: the honest caller was served", row.name);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_costs_its_own_connection() -> anyhow::Result<()> {
    stopped(&[
        Attack::RapidReset,
        Attack::ContinuationFlood,
        Attack::SettingsFlood,
        Attack::PingFlood,
        Attack::PriorityFlood,
        Attack::WindowUpdateFlood,
        Attack::EmptyDataFlood,
        Attack::UnknownFrameFlood,
        Attack::HeaderBomb,
    ])
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_or_refused_keeps_nobody_out() -> anyhow::Result<()> {
    stopped(&[
        Attack::StalledStreams,
        Attack::SlowBodies,
        Attack::IdleConnections,
        Attack::LongHeaders,
        Attack::StrangersRequests,
    ])
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_without_the_right_is_refused_each_request() -> anyhow::Result<()> {
    stopped(&[
        Attack::OtherTenant,
        Attack::RevokedSession,
        Attack::StaleAgent,
        Attack::RemovedAgent,
        Attack::PretendedAgent,
        Attack::GuessedPasswords,
        Attack::RefusedCommands,
    ])
    .await
}
