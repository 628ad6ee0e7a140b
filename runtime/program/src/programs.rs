//! The programs of a running service: which one runs, and how the next one is prepared.

use std::{
    env::consts::ARCH,
    future::Future,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use periapt_host_api::{
    Digest, excerpt,
    program::{FailedProgram, MAX_REASON, ProgramTarget, RunningProgram},
};
use tokio::task::spawn_blocking;

use crate::{
    architecture, digest_of, inspect, kept,
    note::{self, Note, Trial},
    process::ProcessLife,
};

/// The programs of a running service. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Programs(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    data: PathBuf,
    version: String,
    /// The program that runs.
    own: Digest,
    /// True if the process is a child on trial: its parent owns the note.
    is_on_trial: bool,
    state: Mutex<State>,
}

impl Shared {
    fn new(data: &Path, version: &str, own: Digest, note: Option<Note>) -> Self {
        let state = Mutex::new(State { note, chosen: None });
        Self { data: data.to_owned(), version: version.to_owned(), own, is_on_trial: false, state }
    }
}

#[derive(Debug)]
struct State {
    note: Option<Note>,
    /// The target that the service makes way for.
    chosen: Option<ProgramTarget>,
}

/// The result of a target's preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparation {
    /// The program is in place, and is tried once the service has ended.
    Chosen,
    /// The program is not taken; the failure says why.
    Refused,
}

impl Programs {
    /// Returns the programs of a service.
    pub(crate) fn of(data: &Path, version: &str, own: Digest, note: Option<Note>) -> Self {
        Self(Arc::new(Shared::new(data, version, own, note)))
    }

    /// Returns the programs of a service that is tried.
    pub(crate) fn on_trial(data: &Path, version: &str, own: Digest, note: Option<Note>) -> Self {
        let shared = Shared::new(data, version, own, note);
        Self(Arc::new(Shared { is_on_trial: true, ..shared }))
    }

    /// Returns the program that runs, for reports.
    pub fn running(&self) -> RunningProgram {
        let failed = self.0.state.lock().note.as_ref().and_then(|note| note.failed.clone());
        let (version, digest) = (self.0.version.clone(), self.0.own);
        RunningProgram { version, digest, trial: self.0.is_on_trial, failed }
    }

    /// Returns true if the service has to take this target: it runs another program, and the target is news. What an
    /// operator installed after the target was taken stays.
    pub fn lacks(&self, target: &ProgramTarget) -> bool {
        let state = self.0.state.lock();
        let last = state.note.as_ref().map_or(0, |note| note.number);
        !self.0.is_on_trial
            && state.chosen.is_none()
            && target.number > last
            && target.offer.digest != self.0.own
    }

    /// Returns the number of trials of a target that were put off, because nobody answered the program that runs either.
    pub fn put_off(&self, target: &ProgramTarget) -> u32 {
        let state = self.0.state.lock();
        let put_off = state.note.as_ref().and_then(|note| note.put_off.as_ref());
        put_off.filter(|put_off| put_off.number == target.number).map_or(0, |put_off| put_off.times)
    }

    /// Notes that the service ends in order: it was told to, or makes way for another program.
    pub fn end_in_order(&self) {
        let mut state = self.0.state.lock();
        let probation = state.note.as_mut().and_then(|note| note.probation.as_mut());
        let Some(probation) = probation else { return };
        let is_own = |life: &mut ProcessLife| life.id == std::process::id();
        if probation.runs.take_if(is_own).is_some()
            && let Err(error) = note::write(&self.0.data, state.note.as_ref())
        {
            tracing::warn!(%error, "the end of this program may count as one by itself");
        }
    }

    /// Returns the target that the service makes way for, if it does.
    pub fn chosen(&self) -> Option<ProgramTarget> {
        self.0.state.lock().chosen.clone()
    }

    /// Notes that the service is up. A program on trial is taken then.
    pub fn came_up(&self) {
        if !self.0.is_on_trial {
            return;
        }
        let mut state = self.0.state.lock();
        let Some(trial) = state.note.as_mut().and_then(|note| note.trial.as_mut()) else { return };
        if std::mem::replace(&mut trial.came_up, true) {
            return;
        }
        if let Err(error) = note::write(&self.0.data, state.note.as_ref()) {
            tracing::error!(%error, "the process that tries this program cannot be told that it is up");
        }
    }

    /// Fetches the program of a target, checks it, and chooses it. `fetch` writes the file to the path that it is given.
    ///
    /// # Errors
    /// The program could not be fetched or kept; another attempt may succeed.
    pub async fn prepare<F>(
        &self,
        target: &ProgramTarget,
        fetch: impl FnOnce(PathBuf) -> F,
    ) -> Result<Preparation, String>
    where
        F: Future<Output = Result<(), String>>,
    {
        let offer = &target.offer;
        if offer.architecture != ARCH {
            let reason = format!("it is for {}, and this host is {ARCH}", offer.architecture);
            return self.refuse(target, &reason);
        }
        let path = kept::path(&self.0.data, &offer.digest);
        if !self.is_intact(path.clone(), offer.digest).await {
            let incoming = kept::incoming(&self.0.data, target.size).map_err(told)?;
            fetch(incoming.clone()).await?;
            if !self.is_intact(incoming, offer.digest).await {
                return Err("the file that arrived has another digest".to_owned());
            }
            let (data, digest) = (self.0.data.clone(), offer.digest);
            spawn_blocking(move || kept::keep(&data, &digest)).await.map_err(told)?.map_err(told)?;
        }
        match architecture(&path) {
            Ok(found) if found == ARCH => {}
            Ok(found) => return self.refuse(target, &format!("its file is for {found}")),
            Err(error) => return self.refuse(target, &error.to_string()),
        }
        match inspect(&path).await {
            Err(reason) => self.refuse(target, &reason),
            Ok(inspected) if inspected.version != offer.version => {
                let reason = format!("it is version {}, not {}", inspected.version, offer.version);
                self.refuse(target, &reason)
            }
            Ok(_) => self.choose(target).map(|()| Preparation::Chosen).map_err(told),
        }
    }

    async fn is_intact(&self, path: PathBuf, expected: Digest) -> bool {
        let digest = spawn_blocking(move || digest_of(&path)).await;
        matches!(digest, Ok(Ok(digest)) if digest == expected)
    }

    /// Notes that a target is not taken.
    fn refuse(&self, target: &ProgramTarget, reason: &str) -> Result<Preparation, String> {
        let (digest, number) = (target.offer.digest, target.number);
        let reason: String = excerpt::of_message(reason).chars().take(MAX_REASON / 4).collect();
        tracing::error!(program = %digest.short(), reason, "the program is not taken");
        let failed = FailedProgram { digest, number, reason };
        self.change(|note| {
            note.number = number;
            note.failed = Some(failed);
        })
        .map_err(told)?;
        Ok(Preparation::Refused)
    }

    /// Has the program of a target tried once the service has ended.
    fn choose(&self, target: &ProgramTarget) -> io::Result<()> {
        let trial = Trial {
            digest: target.offer.digest,
            number: target.number,
            by: None,
            boot: None,
            came_up: false,
        };
        self.change(|note| {
            note.number = target.number;
            note.trial = Some(trial);
        })?;
        self.0.state.lock().chosen = Some(target.clone());
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut Note)) -> io::Result<()> {
        let mut state = self.0.state.lock();
        let mut note = state.note.clone().unwrap_or_else(|| Note::of(self.0.own, 0));
        change(&mut note);
        note::write(&self.0.data, Some(&note))?;
        state.note = Some(note);
        Ok(())
    }

    /// Deletes the programs that are neither the current one, nor the one before, nor to be tried later.
    pub(crate) fn forget_others(&self) {
        let state = self.0.state.lock();
        let kept_by = |note: &Note| {
            let put_off = note.put_off.as_ref().map(|put_off| put_off.digest);
            [Some(note.current), note.previous, put_off]
        };
        let kept: Vec<_> = state.note.as_ref().into_iter().flat_map(kept_by).flatten().collect();
        if let Err(error) = kept::keep_only(&self.0.data, &kept) {
            tracing::warn!(%error, "unused programs could not be deleted");
        }
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use periapt_host_api::{LEVEL, Timestamp, program::ProgramOffer};

    use super::*;
    use crate::note::Probation;

    fn target(file: &[u8], number: u64) -> ProgramTarget {
        let (version, architecture) = ("1.2.3".to_owned(), ARCH.to_owned());
        let offer = ProgramOffer { digest: Digest::of(file), version, architecture, level: LEVEL };
        ProgramTarget { offer, size: file.len() as u64, number, released: true }
    }

    fn programs(data: &Path) -> Programs {
        Programs::of(data, "1.0", Digest::of(b"own"), note::read(data).unwrap())
    }

    /// Prepares a target with what arrives of its file.
    async fn prepared(
        programs: &Programs,
        target: &ProgramTarget,
        arrives: &[u8],
    ) -> Result<Preparation, String> {
        let arrives = arrives.to_owned();
        programs.prepare(target, async |path: PathBuf| fs::write(path, arrives).map_err(told)).await
    }

    #[tokio::test]
    async fn a_file_with_another_digest_is_not_kept_and_fetched_again() {
        let data = tempfile::tempdir().unwrap();
        let (programs, target) = (programs(data.path()), target(b"the program", 1));
        let error = prepared(&programs, &target, b"the progran").await.unwrap_err();
        assert!(error.contains("another digest"), "{error}");
        assert!(!kept::path(data.path(), &target.offer.digest).exists());
        assert!(programs.lacks(&target), "another attempt may succeed");
        let error = programs.prepare(&target, async |_| Err("it was cut off".to_owned())).await.unwrap_err();
        assert_eq!(error, "it was cut off");
        assert!(programs.lacks(&target) && programs.running().failed.is_none());
    }

    #[tokio::test]
    async fn a_program_that_cannot_run_here_is_refused_once_for_each_target() {
        let data = tempfile::tempdir().unwrap();
        let (mut other, script) = (target(b"other", 1), target(b"#!/bin/sh\nexit 0\n", 2));
        other.offer.architecture = "pdp11".to_owned();
        for (target, file, reason) in
            [(&other, &b"other"[..], "it is for pdp11"), (&script, b"#!/bin/sh\nexit 0\n", "no executable")]
        {
            let programs = programs(data.path());
            assert!(programs.lacks(target));
            assert_eq!(prepared(&programs, target, file).await, Ok(Preparation::Refused));
            let failed = programs.running().failed.unwrap();
            assert!(failed.reason.contains(reason) && failed.number == target.number, "{failed:?}");
            assert!(!programs.lacks(target) && programs.chosen().is_none());
            let again = ProgramTarget { number: target.number + 5, ..target.clone() };
            assert!(programs.lacks(&again), "the next command is another try");
        }
        let restarted = programs(data.path());
        assert!(!restarted.lacks(&other) && !restarted.lacks(&script), "the note knows");
    }
    #[tokio::test]
    async fn an_end_in_order_is_noted_by_the_process_that_runs_the_service_alone() {
        let data = tempfile::tempdir().unwrap();
        let own = ProcessLife::of(std::process::id()).unwrap();
        let other = ProcessLife { id: own.id + 1, ..own.clone() };
        for (runs, after) in [(Some(own), None), (Some(other.clone()), Some(other)), (None, None)] {
            let probation = Probation { number: 1, since: Timestamp::UNIX_EPOCH, runs, ends: vec![] };
            let note = Note { probation: Some(probation), ..Note::of(Digest::of(b"own"), 1) };
            note::write(data.path(), Some(&note)).unwrap();
            programs(data.path()).end_in_order();
            let noted = note::read(data.path()).unwrap().unwrap().probation.unwrap();
            assert_eq!(noted.runs, after);
        }
    }
}
