//! Damaged databases: the store refuses them with one clear error, or reads them completely, never in part.

use std::{collections::BTreeMap, fs, path::Path};

use periapt_host_api::Revision;
use periapt_store::StoreError;

use crate::directory::{COMMITS, copy, database, file, files, read};

/// The distance of flipped bytes; a prime, so that the flips reach each place of a record or block.
const STRIDE: usize = 13;

fn stride() -> usize {
    match std::env::var_os("PERIAPT_EVERY_BYTE") {
        Some(_) => 1,
        None => STRIDE,
    }
}

#[tokio::test]
async fn a_flipped_byte_is_refused_or_does_no_harm() {
    let directory = database(COMMITS).await;
    let original = directory.path().join("store");
    let whole = read(copy(&original).path()).await.unwrap();
    let mut refused = BTreeMap::new();
    for file in files(&original) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = fs::read(&file).unwrap();
        for at in (0..bytes.len()).step_by(stride()) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x20;
            let copy = copy(&original);
            fs::write(copy.path().join(&name), flipped).unwrap();
            match read(copy.path()).await {
                Ok(content) => assert!(content == whole, "byte {at} of {name}: {content:?}"),
                Err(StoreError::Damaged(_)) => *refused.entry(name.clone()).or_insert(0) += 1,
                Err(other) => panic!("byte {at} of {name}: {other:?}"),
            }
        }
    }
    for kind in ["CURRENT", "MANIFEST-", ".sst", ".log"] {
        assert!(
            refused.keys().any(|name| name.starts_with(kind) || name.ends_with(kind)),
            "{kind}: {refused:?}"
        );
    }
}

/// The last record's length, in the log's last block, extends past the end of the file. Without a check of the
/// checksum, that looks like a torn write.
#[tokio::test]
async fn a_changed_length_does_not_make_commits_disappear() {
    let directory = database(COMMITS).await;
    let original = directory.path().join("store");
    let whole = read(copy(&original).path()).await.unwrap();
    for part in [".log", "MANIFEST-"] {
        let bytes = fs::read(file(&original, part)).unwrap();
        let mut refused = 0;
        // Changes the high byte of each length; some matches are other bytes, whose change does no harm.
        for at in 0..bytes.len() {
            if bytes[at] != 0 || bytes.get(at + 1) != Some(&1) {
                continue;
            }
            let copy = copy(&original);
            let mut longer = bytes.clone();
            longer[at] = 0x7f;
            fs::write(file(copy.path(), part), longer).unwrap();
            match read(copy.path()).await {
                Ok(content) => assert!(content == whole, "byte {at} of {part}"),
                Err(error) => {
                    assert!(matches!(error, StoreError::Damaged(_)), "byte {at} of {part}: {error:?}");
                    refused += usize::from(error.to_string().contains("a length at the end"));
                }
            }
        }
        assert!(refused > 0, "{part}");
    }
}

/// Damages a copy of a database, and expects two refusals in a row that name the directory and the damage.
async fn check_refused(what: &str, act: impl FnOnce(&Path)) {
    let directory = database(COMMITS).await;
    let copy = copy(&directory.path().join("store"));
    act(copy.path());
    for _ in 0..2 {
        let error = read(copy.path()).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged(_)), "{what}: {error:?}");
        let text = error.to_string();
        assert!(text.starts_with("the store is damaged: ") && !text.contains('\n'), "{what}: {text}");
        assert!(text.contains(copy.path().to_str().unwrap()), "{what}: {text}");
        assert!(text.ends_with("restore it from a backup"), "{what}: {text}");
    }
}

#[tokio::test]
async fn what_is_missing_is_not_taken_for_a_new_store() {
    for part in ["CURRENT", "MANIFEST-", ".sst"] {
        check_refused(part, |copy| fs::remove_file(file(copy, part)).unwrap()).await;
    }
}

#[tokio::test]
async fn what_is_cut_short_is_refused() {
    for part in ["CURRENT", "MANIFEST-", ".sst"] {
        check_refused(part, |copy| fs::write(file(copy, part), "").unwrap()).await;
    }
    check_refused("CURRENT names another", |copy| {
        fs::write(copy.join("CURRENT"), "MANIFEST-999999\n").unwrap()
    })
    .await;
}

#[tokio::test]
async fn a_torn_last_write_is_one_that_was_never_acknowledged() {
    let directory = database(COMMITS).await;
    let original = directory.path().join("store");
    let bytes = fs::read(file(&original, ".log")).unwrap();
    for missing in [1, 9, 40] {
        let copy = copy(&original);
        fs::write(file(copy.path(), ".log"), &bytes[..bytes.len() - missing]).unwrap();
        let truncated = read(copy.path()).await.unwrap();
        assert_eq!(truncated.loaded.revision, Revision(9), "all but the last of ten commits");
        assert_eq!(truncated.records.iter().map(|(_, records)| records.len()).sum::<usize>(), 18);
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_used_is_named() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    for place in [file.clone(), file.join("below")] {
        let error = read(&place).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        let text = error.to_string();
        assert!(
            text.starts_with("the store cannot be opened: ") && text.contains(file.to_str().unwrap()),
            "{text}"
        );
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was made beside it");
}
