//! The decoding of bytes, and the refusal of malformed ones.

use periapt_host_api::{Revision, Timestamp, settings::OptionValue};
use periapt_model::{
    changes::{Changes, RecordBody},
    entity::{Entity, EntityKey},
};
use periapt_store::{
    EntityChunk, MAX_COMMIT_BYTES, MAX_COMMIT_KEYS, Record, RecordPosition,
    codec::{self, CodecError, TooLarge, Writes},
    key,
};
use proptest::prelude::*;

use crate::samples::{self, Content, Sample};

fn load(key: &[u8], value: &[u8]) -> Result<Vec<(EntityKey, Entity)>, CodecError> {
    let mut chunk = EntityChunk::default();
    chunk.push(key.to_vec(), value.to_vec());
    codec::entities(chunk)
}

fn body(bytes: &[u8]) -> Result<RecordBody, CodecError> {
    let position = RecordPosition { revision: Revision(12), index: 3 };
    codec::body(&Record { position, at: Timestamp::UNIX_EPOCH, body: bytes.to_vec() })
}

fn bytes_of(sample: &Sample) -> (Vec<u8>, Vec<u8>) {
    let mut batch = codec::batch(Revision(0), [Writes::of(&sample.changes()).unwrap()]);
    match batch.entities.pop() {
        Some((key, value)) => (key, value.unwrap()),
        None => batch.records.pop().map(|record| (record.prefix, record.body)).unwrap(),
    }
}

fn sample(kind: &str, name: &str) -> Sample {
    samples::all().into_iter().find(|sample| (sample.kind, sample.name) == (kind, name)).unwrap()
}

#[test]
fn a_value_of_a_newer_form_is_refused_by_name() {
    let (key, mut value) = bytes_of(&sample("unit", "continue"));
    value[0] = codec::FORM + 1;
    let error = load(&key, &value).unwrap_err();
    assert!(matches!(&error, CodecError::NewerForm { form, .. } if *form == codec::FORM + 1), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("{\"unit\":\"wordpress/10\"} is stored in form 2"), "{message}");
    assert!(message.contains("use a newer periapt"), "{message}");

    let (_, mut value) = bytes_of(&sample("record-log", "info"));
    value[0] = u8::MAX;
    let error = body(&value).unwrap_err();
    assert!(
        matches!(&error, CodecError::NewerForm { at, form: u8::MAX } if at == "the record at 12.3"),
        "{error:?}"
    );
}

#[test]
fn what_a_unit_was_told_of_members_is_read_as_it_was_written_before_there_were_runs() {
    let sample = sample("unit", "continue");
    let (key, value) = bytes_of(&sample);
    let mut json: serde_json::Value = serde_json::from_slice(&value[1..]).unwrap();
    let members = json.pointer_mut("/unit/record/relations/2/members").unwrap();
    assert_eq!(*members, serde_json::json!({"mysql": [[0, 0, 12], [11, 11, 0]]}));
    *members = serde_json::json!({"mysql/0": 12, "mysql/11": 0});
    let mut earlier = vec![codec::FORM];
    serde_json::to_writer(&mut earlier, &json).unwrap();
    let Content::Entity(_, entity) = sample.content else { panic!("a unit is an entity") };
    assert_eq!(load(&key, &earlier).unwrap().pop().unwrap().1, entity);
}

#[test]
fn an_empty_value_and_a_form_that_never_was_are_refused() {
    let (key, mut value) = bytes_of(&sample("unit", "new"));
    value[0] = 0;
    for value in [&[][..], &value] {
        assert!(matches!(load(&key, value).unwrap_err(), CodecError::Misplaced(_)));
        assert!(matches!(body(value).unwrap_err(), CodecError::Misplaced(_)));
    }
}

#[test]
fn a_value_that_is_cut_or_has_a_tail_is_refused_with_its_place() {
    for sample in samples::all() {
        let (key, value) = bytes_of(&sample);
        for value in [&value[..1], &value[..value.len() - 1], &[&*value, b"}"].concat()] {
            let error = match sample.content {
                Content::Entity(..) => load(&key, value).map(|_| ()).unwrap_err(),
                Content::Record(_) => body(value).map(|_| ()).unwrap_err(),
            };
            let CodecError::Value { at, .. } = error else {
                panic!("{} {}: {error}", sample.kind, sample.name)
            };
            match sample.content {
                Content::Entity(..) => assert_eq!(at.as_bytes(), key),
                Content::Record(_) => assert_eq!(at, "the record at 12.3"),
            }
        }
    }
}

#[test]
fn an_entity_is_read_under_its_own_key_alone() {
    let stored: Vec<_> = samples::entities().iter().map(bytes_of).collect();
    for (key, value) in &stored {
        for (other, _) in &stored {
            match (load(other, value), key == other) {
                (Ok(_), true) | (Err(CodecError::Misplaced(_)), false) => {}
                (read, _) => panic!("{} under {}: {read:?}", key.escape_ascii(), other.escape_ascii()),
            }
        }
    }
    let (_, model) = bytes_of(&sample("model", "alive"));
    let elsewhere = b"model/00000000-0000-0000-0000-000000000007/\"model\"";
    assert!(
        matches!(load(elsewhere, &model).unwrap_err(), CodecError::Misplaced(_)),
        "another model's place"
    );
}

#[test]
fn a_key_that_no_version_wrote_is_refused() {
    let (_, value) = bytes_of(&sample("controller", "made"));
    let model = samples::MODEL;
    let unknown = [
        "".to_owned(),
        "top/".into(),
        "top/\"dragon\"".into(),
        "\"controller\"".into(),
        "model/".into(),
        format!("model/{model}"),
        format!("model/{model}/"),
        format!("model/{model}/{{\"dragon\":\"x/0\"}}"),
        format!("model/{model}/{{\"unit\":\"no unit\"}}"),
        "model/no-uuid/\"model\"".into(),
        // Second spellings of valid keys, which would give an entity two places.
        " top/\"controller\"".into(),
        "top/ \"controller\"".into(),
        format!("top/{{\"in-model\":[\"{model}\",\"model\"]}}"),
        format!("model/{}/\"model\"", model.to_string().to_uppercase()),
        format!("model/{model}/{{ \"unit\":\"wordpress/0\"}}"),
    ];
    for key in unknown {
        let error = load(key.as_bytes(), &value).unwrap_err();
        assert!(matches!(&error, CodecError::Key(text) if *text == key), "{key}: {error:?}");
    }
    assert!(matches!(load(b"top/\xff", &value).unwrap_err(), CodecError::Key(_)));
}

#[test]
fn a_batch_holds_the_later_of_two_writes_and_all_records_in_order() {
    let unit = |name| match sample("unit", name).content {
        Content::Entity(key, entity) => (key, entity),
        Content::Record(_) => panic!("a unit is an entity"),
    };
    let record = |name| sample("record-log", name).changes().records;
    let put = |writes: Vec<(EntityKey, Option<Entity>)>, records| Changes {
        puts: writes.into_iter().collect(),
        records,
        ..Changes::default()
    };
    let (key, first) = unit("continue");
    let (_, second) = unit("hook-failed");
    let (other, third) = unit("new");
    let passing = samples::unit_key("wordpress/12");
    let commands = [
        put(vec![(key.clone(), Some(first)), (passing.clone(), None)], record("trace")),
        put(vec![(other.clone(), None)], [record("debug"), record("info")].concat()),
        put(vec![], vec![]),
        put(vec![(key.clone(), Some(second.clone())), (other.clone(), Some(third.clone()))], record("error")),
        put(vec![(other.clone(), None)], vec![]),
    ];
    let batch = codec::batch(Revision(9), commands.iter().map(|changes| Writes::of(changes).unwrap()));
    assert_eq!(batch.expected, Revision(9));

    let kept = |(raw, value): &(Vec<u8>, Option<Vec<u8>>)| {
        let entity = value.as_ref().map(|value| load(raw, value).unwrap().remove(0).1);
        (key::parse_entity(raw).unwrap(), entity)
    };
    let writes: Vec<_> = batch.entities.iter().map(kept).collect();
    assert_eq!(writes, [(key, Some(second)), (other, None), (passing, None)], "one write a key: the last");

    let bodies: Vec<_> = batch.records.iter().map(|record| body(&record.body).unwrap()).collect();
    let expected: Vec<_> =
        ["trace", "debug", "info", "error"].into_iter().flat_map(record).map(|append| append.body).collect();
    assert_eq!(bodies, expected);
}

#[test]
fn a_command_fits_up_to_the_bounds_of_a_store_and_not_past_them() {
    let filled = |bytes: usize, keys: usize| {
        let Content::Entity(at, Entity::Application(application)) = sample("application", "full").content
        else {
            panic!("an application is an entity");
        };
        let mut application = (*application).clone();
        application.leader_settings.insert("fill".into(), "x".repeat(bytes));
        let mut changes = Changes::default();
        changes.puts.insert(at, Some(Entity::from(application)));
        for number in 1..keys {
            changes.puts.insert(samples::unit_key(&format!("gone/{number}")), None);
        }
        changes.records = sample("record-log", "info").changes().records;
        Writes::of(&changes).unwrap()
    };
    let Err(TooLarge::Bytes(over)) = filled(MAX_COMMIT_BYTES, 1).fit() else {
        panic!("it is larger than that")
    };
    let room = MAX_COMMIT_BYTES - (over - MAX_COMMIT_BYTES);
    assert_eq!(filled(room, 1).fit(), Ok(()), "to the last byte, and records do not count");
    assert_eq!(filled(room + 1, 1).fit(), Err(TooLarge::Bytes(MAX_COMMIT_BYTES + 1)));
    assert_eq!(filled(1, MAX_COMMIT_KEYS).fit(), Ok(()));
    assert_eq!(filled(1, MAX_COMMIT_KEYS + 1).fit(), Err(TooLarge::Keys(MAX_COMMIT_KEYS + 1)));
    let deletions = filled(room, 2).fit();
    assert!(matches!(deletions, Err(TooLarge::Bytes(_))), "a deletion is its key");
}

proptest! {
    /// Settings decide hashes, and charms read them: they must survive to the last bit.
    #[test]
    fn options_and_bags_are_read_as_they_were_written(
        number in any::<f64>().prop_filter("options are finite", |number| number.is_finite()),
        integer: i64,
        text: String,
        key: String,
    ) {
        let Content::Entity(at, Entity::Application(application)) = sample("application", "full").content else {
            panic!("an application is an entity");
        };
        let mut application = (*application).clone();
        application.config.insert(key.clone(), OptionValue::Number(number));
        application.config.insert("integer".into(), OptionValue::Integer(integer));
        application.leader_settings.insert(key, text);
        let entity = Entity::from(application);
        let content = Content::Entity(at, entity.clone());
        let (raw, value) = bytes_of(&Sample { kind: "application", name: "any", content });
        prop_assert_eq!(load(&raw, &value).unwrap().pop().unwrap().1, entity);
    }

    /// A damaged store is an error that names the place, never a panic.
    #[test]
    fn any_bytes_are_read_or_refused(form in 0..=codec::FORM, rest: Vec<u8>) {
        let bytes = [&[form], &*rest].concat();
        prop_assert!(body(&bytes).is_err());
        prop_assert!(load(b"top/\"controller\"", &bytes).is_err());
    }
}
