//! Two controllers that keep one blob's copies, while it is uploaded, registered and forgotten again
//! (`state/blobs/copies.rs` and `pruning/collect.rs` of `controller/server`).

use periapt_host_api::{Level, Revision, StoreId, Timestamp};
use periapt_log::{Content, Entry, EntryId, LogHead, LogState, Term};
use stateright::{Model, Property};

use crate::{breaks, explored};

/// The number of registrations and removals together.
const ENTRIES: u64 = 4;

const KEY: &[u8] = b"blob";
const H7: &str = "H7: a registered blob exists";
const TWICE: &str = "a registered blob is on two controllers";

/// The way in which a controller makes sure that a blob is unused before it deletes its copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Collection {
    /// It reads the log to its end, and applies that.
    Read,
    /// It believes its own state.
    Believing,
}

struct Blobs(Collection);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    log: LogState,
    /// The end of the log, for the writer.
    end: LogHead,
    /// True if the log registers the blob.
    registered: bool,
    controllers: [Controller; 2],
    upload: Option<Upload>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Controller {
    head: LogHead,
    /// True if the blob is registered in the state that it has applied.
    knows: bool,
    has_file: bool,
    /// True if the blob was requested or uploaded less than an hour ago.
    is_fresh: bool,
    deletion: Deletion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Deletion {
    None,
    /// No upload stores a blob here until it is over.
    Begun,
    /// It waits until this is applied.
    Awaits(Revision),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Upload {
    at: usize,
    is_copied: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Upload(usize),
    Copy,
    Register,
    GiveUp,
    Forget,
    Apply(usize),
    Fetch(usize),
    AnHourPasses,
    BeginDeletion(usize),
    ReadLog(usize),
    Delete(usize),
}

impl Model for Blobs {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut log = LogState::default();
        log.begin_term();
        let head = LogHead::empty(StoreId(uuid::Uuid::from_u128(1)));
        let controller = Controller {
            head: head.clone(),
            knows: false,
            has_file: false,
            is_fresh: false,
            deletion: Deletion::None,
        };
        let controllers = [controller.clone(), controller];
        vec![State { log, end: head, registered: false, controllers, upload: None }]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Action>) {
        use Action::{
            AnHourPasses, Apply, BeginDeletion, Copy, Delete, Fetch, Forget, GiveUp, ReadLog, Register,
        };
        actions.extend([Copy, Register, GiveUp, Forget, AnHourPasses]);
        for at in 0..2 {
            actions.extend([Action::Upload(at), Apply(at), Fetch(at)]);
            actions.extend([BeginDeletion(at), ReadLog(at), Delete(at)]);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.step(&mut next, &action)?;
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(H7, |_, state: &State| {
                !state.registered || state.controllers.iter().any(|one| one.has_file)
            }),
            Property::always(TWICE, |_, state: &State| {
                !state.registered || state.controllers.iter().all(|one| one.has_file)
            }),
            Property::sometimes("a blob that was forgotten is uploaded again", |_, state: &State| {
                state.registered && state.end.position > Revision(1)
            }),
            Property::sometimes("no copy is left of a forgotten blob", |_, state: &State| {
                state.end.position > Revision(1) && state.controllers.iter().all(|one| !one.has_file)
            }),
        ]
    }
}

impl Blobs {
    /// Takes a step, if it is possible.
    fn step(&self, state: &mut State, action: &Action) -> Option<()> {
        let possible = |holds: bool| holds.then_some(());
        match *action {
            Action::Upload(at) => {
                let here = &mut state.controllers[at];
                possible(state.upload.is_none() && here.deletion == Deletion::None && !state.registered)?;
                (here.has_file, here.is_fresh) = (true, true);
                state.upload = Some(Upload { at, is_copied: false });
            }
            Action::Copy => {
                let upload = state.upload.as_mut()?;
                let there = &mut state.controllers[1 - upload.at];
                possible(!upload.is_copied && there.deletion == Deletion::None)?;
                (there.has_file, there.is_fresh, upload.is_copied) = (true, true, true);
            }
            Action::Register => {
                possible(state.upload?.is_copied && !state.registered)?;
                state.write(Some(Vec::new()))?;
                state.upload = None;
            }
            Action::GiveUp => drop(state.upload.take()?),
            Action::Forget => {
                possible(state.registered)?;
                state.write(None)?;
            }
            Action::Apply(at) => state.apply(at)?,
            Action::Fetch(at) => {
                possible(state.controllers[at].knows && state.controllers[1 - at].has_file)?;
                state.controllers[at].has_file = true;
            }
            Action::AnHourPasses => {
                // An upload takes far less.
                possible(state.upload.is_none())?;
                state.controllers.iter_mut().for_each(|one| one.is_fresh = false);
            }
            Action::BeginDeletion(at) => {
                let here = &mut state.controllers[at];
                possible(here.has_file && !here.is_fresh && !here.knows && here.deletion == Deletion::None)?;
                possible(state.upload.is_none_or(|upload| upload.at != at))?;
                here.deletion = Deletion::Begun;
            }
            Action::ReadLog(at) => {
                possible(self.0 == Collection::Read && state.controllers[at].deletion == Deletion::Begun)?;
                state.controllers[at].deletion = Deletion::Awaits(state.log.end());
            }
            Action::Delete(at) => {
                let here = &mut state.controllers[at];
                possible(match here.deletion {
                    Deletion::None => false,
                    Deletion::Begun => self.0 == Collection::Believing,
                    Deletion::Awaits(end) => here.head.position >= end,
                })?;
                here.has_file &= here.knows;
                here.deletion = Deletion::None;
            }
        }
        Some(())
    }
}

impl State {
    /// Appends what the writer of the present term writes of the blob.
    fn write(&mut self, value: Option<Vec<u8>>) -> Option<()> {
        if self.end.position.0 == ENTRIES {
            return None;
        }
        self.registered = value.is_some();
        let content = Content::Batch { entities: vec![(KEY.to_vec(), value)], records: Vec::new() };
        let id = (EntryId(uuid::Uuid::from_u128(self.end.position.0.into())), Term(1));
        let next = self.end.next_entry(id, (Timestamp::UNIX_EPOCH, Level::FIRST), content).unwrap();
        self.log.append(Term(1), next.position, next.bytes).unwrap();
        self.end = next.head;
        Some(())
    }

    fn apply(&mut self, at: usize) -> Option<()> {
        let here = &mut self.controllers[at];
        let position = Revision(here.head.position.0 + 1);
        let bytes = self.log.entry(position)?;
        let entry = Entry::decode(position, bytes).unwrap();
        here.head = here.head.after(position, &entry, bytes).unwrap();
        let Content::Batch { entities, .. } = entry.content else { return None };
        here.knows = entities.iter().any(|(_, value)| value.is_some());
        Some(())
    }
}

#[test]
fn a_registered_blob_exists_whatever_uploads_and_collections_meet() {
    assert!(explored(Blobs(Collection::Read)) > 1_000);
}

#[test]
fn a_collection_that_believes_its_own_state_loses_a_registered_blob() {
    breaks(Blobs(Collection::Believing), &[H7, TWICE]);
}
