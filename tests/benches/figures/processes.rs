//! Hook tools as processes, for baselines. They ask over a unix socket; the same implementation of the tools answers
//! from the same view. The sides differ only in how charms run and call tools.

use std::{
    io::{Read as _, Write as _},
    os::unix::{
        fs::symlink,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
};

use anyhow::{Context as _, ensure};
use parking_lot::{Mutex, MutexGuard};
use periapt_hook::{CallAnswer, CallTime, HookContext};
use periapt_host_api::Timestamp;
use tempfile::TempDir;

/// A socket, and a directory of tools that call it.
pub(crate) struct Processes {
    socket: PathBuf,
    tools: PathBuf,
    /// The context of the running hook, shared with the answering thread.
    current: Arc<Mutex<Option<HookContext>>>,
    _place: TempDir,
}

impl Processes {
    pub(crate) fn new(names: impl IntoIterator<Item = &'static str>) -> anyhow::Result<Self> {
        // The path of a socket must be short.
        let place = tempfile::Builder::new().prefix("periapt-bench-").tempdir()?;
        let tools = place.path().join("tools");
        std::fs::create_dir(&tools)?;
        for name in names {
            symlink(env!("CARGO_BIN_EXE_periapt-bench-tool"), tools.join(name))?;
        }
        let socket = place.path().join("socket");
        let listener = UnixListener::bind(&socket)?;
        let current = Arc::new(Mutex::new(None));
        let answering = Arc::clone(&current);
        // The thread ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A tool that hangs up makes its hook fail.
                let _ = answer(stream, &answering);
            }
        });
        Ok(Self { socket, tools, current, _place: place })
    }

    /// Runs a program as a hook, with only the hook's environment, and returns the hook's context after success.
    pub(crate) fn run(&self, context: HookContext, program: &mut Command) -> anyhow::Result<HookContext> {
        let path = format!("{}:/usr/bin:/bin", self.tools.display());
        program.env("PATH", path).env("HOOK_SOCKET", &self.socket);
        self.current().replace(context);
        let status = program.status()?;
        let context = self.current().take().context("the hook's context is gone")?;
        ensure!(status.success(), "the hook failed: {status}");
        Ok(context)
    }

    fn current(&self) -> MutexGuard<'_, Option<HookContext>> {
        self.current.lock()
    }
}

/// Answers one call: the words arrive with a 0 byte after each; the answer is the exit code and the output.
fn answer(mut stream: UnixStream, current: &Mutex<Option<HookContext>>) -> anyhow::Result<()> {
    let mut request = Vec::new();
    stream.read_to_end(&mut request)?;
    let request = String::from_utf8(request)?;
    let mut words = request.split_terminator('\0').map(str::to_owned);
    let path = words.next().context("a tool has a name")?;
    let name = Path::new(&path).file_name().and_then(|name| name.to_str()).context("a tool has a name")?;
    let arguments: Vec<String> = words.collect();
    let mut current = current.lock();
    let context = current.as_mut().context("no hook runs")?;
    // The boot time is 0, as no lease is used.
    let now = CallTime { at: Timestamp::now(), boot_ms: 0 };
    let (code, printed) = match context.run_tool(now, name, &arguments, None) {
        CallAnswer::Ready(output) if output.exit_code == 0 => (0, output.stdout),
        CallAnswer::Ready(output) => (output.exit_code, output.stderr),
        CallAnswer::NeedsLease
        | CallAnswer::NeedsSecret(_)
        | CallAnswer::NeedsFile(_)
        | CallAnswer::NeedsResource(_) => (1, String::new()),
    };
    let mut answer = vec![code];
    answer.extend(printed.into_bytes());
    Ok(stream.write_all(&answer)?)
}
