//! An installation of Periapt in a temporary directory.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::{binary, packed};

/// The timeout of each `wait-for`: a charm's native code compiles for a minute where other suites run beside it.
const TIMEOUT: &str = "180s";

/// The timeout of waits for conditions that `wait-for` cannot express.
const UNTIL: Duration = Duration::from_secs(180);

/// The options of `unshare` for a user who is not root and has no ids in `/etc/subuid`. The files of this process's user
/// are that user's.
const WITHOUT_RIGHTS: [&str; 3] = ["--map-user=4242", "--map-group=4242", "--"];

/// The pause between two looks at what is to change. Other tests need the processors meanwhile.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A client's data directory with the controllers that it bootstrapped. Dropping it ends its processes and removes
/// its files.
#[derive(Debug)]
pub struct Installation {
    directory: tempfile::TempDir,
    binary: PathBuf,
    /// Variables of all its processes.
    environment: Vec<(String, String)>,
    /// The path of the network namespace of all its processes; none: that of this process.
    network: Option<String>,
}

/// The output and exit code of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The exit code; none if a signal ended the command.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Done {
    /// Returns standard error if it has exactly one error and the exit code is 1.
    pub fn one_error(&self) -> anyhow::Result<String> {
        ensure!(self.code == Some(1), "not refused: {self:?}");
        let errors = self.stderr.lines().filter(|line| line.starts_with("ERROR ")).count();
        ensure!(errors == 1, "{errors} errors: {self:?}");
        Ok(self.stderr.clone())
    }
}

impl Installation {
    /// Creates an installation without a controller.
    pub fn empty() -> anyhow::Result<Self> {
        Self::below(&std::env::temp_dir())
    }

    /// Creates an installation without a controller in a new directory below `parent`, on a file system of the test's
    /// choice.
    pub fn below(parent: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("periapt-test-").tempdir_in(parent)?;
        Ok(Self { directory, binary: binary()?, environment: Vec::new(), network: None })
    }

    /// Sets environment variables of all processes of the installation.
    pub fn with_environment(mut self, variables: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        self.environment.extend(variables.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self
    }

    /// Runs a program from now on in the place of the binary under test. What runs already stays.
    pub fn install(&mut self, program: PathBuf) {
        self.binary = program;
    }

    /// Runs all processes of the installation in a network namespace, given by its path.
    pub fn in_network(mut self, network: String) -> Self {
        self.network = Some(network);
        self
    }

    /// Creates an installation with a controller `local`, an agent on this machine and a model `test`.
    pub fn bootstrapped() -> anyhow::Result<Self> {
        let this = Self::empty()?;
        this.ok(["bootstrap", "local", "--agent-name", "first"])?;
        this.ok(["add-model", "test"])?;
        Ok(this)
    }

    /// Creates an installation with a controller `local`, an agent on this machine and a model `test`, and then
    /// replaces the file of the binary that started them with another program.
    pub fn replaced() -> anyhow::Result<Self> {
        let mut this = Self::empty()?;
        let (own, other) = (this.path().join("periapt"), this.path().join("other"));
        let original = std::mem::replace(&mut this.binary, own.clone());
        if std::fs::hard_link(&original, &own).is_err() {
            std::fs::copy(&original, &own).context("a copy of the binary")?;
        }
        this.ok(["bootstrap", "local", "--agent-name", "first"])?;
        std::fs::write(&other, "#!/bin/sh\nexit 9\n")?;
        std::fs::rename(other, &own)?;
        this.binary = original;
        this.ok(["add-model", "test"])?;
        Ok(this)
    }

    /// Returns the directory of the installation's files, where tests put theirs, too.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns a command of the binary with these arguments, in this installation and without the caller's Periapt
    /// variables.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = self.program(&self.binary);
        command.args(arguments);
        command
    }

    /// Returns a command of another program in the same environment.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        self.in_environment(started_in(self.network.as_deref(), program))
    }

    fn in_environment(&self, mut command: Command) -> Command {
        command
            .env("PERIAPT_DATA", self.path().join("data"))
            .env_remove("PERIAPT_MODEL")
            .env_remove("PERIAPT_CONTROLLER")
            .env_remove("PERIAPT_LOG")
            .env_remove("PERIAPT_LOG_FORMAT")
            .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT")
            .env_remove("TRACEPARENT")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> anyhow::Result<Done> {
        Self::finished(self.command(arguments))
    }

    /// Runs a command of [`Self::command`] to its end.
    pub fn finished(mut command: Command) -> anyhow::Result<Done> {
        done(command.output().context("running periapt")?)
    }

    /// Runs a command to its end through a link to the binary, which it creates if needed.
    pub fn run_as(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> anyhow::Result<Done> {
        let link = self.path().join(name);
        if !link.is_symlink() {
            std::os::unix::fs::symlink(&self.binary, &link).context("making a link")?;
        }
        done(self.program(&link).args(arguments).output().with_context(|| format!("running {name}"))?)
    }

    /// Runs a command that must succeed, and returns its output.
    pub fn ok(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> anyhow::Result<String> {
        let arguments: Vec<_> = arguments.into_iter().map(|word| word.as_ref().to_owned()).collect();
        let done = self.run(&arguments)?;
        ensure!(done.code == Some(0), "periapt {arguments:?} failed: {done:?}\n{}", self.logs());
        Ok(done.stdout)
    }

    /// Runs a command that must fail with code 1 and one `ERROR`, and returns standard error.
    pub fn refused(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> anyhow::Result<String> {
        let arguments: Vec<_> = arguments.into_iter().map(|word| word.as_ref().to_owned()).collect();
        let done = self.run(&arguments)?;
        done.one_error().with_context(|| format!("periapt {arguments:?}"))
    }

    /// Runs a command on a terminal of its own, and returns the terminal's input with a file's line ends.
    pub fn on_terminal(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> anyhow::Result<String> {
        let mut line = quoted(self.binary.as_os_str());
        for word in arguments {
            line.push_str(&format!(" {}", quoted(word.as_ref())));
        }
        let mut script = self.program("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
        let output = script.output().context("running script(1)")?;
        Ok(String::from_utf8(output.stdout).context("the terminal")?.replace("\r\n", "\n"))
    }

    /// Returns the ids of the processes that use this installation's files.
    pub fn processes(&self) -> anyhow::Result<Vec<u32>> {
        let path = self.path().to_str().context("the installation's path")?;
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // The process may have ended.
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&words).contains(path) && is_alive(pid) {
                found.push(pid);
            }
        }
        Ok(found)
    }

    /// Runs a command that prints JSON.
    pub fn json(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> anyhow::Result<Value> {
        let mut arguments: Vec<_> = arguments.into_iter().map(|word| word.as_ref().to_owned()).collect();
        arguments.extend(["--format".into(), "json".into()]);
        Ok(serde_json::from_str(&self.ok(arguments)?)?)
    }

    /// Runs a command that prints JSON until the output satisfies `holds`, for conditions that `wait-for` cannot
    /// express.
    pub fn json_until(&self, arguments: &[&str], holds: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let arguments = [arguments, &["--format", "json"]].concat();
        let read = |text: &str| serde_json::from_str::<Value>(text);
        Ok(read(&self.ok_until(&arguments, |text| read(text).is_ok_and(|value| holds(&value)))?)?)
    }

    /// Runs a command until its output satisfies `holds`.
    pub fn ok_until(&self, arguments: &[&str], holds: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let deadline = Instant::now() + UNTIL;
        loop {
            let text = self.ok(arguments)?;
            if holds(&text) {
                return Ok(text);
            }
            ensure!(Instant::now() < deadline, "periapt {arguments:?} still says {text}\n{}", self.logs());
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Runs `wait-for` with these arguments.
    pub fn wait_for(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> anyhow::Result<()> {
        let mut all = vec!["wait-for".into()];
        all.extend(arguments.into_iter().map(|word| word.as_ref().to_owned()));
        all.extend(["--timeout".into(), TIMEOUT.into()]);
        self.ok(all).map(drop)
    }

    /// Packs a charm of this repository and deploys it, with more arguments of `deploy`.
    pub fn deploy<'a>(&self, charm: &str, more: impl IntoIterator<Item = &'a str>) -> anyhow::Result<()> {
        let archive = packed(charm, self.path())?;
        let mut arguments = vec!["deploy".into(), archive.into_os_string()];
        arguments.extend(more.into_iter().map(Into::into));
        self.ok(arguments).map(drop)
    }

    /// Starts a process of this installation, which is killed when the returned value is dropped.
    pub fn spawn(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> anyhow::Result<RunningProcess> {
        self.spawned(self.command(arguments))
    }

    /// Starts a process of a command of [`Self::command`], which is killed when the returned value is dropped.
    pub fn spawned(&self, mut command: Command) -> anyhow::Result<RunningProcess> {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        Ok(RunningProcess(child.context("starting periapt")?))
    }

    /// Starts a command in the background, and sends what it logs to a file.
    pub fn logged(&self, mut command: Command, log: &Path) -> anyhow::Result<RunningProcess> {
        let log = std::fs::File::create(log).with_context(|| log.display().to_string())?;
        let child = command.stdout(Stdio::piped()).stderr(log).spawn();
        Ok(RunningProcess(child.context("starting periapt")?))
    }

    /// Returns the path of the socket of a controller that was bootstrapped here.
    pub fn socket(&self, controller: &str) -> PathBuf {
        self.path().join("data/controllers").join(controller).join("controller/control.socket")
    }

    /// Starts another agent of the controller `local`, with more arguments of `agent run`. It keeps its data in the
    /// installation's directory, below its name.
    pub fn agent<'a>(
        &self,
        name: &str,
        more: impl IntoIterator<Item = &'a str>,
    ) -> anyhow::Result<RunningProcess> {
        self.agent_in(Path::new(name), name, more)
    }

    /// Starts another agent of the controller `local` with its data in this directory.
    pub fn agent_in<'a>(
        &self,
        data: &Path,
        name: &str,
        more: impl IntoIterator<Item = &'a str>,
    ) -> anyhow::Result<RunningProcess> {
        let run = self.joining(data, name)?;
        self.spawn(run.into_iter().chain(more.into_iter().map(str::to_owned)))
    }

    /// Starts another agent of the controller `local`, and sends what it logs to a file.
    pub fn agent_logged<'a>(
        &self,
        name: &str,
        log: &Path,
        more: impl IntoIterator<Item = &'a str>,
    ) -> anyhow::Result<RunningProcess> {
        let mut command = self.command(self.joining(Path::new(name), name)?);
        command.args(more);
        self.logged(command, log)
    }

    /// Starts another agent of the controller `local` in a network namespace, given by its path, with more arguments of
    /// `agent run`. It keeps its data in the installation's directory, below its name.
    pub fn agent_elsewhere<'a>(
        &self,
        network: &str,
        name: &str,
        more: impl IntoIterator<Item = &'a str>,
    ) -> anyhow::Result<RunningProcess> {
        let mut command = self.in_environment(started_in(Some(network), &self.binary));
        command.args(self.joining(Path::new(name), name)?).args(more);
        self.spawned(command)
    }

    /// Starts another agent of the controller `local` as a user who is not root, and sends what it logs to a file. In a
    /// network of [`in_own_network`](crate::in_own_network), no other agent makes containers: root gives each a range of
    /// ids, and has one id there.
    pub fn agent_without_rights<'a>(
        &self,
        name: &str,
        log: &Path,
        more: impl IntoIterator<Item = &'a str>,
    ) -> anyhow::Result<RunningProcess> {
        let mut starter = self.program("unshare");
        starter.args(WITHOUT_RIGHTS);
        self.agent_by(starter, name, log, more)
    }

    /// Starts another agent of the controller `local` by a command that runs the program and the arguments after its own,
    /// and sends what it logs to a file.
    pub fn agent_by<'a>(
        &self,
        mut starter: Command,
        name: &str,
        log: &Path,
        more: impl IntoIterator<Item = &'a str>,
    ) -> anyhow::Result<RunningProcess> {
        starter.arg(&self.binary).args(self.joining(Path::new(name), name)?).args(more);
        self.logged(starter, log)
    }

    /// Admits an agent, and returns the arguments with which it runs and joins.
    fn joining(&self, data: &Path, name: &str) -> anyhow::Result<Vec<String>> {
        let token = self.path().join(format!("{name}.token"));
        let _ = std::fs::remove_file(&token);
        let (token, data) = (token.to_str().context("a path")?, data.to_str().context("a path")?);
        self.ok(["agent-token", name, "--again", "--controller", "local", "--output", token])?;
        let listing = self.json(["controllers"])?;
        let url = listing.pointer("/controllers/local/url").and_then(Value::as_str).context("no URL")?;
        let run =
            ["agent", "run", "--controller", url, "--name", name, "--data", data, "--token-file", token];
        Ok(run.map(str::to_owned).to_vec())
    }

    /// Returns the process id of a controller that was bootstrapped here.
    pub fn controller_process(&self, name: &str) -> anyhow::Result<u32> {
        self.process(name, "controller-process")
    }

    /// Returns the process id of the agent that was bootstrapped with the controller.
    pub fn agent_process(&self, name: &str) -> anyhow::Result<u32> {
        self.process(name, "agent-process")
    }

    fn process(&self, controller: &str, which: &str) -> anyhow::Result<u32> {
        let listing = self.json(["controllers"])?;
        let pid = listing.pointer(&format!("/controllers/{controller}/{which}")).and_then(Value::as_u64);
        Ok(u32::try_from(pid.with_context(|| format!("no {which} in {listing}"))?)?)
    }

    /// Returns the end of the services' logs, for the message of a failed test.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        let controllers = self.path().join("data/controllers");
        for controller in std::fs::read_dir(controllers).into_iter().flatten().flatten() {
            for name in ["controller.log", "agent.log"] {
                let log = std::fs::read_to_string(controller.path().join(name)).unwrap_or_default();
                let lines: Vec<_> = log.lines().collect();
                let tail = lines.get(lines.len().saturating_sub(20)..).unwrap_or_default();
                text.push_str(&format!("--- {name}\n{}\n", tail.join("\n")));
            }
        }
        text
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let Ok(listing) = self.json(["controllers"]) else { return };
        let controllers = listing.get("controllers").and_then(Value::as_object);
        for name in controllers.into_iter().flat_map(serde_json::Map::keys) {
            // The failed test has already reported a better error.
            let _ = self.run(["kill-controller", name, "--no-prompt"]);
        }
    }
}

/// Returns a command that runs a program, in a network namespace if there is one.
fn started_in(network: Option<&str>, program: impl AsRef<OsStr>) -> Command {
    let Some(network) = network else { return Command::new(program) };
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={network}")).arg("--").arg(program);
    command
}

/// Quotes a word for a shell.
fn quoted(word: &OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"))
}

fn done(output: Output) -> anyhow::Result<Done> {
    let Output { status, stdout, stderr } = output;
    Ok(Done {
        code: status.code(),
        stdout: String::from_utf8(stdout).context("standard output")?,
        stderr: String::from_utf8(stderr).context("standard error")?,
    })
}

/// A process that is killed when it is dropped.
#[derive(Debug)]
pub struct RunningProcess(Child);

impl RunningProcess {
    /// Returns the first line that the process prints.
    pub fn first_line(&mut self) -> anyhow::Result<String> {
        use std::io::BufRead as _;
        let output = self.0.stdout.take().context("its output was read already")?;
        let mut line = String::new();
        std::io::BufReader::new(output).read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for the process to end by itself, and returns its exit code.
    pub fn ended(mut self) -> anyhow::Result<Option<i32>> {
        Ok(self.0.wait()?.code())
    }

    /// Sends the process a signal by name, waits for its end and returns its exit code.
    pub fn end(mut self, signal: &str) -> anyhow::Result<Option<i32>> {
        self::signal(self.id(), signal)?;
        Ok(self.0.wait()?.code())
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to a process that a test started. Waits for the process to end after `KILL`.
pub fn signal(pid: u32, signal: &str) -> anyhow::Result<()> {
    // The shell's builtin: a minimal system has no `kill` program.
    let sent = Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", signal, &pid.to_string()]).status()?;
    ensure!(sent.success(), "kill -{signal} {pid}");
    let deadline = Instant::now() + UNTIL;
    while signal == "KILL" && is_alive(pid) {
        ensure!(Instant::now() < deadline, "process {pid} was killed and does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Returns true if a thread of a process has not ended. The first of a killed process may end before the others, which
/// hold its ports until they end.
pub fn is_alive(pid: u32) -> bool {
    let others = std::fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() > 1);
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    others || !matches!(state, Some('Z' | 'X'))
}
