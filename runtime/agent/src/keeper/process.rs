//! The start of runners.
//!
//! A runner gets one end of a socketpair as its standard input, and an environment that the keeper chooses. All other
//! descriptors of the keeper close when the runner's program starts.

use std::{io, os::fd::OwnedFd, process::Stdio, time::Duration};

use futures_util::future::BoxFuture;
use periapt_helper::RunnerPaths;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};

use super::directories::private_directory;
use crate::options::ChildProgram;

/// The time for a process to end on request, or after it closed its socket, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// A started runner.
pub(crate) struct Runner {
    /// The keeper's end of the socketpair.
    pub(crate) socket: UnixStream,
    /// The process.
    pub(crate) process: Box<dyn Process>,
}

/// A runner's process. Dropping it kills the process.
pub(crate) trait Process: Send {
    /// Kills the process.
    fn kill(&mut self);

    /// Waits until the process has ended, and kills it after a while. Returns how it ended, for logs.
    fn gone(self: Box<Self>) -> BoxFuture<'static, String>;
}

/// A starter of runners.
pub(crate) trait Launch: Send + Sync + 'static {
    /// Starts a runner with access to these directories.
    fn runner(&self, paths: &RunnerPaths) -> io::Result<Runner>;
}

/// Keeps the descriptors that this process inherited from runners and helpers.
pub(crate) fn keep_descriptors() {
    if let Err(error) = periapt_helper::keep_descriptors() {
        tracing::warn!(%error, "inherited descriptors pass on to runners");
    }
}

/// Forbids core dumps, which would contain secrets and keys.
pub(crate) fn forbid_core_dumps() {
    if let Err(error) = periapt_helper::forbid_core_dumps() {
        tracing::warn!(%error, "a core dump of this process would contain secrets");
    }
}

/// Raises the process's limit of open descriptors. Agents and runners hold one for each part of each charm's code, and
/// many systems start with a limit of 1,024.
pub(crate) fn allow_many_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // Without a hard limit, this is more than enough.
    let most = limit.maximum.map_or(MANY_DESCRIPTORS, |maximum| maximum.min(MANY_DESCRIPTORS));
    if limit.current.is_some_and(|current| current < most)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit })
    {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// The most descriptors that an agent or a runner needs.
const MANY_DESCRIPTORS: u64 = 64 << 10;

/// The least size of an allocation with its own mapping, in bytes: whole components and compiled code have this size,
/// and few other allocations of a keeper.
pub(crate) const MAPPED_ALONE: usize = 1 << 20;

/// A starter of runners as processes of a program.
#[derive(Debug, Clone)]
pub(crate) struct Processes(pub(crate) ChildProgram);

impl Launch for Processes {
    fn runner(&self, paths: &RunnerPaths) -> io::Result<Runner> {
        // The runner's fence (Landlock) gives access only to directories that exist when the runner raises it.
        private_directory(&paths.storage)?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let child = Command::new(&self.0.path)
            .args(&self.0.runner)
            .arg(paths.to_argument())
            .env_clear()
            .envs(self.0.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            // A signal from the terminal goes only to the keeper, which then ends its runners in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Runner { socket: UnixStream::from_std(ours)?, process: Box::new(ChildProcess(child)) })
    }
}

struct ChildProcess(Child);

impl Process for ChildProcess {
    fn kill(&mut self) {
        if let Err(error) = self.0.start_kill() {
            tracing::debug!(%error, "a runner could not be killed; it is gone already");
        }
    }

    fn gone(mut self: Box<Self>) -> BoxFuture<'static, String> {
        Box::pin(async move { how_it_ends(&mut self.0, GRACE).await })
    }
}

/// Waits until a process has ended, kills it after a while, and returns how it ended.
pub(crate) async fn how_it_ends(child: &mut Child, grace: Duration) -> String {
    let status = match timeout(grace, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            if let Err(error) = child.start_kill() {
                tracing::debug!(%error, "a process could not be killed; it is gone already");
            }
            child.wait().await
        }
    };
    status.map_or_else(|error| error.to_string(), |status| status.to_string())
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, path::PathBuf};

    use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn shell(script: &str) -> Processes {
        Processes(ChildProgram {
            path: PathBuf::from("/bin/sh"),
            runner: ["-c", script].map(OsString::from).into(),
            compile_helper: Vec::new(),
            pod: Vec::new(),
            holder: Vec::new(),
            unpack_helper: Vec::new(),
            count_helper: Vec::new(),
            environment: vec![("PERIAPT_TEST".into(), "given".into())],
        })
    }

    /// Starts a runner that is a shell with this script. `$0` is its last argument, the directories.
    fn started(script: &str) -> Runner {
        let root = tempfile::tempdir().unwrap();
        let paths = RunnerPaths { charms: root.path().into(), storage: root.path().join("storage/model") };
        let runner = shell(script).runner(&paths).unwrap();
        assert!(paths.storage.is_dir());
        runner
    }

    async fn says(script: &str) -> String {
        let Runner { mut socket, process } = started(script);
        let mut text = String::new();
        socket.read_to_string(&mut text).await.unwrap();
        process.gone().await;
        text
    }

    #[tokio::test]
    async fn a_runner_gets_its_socket_and_the_environment_that_it_was_given() {
        let variables = says("env >&0").await;
        // The shell's own variables are left out.
        let names = variables.lines().map(|line| line.split('=').next().unwrap());
        let given: Vec<_> = names.filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name)).collect();
        assert_eq!(given, ["PERIAPT_TEST"]);
        assert_eq!(says("pwd >&0").await, "/\n");
        let paths: RunnerPaths = serde_json::from_str(&says("echo $0 >&0").await).unwrap();
        assert!(paths.storage.ends_with("storage/model"));
    }

    #[tokio::test]
    async fn descriptors_that_the_agent_inherited_do_not_pass_on() {
        let inherited = std::fs::File::open("/dev/null").unwrap();
        fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
        keep_descriptors();
        assert_eq!(fcntl_getfd(&inherited).unwrap(), FdFlags::CLOEXEC);
        // Beside the first three, only the listing's own descriptor is open.
        assert_eq!(says("ls /proc/self/fd >&0").await, "0\n1\n2\n3\n");
    }

    #[tokio::test]
    async fn how_a_runner_ended_is_told_and_one_that_does_not_end_is_killed() {
        let Runner { process, .. } = started("exit 3");
        assert_eq!(process.gone().await, "exit status: 3");
        let Runner { mut process, .. } = started("sleep 600");
        process.kill();
        assert_eq!(process.gone().await, "signal: 9 (SIGKILL)");
    }
}
