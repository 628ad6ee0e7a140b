//! A fence binds a thread, so each test raises one around a thread of its own and tries forbidden actions. The tests
//! need a kernel with Landlock and seccomp: Linux 5.19 or later.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::{
        fd::AsRawFd as _,
        unix::{
            fs::{OpenOptionsExt as _, PermissionsExt as _, chown, symlink},
            net::{UnixDatagram, UnixListener, UnixStream},
        },
    },
    path::Path,
    process::Command,
    ptr,
};

use rustix::process::{Signal, getppid, kill_process, test_kill_process};

use super::*;
use crate::{DirectoryAccess, Resident};

/// Runs a function on a thread behind a fence.
fn behind<T: Send>(fence: Fence<'_>, tries: impl FnOnce() -> T + Send) -> T {
    let inside = || {
        assert_eq!(fence.raise(), [], "this kernel offers no whole fence");
        tries()
    };
    std::thread::scope(|scope| scope.spawn(inside).join()).unwrap()
}

/// Makes an agent's directory, and returns a runner's part of it.
fn paths(root: &Path) -> RunnerPaths {
    let paths = RunnerPaths { charms: root.join("charms"), storage: root.join("storage/mine") };
    for directory in [&paths.charms.join("one"), &paths.storage, &root.join("storage/other")] {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(paths.charms.join("one/file"), "a charm's").unwrap();
    fs::write(root.join("storage/other/file"), "another unit's").unwrap();
    fs::write(root.join("artefact.key"), "secret").unwrap();
    paths
}

/// Tries everything that both fences forbid, and returns each success with its name.
fn escapes() -> Vec<(&'static str, bool)> {
    let parent = getppid().unwrap();
    vec![
        ("a program", Command::new("/bin/true").spawn().is_ok()),
        ("a listening socket", TcpListener::bind("127.0.0.1:0").is_ok()),
        // The kernel refuses it, not a listener.
        (
            "a connection",
            TcpStream::connect("127.0.0.1:1").is_err_and(|error| error.raw_os_error() == Some(111)),
        ),
        ("a socket in the file system", UnixListener::bind("/tmp/periapt-fence").is_ok()),
        ("a signal to another process", test_kill_process(parent).is_ok()),
        ("a file of the system's", File::open("/etc/passwd").is_ok()),
        ("memory of a process", File::open("/proc/self/mem").is_ok()),
        ("a directory of the system's", fs::read_dir("/").is_ok()),
        ("a new file", File::create("/tmp/periapt-fence").is_ok()),
        ("privileges", rustix::thread::set_thread_uid(rustix::fs::Uid::from_raw(1)).is_ok()),
    ]
}

fn assert_none(escapes: Vec<(&'static str, bool)>) {
    let done: Vec<_> = escapes.into_iter().filter(|(_, done)| *done).map(|(what, _)| what).collect();
    assert_eq!(done, Vec::<&str>::new());
}

/// Maps a page of executable memory. Returns true on success.
fn maps_code() -> bool {
    #[expect(unsafe_code, reason = "a new page, which nobody uses")]
    let page = unsafe {
        let access = libc::PROT_READ | libc::PROT_EXEC;
        libc::mmap(ptr::null_mut(), 4096, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    };
    page != libc::MAP_FAILED
}

#[test]
fn a_helper_reaches_nothing_but_what_is_open() {
    let (mut reader, mut writer) = io::pipe().unwrap();
    let heard = behind(Fence::Helper, || {
        assert_none(escapes());
        assert!(!maps_code(), "a compiler that runs what it compiled");
        // The helper's own work still succeeds.
        writer.write_all(b"compiled").unwrap();
        drop(writer);
        let mut heard = String::new();
        reader.read_to_string(&mut heard).unwrap();
        std::thread::spawn(move || heard + " on threads").join().unwrap()
    });
    assert_eq!(heard, "compiled on threads");
}

#[test]
fn a_runner_reads_charms_and_writes_storage_of_its_model_alone() {
    let root = tempfile::tempdir().unwrap();
    let paths = paths(root.path());
    behind(Fence::Runner(&paths), || {
        assert_none(escapes());
        let other = root.path().join("storage/other");
        assert_none(vec![
            ("the key", fs::read(root.path().join("artefact.key")).is_ok()),
            ("another model's file", fs::read(other.join("file")).is_ok()),
            ("another model's directory", fs::read_dir(&other).is_ok()),
            ("a file beside its own", fs::write(root.path().join("storage/file"), "x").is_ok()),
            ("a change of a charm", fs::write(paths.charms.join("one/file"), "x").is_ok()),
            ("a new file of a charm", fs::write(paths.charms.join("one/new"), "x").is_ok()),
            ("the end of a charm", fs::remove_file(paths.charms.join("one/file")).is_ok()),
            ("a link out", symlink("/etc/passwd", paths.storage.join("link")).is_ok()),
            ("a move out", fs::rename(&paths.storage, root.path().join("moved")).is_ok()),
        ]);
        assert_eq!(fs::read_to_string(paths.charms.join("one/file")).unwrap(), "a charm's");
        assert_eq!(fs::read_dir(&paths.charms).unwrap().count(), 1);
        let (one, two) = (paths.storage.join("one"), paths.storage.join("two"));
        for directory in [&one, &two] {
            fs::create_dir(directory).unwrap();
        }
        let mut file = File::create_new(one.join("file")).unwrap();
        file.write_all(b"kept").unwrap();
        file.set_len(2).unwrap();
        file.sync_all().unwrap();
        fs::rename(one.join("file"), two.join("file")).unwrap();
        assert_eq!(fs::read_to_string(two.join("file")).unwrap(), "ke");
        fs::remove_file(two.join("file")).unwrap();
        fs::remove_dir(two).unwrap();
        // A runner maps compiled code that it inherited in memory by its descriptor.
        let memory = rustix::fs::memfd_create("code", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        File::open(format!("/proc/self/fd/{}", memory.as_raw_fd())).unwrap();
        assert!(maps_code());
    });
}

#[test]
fn an_unpacker_writes_below_its_directory_alone() {
    use rustix::fs::{AtFlags, CWD, FileType, Mode, XattrFlags, fsetxattr, linkat, makedev, mknodat};

    let root = tempfile::tempdir().unwrap();
    let own = root.path().join("images");
    fs::create_dir(&own).unwrap();
    fs::write(root.path().join("artefact.key"), "secret").unwrap();
    behind(Fence::Unpacker(&own), || {
        assert_none(escapes());
        let (outside, key) = (root.path().join("new"), root.path().join("artefact.key"));
        let link = |of: &Path, to: &Path| linkat(CWD, of, CWD, to, AtFlags::empty()).is_ok();
        assert_none(vec![
            ("another file", fs::read(&key).is_ok()),
            ("a file beside its own", fs::write(&outside, "x").is_ok()),
            ("a link to another file", link(&key, &own.join("key"))),
            ("a move out", fs::rename(&own, &outside).is_ok()),
            ("another file through a link", {
                symlink(&key, own.join("to-key")).unwrap();
                fs::read(own.join("to-key")).is_ok()
            }),
            ("a device", {
                let null = makedev(1, 3);
                let made = mknodat(CWD, own.join("null"), FileType::CharacterDevice, Mode::empty(), null);
                made.is_ok()
            }),
            ("code", maps_code()),
        ]);
        fs::create_dir_all(own.join("one/two")).unwrap();
        fs::write(own.join("one/file"), "x").unwrap();
        assert!(link(&own.join("one/file"), &own.join("one/two/file")));
        let gone = mknodat(CWD, own.join("gone"), FileType::CharacterDevice, Mode::empty(), makedev(0, 0));
        gone.unwrap();
        let directory = File::open(own.join("one")).unwrap();
        fsetxattr(&directory, "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
        fs::rename(own.join("one"), own.join("other")).unwrap();
        fs::remove_dir_all(own.join("other")).unwrap();
    });
}

#[test]
fn a_counter_lists_its_directory_and_reads_no_file() {
    let root = tempfile::tempdir().unwrap();
    let own = root.path().join("own");
    fs::create_dir_all(own.join("deep")).unwrap();
    fs::write(own.join("deep/file"), "a unit's").unwrap();
    symlink(root.path(), own.join("out")).unwrap();
    behind(Fence::Counter(&own), || {
        assert_none(escapes());
        assert_none(vec![
            ("a file of its own", fs::read(own.join("deep/file")).is_ok()),
            ("a change of a file", fs::write(own.join("deep/file"), "x").is_ok()),
            ("a new file", fs::write(own.join("new"), "x").is_ok()),
            ("the end of a file", fs::remove_file(own.join("deep/file")).is_ok()),
            ("the directory above", fs::read_dir(root.path()).is_ok()),
            ("the directory above through a link", fs::read_dir(own.join("out")).is_ok()),
            ("code", maps_code()),
        ]);
        assert_eq!(fs::read_dir(own.join("deep")).unwrap().count(), 1);
        assert_eq!(fs::symlink_metadata(own.join("deep/file")).unwrap().len(), 8);
    });
}

#[test]
fn a_workload_reads_its_directories_and_accepts_connections_to_its_socket() {
    let root = tempfile::tempdir().unwrap();
    let own = root.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("file"), "its own").unwrap();
    fs::write(root.path().join("secret"), "another's").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = std::thread::spawn(move || TcpStream::connect(address).unwrap().write_all(b"asked"));
    let storage = root.path().join("storage");
    fs::create_dir(&storage).unwrap();
    let directories =
        [(&own, "/", DirectoryAccess::ReadOnly), (&storage, "/data", DirectoryAccess::ReadWrite)];
    let directories = directories.map(|(host, guest, access)| WorkloadDirectory {
        host: host.clone(),
        guest: guest.to_owned(),
        access,
    });
    behind(Fence::Workload(&directories), || {
        assert_none(escapes());
        fs::create_dir(storage.join("deep")).unwrap();
        fs::write(storage.join("new"), "x").unwrap();
        fs::rename(storage.join("new"), storage.join("deep/new")).unwrap();
        fs::remove_dir_all(storage.join("deep")).unwrap();
        assert_none(vec![
            ("another's file", fs::read(root.path().join("secret")).is_ok()),
            ("a change of its own", fs::write(own.join("file"), "x").is_ok()),
            ("a new file", fs::write(own.join("new"), "x").is_ok()),
            ("the end of a file", fs::remove_file(own.join("file")).is_ok()),
            ("a link in storage", symlink("/etc", storage.join("link")).is_ok()),
        ]);
        assert_eq!(fs::read_to_string(own.join("file")).unwrap(), "its own");
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = String::new();
        stream.read_to_string(&mut asked).unwrap();
        assert_eq!(asked, "asked");
        assert!(maps_code());
    });
    client.join().unwrap().unwrap();
}

#[test]
fn a_pod_opens_its_places_and_starts_its_program_alone() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    for directory in ["root", "storage", "files", "other"] {
        fs::create_dir(at(directory)).unwrap();
    }
    for file in ["component", "files/file", "other/file"] {
        fs::write(at(file), file).unwrap();
    }
    fs::copy("/bin/true", at("true")).unwrap();
    let _listener = UnixListener::bind(at("socket")).unwrap();
    let directory =
        |name: &str, access| WorkloadDirectory { host: at(name), guest: format!("/{name}"), access };
    let places = PodPlaces {
        root: at("root"),
        directories: vec![
            directory("storage", DirectoryAccess::ReadWrite),
            directory("files", DirectoryAccess::ReadOnly),
        ],
        components: vec![at("component")],
        program: at("true"),
        sockets: PodSockets::Pairs,
    };
    let parent = getppid().unwrap().as_raw_nonzero();
    behind(Fence::Pod(&places), || {
        let mode = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).is_ok();
        assert_none(vec![
            ("another program", Command::new("/bin/true").status().is_ok()),
            ("a file of the system's", File::open("/etc/passwd").is_ok()),
            ("a directory of the system's", fs::read_dir("/").is_ok()),
            ("a list of processes", fs::read_dir("/proc").is_ok()),
            ("the environment of another process", fs::read(format!("/proc/{parent}/environ")).is_ok()),
            ("memory of another process", File::open(format!("/proc/{parent}/mem")).is_ok()),
            ("another pod's file", fs::read(at("other/file")).is_ok()),
            ("a file beside its own", fs::write(at("new"), "x").is_ok()),
            ("a change of the component", fs::write(at("component"), "x").is_ok()),
            ("a change of files to read", fs::write(at("files/file"), "x").is_ok()),
            ("a link", symlink("/etc/passwd", at("root/link")).is_ok()),
            ("the mode of another's file", mode(&at("other/file"))),
            ("the mode of its program", mode(&at("true"))),
            ("the owner of another's file", chown(at("other/file"), None, Some(0)).is_ok()),
            ("a listening socket", TcpListener::bind("127.0.0.1:0").is_ok()),
            ("a socket in the file system", UnixListener::bind(at("root/socket")).is_ok()),
            ("a connection to a socket of the host", UnixStream::connect(at("socket")).is_ok()),
            ("a socket of datagrams", UnixDatagram::pair().is_ok()),
            ("privileges", rustix::thread::set_thread_uid(rustix::fs::Uid::from_raw(1)).is_ok()),
        ]);
        let kept = capabilities(None).unwrap();
        assert!(kept.permitted.is_empty() && kept.effective.is_empty(), "{kept:?}");
        for place in ["root", "storage"] {
            fs::create_dir(at(place).join("deep")).unwrap();
            let new = at(place).join("new");
            File::options().write(true).create_new(true).mode(0o600).open(&new).unwrap();
            fs::rename(new, at(place).join("deep/new")).unwrap();
            fs::remove_dir_all(at(place).join("deep")).unwrap();
        }
        for file in ["component", "files/file"] {
            assert_eq!(fs::read_to_string(at(file)).unwrap(), file);
        }
        File::open("/dev/null").unwrap();
        UnixStream::pair().unwrap();
        assert!(Command::new(at("true")).status().unwrap().success());
        // What its program needs when it is a workload.
        Resident::open().unwrap();
        behind(Fence::Workload(&places.directories), || {
            assert_none(escapes());
            assert_none(vec![("the pod's root", fs::read_dir(at("root")).is_ok())]);
            assert_eq!(fs::read_to_string(at("files/file")).unwrap(), "files/file");
            assert!(maps_code());
        });
    });
}

#[test]
fn a_pod_that_is_started_by_hand_has_sockets_of_the_host() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    for directory in ["root", "sockets"] {
        fs::create_dir(at(directory)).unwrap();
    }
    let places = PodPlaces {
        root: at("root"),
        directories: Vec::new(),
        components: Vec::new(),
        program: "/bin/true".into(),
        sockets: PodSockets::OfHost(Some(at("sockets"))),
    };
    behind(Fence::Pod(&places), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _listener = UnixListener::bind(at("sockets/socket")).unwrap();
        UnixStream::connect(at("sockets/socket")).unwrap();
        fs::remove_file(at("sockets/socket")).unwrap();
        UnixListener::bind(at("root/socket")).unwrap_err();
        fs::write(at("sockets/file"), "x").unwrap_err();
    });
}

#[test]
fn each_part_holds_where_the_other_is_not_offered() {
    let root = tempfile::tempdir().unwrap();
    let paths = paths(root.path());
    let fence = Fence::Runner(&paths);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            files::confine(fence).unwrap();
            fs::read(root.path().join("artefact.key")).unwrap_err();
            fs::read(paths.charms.join("one/file")).unwrap();
        });
        scope.spawn(|| {
            calls::confine(fence).unwrap();
            TcpListener::bind("127.0.0.1:0").unwrap_err();
            kill_process(getppid().unwrap(), Signal::CONT).unwrap_err();
            fs::read(root.path().join("artefact.key")).unwrap();
        });
        scope.spawn(|| {
            calls::confine(Fence::Helper).unwrap();
            fs::read(root.path().join("artefact.key")).unwrap_err();
        });
    });
}

#[test]
fn a_place_that_is_not_there_is_no_reason_to_open_the_fence() {
    let root = tempfile::tempdir().unwrap();
    let paths = RunnerPaths { charms: root.path().join("none"), storage: root.path().join("nor/this") };
    behind(Fence::Runner(&paths), || assert_none(escapes()));
}

#[test]
fn what_is_tried_on_a_thread_binds_no_other() {
    assert_eq!(gaps().unwrap(), []);
    fs::read("/etc/passwd").unwrap();
}
