//! The count of storage that workloads write.

use std::{
    fs::File,
    io::{self, ErrorKind},
    time::Duration,
};

use periapt_helper::{Limits, Program};
use periapt_host_api::storage::{bytes_of, files_of};
use periapt_sandbox::{Bounds, measure_storage};
use tokio::task::spawn_blocking;

use super::needs::MountedStorage;
use crate::count::CountOrder;

/// The limits of a count helper.
const LIMITS: Limits = Limits {
    // The names of a directory: 300 bytes each, of 3 million files.
    memory: 1 << 30,
    // The keeper's own count of many files on a slow disk has no deadline. The helper ends with the pod's life.
    cpu_seconds: 3_600,
    deadline: Duration::from_secs(3_600),
    input: 0,
    // A number.
    output: 64,
};

/// Counts storage by itself, or by a helper where it has no rights over a directory: an agent that is not root has none
/// over those of a container's other users.
#[derive(Debug, Clone, Default)]
pub(crate) struct StorageCounter {
    helper: Option<Program>,
}

impl StorageCounter {
    /// Creates a counter with a helper.
    pub(crate) fn new(helper: Program) -> Self {
        Self { helper: Some(helper) }
    }

    /// Counts the bytes of some storage; none if it holds more than it may.
    pub(super) async fn measure(&self, storage: &MountedStorage) -> io::Result<Option<u64>> {
        let MountedStorage { directory, size, .. } = storage;
        let (place, bounds) = (directory.clone(), Bounds { bytes: bytes_of(*size), files: files_of(*size) });
        let counted = spawn_blocking(move || measure_storage(&place, bounds)).await;
        match (counted.map_err(io::Error::other).flatten(), &self.helper) {
            (Err(error), Some(helper)) if error.kind() == ErrorKind::PermissionDenied => {
                let Bounds { bytes, files } = bounds;
                by_helper(helper, CountOrder { directory: directory.clone(), bytes, files }).await
            }
            (counted, _) => Ok(counted?.map(|held| held.bytes)),
        }
    }
}

/// Has a helper count.
async fn by_helper(helper: &Program, order: CountOrder) -> io::Result<Option<u64>> {
    let nothing = File::open("/dev/null")?;
    let counted = helper.run_in_memory(order, LIMITS, nothing).await.map_err(io::Error::other)?;
    Ok(serde_json::from_slice(&counted)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the answer of a helper that is a shell with this script.
    async fn answered(script: &str) -> io::Result<Option<u64>> {
        let (path, arguments) = ("/bin/sh".into(), vec!["-c".into(), script.into()]);
        let helper = Program { path, arguments, environment: Vec::new() };
        by_helper(&helper, CountOrder { directory: "/data".into(), bytes: 10, files: 20 }).await
    }

    #[tokio::test]
    async fn a_helper_is_told_the_bounds_and_answers_with_a_number_or_a_reason() {
        assert_eq!(answered("echo 4096").await.unwrap(), Some(4_096));
        assert_eq!(answered("echo null").await.unwrap(), None);
        let order = r#""directory":"/data","bytes":10,"files":20"#;
        assert_eq!(answered(&format!("case $0 in *'{order}'*) echo 1;; esac")).await.unwrap(), Some(1));
        assert_eq!(answered("echo no >&2; exit 1").await.unwrap_err().to_string(), "no");
        assert!(answered("echo many").await.is_err());
    }
}
