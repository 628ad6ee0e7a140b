//! The witness of a simulation. It notes what happens in the log, on the disks and at the controllers, in order, so that
//! laws can be judged by it afterwards.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
};

use parking_lot::Mutex;
use periapt_controller::AnswerObserver;
use periapt_host_api::{Digest, Level, Revision};
use periapt_log::Term;

use crate::fixture::Faults;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// The program of a host knows this level from now on.
    Program { host: &'static str, level: Level },
    /// The log has a host's entry.
    Appended { host: &'static str, term: Term, position: Revision },
    /// The log confirms a host's term.
    Confirmed { host: &'static str, term: Term },
    /// A host that leads has evaluated a batch of commands.
    Evaluated { host: &'static str, term: Term },
    /// The answers to that batch leave the host. They show the state at a position.
    Answers { host: &'static str, term: Term, shown: Revision },
    /// The client or watcher with this number is shown the state at a position.
    Shown { to: usize, position: Revision },
    /// The log was trimmed.
    Trimmed(Trim),
    /// The disks of the hosts have these blobs, at a moment at which the log ends at a position.
    Blobs { at: Revision, held: Vec<BTreeSet<Digest>> },
}

/// A trimming of the log, with what is durable at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trim {
    /// The host that leads.
    pub(super) host: &'static str,
    /// The last position that is trimmed.
    pub(super) through: Revision,
    /// The last position that is durable on the host's disk.
    pub(super) own: Revision,
    /// The last position that is durable on the disk of any other host.
    pub(super) elsewhere: Revision,
    /// The bytes of the entries from the last trimmed one on.
    pub(super) bytes: u64,
}

/// The witness. Clones are the same one.
#[derive(Clone, Default)]
pub(super) struct Witness(Arc<Notes>);

#[derive(Default)]
struct Notes {
    events: Mutex<Vec<Event>>,
    /// The faults of each host's disk, which know what is synced.
    disks: Mutex<BTreeMap<&'static str, Faults>>,
}

impl Witness {
    /// Notes an event.
    pub(super) fn note(&self, event: Event) {
        self.0.events.lock().push(event);
    }

    /// Returns all events so far, in their order.
    pub(super) fn events(&self) -> Vec<Event> {
        self.0.events.lock().clone()
    }

    /// Takes the disk with which a host starts.
    pub(super) fn take_disk(&self, host: &'static str, faults: Faults) {
        self.0.disks.lock().insert(host, faults);
    }

    /// Notes a trimming by a host.
    pub(super) fn trimmed(&self, host: &'static str, through: Revision, bytes: u64) {
        let durable = |faults: &Faults| faults.synced().map_or(Revision(0), |disk| disk.revision());
        let (mut own, mut elsewhere) = (Revision(0), Revision(0));
        for (name, faults) in &*self.0.disks.lock() {
            match *name == host {
                true => own = durable(faults),
                false => elsewhere = elsewhere.max(durable(faults)),
            }
        }
        self.note(Event::Trimmed(Trim { host, through, own, elsewhere, bytes }));
    }

    /// Notes the blobs on disks, if they are others than at the last call.
    pub(super) fn see_blobs(&self, at: Revision, directories: impl Iterator<Item = impl AsRef<Path>>) {
        let held: Vec<_> = directories.map(|directory| blobs_below(directory.as_ref())).collect();
        let mut events = self.0.events.lock();
        let last = events.iter().rev().find_map(|event| match event {
            Event::Blobs { at, held } => Some((*at, held)),
            _ => None,
        });
        if last != Some((at, &held)) {
            events.push(Event::Blobs { at, held });
        }
    }

    /// Returns the observer of a host's answers.
    pub(super) fn observer(&self, host: &'static str) -> Arc<dyn AnswerObserver> {
        Arc::new(HostObserver { witness: self.clone(), host })
    }
}

struct HostObserver {
    witness: Witness,
    host: &'static str,
}

impl AnswerObserver for HostObserver {
    fn evaluated(&self, term: Term) {
        self.witness.note(Event::Evaluated { host: self.host, term });
    }

    fn answers(&self, term: Term, shown: Revision) {
        self.witness.note(Event::Answers { host: self.host, term, shown });
    }
}

/// Returns the blobs whose whole content is below a directory.
pub(super) fn blobs_below(directory: &Path) -> BTreeSet<Digest> {
    let (mut found, mut open) = (BTreeSet::new(), vec![directory.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            match entry.file_name().to_str().and_then(|name| name.parse::<Digest>().ok()) {
                Some(digest) => drop(found.insert(digest)),
                None => open.push(entry.path()),
            }
        }
    }
    found
}
