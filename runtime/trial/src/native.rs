//! A charm's own program in place of its component: a process on this host, with hook tools that answer as in the
//! sandbox. It is for authors who debug or compare. Nothing confines it, because it is the author's own.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _, Write as _},
    os::unix::{
        fs::{FileTypeExt as _, symlink},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    process::{ExitStatus, Output, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use periapt_hook::{
    CallAnswer, FileError, FileRequest, HookContext, OutputStream, ToolOutput, hook_tool_names, is_hook_tool,
};
use periapt_host_api::journal::HookCosts;
use periapt_sandbox::{HandlerOutcome, HookError, HookErrorKind, HookReport, HookServices as _};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixListener,
    process::Command,
};

use crate::{
    Scene, Trial, TrialError, TrialResult,
    run::{PreparedScene, tried},
    stage::Stage,
};

/// The variable with the socket that answers hook tools.
const SOCKET_VARIABLE: &str = "PERIAPT_HOOK_TOOLS";

/// The most bytes of one call: the sandbox's bound, as JSON.
const MAX_CALL: u64 = 16 << 20;

/// A program that handles hooks, such as `python3 src/charm.py`.
#[derive(Debug, Clone)]
pub struct NativeProgram {
    /// The command, with its arguments.
    pub command: Vec<OsString>,
    /// The charm's directory, in which the command runs.
    pub directory: PathBuf,
    /// A program that calls [`answer_as_hook_tool`] when it is started under a tool's name.
    pub tool: PathBuf,
}

/// One call of a hook tool.
#[derive(Debug, Serialize, Deserialize)]
struct ToolCall {
    name: String,
    arguments: Vec<String>,
    stdin: Option<Vec<u8>>,
}

/// The answer to a tool call.
#[derive(Debug, Serialize, Deserialize)]
struct ToolAnswer {
    exit_code: u8,
    stdout: String,
    stderr: String,
}

impl Trial {
    /// Runs one scene with a program in place of the charm's component.
    ///
    /// # Errors
    /// [`TrialError`]: the scene is invalid, or the program cannot be run.
    pub async fn run_native(
        &self,
        scene: &Scene,
        program: &NativeProgram,
    ) -> Result<TrialResult, TrialError> {
        let mut play = self.play(scene)?;
        let wall = play.budgets.wall;
        let began = Instant::now();
        let place = TempDir::with_prefix("periapt-tools-")?;
        let listener = UnixListener::bind(place.path().join("socket"))?;
        let mut command = command(program, &play.context, place.path())?;
        let process = command.spawn()?;
        let output =
            attended(process.wait_with_output(), wall, &listener, &mut play, &program.directory).await?;
        let PreparedScene { mut context, stage, .. } = play;
        let outcome = match output {
            Some(output) => {
                written(&mut context, &stage, &output);
                outcome(output.status)
            }
            // The drop of the process has killed it.
            None => failed(HookErrorKind::TimedOut, "it exceeded its time limit".to_owned(), 1),
        };
        let costs = HookCosts {
            wall_us: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
            ..HookCosts::default()
        };
        let gathered = context.finish();
        let report = HookReport { outcome, gathered, costs, started_at: stage.now().at };
        Ok(tried(report, stage.take_early()))
    }
}

fn command(program: &NativeProgram, context: &HookContext, place: &Path) -> Result<Command, TrialError> {
    let tools = place.join("tools");
    fs::create_dir(&tools)?;
    for name in hook_tool_names() {
        symlink(&program.tool, tools.join(name))?;
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let path =
        env::join_paths([tools].into_iter().chain(env::split_paths(&path))).map_err(io::Error::other)?;
    let [first, rest @ ..] = program.command.as_slice() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program is named").into());
    };
    let mut command = Command::new(first);
    command
        .args(rest)
        .current_dir(&program.directory)
        .envs(context.environment())
        .env("JUJU_CHARM_DIR", &program.directory)
        .env("PATH", path)
        .env(SOCKET_VARIABLE, place.join("socket"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Ok(command)
}

/// Answers tools until the process ends, and returns its output. None if it, or a tool of its, took longer than `wall`.
async fn attended(
    ended: impl Future<Output = io::Result<Output>>,
    wall: Duration,
    listener: &UnixListener,
    play: &mut PreparedScene,
    directory: &Path,
) -> Result<Option<Output>, TrialError> {
    let attending = async {
        let mut ended = std::pin::pin!(ended);
        loop {
            tokio::select! {
                biased;
                output = &mut ended => return Ok(output?),
                call = listener.accept() => answer(call?.0, &mut play.context, &play.stage, directory).await?,
            }
        }
    };
    // One deadline bounds all of it: a tool that connects and sends nothing must not delay it.
    tokio::time::timeout(wall, attending).await.ok().transpose()
}

/// Answers one tool call, as the sandbox answers a guest.
async fn answer(
    stream: tokio::net::UnixStream,
    context: &mut HookContext,
    stage: &Arc<Stage>,
    directory: &Path,
) -> Result<(), TrialError> {
    let mut stream = tokio::io::BufReader::new(stream);
    let mut line = String::new();
    if (&mut stream).take(MAX_CALL).read_line(&mut line).await? == 0 {
        // The tool ended before it sent a call.
        return Ok(());
    }
    let call: ToolCall = serde_json::from_str(&line).map_err(io::Error::other)?;
    let now = stage.now();
    let ToolOutput { exit_code, stdout, stderr } = loop {
        match context.run_tool(now, &call.name, &call.arguments, call.stdin.as_deref()) {
            CallAnswer::Ready(output) => break output,
            CallAnswer::NeedsLease => context.lease_renewed(stage.lease()),
            CallAnswer::NeedsSecret(key) => context.secret_fetched(key, stage.secret(key)),
            CallAnswer::NeedsFile(request) => {
                let done = do_with_file(&request, directory);
                context.file_answered(request, done);
            }
            CallAnswer::NeedsResource(key) => {
                let there = stage.resource(&key).map(drop);
                context.resource_fetched(key, there);
            }
        }
    };
    let answer =
        serde_json::to_string(&ToolAnswer { exit_code, stdout, stderr }).map_err(io::Error::other)?;
    // A tool that was killed meanwhile needs no answer.
    let _ = stream.get_mut().write_all(format!("{answer}\n").as_bytes()).await;
    Ok(())
}

/// Reads or writes a file for a tool, in the process's own file system.
fn do_with_file(request: &FileRequest, directory: &Path) -> Result<Vec<u8>, FileError> {
    let done = match request {
        FileRequest::Read { path, at_most } => match read(&directory.join(path), *at_most) {
            Ok(content) if content.len() > *at_most => return Err(FileError::TooLarge),
            read => read,
        },
        FileRequest::Write { path, content } => fs::write(directory.join(path), content).map(|()| Vec::new()),
    };
    done.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FileError::Absent,
        io::ErrorKind::IsADirectory => FileError::Directory,
        io::ErrorKind::PermissionDenied => FileError::Denied,
        _ => FileError::Failed,
    })
}

/// Reads at most one byte more than the bound. Refuses a FIFO: a read of it would wait for a writer past the hook's
/// deadline.
fn read(path: &Path, at_most: usize) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.file_type().is_fifo() {
        return Err(io::Error::other("it is a FIFO"));
    }
    let mut content = Vec::new();
    fs::File::open(path)?.take((at_most as u64).saturating_add(1)).read_to_end(&mut content)?;
    Ok(content)
}

fn written(context: &mut HookContext, stage: &Arc<Stage>, output: &Output) {
    for (stream, bytes) in [(OutputStream::Stdout, &output.stdout), (OutputStream::Stderr, &output.stderr)] {
        context.capture_output(stream, bytes);
        for line in String::from_utf8_lossy(bytes).lines() {
            context.output_line(stage.now(), stream, line);
        }
    }
}

fn outcome(status: ExitStatus) -> HandlerOutcome {
    match status.code() {
        Some(0) => HandlerOutcome::Handled,
        Some(code) => failed(HookErrorKind::Failed, format!("failed with code {code}"), code),
        None => failed(HookErrorKind::Interrupted, format!("it was ended: {status}"), 1),
    }
}

fn failed(kind: HookErrorKind, message: String, code: i32) -> HandlerOutcome {
    HandlerOutcome::Failed(HookError { kind, message, code })
}

/// Acts as a hook tool, if a charm's native program started this process as one, and returns the exit code.
///
/// `arguments` are those of the process, its own name first.
pub fn answer_as_hook_tool(arguments: impl IntoIterator<Item = OsString>) -> Option<u8> {
    let socket = env::var_os(SOCKET_VARIABLE)?;
    let mut arguments = arguments.into_iter();
    let name = Path::new(&arguments.next()?).file_name().and_then(OsStr::to_str)?.to_owned();
    if !is_hook_tool(&name) {
        return None;
    }
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    match ask(Path::new(&socket), name, arguments) {
        Ok(ToolAnswer { exit_code, stdout, stderr }) => {
            let _ = io::stderr().write_all(stderr.as_bytes());
            let mut output = io::stdout();
            match output.write_all(stdout.as_bytes()).and_then(|()| output.flush()) {
                // A charm that closed the stream does not need the output.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    let _ = writeln!(io::stderr(), "ERROR cannot write the output: {error}");
                    Some(1)
                }
                _ => Some(exit_code),
            }
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "ERROR no hook is running: {error}");
            Some(1)
        }
    }
}

fn ask(socket: &Path, name: String, arguments: Vec<String>) -> io::Result<ToolAnswer> {
    let call = ToolCall { name, stdin: stdin(&arguments)?, arguments };
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(format!("{}\n", serde_json::to_string(&call)?).as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// Reads standard input if an argument asks for it, as in `--file -`. Otherwise the charm's own may stay open for ever.
fn stdin(arguments: &[String]) -> io::Result<Option<Vec<u8>>> {
    let asks = |pair: &[String]| matches!(pair, [flag, value] if flag == "--file" && value == "-");
    let asked = arguments.windows(2).any(asks) || arguments.iter().any(|it| it == "--file=-");
    if !asked || io::stdin().is_terminal() {
        return Ok(None);
    }
    let mut content = Vec::new();
    io::stdin().take(MAX_CALL).read_to_end(&mut content)?;
    Ok(Some(content))
}

#[cfg(test)]
mod tests;
