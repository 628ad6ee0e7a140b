//! Deleted files that a pod's processes still hold, as a part of its storage: they have no name, and take the disk's space
//! until the last process lets go of them (`docs/decisions/0116-*`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::MetadataExt as _,
};

use periapt_helper::DeletedFiles;
use periapt_host_api::storage::{StorageId, bytes_of};
use tokio::task::spawn_blocking;

use super::{needs::MountedStorage, starter::PodSoftware};

/// The files that the processes of a pod hold on the disk of its storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldFiles {
    /// Files of storage alone: all others of a container are in its image and in memory, which are other devices.
    OfStorage,
    /// Files of storage and of the host, such as compiled code.
    OfHost,
}

impl HeldFiles {
    /// Returns the files that a software's processes hold.
    pub(super) fn of(software: &PodSoftware) -> Self {
        match software {
            PodSoftware::Image(_) => Self::OfStorage,
            PodSoftware::Workload { .. } | PodSoftware::Container => Self::OfHost,
        }
    }
}

/// The storage on one device: the size of each in mebibytes, and the bytes that its names take.
type OnDevice<'a> = BTreeMap<&'a StorageId, (u64, u64)>;

/// Returns in words what is too much, if deleted files that a pod's processes hold take more than its storage has left.
/// `storage` is all that the pod can write, with the bytes that its names take.
pub(super) async fn exceeded(
    pod: u32,
    files: HeldFiles,
    storage: Vec<(MountedStorage, u64)>,
) -> io::Result<Option<String>> {
    spawn_blocking(move || count(pod, files, &storage)).await.map_err(io::Error::other).flatten()
}

fn count(pod: u32, files: HeldFiles, storage: &[(MountedStorage, u64)]) -> io::Result<Option<String>> {
    let mut devices: BTreeMap<u64, OnDevice<'_>> = BTreeMap::new();
    for (MountedStorage { id, directory, size, .. }, used) in storage {
        let device = fs::metadata(directory)?.dev();
        devices.entry(device).or_default().insert(id, (*size, *used));
    }
    let below = match files {
        HeldFiles::OfStorage => None,
        HeldFiles::OfHost => {
            let directories = storage.iter().map(|(storage, _)| fs::canonicalize(&storage.directory));
            Some(directories.collect::<io::Result<Vec<_>>>()?)
        }
    };
    let wanted = DeletedFiles { devices: devices.keys().copied().collect::<BTreeSet<_>>(), below };
    Ok(match wanted.held_by(pod) {
        Ok(deleted) => too_much(&devices, &deleted),
        // What hides behind so many is as good as too much.
        Err(error) => Some(error.to_string()),
    })
}

/// Returns in words what is too much. The kernel does not tell in which storage of a device a deleted file was, so all storage
/// on a device has its room together.
fn too_much(devices: &BTreeMap<u64, OnDevice<'_>>, deleted: &BTreeMap<u64, u64>) -> Option<String> {
    devices.iter().find_map(|(device, storage)| {
        let deleted = deleted.get(device).copied().filter(|deleted| *deleted > 0)?;
        let used = storage.values().fold(deleted, |sum, (_, used)| sum.saturating_add(*used));
        let size = storage.values().fold(0, |sum: u64, (size, _)| sum.saturating_add(*size));
        let ids: Vec<_> = storage.keys().map(ToString::to_string).collect();
        (used > bytes_of(size)).then(|| {
            format!(
                "with the deleted files that its processes hold open, its storage {} takes more than its {size} MiB; they \
                 go with the processes",
                ids.join(", ")
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{Digest, charm::WorkloadMeta};

    use super::*;
    use crate::keeper::pods::needs::PodNeeds;

    fn check(sizes: &[(u64, &str, u64, u64)], deleted: &[(u64, u64)], expected: Option<&str>) {
        let ids: Vec<StorageId> = sizes.iter().map(|(_, id, ..)| id.parse().unwrap()).collect();
        let mut devices: BTreeMap<u64, OnDevice<'_>> = BTreeMap::new();
        for (id, (device, _, size, used)) in ids.iter().zip(sizes) {
            devices.entry(*device).or_default().insert(id, (*size, *used));
        }
        let told = too_much(&devices, &deleted.iter().copied().collect());
        let told = told.as_deref().map(|told| {
            let told = told.strip_prefix("with the deleted files that its processes hold open, its storage ");
            told.and_then(|told| told.strip_suffix("; they go with the processes")).unwrap()
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn deleted_files_take_the_room_that_names_have_left() {
        let one = [(1, "data/0", 1, 1 << 19)];
        check(&one, &[(1, 1 << 19)], None);
        check(&one, &[(1, (1 << 19) + 1)], Some("data/0 takes more than its 1 MiB"));
        check(&one, &[(2, 1 << 30)], None);
        check(&one, &[], None);
        check(&one, &[(1, u64::MAX)], Some("data/0 takes more than its 1 MiB"));
    }

    #[test]
    fn storage_on_one_device_has_its_room_together() {
        let two = [(1, "data/0", 1, 0), (1, "logs/1", 2, 1 << 20), (2, "more/2", 9, 0)];
        check(&two, &[(1, 2 << 20)], None);
        check(&two, &[(1, (2 << 20) + 1)], Some("data/0, logs/1 takes more than its 3 MiB"));
    }

    #[test]
    fn a_webassembly_workload_holds_files_of_the_host_too() {
        let workload = WorkloadMeta { component: "web.wasm".to_owned(), http: None };
        let charm = Digest::of(b"charm");
        let wasm = PodSoftware::Workload { charm, workload, mounts: Ok(BTreeMap::new()) };
        assert_eq!(HeldFiles::of(&wasm), HeldFiles::OfHost);
        let container = PodSoftware::Image(PodNeeds::Unmet(String::new()));
        assert_eq!(HeldFiles::of(&container), HeldFiles::OfStorage);
    }

    #[test]
    fn storage_that_is_gone_is_an_error() {
        let storage = MountedStorage {
            id: "data/0".parse().unwrap(),
            directory: "/nonexistent/data-0".into(),
            size: 1,
            is_read_only: false,
        };
        let counted = count(std::process::id(), HeldFiles::OfStorage, &[(storage, 0)]);
        assert_eq!(counted.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
