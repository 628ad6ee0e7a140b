//! The lock of a pod: two pods of one container of a unit never run at once, whichever keeper started them.
//!
//! A pod that the holder keeps is ended by the next keeper, which waits for its end. Nobody holds one whose keeper, or whose
//! holder, was killed at the wrong moment: it ends by itself, and nothing but its lock tells the next keeper when.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use periapt_host_api::{Digest, ModelUuid, UnitName};
use tokio::time::{Instant, sleep};

use super::PodId;

/// The time for an earlier pod to end: that of its services, and the pod's own.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// The file that the network of a unit's containers locks (`periapt-pod`, `container/unit_network.rs`).
const LOCK_OF_NETWORK: &str = "lock";

/// The pause between two attempts.
const TRIED_EVERY: Duration = Duration::from_millis(50);

/// The locks of an agent's pods. Only the one keeper of the agent's directory opens them.
#[derive(Debug)]
pub(super) struct PodLocks {
    directory: PathBuf,
}

/// The lock of a pod. It is held until the last process ends that was given the descriptor.
#[derive(Debug)]
pub(crate) struct PodLock(File);

impl PodLocks {
    /// Returns the locks in a directory of the agent's own.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Takes the lock for a pod that begins, once an earlier one has ended. The error is in words.
    pub(super) async fn take(&self, model: ModelUuid, pod: &PodId) -> Result<PodLock, String> {
        let (path, deadline) = (self.path(model, pod), Instant::now() + ENDS_WITHIN);
        let unusable = |error: io::Error| format!("its lock {}: {error}", path.display());
        loop {
            if let Some(lock) = try_lock(&path).map_err(unusable)? {
                return Ok(PodLock(lock));
            }
            if Instant::now() >= deadline {
                return Err("an earlier pod of the same container has not ended yet".to_owned());
            }
            sleep(TRIED_EVERY).await;
        }
    }

    /// Removes the lock of a pod that this keeper does not start again. One that is held stays.
    pub(super) fn forget(&self, model: ModelUuid, pod: &PodId) {
        remove(&self.path(model, pod));
        remove(&self.of_unit(model, &pod.0));
    }

    /// Returns the directory of the network that the containers of a unit share. The network locks a file in it.
    pub(super) fn of_unit(&self, model: ModelUuid, unit: &UnitName) -> PathBuf {
        self.directory.join(Digest::of(format!("{model} {unit}").as_bytes()).to_string())
    }

    fn path(&self, model: ModelUuid, (unit, container): &PodId) -> PathBuf {
        self.directory.join(Digest::of(format!("{model} {unit} {container}").as_bytes()).to_string())
    }
}

impl PodLock {
    /// Returns the descriptor for the pod's process.
    pub(super) fn into_descriptor(self) -> OwnedFd {
        self.0.into()
    }
}

/// Removes the locks in a directory that no pod holds.
pub(super) fn forget_unheld(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        remove(&entry.path());
    }
}

/// Removes a lock, while holding it: nobody has taken it. That of a network goes with its directory.
fn remove(path: &Path) {
    let is_network = match fs::symlink_metadata(path) {
        Ok(found) => found.is_dir(),
        // There is none.
        Err(_) => return,
    };
    let held = if is_network { try_lock(&path.join(LOCK_OF_NETWORK)) } else { try_lock(path) };
    let removed = match held {
        Ok(Some(_lock)) if is_network => fs::remove_dir_all(path),
        Ok(Some(_lock)) => fs::remove_file(path),
        Ok(None) => return,
        Err(error) => Err(error),
    };
    if let Err(error) = removed {
        tracing::debug!(%error, path = %path.display(), "the lock of a pod stays");
    }
}

/// Opens and locks a file, which is made if needed; none if another process has the lock. Nobody can write by the
/// descriptor.
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    // A descriptor that only reads cannot make the file.
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let file = File::open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn pod(unit: &str) -> PodId {
        (unit.parse().unwrap(), "web".parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_is_held_by_the_process_that_was_given_it_until_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let model = ModelUuid(uuid::Uuid::from_u128(1));
        let locks = PodLocks::new(directory.path().to_owned());
        let lock = locks.take(model, &pod("app/0")).await.unwrap();
        let mut command = Command::new("/bin/cat");
        command.stdin(Stdio::piped()).stdout(Stdio::from(lock.into_descriptor()));
        let mut process = command.spawn().unwrap();
        drop(command);
        // The next keeper opens it anew.
        let next = PodLocks::new(directory.path().to_owned());
        forget_unheld(directory.path());
        next.forget(model, &pod("app/0"));
        let refused = next.take(model, &pod("app/0")).await.unwrap_err();
        assert_eq!(refused, "an earlier pod of the same container has not ended yet");
        assert!(next.take(model, &pod("app/1")).await.is_ok(), "it is another unit's");
        drop(process.stdin.take());
        process.wait().unwrap();
        assert!(next.take(model, &pod("app/0")).await.is_ok());
        next.forget(model, &pod("app/0"));
        forget_unheld(directory.path());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_network_goes_with_its_directory_once_nobody_has_its_lock() {
        let directory = tempfile::tempdir().unwrap();
        let (model, pod) = (ModelUuid(uuid::Uuid::from_u128(1)), pod("app/0"));
        let locks = PodLocks::new(directory.path().to_owned());
        let network = locks.of_unit(model, &pod.0);
        locks.forget(model, &pod);
        assert!(!network.exists(), "nothing is made to be removed");
        fs::create_dir(&network).unwrap();
        fs::write(network.join("socket"), "").unwrap();
        let held = try_lock(&network.join(LOCK_OF_NETWORK)).unwrap().unwrap();
        locks.forget(model, &pod);
        forget_unheld(directory.path());
        assert!(network.join("socket").exists(), "containers are in it");
        drop(held);
        forget_unheld(directory.path());
        assert!(!network.exists());
    }
}
