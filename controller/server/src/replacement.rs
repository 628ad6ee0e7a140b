//! The controller's own program: it takes the next one when it is this controller's turn.

use std::{path::PathBuf, time::Duration};

use futures_util::StreamExt as _;
use periapt_host_api::{command::Caller, program::ProgramTarget};
use periapt_model::{Input, WorkerCommand};
use periapt_program::{Preparation, Programs};
use tokio::io::AsyncWriteExt as _;
use tokio_util::sync::CancellationToken;

use crate::{
    replication::{Members, RoleReceiver, Step},
    state::Contents,
    writer::{Commands, QueueKey},
};

/// The interval of looks at the rollout.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// The pause after a program could not be fetched.
const TRIES_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The replacement of the controller's program.
pub(crate) struct Replacement {
    pub(crate) programs: Programs,
    pub(crate) members: Members,
    pub(crate) role: RoleReceiver,
    pub(crate) commands: Commands,
    /// The files of programs are content of resources.
    pub(crate) contents: Contents,
    /// The token that ends the controller.
    pub(crate) stop: CancellationToken,
}

impl Replacement {
    /// Looks at the rollout, until the controller ends, or makes way for another program.
    pub(crate) async fn run(self) {
        let mut pause = LOOKS_EVERY;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            let looked = tokio::select! {
                () = self.stop.cancelled() => return,
                looked = self.look() => looked,
            };
            pause = match looked {
                Ok(()) => LOOKS_EVERY,
                Err(error) => {
                    tracing::warn!(error, "the next program is not in place yet");
                    TRIES_AGAIN_AFTER
                }
            };
        }
    }

    async fn look(&self) -> Result<(), String> {
        let Some(target) = self.members.target() else { return Ok(()) };
        let leads = self.role.borrow().leads_in().is_some();
        if leads && !target.released && self.members.step(&target) == Step::Done {
            self.release(&target).await;
        }
        if self.members.is_due(&target) && self.programs.lacks(&target) {
            self.prepare(&target).await?;
        }
        Ok(())
    }

    /// Lets agents take the program.
    async fn release(&self, target: &ProgramTarget) {
        let input = Input::Worker(WorkerCommand::ReleaseProgram(target.number));
        match self.commands.submit_one(QueueKey::Controller, &Caller::Worker, input, 0).await {
            Ok(_) => tracing::info!(
                program = %target.offer.digest.short(),
                "all controllers run the program, and agents take it from now on"
            ),
            Err(refusal) => tracing::warn!(%refusal, "the program was not released for agents"),
        }
    }

    /// Brings the program into place, and ends this controller for it.
    async fn prepare(&self, target: &ProgramTarget) -> Result<(), String> {
        let (digest, version) = (target.offer.digest, &target.offer.version);
        tracing::info!(program = %digest.short(), version, "it is this controller's turn to take the next program");
        match self.programs.prepare(target, |path| self.copy(target, path)).await? {
            Preparation::Chosen => self.stop.cancel(),
            // The failure is reported.
            Preparation::Refused => {}
        }
        Ok(())
    }

    /// Copies the program from this controller's blobs, after it was fetched from another controller if need be.
    async fn copy(&self, target: &ProgramTarget, path: PathBuf) -> Result<(), String> {
        let digest = &target.offer.digest;
        self.contents.copies.obtain(&self.contents, digest).await;
        let blob = self.contents.blobs.get(digest, None).await.map_err(told)?;
        let mut content = blob.ok_or("no controller has its file")?.content;
        let mut file = tokio::fs::File::create(&path).await.map_err(told)?;
        while let Some(piece) = content.next().await {
            file.write_all(&piece.map_err(told)?).await.map_err(told)?;
        }
        file.sync_all().await.map_err(told)
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}
