//! The bound of storage against workloads, which write to the disk directly: the keeper counts, and ends a pod that has more
//! than its storage may hold (`docs/decisions/0096-*`).

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{
    counter::StorageCounter,
    needs::{MountedStorage, PodNeeds},
    starter::PodSoftware,
};

/// The shortest time between two counts.
const PAUSE: Duration = Duration::from_secs(5);

/// The share of the time that counting takes, as a divisor: a count that takes a second is followed by a longer pause.
const SHARE: u32 = 20;

/// The number of counts in a row that may fail. A workload that moves directories all the time cannot be counted.
const FAILURES: u32 = 5;

/// The storage of one pod that its workload can write.
#[derive(Debug)]
pub(super) struct StorageRoom(Vec<MountedStorage>, StorageCounter);

impl StorageRoom {
    /// Returns the storage of a pod's software, and its counter.
    pub(super) fn of(software: &PodSoftware, counter: StorageCounter) -> Self {
        let mounts = match software {
            PodSoftware::Image(PodNeeds::Met(files)) => Some(&files.mounts),
            PodSoftware::Workload { mounts, .. } => mounts.as_ref().ok(),
            PodSoftware::Image(PodNeeds::Unmet(_)) | PodSoftware::Container => None,
        };
        let writable = mounts.into_iter().flat_map(|mounts| mounts.values());
        Self(writable.filter(|storage| !storage.is_read_only).cloned().collect(), counter)
    }

    /// Returns a reason in words if storage holds more than it may.
    pub(super) async fn exceeded_now(&self) -> Option<String> {
        match self.count().await {
            Count::Within => None,
            Count::Exceeded(reason) | Count::Failed(reason) => Some(reason),
        }
    }

    /// Waits until storage holds more than it may, and returns that in words.
    pub(super) async fn exceeded(&self) -> String {
        let (mut pause, mut failures) = (PAUSE, 0);
        loop {
            match self.0.is_empty() {
                true => std::future::pending().await,
                false => sleep(pause).await,
            }
            let began = Instant::now();
            failures = match self.count().await {
                Count::Within => 0,
                Count::Exceeded(reason) => return reason,
                Count::Failed(reason) if failures + 1 == FAILURES => return reason,
                Count::Failed(_) => failures + 1,
            };
            pause = PAUSE.max(began.elapsed().saturating_mul(SHARE));
        }
    }

    /// Returns the bytes that the storage holds. What cannot be counted, or holds more than it may, is left out.
    pub(super) async fn used(&self) -> u64 {
        let mut used = 0u64;
        for storage in &self.0 {
            used = used.saturating_add(self.1.measure(storage).await.ok().flatten().unwrap_or_default());
        }
        used
    }

    async fn count(&self) -> Count {
        for storage in &self.0 {
            let MountedStorage { id, size, .. } = storage;
            match self.1.measure(storage).await {
                Ok(Some(_)) => {}
                Ok(None) => {
                    return Count::Exceeded(format!(
                        "its storage {id} holds more than its {size} MiB; a hook or an operator can make room"
                    ));
                }
                Err(error) => return Count::Failed(format!("its storage {id} cannot be counted: {error}")),
            }
        }
        Count::Within
    }
}

/// The result of a count of storage.
enum Count {
    Within,
    Exceeded(String),
    Failed(String),
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use periapt_host_api::{Digest, charm::WorkloadMeta, storage::files_of};

    use super::*;

    fn room(directory: &std::path::Path, is_read_only: bool) -> StorageRoom {
        let storage = MountedStorage {
            id: "data/0".parse().unwrap(),
            directory: directory.to_owned(),
            size: 1,
            is_read_only,
        };
        let mounts = Ok(BTreeMap::from([("/data".to_owned(), storage)]));
        let workload = WorkloadMeta { component: "web.wasm".to_owned(), http: None };
        let software = PodSoftware::Workload { charm: Digest::of(b"charm"), workload, mounts };
        StorageRoom::of(&software, StorageCounter::default())
    }

    #[tokio::test]
    async fn storage_with_more_than_its_bound_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let writable = room(directory.path(), false);
        assert_eq!(writable.exceeded_now().await, None);
        fs::write(directory.path().join("half"), vec![1; 1 << 19]).unwrap();
        assert_eq!(writable.exceeded_now().await, None);
        fs::write(directory.path().join("whole"), vec![1; 1 << 20]).unwrap();
        let reason = writable.exceeded_now().await.unwrap();
        assert!(reason.starts_with("its storage data/0 holds more than its 1 MiB"), "{reason}");
        assert_eq!(room(directory.path(), true).exceeded_now().await, None, "it did not write that");
    }

    #[tokio::test]
    async fn many_empty_files_are_more_than_the_bound() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..=files_of(1) {
            fs::write(directory.path().join(number.to_string()), "").unwrap();
        }
        assert!(room(directory.path(), false).exceeded_now().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_written_while_a_pod_runs_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let room = room(directory.path(), false);
        let mut exceeded = std::pin::pin!(room.exceeded());
        tokio::select! {
            reason = exceeded.as_mut() => panic!("{reason}"),
            () = sleep(PAUSE * 3) => {}
        }
        fs::write(directory.path().join("whole"), vec![1; 2 << 20]).unwrap();
        assert!(exceeded.await.contains("data/0"));
    }
}
