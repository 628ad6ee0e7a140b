//! Hostile callers of a real controller, and an honest caller beside them.
//!
//! Each attack runs while an honest user reads and writes over a connection of its own. Its [`AttackRow`] says what stopped
//! it, what it cost the controller in memory, and how long the honest caller waited.

mod agents;
mod callers;
mod floods;
mod honest;
mod open_streams;
mod row;
mod target;
mod wire;
mod workloads;

pub use row::{AttackRow, AttackedProcess, StoppedBy, attack_table};
pub use target::AttackedController;
pub use workloads::{AttackedAgent, ServerAttack, WorkloadAttack};

use anyhow::Context as _;

/// The size of an attack.
#[derive(Debug, Clone, Copy)]
pub struct AttackScale {
    /// The frames or requests that a flood sends.
    pub flood: usize,
    /// The connections over which a caller holds streams open.
    pub holders: usize,
    /// The streams that it opens over each of them.
    pub streams: usize,
    /// The connections that a caller opens for nothing at all.
    pub connections: usize,
    /// The least calls of the honest caller beside each attack.
    pub honest_calls: usize,
    /// True if held streams and connections are held until the controller ends them, which takes minutes.
    pub until_ended: bool,
}

/// An attack of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    /// Opens streams and cancels each at once.
    RapidReset,
    /// Sends headers that never end.
    ContinuationFlood,
    /// Sends settings, each of which the controller acknowledges.
    SettingsFlood,
    /// Sends pings, each of which the controller answers.
    PingFlood,
    /// Changes priorities.
    PriorityFlood,
    /// Widens the connection's window a byte at a time.
    WindowUpdateFlood,
    /// Sends a body of empty pieces.
    EmptyDataFlood,
    /// Sends frames of a kind that HTTP/2 ignores.
    UnknownFrameFlood,
    /// Has a few bytes of compressed headers stand for many.
    HeaderBomb,
    /// Sends more headers than the controller takes.
    LongHeaders,
    /// Asks for answers, and leaves no room for them.
    StalledStreams,
    /// Sends the first byte of each of many requests.
    SlowBodies,
    /// Answers no pings.
    SilentReader,
    /// Opens connections, and asks nothing.
    IdleConnections,
    /// Asks without an identity.
    StrangersRequests,
    /// Asks for another user's model.
    OtherTenant,
    /// Uses a session that has ended.
    RevokedSession,
    /// Asks as an agent for the model of a unit that it no longer has.
    StaleAgent,
    /// Uses the certificate of an agent that was removed.
    RemovedAgent,
    /// Calls itself an agent.
    PretendedAgent,
    /// Guesses the password of another user.
    GuessedPasswords,
    /// Sends commands without the right to them.
    RefusedCommands,
}

impl Attack {
    /// All attacks, in the order of the table.
    pub const ALL: [Self; 22] = [
        Self::RapidReset,
        Self::ContinuationFlood,
        Self::SettingsFlood,
        Self::PingFlood,
        Self::PriorityFlood,
        Self::WindowUpdateFlood,
        Self::EmptyDataFlood,
        Self::UnknownFrameFlood,
        Self::HeaderBomb,
        Self::LongHeaders,
        Self::StalledStreams,
        Self::SlowBodies,
        Self::SilentReader,
        Self::IdleConnections,
        Self::StrangersRequests,
        Self::OtherTenant,
        Self::RevokedSession,
        Self::StaleAgent,
        Self::RemovedAgent,
        Self::PretendedAgent,
        Self::GuessedPasswords,
        Self::RefusedCommands,
    ];

    /// Returns the attack's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::RapidReset => "rapid reset",
            Self::ContinuationFlood => "continuation flood",
            Self::SettingsFlood => "settings flood",
            Self::PingFlood => "ping flood",
            Self::PriorityFlood => "priority flood",
            Self::WindowUpdateFlood => "window update flood",
            Self::EmptyDataFlood => "empty data flood",
            Self::UnknownFrameFlood => "unknown frame flood",
            Self::HeaderBomb => "header bomb",
            Self::LongHeaders => "long headers",
            Self::StalledStreams => "stalled streams",
            Self::SlowBodies => "slow bodies",
            Self::SilentReader => "silent reader",
            Self::IdleConnections => "idle connections",
            Self::StrangersRequests => "a stranger's requests",
            Self::OtherTenant => "another tenant",
            Self::RevokedSession => "a revoked session",
            Self::StaleAgent => "a stale agent",
            Self::RemovedAgent => "a removed agent",
            Self::PretendedAgent => "a pretended agent",
            Self::GuessedPasswords => "guessed passwords",
            Self::RefusedCommands => "refused commands",
        }
    }

    async fn run(self, target: &AttackedController, scale: AttackScale) -> anyhow::Result<StoppedBy> {
        match self {
            Self::RapidReset => floods::rapid_reset(target, scale.flood).await,
            Self::ContinuationFlood => floods::continuations(target, scale.flood).await,
            Self::SettingsFlood => floods::settings(target, scale.flood).await,
            Self::PingFlood => floods::pings(target, scale.flood).await,
            Self::PriorityFlood => floods::priorities(target, scale.flood).await,
            Self::WindowUpdateFlood => floods::window_updates(target, scale.flood).await,
            Self::EmptyDataFlood => floods::empty_data(target, scale.flood).await,
            Self::UnknownFrameFlood => floods::unknown_frames(target, scale.flood).await,
            Self::HeaderBomb => floods::header_bomb(target, scale.flood).await,
            Self::LongHeaders => floods::long_headers(target).await,
            Self::StalledStreams => open_streams::stalled_streams(target, scale).await,
            Self::SlowBodies => open_streams::slow_bodies(target, scale).await,
            Self::SilentReader => open_streams::silent_reader(target, scale).await,
            Self::IdleConnections => open_streams::idle_connections(target, scale).await,
            Self::StrangersRequests => floods::strangers_requests(target, scale.flood / 20).await,
            Self::OtherTenant => callers::other_tenant(target).await,
            Self::RevokedSession => callers::revoked_session(target).await,
            Self::StaleAgent => agents::stale_agent(target).await,
            Self::RemovedAgent => agents::removed_agent(target).await,
            Self::PretendedAgent => agents::pretended_agent(target).await,
            Self::GuessedPasswords => callers::guessed_passwords(target, scale.flood / 100).await,
            Self::RefusedCommands => callers::refused_commands(target, scale.flood / 20).await,
        }
    }

    /// Returns true if the attack was stopped by the fence that is there for it.
    fn is_stopped_by(self, by: &StoppedBy, scale: AttackScale) -> bool {
        const ENHANCE_YOUR_CALM: u32 = 11;
        match (self, by) {
            (Self::ContinuationFlood | Self::HeaderBomb, StoppedBy::ConnectionClosed { reason, .. }) => {
                *reason == Some(ENHANCE_YOUR_CALM)
            }
            (
                Self::RapidReset
                | Self::SettingsFlood
                | Self::PingFlood
                | Self::PriorityFlood
                | Self::WindowUpdateFlood
                | Self::EmptyDataFlood
                | Self::UnknownFrameFlood
                | Self::SilentReader,
                StoppedBy::ConnectionClosed { .. },
            ) => true,
            (Self::StalledStreams | Self::SlowBodies, StoppedBy::StreamsEnded { resets, refusals }) => {
                open_streams::are_ended(resets, *refusals, scale)
            }
            (Self::IdleConnections, StoppedBy::ConnectionsClosed(closed)) => {
                *closed == open_streams::closed_connections(scale)
            }
            (
                Self::LongHeaders
                | Self::StrangersRequests
                | Self::OtherTenant
                | Self::RevokedSession
                | Self::StaleAgent
                | Self::RemovedAgent
                | Self::PretendedAgent
                | Self::GuessedPasswords
                | Self::RefusedCommands,
                StoppedBy::Refusals(requests),
            ) => *requests > 0,
            _ => false,
        }
    }
}

/// Runs an attack beside an honest caller.
///
/// # Errors
/// The attack or the honest caller failed for a reason of their own.
pub async fn attack(
    target: &AttackedController,
    attack: Attack,
    scale: AttackScale,
) -> anyhow::Result<AttackRow> {
    let row = beside(target, attack.name(), scale.honest_calls, attack.run(target, scale)).await?;
    Ok(AttackRow { is_stopped: attack.is_stopped_by(&row.stopped, scale), ..row })
}

/// Runs the honest caller alone.
pub async fn nobody(target: &AttackedController, scale: AttackScale) -> anyhow::Result<AttackRow> {
    beside(target, "nobody", scale.honest_calls, async { Ok(StoppedBy::Nothing) }).await
}

async fn beside(
    target: &AttackedController,
    name: &'static str,
    calls: usize,
    attack: impl Future<Output = anyhow::Result<StoppedBy>>,
) -> anyhow::Result<AttackRow> {
    let before = target.memory()?;
    target.forget_peak()?;
    let honest = honest::HonestUser::begin(target, calls)?;
    let stopped = attack.await;
    // The honest caller's failure explains more than the attack's.
    let latencies = honest.end().await.with_context(|| format!("the honest caller, beside {name}"))?;
    let stopped = stopped.with_context(|| name.to_owned())?;
    Ok(AttackRow {
        name,
        process: AttackedProcess::Controller,
        stopped,
        is_stopped: true,
        before,
        peak: target.peak()?,
        after: target.memory()?,
        latencies,
    })
}
