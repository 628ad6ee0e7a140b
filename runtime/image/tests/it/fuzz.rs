//! Properties: whatever becomes of an image, it is read or refused, and what is unpacked lies below its directory.
//!
//! `fuzz/` beside this directory holds the same targets for longer runs with coverage.

#[path = "../../fuzz/seeds.rs"]
mod made_seeds;
#[path = "../../fuzz/target.rs"]
mod target;

use std::{fs, path::Path, sync::LazyLock};

use proptest::{prelude::*, sample::Index, sample::select};

use crate::made::{Entry, entry, pax, tar};

/// One change of some bytes.
#[derive(Debug, Clone)]
enum Change {
    Flip(Index, u8),
    Write(Index, Vec<u8>),
    Insert(Index, Vec<u8>),
    Cut(Index, usize),
    Repeat(Index, usize, Index),
    End(Index),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = || any::<Index>();
    let bytes = || {
        prop_oneof![
            Just(vec![0xff; 8]),
            Just(vec![0; 512]),
            Just(b"7777777777\0".to_vec()),
            Just(b"../".to_vec()),
            Just(b".wh.".to_vec()),
            prop::collection::vec(any::<u8>(), 1..16),
        ]
    };
    let change = prop_oneof![
        4 => (at(), 1..=u8::MAX).prop_map(|(at, bits)| Change::Flip(at, bits)),
        3 => (at(), bytes()).prop_map(|(at, bytes)| Change::Write(at, bytes)),
        2 => (at(), bytes()).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (at(), 1..1024_usize).prop_map(|(at, length)| Change::Cut(at, length)),
        2 => (at(), 1..1024_usize, at()).prop_map(|(at, length, to)| Change::Repeat(at, length, to)),
        1 => at().prop_map(Change::End),
    ];
    prop::collection::vec(change, 1..6)
}

fn changed(original: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for change in changes {
        let length = bytes.len();
        if length == 0 {
            break;
        }
        let span = |at: &Index, most: usize| {
            let from = at.index(length);
            from..from.saturating_add(most).min(length)
        };
        match change {
            Change::Flip(at, bits) => bytes[at.index(length)] ^= bits,
            Change::Write(at, new) => {
                let span = span(at, new.len());
                bytes.splice(span, new.iter().copied());
            }
            Change::Insert(at, new) => drop(bytes.splice(span(at, 0), new.iter().copied())),
            Change::Cut(at, most) => drop(bytes.drain(span(at, *most))),
            Change::Repeat(at, most, to) => {
                let piece = bytes[span(at, *most)].to_vec();
                let to = to.index(length);
                bytes.splice(to..to, piece);
            }
            Change::End(at) => bytes.truncate(at.index(length)),
        }
    }
    bytes
}

/// An entry of any kind under names that meet each other.
fn any_entry() -> impl Strategy<Value = Vec<Entry>> {
    let paths = vec![
        "a",
        "b",
        "a/b",
        "a/b/c",
        "./a",
        "/a",
        "a/",
        "..",
        "a/../b",
        "../x",
        ".wh.a",
        "a/.wh.b",
        ".wh..wh..opq",
        "a/.wh..wh..opq",
        ".wh...",
        "",
        ".",
        "a//b",
        "\u{e4}",
        "a\u{7}",
    ];
    let targets = vec!["a", "b", "..", "../../x", "/", "/tmp", "a/b", ".", "", "/proc/self/root/tmp"];
    let kinds =
        vec![b'0', b'0', b'0', b'1', b'1', b'2', b'2', b'3', b'4', b'5', b'5', b'6', b'7', 0, b'S', b'Z'];
    let one = (
        select(paths.clone()),
        select(targets.clone()),
        select(kinds),
        select(vec!["", "", "x", "content"]),
        0..0o10000_u32,
    )
        .prop_map(|(path, target, kind, content, mode)| {
            let content = if matches!(kind, b'0' | b'7' | 0) { content } else { "" };
            vec![Entry { mode, link: target.into(), content: content.into(), ..entry(path, kind) }]
        });
    let long = (select(paths), select(targets)).prop_map(|(path, target)| {
        vec![pax(&[("path", path), ("linkpath", target)]), Entry { link: b"x".to_vec(), ..entry("x", b'2') }]
    });
    prop_oneof![6 => one, 1 => long]
}

/// Returns the seeds of a target: those that are made, and those in files.
fn seeds(target: &str, made: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    made.into_iter().chain(paths.into_iter().map(|path| fs::read(path).unwrap())).collect()
}

static DOCUMENTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| seeds("documents", made_seeds::documents()));
static ARCHIVES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| seeds("archive", made_seeds::archive()));
static LAYERS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| seeds("layers", made_seeds::layers()));

/// Returns what changes make of one of some seeds.
fn changed_seed(seeds: &[Vec<u8>], seed: Index, changes: &[Change]) -> Vec<u8> {
    changed(&seeds[seed.index(seeds.len())], changes)
}

#[test]
fn each_seed_that_is_made_is_an_image() {
    for (number, seed) in made_seeds::documents().iter().enumerate() {
        assert!(target::documents(seed), "document {number}");
    }
    for (number, seed) in made_seeds::archive().iter().enumerate() {
        assert!(target::archive(seed), "archive {number}");
    }
    for (number, seed) in made_seeds::layers().iter().enumerate() {
        assert!(target::layers(seed), "layers {number}");
    }
}

#[test]
fn each_seed_in_a_file_is_read_or_refused() {
    assert!(DOCUMENTS.len() > made_seeds::documents().len(), "there is none");
    for seed in DOCUMENTS.iter() {
        target::documents(seed);
    }
    for seed in ARCHIVES.iter() {
        target::archive(seed);
    }
    for seed in LAYERS.iter() {
        target::layers(seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_becomes_of_a_document_is_read_or_refused((seed, changes) in (any::<Index>(), changes())) {
        target::documents(&changed_seed(&DOCUMENTS, seed, &changes));
    }

    #[test]
    fn whatever_becomes_of_an_archive_is_read_or_refused((seed, changes) in (any::<Index>(), changes())) {
        target::archive(&changed_seed(&ARCHIVES, seed, &changes));
    }

    #[test]
    fn whatever_becomes_of_layers_is_unpacked_or_refused_and_leaves_nothing_else(
        (seed, changes) in (any::<Index>(), changes()),
    ) {
        target::layers(&changed_seed(&LAYERS, seed, &changes));
    }

    #[test]
    fn entries_of_any_kind_under_any_names_stay_below_their_directory(
        layers in prop::collection::vec(prop::collection::vec(any_entry(), 0..6), 1..4),
    ) {
        let layers: Vec<Vec<u8>> = layers.into_iter().map(|entries| tar(&entries.concat())).collect();
        target::layers(&layers.join(target::BETWEEN));
    }
}
