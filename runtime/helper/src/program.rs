//! The side that starts a helper: a keeper or a controller.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read as _, Seek as _},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use rustix::fs::{MemfdFlags, memfd_create};
use serde::Serialize;
use tokio::{io::AsyncReadExt as _, process::Command, time::timeout};

use crate::{
    child::{REFUSED, UNUSABLE},
    limits::{HelperJob, Limits},
};

/// The most bytes of a helper's message that are read: an error takes a few lines.
const MESSAGE_BYTES: u64 = 16 << 10;

/// A program that is a helper when it is started with these arguments and an order: it calls
/// [`run_helper`](crate::run_helper).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// The arguments that make it a helper.
    pub arguments: Vec<OsString>,
    /// The whole environment; the starter's own is not passed on.
    pub environment: Vec<(OsString, OsString)>,
}

/// The reason why a helper's work was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The helper refuses its input, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The helper exceeded its deadline and was killed.
    #[error("it took longer than {} s", .0.as_secs())]
    Late(Duration),
    /// The helper ended in another way, given here. Its input is the cause.
    #[error("it ended with {0}: a limit of memory or time, or a defect")]
    Died(String),
    /// A fault of this host.
    #[error("the helper could not be run: {0}")]
    Host(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Host(error.to_string())
    }
}

impl Program {
    /// Has a helper write `output` from `input`. `output` starts empty, and is valid only on success. Dropping the
    /// future kills the helper.
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn run<W: Serialize>(
        &self,
        work: W,
        limits: Limits,
        input: File,
        output: File,
    ) -> Result<(), Failure> {
        let mut child = Command::new(&self.path)
            .args(&self.arguments)
            .arg(HelperJob::new(work, limits).to_argument())
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let mut message = Vec::new();
        let stderr = child.stderr.take();
        let ended = timeout(limits.deadline, async {
            if let Some(stderr) = stderr {
                stderr.take(MESSAGE_BYTES).read_to_end(&mut message).await?;
            }
            child.wait().await
        })
        .await;
        // The drop of the child kills it.
        let status = ended.map_err(|_| Failure::Late(limits.deadline))??;
        if status.success() {
            return Ok(());
        }
        let message: String = String::from_utf8_lossy(&message).trim().chars().map(plain).collect();
        let has_code = |code: u8| status.code() == Some(code.into()) && !message.is_empty();
        if has_code(REFUSED) {
            return Err(Failure::Refused(message));
        }
        if has_code(UNUSABLE) {
            return Err(Failure::Host(message));
        }
        // The text of a panic, for the search of the defect.
        tracing::debug!(%status, said = message, "a helper died");
        Err(Failure::Died(status.to_string()))
    }
}

/// Replaces control characters in a text that may quote untrusted bytes. In JSON, too, a character takes three bytes
/// at most.
fn plain(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        _ if character.is_control() => char::REPLACEMENT_CHARACTER,
        _ => character,
    }
}

impl Program {
    /// Has a helper make a small output from a file, and returns it.
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn run_in_memory<W: Serialize>(
        &self,
        work: W,
        limits: Limits,
        input: File,
    ) -> Result<Vec<u8>, Failure> {
        let memory = memfd_create("output", MemfdFlags::CLOEXEC).map_err(io::Error::from)?;
        let mut output = File::from(memory);
        self.run(work, limits, input, output.try_clone()?).await?;
        output.rewind()?;
        let mut made = Vec::new();
        output.take(limits.output).read_to_end(&mut made)?;
        Ok(made)
    }
}

/// Marks all inherited descriptors of this process close-on-exec, so that no process that it starts has them.
///
/// # Errors
/// The kernel does not offer it.
pub fn keep_descriptors() -> io::Result<()> {
    #[expect(unsafe_code, reason = "it sets a flag on descriptors, closes none, and touches no memory")]
    let result = unsafe {
        // From the first after the standard three to the last. Later descriptors have the flag already.
        libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int)
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LIMITS: Limits = Limits {
        memory: 1 << 30,
        cpu_seconds: 60,
        deadline: Duration::from_secs(60),
        input: 1 << 20,
        output: 1 << 20,
    };

    /// Runs a shell script as a helper, and returns its output. Its last argument, the order, is `$0`.
    async fn output_of(script: &str, limits: Limits) -> Result<String, Failure> {
        let directory = tempfile::tempdir().unwrap();
        let (input, output) = (directory.path().join("input"), directory.path().join("output"));
        fs::write(&input, "a stranger's").unwrap();
        let program = Program {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: vec![("OWN".into(), "own".into())],
        };
        let (read, write) = (File::open(&input).unwrap(), File::create(&output).unwrap());
        program.run("work", limits, read, write).await?;
        Ok(fs::read_to_string(output).unwrap())
    }

    async fn failure(script: &str) -> Failure {
        output_of(script, LIMITS).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_helper_gets_its_input_its_order_and_nothing_else() {
        keep_descriptors().unwrap();
        let script = "cat; echo; pwd; echo $OWN; echo $HOME$USER; echo $0; ls /proc/$$/fd";
        let all = output_of(script, LIMITS).await.unwrap();
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(lines[..4], ["a stranger's", "/", "own", ""]);
        assert_eq!(lines[4], HelperJob::new("work", LIMITS).to_argument());
        assert_eq!(
            lines[5..],
            ["0", "1", "2"],
            "the helper has no other descriptor of the process that starts it"
        );
    }

    #[tokio::test]
    async fn a_helper_that_does_not_end_is_ended() {
        let deadline = Duration::from_secs(1);
        let late = output_of("while :; do :; done", Limits { deadline, ..LIMITS }).await.unwrap_err();
        assert_eq!(late.to_string(), "it took longer than 1 s");
    }

    #[tokio::test]
    async fn a_helper_that_dies_is_told_as_a_fault_of_its_input() {
        let died = |how: &str| Failure::Died(how.to_owned());
        assert_eq!(failure("ulimit -c 0; kill -SEGV $$").await, died("signal: 11 (SIGSEGV)"));
        let half = failure("ulimit -c 0; echo half a word >&2; kill -XCPU $$").await;
        assert_eq!(half, died("signal: 24 (SIGXCPU)"));
        assert_eq!(failure("kill -KILL $$").await, died("signal: 9 (SIGKILL)"));
        assert_eq!(failure("exit 3").await, died("exit status: 3"));
        assert_eq!(failure("echo panicked >&2; exit 101").await, died("exit status: 101"));
        assert_eq!(failure("exit 1").await, died("exit status: 1"));
    }

    #[tokio::test]
    async fn a_helper_that_cannot_begin_is_a_fault_of_the_host() {
        let host = |text: &str| Failure::Host(text.to_owned());
        assert_eq!(failure("echo 'a limit cannot be set' >&2; exit 2").await, host("a limit cannot be set"));
        let missing = Program { path: "/nonexistent".into(), arguments: vec![], environment: vec![] };
        let null = || File::options().read(true).write(true).open("/dev/null").unwrap();
        let failure = missing.run("work", LIMITS, null(), null()).await.unwrap_err();
        assert!(matches!(&failure, Failure::Host(text) if text.contains("No such file")), "{failure}");
    }

    #[tokio::test]
    async fn what_a_helper_says_is_the_refusal_within_bounds() {
        let said = failure("echo 'no world that we know' >&2; exit 1").await;
        assert_eq!(said, Failure::Refused("no world that we know".to_owned()));
        let long = failure("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1").await.to_string();
        assert!(long.len() as u64 <= MESSAGE_BYTES, "{} bytes", long.len());
        let controls = failure("printf 'a\\033[31m\\nb' >&2; exit 1").await;
        assert_eq!(controls, Failure::Refused("a\u{fffd}[31m\nb".to_owned()));
    }
}
