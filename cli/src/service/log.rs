//! The log of a background service, with a bound.
//!
//! Several processes append to it: the service, and those that it starts. So it is not renamed under them: its content
//! is copied to another file, and the file is emptied in place. A line written in between is lost.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::sleep;

/// The size in bytes at which the log is put aside. With the earlier part, at most twice this is kept.
const LARGE: u64 = 16 << 20;

/// The time between two checks.
const LOOK: Duration = Duration::from_secs(10);

/// Keeps a log small, for ever.
pub(super) async fn keep_small(log: PathBuf) {
    loop {
        if let Err(error) = put_aside(&log, LARGE) {
            tracing::warn!(%error, log = %log.display(), "the log cannot be truncated");
        }
        sleep(LOOK).await;
    }
}

/// Moves the content of a large log to `LOG.1`.
fn put_aside(log: &Path, large: u64) -> io::Result<()> {
    if fs::metadata(log)?.len() < large {
        return Ok(());
    }
    let beside = |end: &str| -> PathBuf {
        let mut name = OsString::from(log);
        name.push(end);
        name.into()
    };
    let (partial, older) = (beside(".1.new"), beside(".1"));
    let copied = fs::copy(log, &partial).and_then(|_| fs::rename(&partial, &older));
    if copied.is_err() {
        // Without room for both, the newer lines matter more.
        let _ = fs::remove_file(&partial);
    }
    OpenOptions::new().write(true).open(log)?.set_len(0)?;
    copied
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_large_log_is_put_aside_under_its_writers() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("agent.log");
        let open = || OpenOptions::new().append(true).create(true).open(&log).unwrap();
        let (mut service, mut child) = (open(), open());
        fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();
        let older = || fs::read_to_string(directory.path().join("agent.log.1"));
        service.write_all(b"one\n").unwrap();
        put_aside(&log, 8).unwrap();
        assert!(older().is_err(), "it is small");
        child.write_all(b"two\n").unwrap();
        put_aside(&log, 8).unwrap();
        assert_eq!(older().unwrap(), "one\ntwo\n");
        service.write_all(b"three\n").unwrap();
        child.write_all(b"four\n").unwrap();
        assert_eq!(
            fs::read_to_string(&log).unwrap(),
            "three\nfour\n",
            "each writes at the end that there is now"
        );
        put_aside(&log, 8).unwrap();
        assert_eq!(older().unwrap(), "three\nfour\n");
        let mode = fs::metadata(directory.path().join("agent.log.1")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "nobody else reads the older one, either");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_log_for_whose_copy_there_is_no_room_is_emptied_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("agent.log");
        fs::write(&log, "one").unwrap();
        fs::create_dir(directory.path().join("agent.log.1.new")).unwrap();
        assert!(put_aside(&log, 1).is_err());
        assert_eq!(fs::metadata(&log).unwrap().len(), 0);
    }
}
