use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::MetadataExt as _,
    process::{Child, Command, Stdio},
};

use rustix::{
    fs::{mkdirat, unlinkat},
    thread::gettid,
};
use tempfile::TempDir;

use super::*;

/// Opens a file at descriptor 3, deletes it, and fills it.
const DELETED: &str = "exec 3>gone && rm gone && dd if=/dev/urandom bs=1M count=8 conv=fsync >&3 2>/dev/null";

/// A directory, and a shell in it whose child holds files.
struct Holding {
    directory: TempDir,
    shell: Child,
}

impl Holding {
    /// Starts a shell that runs a script, and a child of it that runs another one, and waits until both have run.
    fn begin(by_shell: &str, by_child: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let script = format!(
            "{by_shell} || echo failed; (\n{by_child}\ntest $? = 0 && echo done || echo failed; read _; :); :"
        );
        let mut shell = Command::new("/bin/sh")
            .args(["-c", &script])
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "done\n");
        Self { directory, shell }
    }

    fn device(&self) -> u64 {
        fs::metadata(self.directory.path()).unwrap().dev()
    }

    /// Returns the bytes of the deleted files below a directory of it, or in any place.
    fn held(&self, below: Option<&str>) -> u64 {
        let root = self.directory.path().canonicalize().unwrap();
        let wanted =
            DeletedFiles { devices: [self.device()].into(), below: below.map(|name| vec![root.join(name)]) };
        wanted.held_by(self.shell.id()).unwrap().values().sum()
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

fn assert_is_one_file(bytes: u64) {
    assert!((8 << 20..9 << 20).contains(&bytes), "{bytes}");
}

#[test]
fn a_deleted_file_that_a_descendant_holds_counts_once() {
    let named = "exec 4>&3 5>named && dd if=/dev/urandom bs=1M count=8 conv=fsync >&5 2>/dev/null";
    let holding = Holding::begin("true", &format!("{DELETED} && {named}"));
    assert_is_one_file(holding.held(None));
    let elsewhere = fs::metadata("/proc").unwrap().dev();
    assert_ne!(elsewhere, holding.device());
    let wanted = DeletedFiles { devices: [elsewhere].into(), below: None };
    assert_eq!(wanted.held_by(holding.shell.id()).unwrap(), BTreeMap::new());
}

#[test]
fn a_deleted_file_that_the_pod_itself_holds_is_none_of_its_workload() {
    let holding = Holding::begin(DELETED, "true");
    assert_eq!(holding.held(None), 0);
}

#[test]
fn a_deleted_file_of_another_directory_does_not_count_where_that_matters() {
    let holding = Holding::begin("mkdir storage other", &format!("cd storage && {DELETED}"));
    assert_is_one_file(holding.held(Some("storage")));
    assert_eq!(holding.held(Some("other")), 0);
    // A name that begins alike is another directory.
    assert_eq!(holding.held(Some("stor")), 0);
}

#[test]
fn a_deleted_file_whose_path_is_too_long_to_be_told_counts() {
    let directory = tempfile::tempdir().unwrap();
    let mut at: OwnedFd = File::open(directory.path()).unwrap().into();
    let name = "n".repeat(200);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for _ in 0..25 {
        mkdirat(&at, name.as_str(), Mode::from_raw_mode(0o700)).unwrap();
        at = openat(&at, name.as_str(), flags, Mode::empty()).unwrap();
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let mut file = File::from(openat(&at, "gone", flags, Mode::from_raw_mode(0o600)).unwrap());
    unlinkat(&at, "gone", AtFlags::empty()).unwrap();
    file.write_all(&[1; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    let device = file.metadata().unwrap().dev();
    let mut holder = Command::new("/bin/sleep").arg("600").stdin(file).stdout(Stdio::null()).spawn().unwrap();
    // This process has closed it with the command.
    let wanted = DeletedFiles { devices: [device].into(), below: Some(vec!["/nowhere".into()]) };
    let held: u64 = wanted.held_by(std::process::id()).unwrap().values().sum();
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(held >= 1 << 20, "{held}");
}

#[test]
fn a_deleted_program_that_runs_counts() {
    let holding = Holding::begin("true", "cp /bin/sh sh && exec ./sh -c 'rm sh; echo done; read _; :'");
    assert!(holding.held(None) > 0);
    assert_eq!(holding.held(Some("")), 0, "among files of the host, a mapped one may be a program");
}

#[test]
fn a_count_ends_with_an_error_at_its_bound() {
    let holding = Holding::begin("true", DELETED);
    let wanted = DeletedFiles { devices: [holding.device()].into(), below: None };
    assert_eq!(wanted.count(holding.shell.id(), 8), Err(TooManyFiles));
    assert_eq!(
        TooManyFiles.to_string(),
        "its processes hold more than 1048576 files open, too many to count the deleted ones"
    );
}

#[test]
fn a_process_that_has_ended_holds_nothing() {
    let wanted = DeletedFiles { devices: BTreeSet::new(), below: None };
    assert_eq!(wanted.held_by(u32::MAX), Ok(BTreeMap::new()));
}

#[test]
fn threads_with_descriptors_of_their_own_are_told_from_others() {
    let id = || gettid().as_raw_nonzero().get().unsigned_abs();
    let this = id();
    // No process has this number. A system that does not tell says so here as well.
    if share_descriptors(this, 1 << 30) {
        return;
    }
    let (shared, own) = std::thread::spawn(move || {
        let shared = share_descriptors(this, id());
        #[expect(unsafe_code, reason = "this thread uses no descriptor of the others")]
        let unshared = unsafe { libc::unshare(libc::CLONE_FILES) };
        assert_eq!(unshared, 0, "{}", std::io::Error::last_os_error());
        (shared, share_descriptors(this, id()))
    })
    .join()
    .unwrap();
    assert!(shared && !own, "{shared} {own}");
}
