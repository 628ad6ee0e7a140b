//! Released forms stay readable for ever: `tests/forms/FORM/KIND.json` holds the [`samples`] of every kind as that
//! form encodes them, each with its key.
//!
//! `PERIAPT_UPDATE=1` rewrites the fixtures of a form that no release has written. The fixtures of released forms
//! only grow ([`kept_and_new`]), and an entity changes in one of two ways ([`HOW_TO_CHANGE`]).

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Once};

use periapt_host_api::{Revision, Timestamp};
use periapt_model::RecordAppend;
use periapt_store::{EntityChunk, Record, RecordPosition, codec, key};
use serde::{Deserialize, Serialize};

use crate::samples::{self, Content, Sample};

/// The newest form that a release has written. A release sets it to `Some(codec::FORM)`.
const RELEASED: Option<u8> = None;

const HOW_TO_CHANGE: &str = "\
stored values changed. What a release wrote must be read, and written again, as it was:
  - a field may be added: with `#[serde(default, skip_serializing_if = ...)]`, so that values without it stay as
    they are; and a variant or kind may be added. Add a sample that shows it in `tests/it/samples`, leave the
    samples that are there as they were, and run this test with PERIAPT_UPDATE=1 to append it to the fixtures;
  - for any other change (a field that is renamed, dropped or means something else) copy the old type into
    `controller/store`, raise `codec::FORM`, convert the old form where it is read, and run this test with
    PERIAPT_UPDATE=1 to write the fixtures of the new form; those of the old one stay.
A form that no release wrote yet (see RELEASED in this file) may change as it likes: PERIAPT_UPDATE=1 rewrites it.";

/// A fixture: stored values by the names of their samples.
pub(crate) type Fixture = BTreeMap<String, Stored>;

/// One stored value, without the byte that names its form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// The key of an entity, or the name of a record's sequence.
    key: String,
    /// The value as JSON.
    value: serde_json::Value,
}

#[test]
fn every_value_of_every_form_can_be_read() {
    bring_up_to_date();
    let mut samples = BTreeMap::new();
    for sample in samples::all() {
        let before = samples.insert((sample.kind, sample.name), sample);
        assert_eq!(before.map(|sample| (sample.kind, sample.name)), None, "names are unique in their kind");
    }
    for form in 1..=codec::FORM {
        let kinds = kinds_kept(form);
        assert!(!kinds.is_empty(), "form {form} has no fixtures: run this test with PERIAPT_UPDATE=1");
        for kind in kinds {
            for (name, stored) in kept(form, &kind) {
                let sample = samples.get(&(&*kind, &*name)).unwrap_or_else(|| {
                    panic!(
                        "form {form} has a {kind} {name:?}, but no sample says what it means\n{HOW_TO_CHANGE}"
                    )
                });
                match read(form, &stored, &sample.content) {
                    Ok(content) => assert_eq!(
                        content, sample.content,
                        "the {kind} {name:?} of form {form} is read as another value\n{HOW_TO_CHANGE}"
                    ),
                    Err(error) => panic!("{kind} {name:?} of form {form}: {error}\n{HOW_TO_CHANGE}"),
                }
            }
        }
    }
}

#[test]
fn what_is_written_today_is_what_the_fixtures_say() {
    bring_up_to_date();
    for (kind, today) in today() {
        let kept = kept(codec::FORM, kind);
        for (name, stored) in &today {
            let Some(kept) = kept.get(name) else {
                panic!("the {kind} {name:?} is in no fixture: run this test with PERIAPT_UPDATE=1");
            };
            assert_eq!(stored, kept, "the {kind} {name:?} is written otherwise\n{HOW_TO_CHANGE}");
        }
    }
}

#[test]
fn fixtures_of_a_release_only_grow() {
    let stored = |value: i32| Stored { key: "k".into(), value: value.into() };
    let fixture = |values: &[(&str, i32)]| -> Fixture {
        values.iter().map(|(name, value)| ((*name).to_owned(), stored(*value))).collect()
    };
    let (kept, today) = (fixture(&[("gone", 1), ("changed", 2)]), fixture(&[("changed", 3), ("new", 4)]));
    let grown = kept_and_new(true, kept.clone(), &today);
    assert_eq!(grown, fixture(&[("gone", 1), ("changed", 2), ("new", 4)]));
    assert_eq!(kept_and_new(false, kept, &today), today);
}

/// Returns all samples as they are written today, by kind.
pub(crate) fn today() -> BTreeMap<&'static str, Fixture> {
    let mut today: BTreeMap<&str, Fixture> = BTreeMap::new();
    for sample in samples::all() {
        today.entry(sample.kind).or_default().insert(sample.name.to_owned(), written(&sample));
    }
    today
}

/// Rewrites the fixtures if `PERIAPT_UPDATE` is set. Each test that reads fixtures calls it first. Tests may run as
/// parallel processes, which write the same content and replace whole files.
fn bring_up_to_date() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if std::env::var_os("PERIAPT_UPDATE").is_some() {
            update(&today());
        }
    });
}

fn update(today: &BTreeMap<&str, Fixture>) {
    let released = RELEASED.is_some_and(|newest| codec::FORM <= newest);
    fs::create_dir_all(directory(codec::FORM)).unwrap();
    for kind in kinds_kept(codec::FORM) {
        if !released && !today.contains_key(&*kind) {
            let removed = fs::remove_file(path(codec::FORM, &kind));
            assert!(removed.is_ok() || !path(codec::FORM, &kind).exists(), "{kind}: {removed:?}");
        }
    }
    for (kind, today) in today {
        let kept = if path(codec::FORM, kind).exists() { kept(codec::FORM, kind) } else { Fixture::new() };
        let text = serde_json::to_string_pretty(&kept_and_new(released, kept, today)).unwrap();
        let unfinished = directory(codec::FORM).with_extension(format!("of-{}", std::process::id()));
        fs::write(&unfinished, text + "\n").unwrap();
        fs::rename(unfinished, path(codec::FORM, kind)).unwrap();
    }
}

/// Returns the content of a fixture: for a released form its present content and what is new, else today's samples.
fn kept_and_new(released: bool, kept: Fixture, today: &Fixture) -> Fixture {
    let mut fixture = today.clone();
    if released {
        fixture.extend(kept);
    }
    fixture
}

fn written(sample: &Sample) -> Stored {
    let batch = codec::batch(Revision(0), [codec::Writes::of(&sample.changes()).unwrap()]);
    let (key, bytes) = match (&*batch.entities, &*batch.records) {
        ([(key, Some(value))], []) => (key, value),
        ([], [record]) => (&record.prefix, &record.body),
        other => panic!("one sample is one write, not {other:?}"),
    };
    assert_eq!(bytes[0], codec::FORM, "a value begins with its form");
    let value = serde_json::from_slice(&bytes[1..]).unwrap();
    Stored { key: String::from_utf8(key.clone()).unwrap(), value }
}

/// Decodes a stored value as a starting controller does. A record's key tells its model, entity and time, so these
/// come from the expected sample.
fn read(form: u8, stored: &Stored, expected: &Content) -> Result<Content, codec::CodecError> {
    let mut bytes = vec![form];
    serde_json::to_writer(&mut bytes, &stored.value).unwrap();
    match expected {
        Content::Entity(..) => {
            let mut chunk = EntityChunk::default();
            chunk.push(stored.key.clone().into_bytes(), bytes);
            let (key, entity) = codec::entities(chunk)?.pop().unwrap();
            Ok(Content::Entity(key, entity))
        }
        Content::Record(append) => {
            let position = RecordPosition { revision: Revision(1), index: 0 };
            let body = codec::body(&Record { position, at: Timestamp::UNIX_EPOCH, body: bytes })?;
            let prefix = key::record_prefix(&append.model, body.kind(), &append.entity);
            assert_eq!(
                stored.key.as_bytes(),
                prefix,
                "a sequence of records keeps its name\n{HOW_TO_CHANGE}"
            );
            Ok(Content::Record(RecordAppend { body, ..append.clone() }))
        }
    }
}

fn directory(form: u8) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/forms").join(form.to_string())
}

fn path(form: u8, kind: &str) -> PathBuf {
    directory(form).join(format!("{kind}.json"))
}

fn kinds_kept(form: u8) -> Vec<String> {
    let Ok(files) = fs::read_dir(directory(form)) else { return Vec::new() };
    let mut kinds: Vec<String> = files
        .map(|file| file.unwrap().path())
        .inspect(|path| assert_eq!(path.extension().unwrap(), "json", "{} is no fixture", path.display()))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    kinds.sort();
    kinds
}

fn kept(form: u8, kind: &str) -> Fixture {
    let text = fs::read_to_string(path(form, kind)).unwrap_or_else(|error| {
        panic!("form {form} has no fixture of {kind} ({error}): run this test with PERIAPT_UPDATE=1")
    });
    serde_json::from_str(&text).unwrap()
}
