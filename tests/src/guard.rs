//! Ends what a benchmark started, should the benchmark itself be killed.

use std::{
    os::unix::process::CommandExt as _,
    process::{Child, Stdio},
};

use anyhow::{Context as _, ensure};

use crate::Installation;

/// Waits until nobody writes to it any more, then ends the controllers of the installation, and with them its agents. `$0`
/// is the program.
const SCRIPT: &str = r#"
cat
for directory in data/controllers/*/; do
  [ -d "$directory" ] || continue
  name=${directory%/}
  "$0" kill-controller "${name##*/}" --no-prompt
done
"#;

/// A process that kills an installation's controllers and agents when the process that made it was killed: what those
/// start outlives its starter otherwise. Dropped, it ends and kills nothing: the installation does that.
#[derive(Debug)]
pub struct InstallationGuard(Child);

impl InstallationGuard {
    /// Guards an installation.
    pub fn of(installation: &Installation) -> anyhow::Result<Self> {
        let program = installation.command([""; 0]).get_program().to_owned();
        let mut shell = installation.program("sh");
        shell.args(["-c".as_ref(), SCRIPT.as_ref(), program.as_os_str()]);
        // The kernel closes the other end of its input when this process ends, however that comes. A signal to this
        // process' group is not the guard's.
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(Self(shell.spawn().context("the guard of an installation")?))
    }

    /// Lets it see what it sees when this process is killed, and waits until it has done its work.
    pub fn abandon(mut self) -> anyhow::Result<()> {
        drop(self.0.stdin.take());
        let ended = self.0.wait()?;
        ensure!(ended.success(), "the guard failed: {ended}");
        Ok(())
    }
}

impl Drop for InstallationGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
