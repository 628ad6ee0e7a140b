//! A guard process: if a benchmark is killed, the guard kills the controllers and agents that the benchmark started.

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

/// A process that kills an installation's controllers and agents if the process that created it is killed. Without it
/// they would go on running. When the guard is dropped, it ends and kills nothing, because the installation ends them.
#[derive(Debug)]
pub struct InstallationGuard(Child);

impl InstallationGuard {
    /// Guards an installation.
    pub fn of(installation: &Installation) -> anyhow::Result<Self> {
        let program = installation.command([""; 0]).get_program().to_owned();
        let mut shell = installation.program("sh");
        shell.args(["-c".as_ref(), SCRIPT.as_ref(), program.as_os_str()]);
        // The kernel closes the other end of the guard's input when this process ends for any reason. The guard has a
        // process group of its own, so signals to this process's group do not reach it.
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(Self(shell.spawn().context("the guard of an installation")?))
    }

    /// Closes the guard's input, as the death of this process would, and waits until the guard has ended.
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
