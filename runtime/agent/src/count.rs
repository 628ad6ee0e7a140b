//! The count helper: a process that counts what storage holds, for a keeper that has no rights over all of its directories.
//! Services of other users of a container own files there, and these users are ids of `/etc/subuid` on the host.

use std::{io::ErrorKind, path::PathBuf, process::ExitCode};

use periapt_helper::{Fault, Fence, HelperInput, run_helper_behind};
use periapt_sandbox::{Bounds, FilesystemError, measure_storage};
use serde::{Deserialize, Serialize};

/// The work of a count helper: a directory, and the most that it may hold.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct CountOrder {
    /// The directory.
    pub(crate) directory: PathBuf,
    /// The most bytes.
    pub(crate) bytes: u64,
    /// The most files and directories.
    pub(crate) files: u64,
}

/// Runs the count helper in this process, which has rights over the files of the containers' users if the host gives them.
/// `order` is the last argument of its command line.
///
/// On success, standard output has the number of bytes in JSON, or `null` if the directory holds more than it may. On
/// failure, standard error has one line with the reason.
pub fn run_count_helper(order: &str) -> ExitCode {
    run_helper_behind(order, |order: &CountOrder| Fence::Counter(&order.directory), count)
}

fn count(CountOrder { directory, bytes, files }: CountOrder, _: HelperInput) -> Result<Vec<u8>, Fault> {
    let held = measure_storage(&directory, Bounds { bytes, files }).map_err(|error| {
        Fault::Refused(match error.kind() {
            ErrorKind::PermissionDenied => FilesystemError::Foreign(error).to_string(),
            _ => error.to_string(),
        })
    })?;
    serde_json::to_vec(&held.map(|held| held.bytes)).map_err(|error| Fault::Host(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn storage_is_counted_behind_the_fence() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("deep")).unwrap();
        fs::write(directory.path().join("deep/file"), vec![1; 10_000]).unwrap();
        let measured = |files| {
            let bounds = Bounds { bytes: 1 << 20, files };
            measure_storage(directory.path(), bounds).unwrap().map(|held| held.bytes)
        };
        let expected = (measured(2), measured(1));
        assert!(expected.0.is_some() && expected.1.is_none(), "{expected:?}");
        let behind = || {
            assert_eq!(Fence::Counter(directory.path()).raise(), [], "this kernel offers no whole fence");
            (measured(2), measured(1))
        };
        let counted = std::thread::scope(|scope| scope.spawn(behind).join()).unwrap();
        assert_eq!(counted, expected);
    }
}
