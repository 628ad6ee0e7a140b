//! Compiled components on disk: only what the keeper had made is ever mapped.

use std::fs;

use periapt_host_api::{CharmDigest, event::Event};
use periapt_sandbox::{ArtifactError, ArtifactId, ArtifactKey, Outcome, artifact};
use tempfile::TempDir;

use crate::world::{Hook, SANDBOX, component};

struct Kept {
    directory: TempDir,
    id: ArtifactId,
    key: ArtifactKey,
}

impl Kept {
    fn new() -> Self {
        let bytes = component("probe");
        let directory = tempfile::tempdir().unwrap();
        let id = ArtifactId { component: CharmDigest::of(&bytes), engine: SANDBOX.compatibility_hash() };
        let key = ArtifactKey::new(&[9; 32]);
        artifact::write(directory.path(), &id, &key, &SANDBOX.compile(&bytes).unwrap()).unwrap();
        Self { directory, id, key }
    }

    fn load(&self) -> Result<(), ArtifactError> {
        SANDBOX.load(self.directory.path(), &self.id, &self.key).map(drop)
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
    let kept = Kept::new();
    let loaded = SANDBOX.load(kept.directory.path(), &kept.id, &kept.key).unwrap();
    let prepared = SANDBOX.prepare(&loaded, None).unwrap();
    let ran = Hook::new(Event::Install).run(&prepared, "probe").await;
    assert_eq!(ran.report.outcome, Outcome::Handled);
}

#[test]
fn nothing_but_the_file_itself_is_left_in_the_directory() {
    let kept = Kept::new();
    let names: Vec<_> =
        fs::read_dir(kept.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [kept.id.file_name().as_str()]);
}

#[test]
fn what_was_never_compiled_is_missing() {
    let mut kept = Kept::new();
    kept.id.component = CharmDigest::of(b"other");
    assert!(matches!(kept.load(), Err(ArtifactError::Missing)));
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
        let kept = Kept::new();
        kept.change(change);
        assert!(matches!(kept.load(), Err(ArtifactError::Forged)), "{name}");
    }
}

#[test]
fn another_key_is_forgery() {
    let mut kept = Kept::new();
    kept.key = ArtifactKey::new(&[8; 32]);
    assert!(matches!(kept.load(), Err(ArtifactError::Forged)));
}

#[test]
fn the_code_of_another_component_is_forgery() {
    let kept = Kept::new();
    let other = ArtifactId { component: CharmDigest::of(b"other"), ..kept.id };
    let from = kept.directory.path().join(kept.id.file_name());
    fs::copy(from, kept.directory.path().join(other.file_name())).unwrap();
    let loaded = SANDBOX.load(kept.directory.path(), &other, &kept.key);
    assert!(matches!(loaded, Err(ArtifactError::Forged)));
}
