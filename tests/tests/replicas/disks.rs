//! Small disks of controllers and of servers of etcd, which become full.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};
use periapt_log_etcd::testing::TestEtcd;
use periapt_tests::{Installation, signal};
use tempfile::TempDir;

use crate::site::until;

/// Arguments of etcd for a small disk: it deletes soon what it has written before its log's newest entries.
pub(crate) const ETCD_ON_SMALL_DISK: [&str; 3] =
    ["--snapshot-count=10000", "--max-wals=1", "--max-snapshots=1"];

/// The options of the disk of a server of etcd. etcd reserves 128 MB for its log at once, which take as much memory.
const ETCD_DISK: &str = "size=1g,mode=700";

/// Puts what a host's controller keeps on a disk of its own, which is small. The test has a mount namespace of its own.
pub(crate) fn on_small_disk(host: &Installation) -> anyhow::Result<()> {
    const MOVE: &str = "set -e
mkdir disk
mount -t tmpfs -o size=256m tmpfs disk
cp -a controller/. disk/
mv controller old
mkdir controller
mount --move disk controller
rm -r old disk";
    host.ok(["controller", "stop", "local"])?;
    let directory = host.path().join("data/controllers/local");
    sh(MOVE, "sh", &directory)?;
    host.ok(["controller", "start", "local"]).map(drop)
}

/// Fills the disk of a controller that runs. RocksDB has reserved room for its next writes, behind the ends of its files,
/// which is taken back while the controller stands still.
pub(crate) fn fill_under(host: &Installation, process: u32) -> anyhow::Result<()> {
    signal(process, "STOP")?;
    let filled = until("the controller stands still", || stands_still(process)).and_then(|()| {
        let store = host.path().join("data/controllers/local/controller/store");
        for entry in fs::read_dir(store)? {
            let path = entry?.path();
            if path.is_file() {
                let file = File::options().write(true).open(&path)?;
                file.set_len(file.metadata()?.len())?;
            }
        }
        fill(host)
    });
    signal(process, "CONT")?;
    filled
}

/// Returns true if all threads of a process are stopped.
fn stands_still(process: u32) -> anyhow::Result<bool> {
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // It may have ended.
        let Ok(stat) = fs::read_to_string(thread?.path().join("stat")) else { return Ok(false) };
        // The name, which stands in parentheses, may have any character.
        if !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T')) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Fills the disk of a host's controller to its last byte.
pub(crate) fn fill(host: &Installation) -> anyhow::Result<()> {
    let mut file = File::create(filler(host))?;
    for size in [1 << 20, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    Ok(())
}

/// Returns the path of the file that fills the disk of a host's controller.
pub(crate) fn filler(host: &Installation) -> PathBuf {
    host.path().join("data/controllers/local/controller/filler")
}

/// Makes a directory for three servers of etcd, in which each has a disk of its own. The test has a mount namespace of its
/// own, whose end takes all of it away.
pub(crate) fn disks_of_etcd() -> anyhow::Result<TempDir> {
    let directory = TempDir::new_in("/run")?;
    for number in 0..3 {
        let disk = TestEtcd::data_below(directory.path(), number);
        fs::create_dir(&disk)?;
        sh("mount -t tmpfs -o \"$0\" tmpfs .", ETCD_DISK, &disk)?;
    }
    Ok(directory)
}

/// Takes from a server of etcd that runs all room of its disk which it does not use. Its next write to another page fails.
pub(crate) fn fill_etcd(etcd: &TestEtcd, number: usize) -> anyhow::Result<()> {
    const FILL: &str = "set -e
used=$(df -B1 --output=used . | tail -n 1)
mount -o \"remount,size=$((used))\" \"$PWD\"";
    let process = etcd.process(number).context("a server of etcd that runs")?;
    etcd.pause(number);
    let filled = until("etcd stands still", || stands_still(process))
        .and_then(|()| sh(FILL, "sh", &etcd.data(number)));
    etcd.resume(number);
    filled
}

/// Gives the disk of a server of etcd its room again.
pub(crate) fn free_etcd(etcd: &TestEtcd, number: usize) -> anyhow::Result<()> {
    sh("mount -o \"remount,$0\" \"$PWD\"", ETCD_DISK, &etcd.data(number))
}

/// Runs a script in a directory, with its argument as `$0`.
fn sh(script: &str, argument: &str, directory: &Path) -> anyhow::Result<()> {
    let done = Command::new("sh").args(["-c", script, argument]).current_dir(directory).output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}
