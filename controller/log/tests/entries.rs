//! The stored form of entries: read back as written, refused with a reason otherwise.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::path::Path;

use periapt_host_api::{Digest, LEVEL, Level, Revision, StoreId, Timestamp};
use periapt_log::{Announcement, Content, Entry, EntryError, EntryId, LogHead, Term};
use periapt_store::NewRecord;
use proptest::prelude::*;
use uuid::Uuid;

const AT: Revision = Revision(7);

fn entry(content: Content) -> Entry {
    Entry {
        id: EntryId(Uuid::from_u128(9)),
        term: Term(3),
        at: Timestamp::from_millisecond(1_700_000_000_123).unwrap(),
        level: Level(1),
        previous: Digest::of(b"before"),
        content,
    }
}

fn batch() -> Content {
    let record = NewRecord {
        prefix: b"log".to_vec(),
        at: Timestamp::new(5, 999_999_999).unwrap(),
        body: vec![0; 500],
    };
    Content::Batch {
        entities: vec![
            (b"a".to_vec(), Some(b"1".to_vec())),
            (b"b".to_vec(), None),
            (b"c".to_vec(), Some(vec![])),
        ],
        records: vec![record],
    }
}

/// The files of released stored forms, which must stay readable for ever.
const RELEASED: [&str; 2] = ["batch.hex", "term.hex"];

fn released() -> [Entry; 2] {
    let announcement = Announcement {
        member: "one".into(),
        url: "https://one.example:17070".into(),
        level: Level(1),
        keys: None,
        blobs: None,
    };
    [entry(batch()), entry(Content::Term(announcement))]
}

#[test]
fn entries_are_read_back_as_they_were_written() {
    for entry in released() {
        assert_eq!(Entry::decode(AT, &entry.encode().unwrap()).unwrap(), entry);
    }
}

#[test]
fn entries_of_a_released_form_stay_readable() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/forms/1");
    for (name, entry) in RELEASED.iter().zip(released()) {
        let path = directory.join(name);
        if !path.exists() && std::env::var_os("PERIAPT_UPDATE").is_some() {
            let digits = |byte: &u8| format!("{byte:02x}");
            let text: String = entry.encode().unwrap().iter().map(digits).collect();
            std::fs::write(&path, text + "\n").unwrap();
        }
        let form = std::fs::read_to_string(&path).unwrap();
        assert_eq!(Entry::decode(AT, &hex(form.trim())).unwrap(), entry);
    }
}

#[test]
fn an_entry_that_does_not_follow_is_refused() {
    let first = entry(batch());
    let bytes = first.encode().unwrap();
    let empty = LogHead::empty(StoreId(Uuid::from_u128(1)));
    let broken = |result: Result<LogHead, EntryError>| match result {
        Err(EntryError::Broken(_, why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(empty.after(Revision(1), &first, &bytes), Err(EntryError::OtherHistory(Revision(1))));
    let first = Entry { previous: empty.digest, ..first };
    assert_eq!(broken(empty.after(Revision(2), &first, &bytes)), "a position was left out");
    let head = empty.after(Revision(1), &first, &bytes).unwrap();
    assert_eq!(LogHead::decode(&head.encode()).unwrap(), head);
    let lower = Entry { previous: head.digest, term: Term(2), ..first.clone() };
    assert_eq!(broken(head.after(Revision(2), &lower, b"")), "its term is lower");
    let older = Entry { previous: head.digest, level: Level(0), ..first.clone() };
    assert_eq!(broken(head.after(Revision(2), &older, b"")), "its level is lower");
    let earlier = Entry { previous: head.digest, at: Timestamp::UNIX_EPOCH, ..first };
    assert_eq!(head.after(Revision(2), &earlier, b"").unwrap().at, head.at, "time never goes back");
}

#[test]
fn an_entry_of_a_newer_program_is_named_as_such() {
    let newer = Entry { level: Level(LEVEL.0 + 1), ..entry(batch()) }.encode().unwrap();
    assert!(
        matches!(Entry::decode(AT, &newer), Err(EntryError::TooNew { found, .. }) if found == LEVEL.0 + 1)
    );
    assert!(matches!(Entry::decode(AT, &[9, 9]), Err(EntryError::TooNew { found: 9, .. })));
}

#[test]
fn a_store_that_a_newer_program_has_fed_is_refused() {
    let empty = LogHead::empty(StoreId(Uuid::from_u128(1)));
    let first = LogHead::decode(&empty.encode()).unwrap();
    assert_eq!(first.level, Level::FIRST);
    let raised = Entry { previous: empty.digest, level: LEVEL, ..entry(batch()) };
    let head = empty.after(Revision(1), &raised, b"").unwrap();
    assert_eq!(LogHead::decode(&head.encode()).unwrap().level, LEVEL);
    let newer = LogHead { level: Level(LEVEL.0 + 1), ..head };
    let error = LogHead::decode(&newer.encode()).unwrap_err().to_string();
    assert!(error.contains("use a newer periapt"), "{error}");
}

#[test]
fn a_length_that_is_a_lie_takes_no_memory() {
    // The fields of an entry, with a length of 2^60 and a content of nothing.
    let mut bytes = entry(batch()).encode().unwrap().to_vec();
    bytes.extend([0x30, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10]);
    let error = Entry::decode(AT, &bytes).unwrap_err().to_string();
    assert!(
        error.contains("the entry at 7 cannot be read: its content has 1152921504606846976 bytes"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn whatever_the_bytes_are_they_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Entry::decode(AT, &bytes);
        let _ = LogHead::decode(&bytes);
    }

    #[test]
    fn a_damaged_entry_is_never_read_as_another_one(at in 0_usize..10_000, change in 1_u8..) {
        let stored = entry(batch()).encode().unwrap();
        let mut bytes = stored.to_vec();
        let at = at % bytes.len();
        bytes[at] ^= change;
        // Its digest, which the next entry names, tells a damaged entry that can be read.
        prop_assert!(Entry::decode(AT, &bytes).is_err() || Digest::of(&bytes) != Digest::of(&stored));
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}
