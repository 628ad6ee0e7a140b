//! The baseline: the same charm as under Juju, with a Python process for each hook and each tool.

use std::{
    env, fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Context as _;
use periapt_archive::Archive;
use periapt_hook::{HookContext, hook_tools};
use tempfile::TempDir;

use crate::processes::Processes;

/// The environment variable with the path of a Python that has ops installed as for a charm on Juju: compiled,
/// and with libyaml.
const PYTHON: &str = "PERIAPT_BENCH_PYTHON";

pub(crate) struct Native {
    processes: Processes,
    python: PathBuf,
    charm: TempDir,
}

impl Native {
    pub(crate) fn new(archive: &[u8]) -> anyhow::Result<Self> {
        let python = env::var_os(PYTHON).with_context(|| format!("{PYTHON} must name a Python with ops"))?;
        let processes = Processes::new(hook_tools().map(|tool| tool.name))?;
        let charm = tempfile::tempdir()?;
        for (path, content) in Archive::read(archive)?.files() {
            // The given Python has the charm's dependencies.
            if path.starts_with("venv/") || path.ends_with(".wasm") {
                continue;
            }
            let place = charm.path().join(path);
            place.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(place, content)?;
        }
        Ok(Self { processes, python: python.into(), charm })
    }

    /// Runs one hook.
    pub(crate) fn hook(&mut self, context: HookContext) -> anyhow::Result<()> {
        let mut charm = Command::new(&self.python);
        charm
            .arg("src/charm.py")
            .current_dir(self.charm.path())
            .env_clear()
            .envs(context.environment())
            .env("JUJU_CHARM_DIR", self.charm.path())
            .env("PYTHONPATH", "lib")
            .stdin(Stdio::null());
        self.processes.run(context, &mut charm).map(drop)
    }
}
