//! Properties of the reader of untrusted charms: any bytes are a charm or refused. Nothing panics, not even behind
//! the guard that would turn a panic into a refusal.
//!
//! `fuzz/` beside this directory holds the same target for longer runs with coverage.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]
#![expect(clippy::indexing_slicing, reason = "a test that finds nothing where something belongs has failed")]

mod changes;
mod components;
#[path = "../../fuzz/target.rs"]
mod target;

use std::{fs, path::Path, sync::LazyLock};

use proptest::{prelude::*, sample::select};

use changes::{changed, changes};
use components::component;
use target::read;

/// The seeds of the changes, by file name.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/read");
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
});

#[test]
fn each_seed_is_read_and_one_of_them_is_a_charm() {
    let charms: Vec<bool> = SEEDS.iter().map(|seed| read(seed)).collect();
    assert!(charms.len() >= 10, "{} seeds", charms.len());
    assert!(charms.contains(&true) && charms.contains(&false), "{charms:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_becomes_of_a_seed_is_read_or_refused(
        (seed, changes) in (any::<prop::sample::Index>(), changes()),
    ) {
        read(&changed(&SEEDS[seed.index(SEEDS.len())], &changes));
    }

    #[test]
    fn bytes_of_any_kind_are_refused(
        start in select(vec![b"".as_slice(), b"PK\x03\x04", b"\0asm\x0d\0\x01\0", b"\0asm\x01\0\0\0"]),
        bytes in prop::collection::vec(any::<u8>(), 0..512),
    ) {
        read(&[start, &bytes].concat());
    }

    #[test]
    fn a_component_of_any_items_under_any_names_is_read_or_refused(text in component()) {
        if let Ok(binary) = wat::parse_str(&text) {
            read(&binary);
        }
    }
}
