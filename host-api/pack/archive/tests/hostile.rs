//! Archives with false claims, or that cannot be unpacked. Each is refused when it is opened, or at the latest when
//! the file with the false claim is read. Valid archives pass.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::{fs, io};

use periapt_archive::{ALLOWANCE, Archive, ArchiveReader, MAX_ENTRIES, UnpackError};
use proptest::prelude::*;
use tempfile::TempDir;

#[path = "hostile/raw.rs"]
mod raw;

use raw::{Around, Raw, STORED, zip, zip_with};

/// Returns the error of an archive, read from memory and from a file.
fn refused(archive: &[u8]) -> String {
    let error = Archive::read(archive).unwrap_err().to_string();
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("a.charm"), archive).unwrap();
    let file = fs::File::open(directory.path().join("a.charm")).unwrap();
    let of_file = ArchiveReader::open(file).map_err(UnpackError::from);
    let of_file = of_file.and_then(|reader| reader.unpack(&directory.path().join("files"))).unwrap_err();
    assert_eq!(of_file.to_string(), error);
    error
}

/// Returns the error of an archive that is refused before anything is unpacked.
fn refused_at_once(archive: &[u8]) -> String {
    let error = ArchiveReader::open(archive).unwrap_err().to_string();
    assert_eq!(refused(archive), error);
    error
}

/// Returns the files of a valid archive, also read from disk.
fn taken(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let read = Archive::read(archive).unwrap();
    let files: Vec<_> = read.files().map(|(path, content)| (path.to_owned(), content.to_vec())).collect();
    let directory = TempDir::new().unwrap();
    ArchiveReader::open(archive).unwrap().unpack(&directory.path().join("files")).unwrap();
    for (path, content) in &files {
        assert!(fs::read(directory.path().join("files").join(path)).unwrap() == *content, "{path}");
    }
    files
}

fn changed(entry: Raw, change: impl FnOnce(&mut Raw)) -> Vec<u8> {
    let mut entry = entry;
    change(&mut entry);
    zip(&[Raw::stored("first", b"1"), entry, Raw::stored("last", b"2")])
}

#[test]
fn what_any_program_writes_is_taken() {
    let entries = [
        Raw::stored("a", b"stored"),
        Raw::deflated("b/c", &b"deflated ".repeat(100)),
        Raw::deflated("b/d", &b"streamed ".repeat(100)).streamed(),
        Raw::deflated("b/e", b"streamed").streamed_unsigned(),
        Raw { mode: 0o040_755, ..Raw::stored("directory/", b"") },
        Raw { mode: 0o100_755, ..Raw::stored("nothing", b"") },
    ];
    let around = Around { comment: b"made by hand".to_vec(), ..Around::default() };
    let files = taken(&zip_with(&entries, &around));
    let paths: Vec<_> = files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["a", "b/c", "b/d", "b/e", "nothing"]);
    assert_eq!(taken(&zip(&[])), []);
}

#[test]
fn entries_that_share_their_bytes_are_refused() {
    let first = Raw::deflated("0", &[0; 54 << 10]);
    let mut entries = vec![first.clone()];
    for number in 1..9_900 {
        let mut entry = Raw { shares: true, ..first.clone() };
        entry.central.name = number.to_string().into_bytes();
        entries.push(entry);
    }
    let error = refused_at_once(&zip(&entries));
    assert!(
        error.ends_with("its bytes are another entry's, too") || error.contains("says otherwise"),
        "{error}"
    );
    // Each entry has a header of its own, and the outer entry's data overlap the inner entry.
    let inner = zip(&[Raw::stored("inner", b"content")]);
    let mut outer = Raw::stored("outer", b"");
    (outer.central.compressed, outer.central.size) = (20, 20);
    outer.local = outer.central.clone();
    let error = refused_at_once(&zip(&[outer, Raw::stored("inner", &inner)]));
    assert_eq!(error, "entry \"outer\": its bytes are another entry's, too");
}

#[test]
fn a_small_archive_that_unpacks_to_much_is_refused_before_it_is_unpacked() {
    let zeros = vec![0; 55_000];
    let entries: Vec<_> = (0..9_000).map(|number| Raw::deflated(&number.to_string(), &zeros)).collect();
    let error = refused_at_once(&zip(&entries));
    assert!(
        error.starts_with("the archive has ") && error.contains(" and unpacks to 516096000; at most "),
        "{error}"
    );
    // An archive whose size on disk comes from files and directories alone.
    let entries: Vec<_> =
        (0..MAX_ENTRIES / 2).map(|number| Raw::stored(&format!("{number}/f"), b"")).collect();
    assert!(refused_at_once(&zip(&entries)).contains(" and unpacks to 40960000; at most "));
    let entries: Vec<_> =
        (0..200).map(|number| Raw::stored(&format!("{number}/{}f", "d/".repeat(200)), b"")).collect();
    assert!(
        refused_at_once(&zip(&entries)).ends_with("the archive has more than 10000 files and directories")
    );
    // The largest content that every archive may have, in any compression.
    let large = vec![0; ALLOWANCE as usize];
    assert_eq!(taken(&zip(&[Raw::deflated("a", &large)])).len(), 1);
}

#[test]
fn a_file_that_unpacks_to_more_or_less_than_it_says_is_refused() {
    let content = b"0123456789".repeat(1000);
    for size in [0, 1, 9_999, 10_001, 1 << 20] {
        let archive = changed(Raw::deflated("a", &content), |entry| {
            entry.central.size = size;
            entry.local.size = size;
        });
        assert_eq!(refused(&archive), "entry \"a\" is broken: its size is wrong", "{size}");
    }
    let archive = changed(Raw::deflated("a", &content), |entry| {
        entry.central.crc ^= 1;
        entry.local.crc ^= 1;
    });
    assert_eq!(refused(&archive), "entry \"a\" is broken: its checksum is wrong");
    let archive = changed(Raw::deflated("a", &content), |entry| entry.data[3] ^= 0xff);
    assert!(refused(&archive).starts_with("entry \"a\" is broken: "));
}

#[test]
fn two_headers_that_differ_are_refused() {
    const OTHERWISE: &str = "entry \"a\": its own header says otherwise than the archive's directory";
    let entry = || Raw::deflated("a", b"content");
    let changes: [fn(&mut Raw); 6] = [
        |entry| entry.local.name = b"b".to_vec(),
        |entry| entry.local.method = STORED,
        |entry| entry.local.crc ^= 1,
        |entry| entry.local.size += 1,
        |entry| entry.local.flags |= 1,
        |entry| entry.local.flags |= raw::DESCRIPTOR,
    ];
    for change in changes {
        assert_eq!(refused_at_once(&changed(entry(), change)), OTHERWISE);
    }
    let archive = changed(entry().streamed(), |entry| entry.after[4] ^= 1);
    assert_eq!(
        refused_at_once(&archive),
        "entry \"a\": what follows it says otherwise than the archive's directory"
    );
    let archive = changed(entry().streamed_unsigned(), |entry| entry.after.clear());
    assert_eq!(refused_at_once(&archive), "entry \"a\": bytes that belong to no entry follow it");
}

#[test]
fn what_an_archive_hides_is_refused() {
    let entries = [Raw::stored("a", b"1"), Raw::stored("b", b"2")];
    let hidden = zip(&[Raw::stored("c", b"hidden")]);
    let around = |change: fn(&mut Around, Vec<u8>)| {
        let mut around = Around::default();
        change(&mut around, hidden.clone());
        refused_at_once(&zip_with(&entries, &around))
    };
    let error = around(|around, bytes| around.before = bytes);
    assert!(error.contains("bytes before its first entry belong to no entry"), "{error}");
    let error = around(|around, _| around.behind = b"more".to_vec());
    assert_eq!(error, "not a charm archive: data follows its end");
    let error = around(|around, _| around.between = b"PK\x05\x05\x02\0ab".to_vec());
    assert!(error.contains("something stands between its directory and its end"), "{error}");
    for more in [1, u16::MAX] {
        let error = refused_at_once(&zip_with(&entries, &Around { more, ..Around::default() }));
        assert!(error.contains("its directory has more or fewer entries than it says"), "{error}");
    }
    let archive = changed(Raw::stored("a", b"1"), |entry| entry.after = b"hidden".to_vec());
    assert_eq!(refused_at_once(&archive), "entry \"a\": bytes that belong to no entry follow it");
}

#[test]
fn what_a_charm_has_no_use_for_is_refused() {
    let central = |change: fn(&mut Raw)| {
        refused_at_once(&changed(Raw::stored("a", b"1"), |entry| {
            change(entry);
            entry.local = entry.central.clone();
        }))
    };
    assert_eq!(central(|entry| entry.central.flags = 1), "entry \"a\": it is encrypted");
    assert_eq!(central(|entry| entry.mode = 0o120_777), "entry \"a\": links are not taken");
    for mode in [0o060_644, 0o010_644, 0o140_644, 0o040_755] {
        let archive = changed(Raw::stored("a", b"1"), |entry| entry.mode = mode);
        assert!(refused_at_once(&archive).ends_with("its mode is not that of a file"), "{mode:o}");
    }
    assert!(central(|entry| entry.central.method = 12).ends_with("compressed otherwise than by deflate"));
    assert!(central(|entry| entry.central.size = 2).ends_with("it is not compressed, and has two sizes"));
    assert!(central(|entry| entry.central.name = b"\xff".to_vec()).ends_with("its name is not UTF-8"));
    let archive = zip(&[Raw::stored("a/", b"1")]);
    assert_eq!(refused_at_once(&archive), "entry \"a/\": it is a directory with content");
}

#[test]
fn names_that_cannot_be_unpacked_are_refused() {
    let two =
        |one: &str, other: &str| refused_at_once(&zip(&[Raw::stored(one, b""), Raw::stored(other, b"")]));
    assert_eq!(two("a", "a"), "entry \"a\": the archive has two entries of this name");
    assert_eq!(two("a", "a/b"), "entry \"a/b\": it lies below a file of the archive");
    assert_eq!(two("a/b", "a"), "entry \"a\": it is a file, and other entries lie below it");
    assert_eq!(
        two("charm.wasm", "charm.wasm/x"),
        "entry \"charm.wasm/x\": it lies below a file of the archive"
    );
    let error = two("a", &"n".repeat(300));
    assert!(error.ends_with("nnn...\": a part of its path is longer than 255 bytes"), "{error}");
    assert_eq!(taken(&zip(&[Raw::stored("A", b"1"), Raw::stored("a", b"2")])).len(), 2);
    assert_eq!(taken(&zip(&[Raw::stored(&"n".repeat(255), b"1")])).len(), 1);
}

#[test]
fn what_is_no_zip_is_refused_in_words() {
    let whole = zip(&[Raw::deflated("a", b"hello hello hello")]);
    for length in 0..whole.len() {
        refused_at_once(&whole[..length]);
    }
    let error = refused_at_once(b"no zip");
    assert_eq!(
        error,
        "not a charm archive: it has no zip directory at its end; it is no zip, or was cut off"
    );
}

#[test]
fn a_disk_that_takes_no_more_is_not_the_archives_fault() {
    let archive = zip(&[Raw::stored("a", b"1")]);
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("files"), "in the way").unwrap();
    let error =
        ArchiveReader::open(archive.as_slice()).unwrap().unpack(&directory.path().join("files")).unwrap_err();
    assert!(matches!(&error, UnpackError::Write { .. }), "{error}");
    // A file that was truncated after it was opened.
    let path = directory.path().join("a.charm");
    fs::write(&path, &archive).unwrap();
    let reader = ArchiveReader::open(fs::File::open(&path).unwrap()).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
    assert!(reader.read("a").is_err());
}

proptest! {
    #[test]
    fn whatever_is_changed_nothing_panics_and_what_is_taken_can_be_unpacked(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let entries = [
            Raw::stored("a/b", b"stored"),
            Raw::deflated("c", &b"deflated ".repeat(50)),
            Raw::deflated("d/e", &b"streamed ".repeat(50)).streamed(),
            Raw { mode: 0o040_755, ..Raw::stored("f/", b"") },
        ];
        let mut archive = zip(&entries);
        for (index, byte) in changes {
            let at = index.index(archive.len());
            archive[at] = byte;
        }
        if let Some(cut) = cut {
            archive.truncate(cut.index(archive.len()));
        }
        if let Ok(reader) = ArchiveReader::open(archive.as_slice()) {
            let directory = TempDir::new().unwrap();
            let written = reader.unpack(&directory.path().join("files"));
            prop_assert!(!matches!(written, Err(UnpackError::Write { .. })), "{written:?}");
            for path in reader.paths() {
                let _ = reader.copy(path, &mut io::sink());
            }
        }
    }
}
