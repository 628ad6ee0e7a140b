//! The agent's own program: the next one is fetched while units go on, and chosen once it is in place.

use periapt_client::Backoff;
use periapt_host_api::program::{ProgramTarget, RunningProgram};
use periapt_program::{Preparation, Programs};
use tokio::{task::JoinHandle, time::sleep};

use super::controller::Controller;

/// The replacement of the agent's program.
pub(crate) struct Replacement<C> {
    controller: C,
    /// The programs; none: the agent keeps its own.
    programs: Option<Programs>,
    /// The preparation under way, with the number of its target.
    under_way: Option<(u64, JoinHandle<Preparation>)>,
}

impl<C: Controller> Replacement<C> {
    /// Creates the replacement, with nothing to do yet.
    pub(crate) fn new(controller: C, programs: Option<Programs>) -> Self {
        Self { controller, programs, under_way: None }
    }

    /// Returns the program that runs, for the registration.
    pub(crate) fn running(&self) -> Option<RunningProgram> {
        self.programs.as_ref().map(Programs::running)
    }

    /// Takes the target that came with the newest assignments. The agent is up then.
    pub(crate) fn look(&mut self, target: Option<&ProgramTarget>) {
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
            let work = prepare(self.controller.clone(), programs.clone(), target.clone());
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

/// Prepares a target, and tries again while it cannot be fetched.
async fn prepare<C: Controller>(controller: C, programs: Programs, target: ProgramTarget) -> Preparation {
    let digest = target.offer.digest;
    tracing::info!(program = %digest.short(), version = target.offer.version, "fetching the next program");
    let mut backoff = Backoff::network();
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
