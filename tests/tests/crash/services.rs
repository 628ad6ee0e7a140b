//! The processes to kill: a controller and an agent of this test's own.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
};

use anyhow::{Context as _, bail, ensure};
use periapt_client::{Client, Identity, Options};
use periapt_host_api::{
    agent::{Admission, JoinText},
    command::ControllerCommand,
    token::{TOKEN_BYTES, Token, TokenKind},
};
use periapt_tests::{Installation, signal};
use periapt_transport::{Readers, digest_of};
use tokio::runtime::Runtime;

/// A process that is restarted with the same arguments.
#[derive(Debug)]
pub(crate) struct Service {
    arguments: Vec<String>,
    log: PathBuf,
    child: Child,
}

impl Service {
    fn start(installation: &Installation, arguments: &[&str], output: Stdio) -> anyhow::Result<Self> {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let log = installation.path().join(format!("{}.log", arguments[0]));
        let child = spawn(installation, &arguments, &log, output)?;
        Ok(Self { arguments, log, child })
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the exit status if the process has ended.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Kills the process and waits for its end.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Returns the process's children.
    pub(crate) fn children(&self) -> Vec<u32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id())).into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        lists
            .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// A controller and its agent.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) controller: Service,
    pub(crate) keeper: Service,
    url: String,
    // Dropped last: the processes' files are in it.
    installation: Installation,
}

impl Services {
    /// Starts both; the controller keeps its port over restarts.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let installation = Installation::empty()?;
        let arguments = ["controller", "run", "--data", "controller", "--listen", "127.0.0.1:0"];
        let mut controller = Service::start(&installation, &arguments, Stdio::piped())?;
        let mut line = String::new();
        let output = controller.child.stdout.take().context("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let url = line.trim_end().strip_prefix("ready ").with_context(|| format!("it says {line:?}"))?;
        let address = url.strip_prefix("https://").with_context(|| format!("no URL: {url}"))?;
        *controller.arguments.last_mut().context("no arguments")? = address.to_owned();
        let socket = installation.path().join("controller/control.socket");
        let (https, url) = (url.to_owned(), format!("unix://{}", socket.display()));
        let token = installation.path().join("agent.token");
        let authority = fs::read_to_string(installation.path().join("controller/ca.pem"))?;
        periapt_transport::write_file(&token, &admitted(&url, "first", &authority)?, Readers::Owner)?;
        let token = token.to_str().context("a path")?;
        let arguments = ["agent", "run", "--controller", &https, "--name", "first", "--data", "agent"];
        let arguments = [&arguments[..], &["--token-file", token]].concat();
        let keeper = Service::start(&installation, &arguments, Stdio::null())?;
        Ok(Self { url, controller, keeper, installation })
    }

    /// Returns the controller's URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the directory of all files.
    pub(crate) fn path(&self) -> &Path {
        self.installation.path()
    }

    /// Starts the controller again.
    pub(crate) fn restart_controller(&mut self) -> anyhow::Result<()> {
        let Service { arguments, log, .. } = &self.controller;
        self.controller.child = spawn(&self.installation, arguments, log, Stdio::null())?;
        Ok(())
    }

    /// Starts the agent again.
    pub(crate) fn restart_keeper(&mut self) -> anyhow::Result<()> {
        let Service { arguments, log, .. } = &self.keeper;
        self.keeper.child = spawn(&self.installation, arguments, log, Stdio::null())?;
        Ok(())
    }

    /// Checks that neither process has ended by itself.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        for service in [&mut self.controller, &mut self.keeper] {
            if let Some(status) = service.ended()? {
                bail!("{:?} ended by itself: {status}", service.arguments);
            }
        }
        Ok(())
    }

    /// Adds the end of the services' logs to an error.
    pub(crate) fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        let mut text = String::new();
        for service in [&self.controller, &self.keeper] {
            let log = fs::read_to_string(&service.log).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            text.push_str(&format!("--- {}\n", service.log.display()));
            text.push_str(&lines[lines.len().saturating_sub(40)..].join("\n"));
            text.push('\n');
        }
        error.context(format!("the last lines of the logs:\n{text}"))
    }
}

/// Admits an agent, and returns the text with which it joins.
fn admitted(url: &str, agent: &str, authority: &str) -> anyhow::Result<String> {
    let token = Token::new(TokenKind::Join, [7; TOKEN_BYTES]);
    let admission = Admission { agent: agent.parse()?, token: token.digest(), valid_for: 600, again: false };
    let client = Client::new(Options::new(url, Identity::Local))?;
    let admit = client.controller_command(ControllerCommand::AdmitAgent(admission));
    // The test has a runtime of its own already.
    let admitted = std::thread::scope(|scope| {
        scope.spawn(|| Ok::<_, anyhow::Error>(Runtime::new()?.block_on(admit)?)).join()
    });
    admitted.map_err(|_| anyhow::anyhow!("the thread panicked"))??;
    Ok(JoinText { token, authority: digest_of(authority)? }.reveal())
}

fn spawn(
    installation: &Installation,
    arguments: &[String],
    log: &Path,
    output: Stdio,
) -> anyhow::Result<Child> {
    let log: File = OpenOptions::new().create(true).append(true).open(log)?;
    let child = installation.command(arguments).stdout(output).stderr(log).spawn();
    child.with_context(|| format!("starting {arguments:?}"))
}

/// Kills a child of a service; returns false if it was gone.
pub(crate) fn kill_child(parent: u32, child: u32) -> anyhow::Result<bool> {
    if parent_of(child) != Some(parent) {
        return Ok(false);
    }
    match signal(child, "KILL") {
        Ok(()) => Ok(true),
        // The child may have just ended.
        Err(error) => {
            ensure!(parent_of(child) != Some(parent), error);
            Ok(false)
        }
    }
}

/// Returns the parent of a process that has not ended.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain any characters.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z" && state != "X").then_some(parent)
}

/// Returns a process's command line; none if it has ended.
pub(crate) fn command_line(pid: u32) -> Option<String> {
    parent_of(pid)?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned())
}
