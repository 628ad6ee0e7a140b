//! Tests of storage as hooks use it, and of changes by the host.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, chown, symlink},
    sync::Arc,
    thread,
    time::Duration,
};

use periapt_host_api::Timestamp;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};

use super::{
    super::{CharmFiles, Files, listing::Gathering, stream::Source},
    *,
};
use crate::{clock::HookClock, meter::Meter};

const MAKE: OpenFlags = OpenFlags::CREATE;
const WRITE: DescriptorFlags = DescriptorFlags::WRITE;

fn bounds(blocks: u64, files: u64) -> Bounds {
    Bounds { bytes: blocks * BLOCK, files }
}

struct Bench {
    outside: tempfile::TempDir,
    filesystem: Arc<Filesystem>,
}

impl Bench {
    fn new(bounds: Bounds) -> Self {
        let outside = tempfile::tempdir().unwrap();
        let inside = outside.path().join("data-0");
        fs::create_dir(&inside).unwrap();
        fs::write(outside.path().join("secret"), "of the host").unwrap();
        Self { filesystem: Arc::new(Filesystem::open(&inside, bounds).unwrap()), outside }
    }

    fn inside(&self) -> std::path::PathBuf {
        self.outside.path().join("data-0")
    }

    /// Returns the files of a hook and the handle of its storage.
    fn hook(&self, read_only: bool) -> (Files, u32) {
        let clock = Arc::new(HookClock::new(Timestamp::from_second(1_000).unwrap(), 0));
        let location = "/srv/data".to_owned();
        let mount = StorageMount { filesystem: Arc::clone(&self.filesystem), location, read_only };
        let mut files = Files::new(CharmFiles::none(), 0, 0, clock).with_storage(vec![mount]);
        let directories = files.preopened().unwrap();
        assert_eq!(directories[2].1, "/srv/data");
        let root = directories[2].0;
        (files, root)
    }

    fn write(&self, name: &str, bytes: usize) -> Result<(), ErrorCode> {
        let (mut files, root) = self.hook(false);
        let file = files.open_at(root, name, MAKE, WRITE)?;
        files.writable(file)?.write(0, &vec![7; bytes], Duration::ZERO)
    }
}

/// Returns the names in a directory, in the order of its listing.
fn names(files: &Files, directory: u32) -> Vec<String> {
    let gathering = Gathering::new(&Arc::new(Meter::new(0)), u64::MAX);
    let listing = files.stored(directory).unwrap().unwrap().list(gathering).unwrap();
    listing.map(|(_, name)| name.to_string()).collect()
}

#[test]
fn what_one_hook_writes_the_next_one_reads() {
    let bench = Bench::new(bounds(10, 10));
    bench.write("note", 3).unwrap();
    let (mut files, root) = bench.hook(true);
    let file = files.open_at(root, "note", OpenFlags::empty(), DescriptorFlags::READ).unwrap();
    assert_eq!(files.readable(file).unwrap().read(1, 100).unwrap(), [7, 7]);
    assert_eq!(files.open_at(root, "note", OpenFlags::empty(), WRITE), Err(ErrorCode::ReadOnly));
    assert_eq!(files.open_at(root, "new", MAKE, DescriptorFlags::READ), Err(ErrorCode::ReadOnly));
    assert_eq!(files.unlink(root, "note"), Err(ErrorCode::ReadOnly));
    assert_eq!(files.rename((root, "note"), (root, "x")), Err(ErrorCode::ReadOnly));
    assert_eq!(files.create_directory(root, "x"), Err(ErrorCode::ReadOnly));
}

#[test]
fn bytes_are_counted_in_blocks_and_holes_count_as_bytes() {
    let bench = Bench::new(bounds(4, 100));
    assert_eq!(bench.write("big", 3 * 4096 + 1), Err(ErrorCode::InsufficientSpace));
    assert_eq!(
        bench.filesystem.used(),
        Used { bytes: BLOCK, files: 1 },
        "the name is there, its bytes are not"
    );
    let (mut files, root) = bench.hook(false);
    let file = files.open_at(root, "big", OpenFlags::empty(), WRITE).unwrap();
    assert_eq!(
        files.writable(file).unwrap().resize(1 << 40, Duration::ZERO),
        Err(ErrorCode::InsufficientSpace)
    );
    assert_eq!(
        files.writable(file).unwrap().write(1 << 40, b"x", Duration::ZERO),
        Err(ErrorCode::InsufficientSpace)
    );
    assert_eq!(
        files.writable(file).unwrap().write(u64::MAX, b"x", Duration::ZERO),
        Err(ErrorCode::FileTooLarge)
    );
    files.writable(file).unwrap().resize(3 * 4096, Duration::ZERO).unwrap();
    assert_eq!(bench.write("other", 0), Err(ErrorCode::InsufficientSpace));
    files.writable(file).unwrap().resize(1, Duration::ZERO).unwrap();
    bench.write("other", 1).unwrap();
    assert_eq!(bench.filesystem.used().bytes, 4 * BLOCK);
}

#[test]
fn writing_nothing_far_behind_the_end_takes_nothing() {
    let bench = Bench::new(bounds(4, 100));
    let (mut files, root) = bench.hook(false);
    let file = files.open_at(root, "a", MAKE, WRITE).unwrap();
    files.writable(file).unwrap().write(2 * 4096, b"", Duration::ZERO).unwrap();
    let Source::Stored(stored) = files.writable(file).unwrap() else { panic!("it is in storage") };
    stored.write(2 * 4096, b"", Duration::ZERO).unwrap();
    assert_eq!(bench.filesystem.used(), Used { bytes: BLOCK, files: 1 });
    assert_eq!(stored.size(), Ok(0));
}

#[test]
fn names_are_counted_and_a_file_without_a_name_counts_until_it_is_closed() {
    let bench = Bench::new(bounds(100, 3));
    let (mut files, root) = bench.hook(false);
    let file = files.open_at(root, "a", MAKE, WRITE).unwrap();
    files.writable(file).unwrap().write(0, &[7; 5000], Duration::ZERO).unwrap();
    files.create_directory(root, "d").unwrap();
    files.create_directory(root, "d/e").unwrap();
    assert_eq!(files.create_directory(root, "f"), Err(ErrorCode::InsufficientSpace));
    assert_eq!(files.open_at(root, "f", MAKE, WRITE), Err(ErrorCode::InsufficientSpace));
    files.unlink(root, "a").unwrap();
    assert_eq!(files.create_directory(root, "f"), Err(ErrorCode::InsufficientSpace));
    files.close(file);
    files.create_directory(root, "f").unwrap();
    files.rename((root, "f"), (root, "d/e")).unwrap();
    assert_eq!(bench.filesystem.used(), Used { bytes: 2 * BLOCK, files: 2 });
}

#[test]
fn what_is_counted_again_is_what_was_counted() {
    let bench = Bench::new(bounds(1_000, 1_000));
    let (mut files, root) = bench.hook(false);
    for name in ["a", "b", "c"] {
        files.create_directory(root, name).unwrap();
        let path = format!("{name}/file");
        let file = files.open_at(root, &path, MAKE, WRITE).unwrap();
        files.writable(file).unwrap().write(9_000, b"x", Duration::ZERO).unwrap();
        files.close(file);
    }
    files.rename((root, "a/file"), (root, "b/file")).unwrap();
    files.unlink(root, "c/file").unwrap();
    let used = bench.filesystem.used();
    let place = bench.inside();
    drop((files, bench.filesystem));
    let again = Filesystem::open(&place, bounds(1, 1)).unwrap();
    assert_eq!(again.used(), used);
    assert_eq!(used.files, 4);
}

#[test]
fn no_path_and_no_link_leads_out() {
    let bench = Bench::new(bounds(100, 100));
    symlink(bench.outside.path().join("secret"), bench.inside().join("file-link")).unwrap();
    symlink(bench.outside.path(), bench.inside().join("directory-link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, bench.inside().join("pipe"), Mode::RWXU).unwrap();
    let (mut files, root) = bench.hook(false);
    files.create_directory(root, "a").unwrap();
    let inner = files.open_at(root, "a", OpenFlags::DIRECTORY, DescriptorFlags::READ).unwrap();
    for path in [
        "..",
        "../secret",
        "a/../../secret",
        "/etc/passwd",
        "file-link",
        "directory-link/secret",
        "pipe",
        "a/../..",
    ] {
        for how in [OpenFlags::empty(), MAKE, OpenFlags::DIRECTORY, OpenFlags::TRUNCATE] {
            let opened = files.open_at(root, path, how, WRITE);
            assert!(
                matches!(
                    opened,
                    Err(ErrorCode::NotPermitted | ErrorCode::NotDirectory | ErrorCode::IsDirectory)
                ),
                "{path} {how:?}: {opened:?}"
            );
        }
        let inner_path = format!("../{path}");
        assert!(
            files.open_at(inner, &inner_path, OpenFlags::empty(), DescriptorFlags::READ).is_err(),
            "{path}"
        );
        assert!(files.create_directory(root, &format!("{path}/x")).is_err(), "{path}");
    }
    assert!(files.rename((root, "a"), (root, "../a")).is_err());
    assert!(files.rename((root, "file-link"), (root, "directory-link/x")).is_err());
    assert_eq!(files.open_at(root, "a\0b", MAKE, WRITE), Err(ErrorCode::Invalid));
    assert_eq!(files.open_at(root, &"x".repeat(256), MAKE, WRITE), Err(ErrorCode::NameTooLong));
    assert_eq!(names(&files, root), ["a"], "what no hook made is not shown");
    assert_eq!(fs::read(bench.outside.path().join("secret")).unwrap(), b"of the host");
}

#[test]
fn a_directory_of_any_depth_is_counted_and_deleted() {
    const DEPTH: u64 = 1_200;
    let bench = Bench::new(bounds(1 << 20, 1 << 20));
    let (mut files, root) = bench.hook(false);
    let mut here = root;
    for _ in 0..DEPTH {
        files.create_directory(here, "d").unwrap();
        let next = files.open_at(here, "d", OpenFlags::DIRECTORY, DescriptorFlags::READ).unwrap();
        if here != root {
            files.close(here);
        }
        here = next;
    }
    let place = bench.inside();
    drop((files, bench.filesystem));
    let again = Filesystem::open(&place, bounds(1, 1)).unwrap();
    assert_eq!(again.used().files, DEPTH);
    assert!(matches!(Filesystem::delete(&place), Err(FilesystemError::InUse)));
    drop(again);
    Filesystem::delete(&place).unwrap();
    assert!(!place.exists());
    Filesystem::delete(&place).unwrap();
}

#[test]
fn times_are_the_hooks_and_listings_are_sorted() {
    let bench = Bench::new(bounds(100, 100));
    for name in ["b", "a", "c"] {
        let (mut files, root) = bench.hook(false);
        let file = files.open_at(root, name, MAKE, WRITE).unwrap();
        files.writable(file).unwrap().write(0, b"x", Duration::from_secs(2_000)).unwrap();
    }
    let (mut files, root) = bench.hook(false);
    assert_eq!(names(&files, root), ["a", "b", "c"]);
    let file = files.open_at(root, "a", OpenFlags::empty(), DescriptorFlags::READ).unwrap();
    assert_eq!(files.readable(file).unwrap().read(0, 1).unwrap(), b"x");
    let stat = files.stat_handle(file).unwrap();
    assert_eq!(stat.data_modification_timestamp.unwrap().seconds, 2_000);
    assert_eq!(stat.data_access_timestamp.unwrap().seconds, 1_000, "of its making: reading changes no time");
    assert_eq!(files.stat_handle(root).unwrap().data_modification_timestamp.unwrap().seconds, 1_000);
}

#[test]
fn directories_of_others_are_told_by_who_has_no_rights_over_them() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root gives files to another user");
        return;
    }
    let bench = Bench::new(bounds(100, 100));
    let own = bench.inside().join("own");
    fs::DirBuilder::new().mode(0o700).create(&own).unwrap();
    fs::write(own.join("file"), "x").unwrap();
    chown(&own, Some(33), Some(33)).unwrap();
    let (place, outside) = (bench.inside(), bench.outside);
    drop(bench.filesystem);
    let told = thread::scope(|scope| {
        let plain = scope.spawn(|| {
            let none = CapabilitySet::empty();
            let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
            set_capabilities(None, sets).unwrap();
            let opened = Filesystem::open(&place, bounds(100, 100)).unwrap_err();
            [opened, Filesystem::delete(&place).unwrap_err()]
        });
        plain.join().unwrap()
    });
    for error in told {
        assert!(matches!(error, FilesystemError::Foreign(_)), "{error}");
    }
    Filesystem::delete(&place).unwrap();
    assert!(!place.exists() && outside.path().join("secret").exists());
}

#[test]
fn a_hook_changes_the_files_of_a_workloads_other_user() {
    /// The user `www-data` of Debian's images.
    const OTHER: u32 = 33;
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root gives files to another user");
        return;
    }
    let bench = Bench::new(bounds(100, 100));
    bench.write("log", 3).unwrap();
    chown(bench.inside().join("log"), Some(OTHER), Some(OTHER)).unwrap();
    // Capabilities are those of a thread. It may not set the times of files that others own.
    thread::scope(|scope| {
        let hook = scope.spawn(|| {
            let kept = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            let inheritable = CapabilitySet::empty();
            set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable }).unwrap();
            let (mut files, root) = bench.hook(false);
            let file = files.open_at(root, "log", OpenFlags::empty(), WRITE).unwrap();
            files.writable(file).unwrap().write(3, &[8; 5], Duration::from_secs(2_000)).unwrap();
            files.writable(file).unwrap().resize(4, Duration::from_secs(2_000)).unwrap();
            let truncated = files.open_at(root, "log", OpenFlags::TRUNCATE, WRITE).unwrap();
            files.writable(truncated).unwrap().write(0, b"anew", Duration::from_secs(2_000)).unwrap();
        });
        hook.join().unwrap();
    });
    assert_eq!(fs::read(bench.inside().join("log")).unwrap(), b"anew");
    assert_eq!(bench.filesystem.used(), Used { bytes: 2 * BLOCK, files: 1 });
}
