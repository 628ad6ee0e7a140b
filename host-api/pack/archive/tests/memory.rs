//! The memory that reading an archive takes. The only test of its binary, so that no other test's memory counts.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::{fs, io::Write as _};

use periapt_archive::{ArchiveReader, inspect};
use tempfile::TempDir;

#[path = "hostile/raw.rs"]
mod raw;

use raw::{Raw, zip};

const METADATA: &[u8] = b"name: c\nsummary: s\ndescription: d\n";

/// Returns the most memory that this process has had since [`forget_peak`], in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

fn forget_peak() {
    fs::File::options().write(true).open("/proc/self/clear_refs").unwrap().write_all(b"5").unwrap();
}

/// Returns the growth of peak memory during some work, in bytes.
fn grows_by(work: impl FnOnce()) -> u64 {
    forget_peak();
    let before = peak();
    work();
    peak() - before
}

/// Returns bytes that deflate makes ten times smaller.
fn compressible(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let mut content = Vec::with_capacity(length);
    while content.len() < length {
        let piece: [u8; 16] = std::array::from_fn(|_| next());
        content.extend(piece.repeat(16));
    }
    content.truncate(length);
    content
}

#[test]
fn an_archive_is_read_without_being_held() {
    // Ten times the allowed size.
    let piece = Raw::deflated("", &compressible(8 << 20));
    let mut entries: Vec<_> = (0..40)
        .map(|number| {
            let mut entry = piece.clone();
            entry.central.name = format!("files/{number}").into_bytes();
            entry.local.name.clone_from(&entry.central.name);
            entry
        })
        .collect();
    entries.push(Raw::stored("charmcraft.yaml", METADATA));
    // An invalid component: its error comes after everything was read.
    entries.push(Raw::stored("charm.wasm", b"\0asm\x0d\0\x01\0"));
    let archive = zip(&entries);
    drop((entries, piece));
    let most = 32 << 20;
    let grown = grows_by(|| {
        let error = inspect(&archive).unwrap_err().to_string();
        assert!(error.starts_with("charm.wasm: "), "{error}");
    });
    assert!(grown < most, "inspecting takes {grown} bytes");

    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.charm");
    fs::write(&path, &archive).unwrap();
    drop(archive);
    let grown = grows_by(|| {
        let reader = ArchiveReader::open(fs::File::open(&path).unwrap()).unwrap();
        reader.unpack(&directory.path().join("files")).unwrap();
    });
    assert!(grown < most, "unpacking takes {grown} bytes");
    let last = fs::metadata(directory.path().join("files/files/39")).unwrap();
    assert_eq!(last.len(), 8 << 20);
}
