//! The trial of a program, as a child of the process that it is to replace.

use std::{
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use periapt_host_api::Digest;
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{again::Again, kept, note, service::ReplaceableService};

/// The longest time until a program is up: it may read a large store, or wait for a controller that is replaced, too.
const UP_WITHIN: Duration = Duration::from_secs(120);

/// The longest time for the child to end in order: as long as that of a service that systemd stops.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// The interval at which the program that runs asks for what the service needs.
const ASKS_EVERY: Duration = Duration::from_secs(15);

/// The interval at which the note is read.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// The end of a trial.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The program was up, and has ended in order.
    CameUp,
    /// The program ended or hung, for this reason.
    Failed(String),
    /// The program was not up in time, and the one that runs was not answered either: this says nothing of the program.
    Unanswered,
    /// The service was told to stop.
    Stopped,
}

/// Tries a program. The note says that it is tried by this process; the program writes there that it is up.
pub(crate) async fn try_out(
    data: &Path,
    digest: &Digest,
    again: &Again,
    service: &impl ReplaceableService,
    stop: &CancellationToken,
) -> Outcome {
    tokio::select! {
        biased;
        () = stop.cancelled() => return Outcome::Stopped,
        answered = service.is_answered() => if !answered { return Outcome::Unanswered },
    }
    let mut command = Command::new(kept::path(data, digest));
    // A service in the background waits at its standard input for the end of this process.
    command.arg0(&again.name).args(&again.arguments).stdin(Stdio::piped()).kill_on_drop(true);
    end_with_this_process(&mut command);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Outcome::Failed(format!("it cannot be started: {error}")),
    };
    let _held = child.stdin.take();
    let is_up = || {
        let note = note::read(data).ok().flatten();
        note.and_then(|note| note.trial).is_some_and(|trial| trial.digest == *digest && trial.came_up)
    };
    let comes_up = async {
        while !is_up() {
            sleep(LOOKS_EVERY).await;
        }
    };
    let outcome = tokio::select! {
        biased;
        () = stop.cancelled() => Outcome::Stopped,
        status = child.wait() => Outcome::Failed(ended(status)),
        () = comes_up => Outcome::CameUp,
        answered = answered_throughout(service) => match answered {
            true => Outcome::Failed(format!("it was not up within {} s", UP_WITHIN.as_secs())),
            false => Outcome::Unanswered,
        },
    };
    end(&mut child).await;
    outcome
}

/// Waits for as long as a program has to come up. Returns true if the program that runs was answered each time.
async fn answered_throughout(service: &impl ReplaceableService) -> bool {
    let (end, mut throughout) = (Instant::now() + UP_WITHIN, true);
    loop {
        sleep_until(end.min(Instant::now() + ASKS_EVERY)).await;
        throughout = throughout && service.is_answered().await;
        if Instant::now() >= end {
            return throughout;
        }
    }
}

/// Has the kernel kill the child when this process ends: nobody else knows of it.
#[expect(unsafe_code, reason = "the child makes two system calls before its start, and touches no memory")]
fn end_with_this_process(command: &mut Command) {
    let own = Pid::from_raw(std::process::id().cast_signed());
    let set = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // This process may have ended before.
        if getppid() == own { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: `set` calls nothing but the kernel, which is allowed between fork and exec.
    unsafe { command.pre_exec(set) };
}

fn ended(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => format!("it ended with {status} before it was up"),
        Err(error) => format!("it cannot be waited for: {error}"),
    }
}

/// Ends the child in order, or by force.
async fn end(child: &mut Child) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    // A child that has ended already has no id.
    let Some(pid) = pid else { return };
    if let Err(error) = kill_process(pid, Signal::TERM) {
        tracing::debug!(%error, "the tried program cannot be told to end");
    }
    if timeout(ENDS_WITHIN, child.wait()).await.is_err()
        && let Err(error) = child.kill().await
    {
        tracing::warn!(%error, "the tried program cannot be killed");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::PermissionsExt as _,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::{
        note::{Note, Trial},
        service::AfterTrial,
    };

    /// A service that is answered except at these times of asking.
    struct Answered {
        asked: AtomicUsize,
        except: &'static [usize],
        /// The time of asking at which it is told to stop.
        stops: Option<(usize, CancellationToken)>,
    }

    impl ReplaceableService for Answered {
        const AFTER_TRIAL: AfterTrial = AfterTrial::GoesBack;

        async fn is_answered(&self) -> bool {
            let asked = self.asked.fetch_add(1, Ordering::SeqCst);
            if let Some((_, stop)) = self.stops.as_ref().filter(|(at, _)| *at == asked) {
                stop.cancel();
            }
            !self.except.contains(&asked)
        }
    }

    fn answered_except(except: &'static [usize]) -> Answered {
        Answered { asked: AtomicUsize::new(0), except, stops: None }
    }

    /// Puts a program into place, and tries it.
    async fn tried(program: &[u8], service: &Answered, stop: &CancellationToken) -> (Outcome, Option<i32>) {
        let data = tempfile::tempdir().unwrap();
        let digest = Digest::of(program);
        let path = kept::path(data.path(), &digest);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, program).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let by = Some(std::process::id());
        let trial = Trial { digest, number: 1, by, boot: None, came_up: false };
        let note = Note { trial: Some(trial.clone()), ..Note::of(Digest::of(b"installed"), 1) };
        note::write(data.path(), Some(&note)).unwrap();
        let up = Note { trial: Some(Trial { came_up: true, ..trial }), ..note };
        fs::write(data.path().join("up"), serde_json::to_vec(&up).unwrap()).unwrap();
        let again = Again { name: "periapt".into(), arguments: vec![data.path().into()] };
        let outcome = try_out(data.path(), &digest, &again, service, stop).await;
        let pid = fs::read_to_string(data.path().join("pid")).ok().and_then(|pid| pid.trim().parse().ok());
        (outcome, pid)
    }

    /// A service that says that it is up, and ends at SIGTERM.
    const SERVES: &[u8] = b"#!/bin/sh\ntrap 'exit 0' TERM\necho $$ > $1/pid\nmv $1/up $1/program\n\
        while true; do sleep 0.05; done\n";

    /// A service that neither ends nor comes up.
    const HANGS: &[u8] = b"#!/bin/sh\necho $$ > $1/pid\nexec sleep 1000\n";

    fn runs(pid: Option<i32>) -> bool {
        std::path::Path::new(&format!("/proc/{}", pid.unwrap())).exists()
    }

    #[tokio::test]
    async fn a_program_that_comes_up_is_ended_in_order() {
        let (outcome, pid) = tried(SERVES, &answered_except(&[]), &CancellationToken::new()).await;
        assert_eq!(outcome, Outcome::CameUp);
        assert!(!runs(pid), "it has ended");
    }

    #[tokio::test]
    async fn a_program_that_ends_or_cannot_be_started_has_failed_with_the_reason() {
        let stop = CancellationToken::new();
        let ends = b"#!/bin/sh\nexit 7\n";
        let failed = |reason: &str| Outcome::Failed(reason.to_owned());
        let expected = failed("it ended with exit status: 7 before it was up");
        assert_eq!(tried(ends, &answered_except(&[]), &stop).await.0, expected);
        let (data, again) =
            (tempfile::tempdir().unwrap(), Again { name: "periapt".into(), arguments: vec![] });
        let service = answered_except(&[]);
        let missing = try_out(data.path(), &Digest::of(b"missing"), &again, &service, &stop).await;
        let Outcome::Failed(reason) = missing else { panic!("{missing:?}") };
        assert!(reason.starts_with("it cannot be started: "), "{reason}");
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_ended_after_its_time() {
        // The clock runs on by itself while the program waits.
        tokio::time::pause();
        let service = answered_except(&[]);
        let (outcome, _) = tried(HANGS, &service, &CancellationToken::new()).await;
        assert_eq!(outcome, Outcome::Failed("it was not up within 120 s".to_owned()));
        assert_eq!(service.asked.into_inner(), 9, "before its start, and every 15 s");
    }

    #[tokio::test]
    async fn a_program_is_not_to_blame_if_the_one_that_runs_was_not_answered_either() {
        tokio::time::pause();
        for except in [&[1, 2, 3, 4, 5, 6, 7, 8][..], &[3], &[8]] {
            let (outcome, _) = tried(HANGS, &answered_except(except), &CancellationToken::new()).await;
            assert_eq!(outcome, Outcome::Unanswered, "{except:?}");
        }
        let (outcome, pid) = tried(HANGS, &answered_except(&[0]), &CancellationToken::new()).await;
        assert_eq!((outcome, pid), (Outcome::Unanswered, None), "it is not started");
    }

    #[tokio::test]
    async fn a_service_that_is_told_to_stop_ends_the_program_that_it_tries() {
        tokio::time::pause();
        for at in [0, 1, 4] {
            let stop = CancellationToken::new();
            let service = Answered { stops: Some((at, stop.clone())), ..answered_except(&[]) };
            assert_eq!(tried(HANGS, &service, &stop).await.0, Outcome::Stopped);
        }
    }
}
