//! The commands that the clients of a site send, and what they were told.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use anyhow::Context as _;
use parking_lot::Mutex;
use periapt_tests::Installation;

use crate::{
    contested::{Contested, Told},
    site::until,
};

/// The charm of the application that gets units. They have no peers: with these, each unit would run hooks for all others.
pub(crate) const LOADED: &str = "aggregator";

/// The commands of the clients of all hosts, by their outcome.
#[derive(Default)]
pub(crate) struct Story {
    /// The models whose creation was acknowledged.
    pub(crate) made: Mutex<BTreeSet<String>>,
    /// The models whose creation was refused without effect.
    pub(crate) refused: Mutex<BTreeSet<String>>,
    /// The acknowledged units, and those of which the client did not learn.
    pub(crate) units: AtomicUsize,
    pub(crate) unknown_units: AtomicUsize,
    /// The acknowledged commands of each host.
    answers: [AtomicUsize; 3],
    pub(crate) contested: Contested,
    pub(crate) ended: AtomicBool,
}

/// The outcome of a command, as its client was told.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// It was refused: there is one already.
    Exists,
    NothingHappened,
    Unknown,
}

impl Story {
    /// Sends commands through one host's controller, with a pause after each, until the rounds are over.
    pub(crate) fn send(&self, number: usize, host: &Installation, pause: Duration) -> anyhow::Result<()> {
        let answers = self.answers.get(number).context("a host")?;
        for count in 0.. {
            if self.ended.load(Ordering::SeqCst) {
                break;
            }
            let name = format!("m{number}-{count}");
            match outcome(host, &["add-model", &name, "--no-switch"])? {
                Outcome::Done => {
                    self.made.lock().insert(name);
                    answers.fetch_add(1, Ordering::SeqCst);
                }
                Outcome::NothingHappened => drop(self.refused.lock().insert(name)),
                Outcome::Exists => anyhow::bail!("{name} was added twice"),
                Outcome::Unknown => {}
            }
            thread::sleep(pause);
            let (name, called) = (format!("contested-{count}"), self.contested.moment());
            match outcome(host, &["add-model", &name, "--no-switch"])? {
                Outcome::Done => self.contested.ended(name, called, Some(Told::Taken)),
                Outcome::Exists => self.contested.ended(name, called, Some(Told::Exists)),
                Outcome::Unknown => self.contested.ended(name, called, None),
                Outcome::NothingHappened => {}
            }
            thread::sleep(pause);
            match outcome(host, &["add-unit", "-m", "load", LOADED])? {
                Outcome::Done => {
                    self.units.fetch_add(1, Ordering::SeqCst);
                    answers.fetch_add(1, Ordering::SeqCst);
                }
                Outcome::NothingHappened | Outcome::Exists => {}
                Outcome::Unknown => drop(self.unknown_units.fetch_add(1, Ordering::SeqCst)),
            }
            thread::sleep(pause);
        }
        Ok(())
    }

    /// Returns the number of acknowledged commands.
    pub(crate) fn answered(&self) -> usize {
        self.answers.iter().map(|answers| answers.load(Ordering::SeqCst)).sum()
    }

    /// Waits until the clients of all hosts have been answered again.
    pub(crate) fn all_are_answered(&self) -> anyhow::Result<()> {
        let before: Vec<_> = self.answers.iter().map(|answers| answers.load(Ordering::SeqCst)).collect();
        until("each host's clients are answered", || {
            Ok(self
                .answers
                .iter()
                .zip(&before)
                .all(|(answers, before)| answers.load(Ordering::SeqCst) > *before))
        })
    }
}

/// Runs a command, and tells what became of it.
fn outcome(host: &Installation, words: &[&str]) -> anyhow::Result<Outcome> {
    let done = host.run(words)?;
    let nothing =
        ["had no effect", "is it running?", "cannot be reached", "does not run", "is shutting down"];
    Ok(match done.code {
        Some(0) => Outcome::Done,
        // The latter is told by a controller whose store failed.
        _ if ["is not known", "had an effect"].iter().any(|words| done.stderr.contains(words)) => {
            Outcome::Unknown
        }
        _ if done.stderr.contains("already exists") => Outcome::Exists,
        _ if nothing.iter().any(|words| done.stderr.contains(words)) => Outcome::NothingHappened,
        code => anyhow::bail!("{words:?} ended with {code:?}: {}", done.stderr),
    })
}
