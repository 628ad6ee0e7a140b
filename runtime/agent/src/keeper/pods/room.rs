//! The bound of storage against workloads, which write to the disk directly: the keeper counts, and ends a pod that has more
//! than its storage may hold (`docs/decisions/0096-*`).

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{
    counter::StorageCounter,
    deleted::{self, HeldFiles},
    needs::{MountedStorage, PodNeeds},
    starter::PodSoftware,
};

/// The shortest time between two counts.
const PAUSE: Duration = Duration::from_secs(5);

/// The share of the time that counting takes, as a divisor: a count that takes a second is followed by a longer pause.
const SHARE: u32 = 20;

/// The number of counts in a row that may fail. A workload that moves directories all the time cannot be counted.
const FAILURES: u32 = 5;

/// The storage of one pod that its workload can write, and the files that its processes hold.
#[derive(Debug)]
pub(super) struct StorageRoom {
    writable: Vec<MountedStorage>,
    counter: StorageCounter,
    held: HeldFiles,
}

impl StorageRoom {
    /// Returns the storage of a pod's software, and its counter.
    pub(super) fn of(software: &PodSoftware, counter: StorageCounter) -> Self {
        let mounts = match software {
            PodSoftware::Image(PodNeeds::Met(files)) => Some(&files.mounts),
            PodSoftware::Workload { mounts, .. } => mounts.as_ref().ok(),
            PodSoftware::Image(PodNeeds::Unmet(_)) | PodSoftware::Container => None,
        };
        let writable = mounts.into_iter().flat_map(|mounts| mounts.values());
        let writable = writable.filter(|storage| !storage.is_read_only).cloned().collect();
        Self { writable, counter, held: HeldFiles::of(software) }
    }

    /// Returns a reason in words if storage holds more than it may, before there is a process.
    pub(super) async fn exceeded_now(&self) -> Option<String> {
        match self.count(None).await {
            Count::Within => None,
            Count::Exceeded(reason) | Count::Failed(reason) => Some(reason),
        }
    }

    /// Waits until storage holds more than it may, with the files that a pod's process and its descendants hold, and returns
    /// that in words.
    pub(super) async fn exceeded(&self, pod: Option<u32>) -> String {
        let (mut pause, mut failures) = (PAUSE, 0);
        loop {
            match self.writable.is_empty() {
                true => std::future::pending().await,
                false => sleep(pause).await,
            }
            let began = Instant::now();
            failures = match self.count(pod).await {
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
        for storage in &self.writable {
            used =
                used.saturating_add(self.counter.measure(storage).await.ok().flatten().unwrap_or_default());
        }
        used
    }

    async fn count(&self, pod: Option<u32>) -> Count {
        match self.count_once(pod).await {
            // Names are counted before deleted files. A file that lost its name between them was in both counts, and is not in
            // a second one.
            Count::Exceeded(_) if pod.is_some() => self.count_once(pod).await,
            count => count,
        }
    }

    async fn count_once(&self, pod: Option<u32>) -> Count {
        let mut counted = Vec::new();
        for storage in &self.writable {
            let MountedStorage { id, size, .. } = storage;
            match self.counter.measure(storage).await {
                Ok(Some(used)) => counted.push((storage.clone(), used)),
                Ok(None) => {
                    return Count::Exceeded(format!(
                        "its storage {id} holds more than its {size} MiB; a hook or an operator can make room"
                    ));
                }
                Err(error) => return Count::Failed(format!("its storage {id} cannot be counted: {error}")),
            }
        }
        let Some(pod) = pod.filter(|_| !counted.is_empty()) else { return Count::Within };
        match deleted::exceeded(pod, self.held, counted).await {
            Ok(None) => Count::Within,
            Ok(Some(reason)) => Count::Exceeded(reason),
            Err(error) => Count::Failed(format!("deleted files of its storage cannot be counted: {error}")),
        }
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
    use std::{
        collections::BTreeMap,
        fs,
        io::{BufRead as _, BufReader},
        process::{Command, Stdio},
    };

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

    #[tokio::test]
    async fn a_deleted_file_that_a_process_of_the_pod_holds_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let room = room(directory.path(), false);
        let written = "exec 3>gone && dd if=/dev/urandom bs=1M count=8 conv=fsync >&3 2>/dev/null && rm gone";
        let mut pod = Command::new("/bin/sh")
            .args(["-c", &format!("({written} && echo done || echo failed; read _; :); :")])
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(pod.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (of_none, of_pod) = (room.count(None).await, room.count(Some(pod.id())).await);
        drop(pod.stdin.take());
        pod.wait().unwrap();
        assert_eq!(line, "done\n");
        assert!(matches!(of_none, Count::Within), "it has no name");
        let Count::Exceeded(reason) = of_pod else { panic!("the file was not counted") };
        assert!(reason.contains("its storage data/0 takes more than its 1 MiB"), "{reason}");
        assert!(matches!(room.count(Some(pod.id())).await, Count::Within), "it went with the process");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_written_while_a_pod_runs_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let room = room(directory.path(), false);
        let mut exceeded = std::pin::pin!(room.exceeded(None));
        tokio::select! {
            reason = exceeded.as_mut() => panic!("{reason}"),
            () = sleep(PAUSE * 3) => {}
        }
        fs::write(directory.path().join("whole"), vec![1; 2 << 20]).unwrap();
        assert!(exceeded.await.contains("data/0"));
    }
}
