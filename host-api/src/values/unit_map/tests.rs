use std::collections::BTreeMap;

use proptest::{collection::vec, option, prelude::*};

use super::*;

fn unit(name: &str) -> UnitName {
    name.parse().unwrap()
}

fn read(json: &str) -> Result<UnitMap<u64>, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

/// Writes to a map: a unit's new value, or none to take it out.
fn writes() -> impl Strategy<Value = Vec<(UnitName, Option<u64>)>> {
    let number = prop_oneof![9 => 0..12_u32, 1 => u32::MAX - 3..=u32::MAX];
    let unit = (prop_oneof![Just("a"), Just("b")], number);
    let unit = unit.prop_map(|(application, number)| UnitName::new(application.parse().unwrap(), number));
    vec((unit, option::weighted(0.7, 0..3_u64)), 0..60)
}

fn written(writes: &[(UnitName, Option<u64>)]) -> (UnitMap<u64>, BTreeMap<UnitName, u64>) {
    let (mut map, mut plain) = (UnitMap::new(), BTreeMap::new());
    for (unit, value) in writes {
        let (before, expected) = match value {
            Some(value) => (map.insert(unit.clone(), *value), plain.insert(unit.clone(), *value)),
            None => (map.remove(unit), plain.remove(unit)),
        };
        assert_eq!(before, expected, "{unit}");
    }
    (map, plain)
}

proptest! {
    #[test]
    fn it_is_a_map(writes in writes()) {
        let (map, plain) = written(&writes);
        prop_assert_eq!(map.iter().map(|(unit, value)| (unit, *value)).collect::<BTreeMap<_, _>>(), plain.clone());
        prop_assert_eq!(map.len(), plain.len());
        prop_assert_eq!(map.is_empty(), plain.is_empty());
        for (unit, _) in &writes {
            prop_assert_eq!(map.get(unit), plain.get(unit));
        }
    }

    /// So that equal maps have equal runs, however they came about.
    #[test]
    fn no_two_of_its_runs_can_be_joined(writes in writes()) {
        let (map, plain) = written(&writes);
        prop_assert_eq!(&map, &plain.into_iter().collect::<UnitMap<_>>());
        let json = serde_json::to_string(&map).unwrap();
        prop_assert_eq!(read(&json), Ok(map));
    }

    #[test]
    fn stretches_say_of_each_number_what_the_maps_say(one in writes(), two in writes(), three in writes()) {
        let maps = [&one, &two, &three].map(|writes| written(writes).0);
        let application = "a".parse().unwrap();
        let [one, two, three] = &maps;
        let mut told = BTreeMap::new();
        let mut behind = None;
        for run in merged_runs(one.runs(&application), two.runs(&application), three.runs(&application)) {
            prop_assert!(run.first <= run.last && behind.is_none_or(|behind| behind < run.first));
            behind = Some(run.last);
            for number in run.first..=run.last {
                told.insert(number, (run.one, run.two, run.three));
            }
        }
        let all = maps.iter().flat_map(UnitMap::keys).filter(|unit| *unit.application() == application);
        let expected = all.map(|unit| (unit.number(), (one.get(&unit), two.get(&unit), three.get(&unit))));
        prop_assert_eq!(told, expected.collect::<BTreeMap<_, _>>());
    }
}

#[test]
fn many_units_with_one_value_are_one_run() {
    let application: ApplicationName = "mysql".parse().unwrap();
    let mut map: UnitMap<u64> =
        (0..10_000).rev().map(|number| (UnitName::new(application.clone(), number), 1)).collect();
    map.insert(unit("mysql/10000"), 3);
    assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"mysql":[[0,9999,1],[10000,10000,3]]}"#);
    assert_eq!(map.len(), 10_001);
}

#[test]
fn the_earlier_spelling_is_read() {
    let map = read(r#"{"mysql/0": 12, "mysql/1": 12, "mysql/11": 0, "a/7": 1}"#).unwrap();
    assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":[[7,7,1]],"mysql":[[0,1,12],[11,11,0]]}"#);
}

#[test]
fn runs_that_make_no_map_are_refused() {
    for (json, reason) in [
        (r#"{"a": [[3, 2, 1]]}"#, "goes from 3 back to 2"),
        (r#"{"a": [[0, 2, 1], [2, 4, 2]]}"#, "from 2 must come behind that to 2"),
        (r#"{"a": [[0, 2, 1], [3, 4, 1]]}"#, "with a gap or another value"),
        (r#"{"a": []}"#, "must stand there once, and with units"),
        (r#"{"a": [[0, 0, 1]], "a": [[1, 1, 1]]}"#, "must stand there once"),
        (r#"{"a": [[0, 1048576, 1]]}"#, "a map has 1048577 units, at most 1048576 are allowed"),
        (r#"{"A": []}"#, "invalid application name"),
        (r#"{"a/x": 1}"#, "invalid unit name"),
    ] {
        let error = read(json).unwrap_err();
        assert!(error.contains(reason), "{json}: {error}");
    }
    assert_eq!(read(r#"{"a": [[0, 1048575, 1]]}"#).unwrap().len(), MAX_UNITS);
}
