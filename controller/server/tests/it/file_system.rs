//! File systems for tests: a small one that can be filled, and a read-only one.
//!
//! The test starts itself again in its own mount namespace, so that nothing is mounted for others and nothing is left
//! behind.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

const MOUNTED: &str = "PERIAPT_MOUNTED";

/// Runs a test, given by its full name, in a file system that is mounted with some options.
///
/// Prints the reason and does nothing if no file system can be mounted.
#[expect(clippy::print_stderr, reason = "who runs the tests is told what was not tried, and why")]
pub(crate) fn with_file_system(test: &str, options: &str, body: impl AsyncFnOnce(&Path)) {
    if let Some(mounted) = std::env::var_os(MOUNTED) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        return runtime.block_on(body(&PathBuf::from(mounted)));
    }
    let directory = tempfile::TempDir::new().unwrap();
    let mut refusals = Vec::new();
    // A user other than root may mount in a user namespace.
    for as_root in [&[][..], &["--map-root-user"]] {
        let mut mount = Command::new("unshare");
        mount.args(as_root).args(["--mount", "--", "sh", "-c"]);
        mount
            .arg("mount -t tmpfs -o \"$0\" tmpfs \"$1\" && shift && exec \"$@\"")
            .arg(options)
            .arg(directory.path());
        match mount.arg("true").output() {
            Ok(tried) if tried.status.success() => {}
            Ok(tried) => {
                refusals.push(String::from_utf8_lossy(&tried.stderr).trim().to_owned());
                continue;
            }
            Err(error) => {
                refusals.push(error.to_string());
                continue;
            }
        }
        let mut again = Command::new("unshare");
        again.args(as_root).args(["--mount", "--", "sh", "-c"]);
        again
            .arg("mount -t tmpfs -o \"$0\" tmpfs \"$1\" && shift && exec \"$@\"")
            .arg(options)
            .arg(directory.path());
        again.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
        let done = again.env(MOUNTED, directory.path()).output().unwrap();
        let (output, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && output.contains("1 passed"), "{output}\n{errors}");
        return;
    }
    let refusals = refusals.join("; ");
    // In CI these tests must run.
    assert!(std::env::var_os("CI").is_none(), "no file system can be mounted here: {refusals}");
    eprintln!("SKIPPED {test}: no file system can be mounted here: {refusals}");
}
