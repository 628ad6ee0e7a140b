//! A network of a test's own, which ends with it.

use std::{io, process::Command};

/// Set in the test's second process, which has the network.
const INSIDE: &str = "PERIAPT_OWN_NETWORK";

/// The options of `unshare` for a network in which this user may do everything.
const OWN: [&str; 3] = ["--user", "--map-root-user", "--net"];

/// Runs a test, given by its full name, in a network of its own: the loopback, and the right to do everything. Prints the
/// reason and does nothing if no network can be made.
///
/// # Errors
/// The test failed; or no network can be made, and this is CI.
#[expect(clippy::print_stderr, reason = "who runs the tests is told what was not tried, and why")]
pub fn in_own_network(test: &str, body: impl FnOnce()) -> io::Result<()> {
    if std::env::var_os(INSIDE).is_some() {
        body();
        return Ok(());
    }
    let tried = Command::new("unshare").args(OWN).arg("true").output()?;
    if !tried.status.success() {
        let reason =
            format!("no network can be made here: {}", String::from_utf8_lossy(&tried.stderr).trim());
        // In CI these tests must run.
        if std::env::var_os("CI").is_some() {
            return Err(io::Error::other(reason));
        }
        eprintln!("SKIPPED {test}: {reason}");
        return Ok(());
    }
    let mut again = Command::new("unshare");
    again.args(OWN).arg(std::env::current_exe()?).args(["--exact", test, "--nocapture"]);
    let done = again.env(INSIDE, "1").output()?;
    let (output, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    match done.status.success() && output.contains("1 passed") {
        true => Ok(()),
        false => Err(io::Error::other(format!("{output}\n{errors}"))),
    }
}
