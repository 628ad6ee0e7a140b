//! Compiled components on disk: the sandbox maps only those that the keeper ordered.

use std::{
    fs,
    io::Write as _,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
};

use periapt_host_api::{Digest, event::Event};
use periapt_sandbox::{ArtifactError, ArtifactId, ArtifactKey, HandlerOutcome, SealedArtifact, artifact};
use tempfile::TempDir;

use crate::world::{Hook, SANDBOX, component};

struct StoredArtifact {
    directory: TempDir,
    id: ArtifactId,
    key: ArtifactKey,
}

impl StoredArtifact {
    fn new() -> Self {
        let bytes = component("probe");
        let directory = tempfile::tempdir().unwrap();
        let id = ArtifactId { component: Digest::of(&bytes), engine: SANDBOX.compatibility_hash() };
        let key = ArtifactKey::new(&[9; 32]);
        artifact::write(directory.path(), &id, &key, &SANDBOX.compile(&bytes).unwrap()).unwrap();
        Self { directory, id, key }
    }

    fn open(&self) -> Result<SealedArtifact, ArtifactError> {
        artifact::open(self.directory.path(), &self.id, &self.key)
    }

    fn load(&self) -> Result<(), ArtifactError> {
        SANDBOX.load(&self.open()?, &[]).map(drop)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.directory.path().join(self.id.file_name());
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    }
}

#[tokio::test]
async fn what_was_written_is_loaded_and_runs() {
    let stored = StoredArtifact::new();
    let loaded = SANDBOX.load(&stored.open().unwrap(), &[]).unwrap();
    let prepared = SANDBOX.prepare(&loaded, None).unwrap();
    let ran = Hook::new(Event::Install).run(&prepared, "probe").await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
}

#[tokio::test]
async fn what_was_checked_is_what_is_mapped_whatever_becomes_of_the_file() {
    let stored = StoredArtifact::new();
    let sealed = stored.open().unwrap();
    stored.change(|bytes| bytes.fill(0));
    let prepared = SANDBOX.prepare(&SANDBOX.load(&sealed, &[]).unwrap(), None).unwrap();
    let ran = Hook::new(Event::Install).run(&prepared, "probe").await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
    assert!(matches!(stored.open(), Err(ArtifactError::Forged)));
}

#[test]
fn checked_code_cannot_be_changed_by_its_holders() {
    let sealed = StoredArtifact::new().open().unwrap();
    let descriptor = || sealed.as_fd().try_clone_to_owned().unwrap();
    let mut file = fs::File::from(descriptor());
    assert_eq!(file.write(b"x").unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    assert_eq!(file.set_len(0).unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    assert_eq!(file.set_len(1 << 30).unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    // A new descriptor of the same memory gives no write access either.
    let path = format!("/proc/self/fd/{}", sealed.as_fd().as_raw_fd());
    let mut again = fs::File::options().write(true).open(path).unwrap();
    assert_eq!(again.write(b"x").unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    SANDBOX.load(&received(descriptor()).unwrap(), &[]).unwrap();
}

#[test]
fn code_that_could_still_be_changed_is_not_taken() {
    let file = tempfile::tempfile().unwrap();
    assert!(matches!(received(file.into()), Err(ArtifactError::NotSealed)));
}

#[expect(unsafe_code, reason = "the descriptors are this test's own")]
fn received(descriptor: OwnedFd) -> Result<SealedArtifact, ArtifactError> {
    // SAFETY: this process has checked the memory that it maps.
    unsafe { SealedArtifact::received(descriptor) }
}

#[test]
fn nothing_but_the_file_itself_is_left_in_the_directory() {
    let stored = StoredArtifact::new();
    let names: Vec<_> =
        fs::read_dir(stored.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [stored.id.file_name().as_str()]);
}

#[test]
fn what_was_never_compiled_is_missing() {
    let mut stored = StoredArtifact::new();
    stored.id.component = Digest::of(b"other");
    assert!(matches!(stored.load(), Err(ArtifactError::Missing)));
}

#[test]
fn a_change_of_any_part_is_forgery() {
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, Change); 7] = [
        ("first byte", |bytes| bytes[0] ^= 1),
        ("middle", |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }),
        ("mac", |bytes| {
            let at = bytes.len() - 20;
            bytes[at] ^= 1;
        }),
        ("magic", |bytes| *bytes.last_mut().unwrap() ^= 1),
        ("one byte less", |bytes| bytes.truncate(bytes.len() - 1)),
        ("one byte more", |bytes| bytes.push(0)),
        ("nothing left", Vec::clear),
    ];
    for (name, change) in changes {
        let stored = StoredArtifact::new();
        stored.change(change);
        assert!(matches!(stored.load(), Err(ArtifactError::Forged)), "{name}");
    }
}

#[test]
fn another_key_is_forgery() {
    let mut stored = StoredArtifact::new();
    stored.key = ArtifactKey::new(&[8; 32]);
    assert!(matches!(stored.load(), Err(ArtifactError::Forged)));
}

#[test]
fn the_code_of_another_component_is_forgery() {
    let stored = StoredArtifact::new();
    let other = ArtifactId { component: Digest::of(b"other"), ..stored.id };
    let from = stored.directory.path().join(stored.id.file_name());
    fs::copy(from, stored.directory.path().join(other.file_name())).unwrap();
    let opened = artifact::open(stored.directory.path(), &other, &stored.key);
    assert!(matches!(opened, Err(ArtifactError::Forged)));
}
