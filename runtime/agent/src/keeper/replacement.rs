//! The agent's own program: the next one is fetched while units go on, and chosen once it is in place.

use std::time::Duration;

use periapt_client::Backoff;
use periapt_host_api::{
    AgentName, Digest,
    program::{ProgramTarget, RunningProgram},
};
use periapt_program::{Preparation, Programs};
use tokio::{task::JoinHandle, time::sleep};

use super::controller::Controller;

/// The pause after a trial that was put off for the first time. It doubles each time.
const PUT_OFF_FOR: Duration = Duration::from_secs(10);

/// The longest pause after a trial that was put off.
const PUT_OFF_AT_MOST: Duration = Duration::from_secs(60 * 60);

/// The replacement of the agent's program.
pub(crate) struct Replacement<C> {
    controller: C,
    agent: AgentName,
    /// The programs; none: the agent keeps its own.
    programs: Option<Programs>,
    /// The preparation under way, with the number of its target.
    under_way: Option<(u64, JoinHandle<Preparation>)>,
}

impl<C: Controller> Replacement<C> {
    /// Creates the replacement, with nothing to do yet.
    pub(crate) fn new(controller: C, agent: AgentName, programs: Option<Programs>) -> Self {
        Self { controller, agent, programs, under_way: None }
    }

    /// Returns the program that runs, for the registration.
    pub(crate) fn running(&self) -> Option<RunningProgram> {
        self.programs.as_ref().map(Programs::running)
    }

    /// Takes the target that came with the newest assignments, and the time within which all agents fetch it. The agent
    /// is up then.
    pub(crate) fn look(&mut self, target: Option<&ProgramTarget>, within: Duration) {
        let Some(programs) = &self.programs else { return };
        programs.came_up();
        let target = target.filter(|target| programs.lacks(target));
        let is_news =
            self.under_way.as_ref().map(|(number, _)| *number) != target.map(|target| target.number);
        if !is_news {
            return;
        }
        if let Some((_, former)) = self.under_way.take() {
            former.abort();
        }
        if let Some(target) = target {
            let wait = wait_of(&self.agent, target.number, within)
                .saturating_add(wait_after_put_off(programs.put_off(target)));
            let work = prepare(self.controller.clone(), programs.clone(), target.clone(), wait);
            self.under_way = Some((target.number, tokio::spawn(work)));
        }
    }

    /// Waits for the end of the preparation; for ever if there is none.
    pub(crate) async fn prepared(&mut self) -> Preparation {
        loop {
            let Some((_, work)) = &mut self.under_way else { return std::future::pending().await };
            let ended = work.await;
            self.under_way = None;
            // A preparation that panicked is repeated with the next assignments.
            if let Ok(prepared) = ended {
                return prepared;
            }
        }
    }
}

/// Returns the wait of one agent before it fetches a target: a part of the time that all share. Names spread evenly over
/// it, in another order for each target.
pub(super) fn wait_of(agent: &AgentName, number: u64, within: Duration) -> Duration {
    let [first, second, third, fourth, ..] = *Digest::of(format!("{agent} {number}").as_bytes()).as_bytes();
    let part = u32::from_be_bytes([first, second, third, fourth]);
    within.mul_f64(f64::from(part) / f64::from(u32::MAX))
}

/// Returns the wait before a trial that was put off so many times.
pub(super) fn wait_after_put_off(times: u32) -> Duration {
    let Some(doubled) = times.checked_sub(1) else { return Duration::ZERO };
    PUT_OFF_FOR.saturating_mul(1_u32.checked_shl(doubled).unwrap_or(u32::MAX)).min(PUT_OFF_AT_MOST)
}

/// Prepares a target after a wait, and tries again while it cannot be fetched.
async fn prepare<C: Controller>(
    controller: C,
    programs: Programs,
    target: ProgramTarget,
    wait: Duration,
) -> Preparation {
    let digest = target.offer.digest;
    tracing::info!(program = %digest.short(), version = target.offer.version, ?wait, "fetching the next program");
    sleep(wait).await;
    // Each attempt may cost a controller the whole file.
    let mut backoff = Backoff::at_least(Duration::from_secs(1), Duration::from_secs(120));
    loop {
        let fetch = async |path: std::path::PathBuf| {
            controller.program(digest, &path).await.map_err(|error| error.to_string())
        };
        match programs.prepare(&target, fetch).await {
            Ok(prepared) => return prepared,
            Err(error) => {
                let wait = backoff.failed();
                tracing::warn!(program = %digest.short(), error, ?wait, "the next program is not in place yet");
                sleep(wait).await;
            }
        }
    }
}
