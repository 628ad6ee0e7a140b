//! The baseline of a hook: the same work as a shell script with a process per hook tool, which ask over a unix socket.
//!
//! The socket's other end answers with the same implementation of the tools, from the same snapshot, and what the
//! script asked for is committed the same way: only how the charm's code runs and asks is another.

use std::{
    io::{Read as _, Write as _},
    os::unix::{
        fs::symlink,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use anyhow::{Context as _, ensure};
use periapt_hook::{Answer, HookContext};
use periapt_host_api::{Timestamp, journal::HookCosts};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::model::{self, Model};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../charms/bench/hook.sh");

pub(crate) struct Shell {
    model: Model,
    socket: PathBuf,
    path: String,
    /// The hook that runs, for the thread that answers.
    current: Arc<Mutex<Option<HookContext>>>,
    ran: u32,
    _place: TempDir,
}

impl Shell {
    pub(crate) fn new(model: Model) -> anyhow::Result<Self> {
        // A socket's path must be short.
        let place = tempfile::Builder::new().prefix("periapt-bench-").tempdir()?;
        let tools = place.path().join("tools");
        std::fs::create_dir(&tools)?;
        for tool in ["relation-get", "relation-set"] {
            symlink(env!("CARGO_BIN_EXE_periapt-bench-tool"), tools.join(tool))?;
        }
        let path = format!("{}:/usr/bin:/bin", tools.display());
        let socket = place.path().join("socket");
        let listener = UnixListener::bind(&socket)?;
        let current = Arc::new(Mutex::new(None));
        let answering = Arc::clone(&current);
        // It ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A tool that hung up fails its script.
                let _ = answer(stream, &answering);
            }
        });
        Ok(Self { model, socket, path, current, ran: 0, _place: place })
    }

    /// Runs one hook and commits it.
    pub(crate) fn hook(&mut self, runtime: &Runtime) -> anyhow::Result<()> {
        let started_at = Timestamp::now();
        let context = self.model.context()?;
        let mut script = Command::new("/bin/sh");
        script.arg(SCRIPT).env_clear().envs(context.environment());
        script.env("PATH", &self.path).env("HOOK_SOCKET", &self.socket).stdin(Stdio::null());
        self.current().replace(context);
        let status = script.status()?;
        let context = self.current().take().context("the hook's context is gone")?;
        ensure!(status.success(), "the script failed: {status}");
        let commit = self.model.commit_hook(context.finish(), HookCosts::default(), started_at);
        runtime.block_on(commit)?;
        self.ran += 1;
        ensure!(self.model.counted() == self.ran, "each hook sees the commit of the one before");
        Ok(())
    }

    fn current(&self) -> std::sync::MutexGuard<'_, Option<HookContext>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers one tool: its words come with a 0 after each; its exit code goes back, and what it prints.
fn answer(mut stream: UnixStream, current: &Mutex<Option<HookContext>>) -> anyhow::Result<()> {
    let mut request = Vec::new();
    stream.read_to_end(&mut request)?;
    let request = String::from_utf8(request)?;
    let mut words = request.split_terminator('\0').map(str::to_owned);
    let path = words.next().context("a tool has a name")?;
    let name = Path::new(&path).file_name().and_then(|name| name.to_str()).context("a tool has a name")?;
    let arguments: Vec<String> = words.collect();
    let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
    let context = current.as_mut().context("no hook runs")?;
    let (code, printed) = match context.run_tool(model::now(), name, &arguments, None) {
        Answer::Ready(output) if output.exit_code == 0 => (0, output.stdout),
        Answer::Ready(output) => (output.exit_code, output.stderr),
        Answer::NeedsLease | Answer::NeedsSecret(_) | Answer::NeedsFile(_) | Answer::NeedsResource(_) => {
            (1, String::new())
        }
    };
    let mut answer = vec![code];
    answer.extend(printed.into_bytes());
    Ok(stream.write_all(&answer)?)
}
