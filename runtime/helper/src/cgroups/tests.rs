use std::{
    io::Write as _,
    os::unix::process::ExitStatusExt as _,
    process::{Command, Stdio},
};

use super::*;

fn shown(own: &str, mounts: &str) -> Vec<(Version, String)> {
    let places = places(own, mounts).into_iter();
    places.map(|it| (it.version, it.directory.display().to_string())).collect()
}

#[test]
fn the_own_cgroup_is_found_in_both_versions_and_through_a_part_of_a_hierarchy() {
    let two = "30 20 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    assert_eq!(
        shown("0::/user.slice/own.scope\n", two),
        [(Version::Two, "/sys/fs/cgroup/user.slice/own.scope".to_owned())]
    );
    let one = "31 20 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
               32 20 0:28 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
               33 20 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
    assert_eq!(
        shown("8:pids:/a\n7:memory:/docker/x/y\n6:cpu,cpuacct:/\n5:freezer:/\nbroken", one),
        [
            (Version::One, "/sys/fs/cgroup/pids/a".to_owned()),
            (Version::One, "/sys/fs/cgroup/memory/y".to_owned()),
            (Version::One, "/sys/fs/cgroup/cpu,cpuacct/".to_owned()),
        ]
    );
    assert_eq!(shown("7:memory:/elsewhere\n", one), []);
}

#[test]
fn a_host_without_cgroups_is_told_for_each_bound() {
    let mut cgroups = Cgroups::default();
    let limits = CgroupLimits { memory: 1 << 30, processes: 16, cpu: None };
    let refused = cgroups.bind(Bound::Memory, &[], &limits).unwrap_err();
    let expected = MissingBound {
        bound: "limit of memory",
        reason: "this host has no cgroups with the controller memory".to_owned(),
        remedy: MOUNT_THEM.to_owned(),
    };
    assert_eq!(refused, expected);
    let hidden = Place {
        version: Version::One,
        controllers: vec!["memory".to_owned()],
        directory: "/nonexistent/own".into(),
        top: "/nonexistent".into(),
    };
    let refused = cgroups.bind(Bound::Memory, &[hidden], &limits).unwrap_err();
    let reason = "/nonexistent/own: this is no cgroup".to_owned();
    assert_eq!(refused, MissingBound { reason, ..expected });
    assert!(cgroups.directories.is_empty());
}

#[test]
fn the_end_of_a_container_removes_what_a_killed_guard_left() {
    let parent = tempfile::tempdir().unwrap();
    let mut killed = Command::new("true").spawn().unwrap();
    killed.wait().unwrap();
    let made = |guard: u32| {
        let directory = parent.path().join(name(guard));
        fs::create_dir(&directory).unwrap();
        directory
    };
    // The first process runs as long as there is a system.
    let (own, left, lives) = (made(std::process::id()), made(killed.id()), made(1));
    drop(Cgroups { directories: vec![own.clone()] });
    assert!(!own.exists() && !left.exists() && lives.exists());
}

#[test]
fn bounds_have_the_form_of_each_version() {
    let limits = CgroupLimits { memory: 64 << 20, processes: 16, cpu: Some(250) };
    let free = CgroupLimits { cpu: None, ..limits };
    let files = |version, limits: &CgroupLimits| -> Vec<String> {
        let files = Bound::ALL.into_iter().flat_map(|bound| bound.files(version, limits));
        files.map(|(file, value, _)| format!("{file}={value}")).collect()
    };
    let of_two = ["memory.max=67108864", "memory.swap.max=0", "pids.max=16", "cpu.max=25000 100000"];
    assert_eq!(files(Version::Two, &limits), of_two);
    assert_eq!(files(Version::Two, &free)[3], "cpu.max=max 100000");
    let of_one = [
        "memory.limit_in_bytes=67108864",
        "memory.memsw.limit_in_bytes=67108864",
        "pids.max=16",
        "cpu.cfs_period_us=100000",
        "cpu.cfs_quota_us=25000",
    ];
    assert_eq!(files(Version::One, &limits), of_one);
    assert_eq!(files(Version::One, &free)[4], "cpu.cfs_quota_us=-1");
}

/// Returns the directory in which this process makes cgroups of version 2; none where it makes none.
fn parent_in_version_two() -> Option<PathBuf> {
    let places = own_places().into_iter().filter(|place| place.version == Version::Two);
    let (_, parent) = hierarchy(Bound::Memory, &places.collect::<Vec<_>>()).ok()?;
    let tried = parent.join(format!("periapt-test-{}", std::process::id()));
    fs::create_dir(&tried).and_then(|()| fs::remove_dir(&tried)).ok()?;
    Some(parent)
}

#[test]
fn a_real_cgroup_of_version_2_keeps_the_bounds_that_the_host_offers_and_ends_its_processes() {
    let Some(parent) = parent_in_version_two() else {
        eprintln!("SKIPPED: this process makes no cgroups of version 2");
        return;
    };
    let offered = fs::read_to_string(parent.join("cgroup.controllers")).unwrap();
    let limits = CgroupLimits { memory: 64 << 20, processes: 16, cpu: Some(250) };
    let mut cgroups = Cgroups::default();
    let directory = parent.join(name(std::process::id()));
    for (bound, file, value) in [
        (Bound::Memory, "memory.max", "67108864"),
        (Bound::Processes, "pids.max", "16"),
        (Bound::Processor, "cpu.max", "25000 100000"),
    ] {
        let is_offered = offered.split_whitespace().any(|it| it == bound.controller());
        match cgroups.bind_below(bound, Version::Two, &parent, &limits) {
            Ok(()) => assert_eq!(fs::read_to_string(directory.join(file)).unwrap().trim(), value),
            // Another process of the host may have a say in what is enabled there.
            Err(reason) if is_offered => assert!(reason.contains("cgroup.subtree_control"), "{reason}"),
            Err(reason) => {
                eprintln!("SKIPPED in part: {reason}");
                assert!(reason.contains("the host offers no controller"), "{reason}");
            }
        }
    }

    // The shell has its children once it is there.
    let mut shell = Command::new("sh")
        .args(["-c", "read line; sleep 1000 & sleep 1000; true"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    cgroups.add(Pid::from_child(&shell)).unwrap();
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let processes = || fs::read_to_string(directory.join("cgroup.procs")).unwrap().lines().count();
    let until = Instant::now() + Duration::from_secs(120);
    while processes() < 3 {
        assert!(Instant::now() < until, "{} processes are there", processes());
        std::thread::sleep(Duration::from_millis(10));
    }
    // The kernel counts the time of each cgroup, with or without a controller.
    let guarded = GuardedCgroups { memory: None, processor: Some((Version::Two, directory.clone())) };
    assert!(guarded.cpu_us().is_some());

    drop(cgroups);
    assert!(!directory.exists(), "a cgroup with processes is not removed");
    assert_eq!(shell.wait().unwrap().signal(), Some(9));
}

#[test]
fn bounds_are_changed_and_usage_is_read_in_the_directories_of_both_versions() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let read = |name: &str| fs::read_to_string(file(name)).unwrap();
    let files = [
        ("memory.max", "0"),
        ("memory.limit_in_bytes", "0"),
        ("cpu.max", ""),
        ("cpu.cfs_period_us", ""),
        ("cpu.cfs_quota_us", ""),
        ("memory.current", "3000\n"),
        ("memory.usage_in_bytes", "4000\n"),
        ("memory.stat", "file 9\ninactive_file 1000\ntotal_inactive_file 500\n"),
        ("cpu.stat", "usage_usec 77\nuser_usec 70\n"),
        ("cpuacct.usage", "5000000\n"),
    ];
    for (name, text) in files {
        fs::write(file(name), text).unwrap();
    }
    let limits = CgroupLimits { memory: 64 << 20, processes: 16, cpu: Some(250) };
    for (version, memory, cpu, expected) in [
        (Version::Two, "memory.max", "cpu.max", ("25000 100000", Some(2000), Some(77))),
        (Version::One, "memory.limit_in_bytes", "cpu.cfs_quota_us", ("25000", Some(3500), Some(5000))),
    ] {
        let place = || Some((version, directory.path().to_owned()));
        let cgroups = GuardedCgroups { memory: place(), processor: place() };
        cgroups.bind(&limits).unwrap();
        assert!(read(memory).starts_with("67108864"));
        assert_eq!((read(cpu).as_str(), cgroups.memory(), cgroups.cpu_us()), expected);
    }
    let none = GuardedCgroups { memory: None, processor: None };
    assert_eq!((none.memory(), none.cpu_us()), (None, None));
    none.bind(&limits).unwrap();
}
