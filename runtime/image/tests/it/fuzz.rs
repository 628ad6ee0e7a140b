//! Properties: whatever becomes of an image, it is read or refused, and what is unpacked lies below its directory.

use std::fs;

use periapt_host_api::Digest;
use periapt_image::{ImageChoice, ImageLimits, ImageSource, LayerCache};
use proptest::{prelude::*, sample::Index, sample::select};

use crate::made::{
    Entry, directory, entry, file, gzip_layer, hard_link, image, layer, link, members, pax, tar, unpacked,
    work, zstd_layer,
};

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

fn seeds() -> Vec<Vec<u8>> {
    let plain = tar(&[
        directory("bin/"),
        file("bin/a", "program"),
        hard_link("bin/b", "bin/a"),
        link("sbin", "bin"),
        pax(&[("path", "long/path"), ("mtime", "1.5"), ("SCHILY.xattr.user.x", "y")]),
        file("x", "content"),
        entry("dev", b'3'),
        file("etc/.wh.y", ""),
        file("srv/.wh..wh..opq", ""),
    ]);
    let made = image(&[gzip_layer(&plain), zstd_layer(&plain)]);
    let docker = image(&[crate::made::raw_layer(plain)]).docker("x:1");
    vec![tar(&members(&made.files())), tar(&docker)]
}

fn limits() -> ImageLimits {
    ImageLimits { unpacked: 16 << 20, entries: 1000, ..ImageLimits::default() }
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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn whatever_becomes_of_an_archive_is_read_or_refused(
        (seed, changes) in (any::<Index>(), changes()),
    ) {
        let seeds = seeds();
        let work = work();
        let path = work.path("image.tar");
        fs::write(&path, changed(&seeds[seed.index(seeds.len())], &changes)).unwrap();
        let read = ImageSource::open(&path, &limits())
            .and_then(|file| { let image = file.choose(&ImageChoice::default())?; file.inspect(&image) });
        if let Err(error) = read {
            prop_assert!(!error.is_of_host(), "{}", error);
            prop_assert!(error.to_string().len() < 1000 && !error.to_string().contains('\n'), "{}", error);
        }
    }

    #[test]
    fn whatever_becomes_of_a_layer_is_unpacked_or_refused_and_leaves_nothing_else(changes in changes()) {
        let plain = tar(&[directory("a"), file("a/b", "x"), hard_link("c", "a/b"), link("d", "/"), file("e/.wh.f", "")]);
        let changed = changed(&plain, &changes);
        let work = work();
        let made = crate::made::Layer { diff_id: Digest::of(&changed), ..crate::made::raw_layer(changed) };
        if let Err(error) = unpacked(&work, &image(&[made]).files(), &limits()) {
            prop_assert!(!error.is_of_host(), "{}", error);
        }
        prop_assert_eq!(entries_beside(&work), ["cache", "layout"]);
    }

    #[test]
    fn entries_of_any_kind_under_any_names_stay_below_their_directory(
        layers in prop::collection::vec(prop::collection::vec(any_entry(), 0..6), 1..4),
    ) {
        let work = work();
        let layers: Vec<_> = layers.into_iter().map(|entries| layer(&entries.concat())).collect();
        match unpacked(&work, &image(&layers).files(), &limits()) {
            Err(error) => prop_assert!(!error.is_of_host(), "{}", error),
            Ok(unpacked) => {
                prop_assert!(unpacked.merged.is_whole());
                unpacked.assemble(&work.path("root")).unwrap();
                fs::remove_dir_all(work.path("root")).unwrap();
            }
        }
        prop_assert_eq!(entries_beside(&work), ["cache", "layout"]);
    }
}

fn entries_beside(work: &crate::made::Work) -> Vec<String> {
    let entries = fs::read_dir(work.0.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn each_seed_is_an_image() {
    let work = work();
    for (number, seed) in seeds().into_iter().enumerate() {
        let path = work.path("image.tar");
        fs::write(&path, seed).unwrap();
        let file = ImageSource::open(&path, &limits()).unwrap();
        let image = file.choose(&ImageChoice::default()).unwrap();
        let cache = LayerCache::open(&work.path(&format!("cache-{number}"))).unwrap();
        assert!(cache.unpack(&file, &image).is_ok());
    }
}
