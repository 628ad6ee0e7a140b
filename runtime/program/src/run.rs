//! The start of a service: it serves, becomes another program, or tries one.

use std::{
    io,
    path::{Path, PathBuf},
    process::Stdio,
};

use periapt_host_api::{Digest, Timestamp, program::FailedProgram};
use rustix::process::getppid;
use tokio_util::sync::CancellationToken;

use crate::{
    again::{Again, OWN_FILE},
    decision::{Next, Starting, decide},
    digest_of, kept,
    note::{self, Note, Start},
    process::{ProcessLife, boot_id},
    programs::Programs,
    service::{AfterTrial, ReplaceableService},
    trial::{Outcome, try_out},
};

/// The beginning of a service.
#[derive(Debug)]
pub enum ServiceStart {
    /// The service runs, with these programs.
    Serves(Programs),
    /// The service was told to stop before.
    Stopped,
}

/// Begins a service with its data in a directory, which exists. The process becomes another program, or tries one, if
/// the note says so.
///
/// # Errors
/// The program's own file or the note cannot be read, or the note cannot be written.
pub async fn begin<S: ReplaceableService>(
    data: &Path,
    version: &str,
    again: &Again,
    service: &S,
    stop: &CancellationToken,
) -> io::Result<ServiceStart> {
    let program = {
        let own = PathBuf::from(OWN_FILE);
        tokio::task::spawn_blocking(move || digest_of(&own)).await.map_err(io::Error::other)??
    };
    let parent = getppid().map_or(0, |parent| parent.as_raw_nonzero().get().unsigned_abs());
    let before = note::read(data)?;
    let start = start_of::<S>(before.as_ref());
    let (id, boot) = (std::process::id(), boot_id());
    let starting = Starting { program, id, parent, boot, start: start.clone() };
    let (mut note, next) = decide(starting, before.clone());
    let went_back = way_back(before.as_ref(), note.as_ref()).cloned();
    if let Some(failed) = &went_back {
        let program = failed.digest.short();
        tracing::error!(%program, reason = failed.reason, "going back to the program before");
    }
    if note != before {
        note::write(data, note.as_ref())?;
    }
    match next {
        Next::ServeOnTrial => {
            return Ok(ServiceStart::Serves(Programs::on_trial(data, version, program, note)));
        }
        Next::Serve => {}
        Next::Become(digest) => {
            tracing::info!(program = %digest.short(), "the program that replaced the installed one takes over");
            // Standard input stays: the starter may not have recorded the process yet.
            let error = again.become_file(&kept::path(data, &digest), Stdio::inherit());
            tracing::error!(%error, program = %digest.short(), "it cannot be run: the installed program goes on");
            // The target is news again, unless the service has just gone back from it.
            note = note
                .filter(|_| went_back.is_some())
                .map(|gone| Note { failed: gone.failed, ..Note::of(program, gone.number) });
            note::write(data, note.as_ref())?;
        }
        Next::Try(digest) => match try_out(data, &digest, again, service, stop).await {
            Outcome::Stopped => {
                // It is tried at the next start.
                if let Some(trial) = note.as_mut().and_then(|note| note.trial.as_mut()) {
                    trial.by = None;
                }
                note::write(data, note.as_ref())?;
                return Ok(ServiceStart::Stopped);
            }
            Outcome::CameUp => {
                note = note.map(|mut note| {
                    note.adopt(start.as_ref());
                    note
                });
                note::write(data, note.as_ref())?;
                let failure = take_over(data, &digest, again);
                note = gone_back(data, note, &digest, &failure.to_string())?;
            }
            Outcome::Unanswered => {
                tracing::warn!(
                    program = %digest.short(),
                    "nobody answers this program either: the trial of the next one is put off"
                );
                if let Some(note) = &mut note {
                    note.put_off();
                    note.go_on(start.as_ref());
                }
                note::write(data, note.as_ref())?;
            }
            Outcome::Failed(reason) => {
                tracing::error!(program = %digest.short(), reason, "the tried program did not come up: going back");
                if let Some(note) = &mut note {
                    note.fail(&reason);
                    note.go_on(start.as_ref());
                }
                note::write(data, note.as_ref())?;
            }
        },
    }
    let programs = Programs::of(data, version, program, note);
    programs.forget_others();
    Ok(ServiceStart::Serves(programs))
}

/// Returns the start of this process, if the service may go back from the program that it runs.
fn start_of<S: ReplaceableService>(note: Option<&Note>) -> Option<Start> {
    match S::AFTER_TRIAL {
        AfterTrial::Stays => None,
        AfterTrial::GoesBack => {
            let process = ProcessLife::of(std::process::id())?;
            let before = note.and_then(|note| note.probation.as_ref()?.runs.as_ref());
            let is_second = before.is_some_and(|before| *before != process && before.goes_on());
            Some(Start { process, at: Timestamp::now(), is_second })
        }
    }
}

/// Returns the program from which the service goes back, though it had taken it.
fn way_back<'a>(before: Option<&Note>, after: Option<&'a Note>) -> Option<&'a FailedProgram> {
    let failed = after?.failed.as_ref()?;
    (before?.current == failed.digest && after?.current != failed.digest).then_some(failed)
}

/// Becomes a program that was up on trial.
fn take_over(data: &Path, digest: &Digest, again: &Again) -> io::Error {
    tracing::info!(program = %digest.short(), "the tried program was up, and takes over");
    again.become_released(&kept::path(data, digest))
}

/// Notes that a program cannot be run, though it was up on trial.
fn gone_back(data: &Path, note: Option<Note>, digest: &Digest, reason: &str) -> io::Result<Option<Note>> {
    tracing::error!(program = %digest.short(), reason, "it cannot be run: going back");
    let note = note.map(|mut note| {
        note.current = note.previous.take().unwrap_or(note.installed);
        note.probation = None;
        note
    });
    note::write(data, note.as_ref())?;
    Ok(note)
}
