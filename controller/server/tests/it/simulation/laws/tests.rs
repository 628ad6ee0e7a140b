//! Histories that no set of controllers may leave. The law of each must find it.

use std::{sync::Arc, time::Duration};

use periapt_host_api::{LeaderTerm, Level, Revision, Timestamp};
use periapt_log::{Content, EntryId, LogHead, StoredEntry, Term};
use periapt_store::LoadedState;
use tokio::time::Instant;

use super::{never_less, once, same_everywhere};
use crate::simulation::{
    agents::{Belief, one_at_a_time},
    fold::{Fold, State},
    sessions::{Ended, Operation, Outcome, REGISTERS},
    world::LOG,
};

/// Appends an entry of a term, which changes nothing, after an end of the log.
fn appended(log: &mut Vec<StoredEntry>, head: &LogHead, term: u64) -> LogHead {
    let content = Content::Batch { entities: Vec::new(), records: Vec::new() };
    let id = EntryId(uuid::Uuid::from_u128(7));
    let next = head.next_entry((id, Term(term)), (Timestamp::UNIX_EPOCH, Level::FIRST), content).unwrap();
    log.push(StoredEntry { position: next.position, bytes: next.bytes });
    next.head
}

/// Returns the fold of a log of two entries.
fn folded() -> Fold {
    let mut log = Vec::new();
    let head = appended(&mut log, &LogHead::empty(LOG), 1);
    appended(&mut log, &head, 2);
    Fold::of(&log).unwrap()
}

/// Returns the fold of a log in which register 1 has a value at position 1 and another one at position 2.
fn written() -> Fold {
    let mut fold = folded();
    for (position, value) in [(1, "first"), (2, "second")] {
        let mut state = State::default();
        state.models.insert(REGISTERS[0].to_owned(), value.to_owned());
        fold.states[position] = Arc::new(state);
    }
    fold
}

fn read(value: &str) -> Ended {
    ended(Operation::Read(REGISTERS[0]), Outcome::Value(value.to_owned()))
}

fn ended(operation: Operation, outcome: Outcome) -> Ended {
    Ended { client: 0, called: 0, returned: 1, operation, outcome }
}

fn breaks(law: &str, result: Result<(), String>) {
    let found = result.unwrap_err();
    assert!(found.starts_with(law), "{found}");
}

#[test]
fn a_disk_that_is_not_the_fold_is_found() {
    let fold = folded();
    let disk = || LoadedState { revision: Revision(2), entities: Vec::new(), note: Some(fold.head.encode()) };
    same_everywhere(&fold, &[disk(), disk()]).unwrap();
    breaks("H1: ", same_everywhere(&fold, &[disk(), LoadedState { note: None, ..disk() }]));
    let more = vec![(b"more".to_vec(), b"1".to_vec())];
    breaks("H1: ", same_everywhere(&fold, &[LoadedState { entities: more, ..disk() }]));
}

#[test]
fn a_read_of_what_was_never_there_is_found() {
    never_less(&written(), &[read("first"), read("second")]).unwrap();
    breaks("H1: ", never_less(&written(), &[read("third")]));
}

#[test]
fn a_position_that_is_left_out_and_a_term_that_falls_are_found() {
    let fold = |log: &[StoredEntry]| Fold::of(log).map(drop);
    let mut log = Vec::new();
    let first = appended(&mut log, &LogHead::empty(LOG), 2);
    let second = appended(&mut log, &first, 2);
    appended(&mut log, &second, 3);
    fold(&log).unwrap();
    breaks("H3: ", fold(&[log[0].clone(), log[2].clone()]));
    let mut log = vec![log[0].clone()];
    // A writer that does not know the term before.
    appended(&mut log, &LogHead { term: Term(0), ..first }, 1);
    breaks("H3: ", fold(&log));
}

#[test]
fn another_entry_at_a_position_is_found() {
    let (mut log, mut other) = (Vec::new(), Vec::new());
    let head = appended(&mut log, &LogHead::empty(LOG), 1);
    appended(&mut log, &head, 1);
    appended(&mut other, &LogHead::empty(LOG), 2);
    breaks("H3: ", Fold::of(&[other[0].clone(), log[1].clone()]).map(drop));
}

#[test]
fn what_was_acknowledged_and_is_not_there_or_is_there_twice_is_found() {
    let mut fold = folded();
    let done = [ended(Operation::Add("m".to_owned()), Outcome::Done)];
    breaks("H4: ", once(&fold, &done));
    fold.added.insert("m".to_owned(), vec![1]);
    once(&fold, &done).unwrap();
    fold.added.insert("m".to_owned(), vec![1, 2]);
    breaks("H4: ", once(&fold, &done));
    let nothing = [ended(Operation::Write(REGISTERS[0], "v".to_owned()), Outcome::Nothing)];
    let mut fold = folded();
    once(&fold, &nothing).unwrap();
    fold.writes.insert(REGISTERS[0].to_owned(), 1);
    breaks("H4: ", once(&fold, &nothing));
}

#[test]
fn a_client_that_is_shown_less_than_it_saw_or_wrote_is_found() {
    breaks("H5: ", never_less(&written(), &[read("second"), read("first")]));
    let wrote = ended(Operation::Write(REGISTERS[0], "second".to_owned()), Outcome::Done);
    breaks("H5: ", never_less(&written(), &[wrote, read("first")]));
}

#[test]
fn leaderships_that_overlap_and_a_term_of_two_units_are_found() {
    let now = Instant::now();
    let belief = |agent, unit: &str, term, from, until| Belief {
        agent,
        unit: unit.parse().unwrap(),
        term: LeaderTerm(term),
        from: now + Duration::from_secs(from),
        until: now + Duration::from_secs(until),
    };
    let first = || belief("agent-1", "tiny/0", 1, 0, 60);
    one_at_a_time(&[first(), belief("agent-2", "tiny/1", 2, 60, 120)]).unwrap();
    breaks("H6: ", one_at_a_time(&[first(), belief("agent-2", "tiny/1", 2, 59, 119)]));
    breaks("H6: ", one_at_a_time(&[first(), belief("agent-2", "tiny/1", 1, 60, 120)]));
}
