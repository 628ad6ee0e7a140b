//! Compiling a component in a process of its own, which has nothing but the component.

use std::{fs::File, io, path::Path, process::Stdio};

use futures_util::future::BoxFuture;
use tokio::{io::AsyncReadExt as _, process::Command, time::timeout};

use crate::{
    helper::{HelperLimits, Part},
    options::{CompileLimits, Program},
};

/// The most bytes of a helper's message that are read: a compiler's error names a function and an offset.
const MESSAGE_BYTES: u64 = 16 << 10;

/// Why a component was not compiled.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CompileError {
    /// The component is to blame: the same again does no better.
    #[error("{0}")]
    Component(String),
    /// This host is.
    #[error("the compile helper could not be run: {0}")]
    Host(String),
}

/// Whoever compiles components.
pub(crate) trait Compile: Send + Sync + 'static {
    /// Compiles a component's file, or a module's, into another, which is empty.
    fn compile<'a>(
        &'a self,
        part: Part,
        component: &'a Path,
        output: &'a Path,
        limits: CompileLimits,
    ) -> BoxFuture<'a, Result<(), CompileError>>;
}

/// Compiles with a helper process per component.
#[derive(Debug, Clone)]
pub(crate) struct CompileHelper {
    pub(crate) program: Program,
}

impl From<io::Error> for CompileError {
    fn from(error: io::Error) -> Self {
        Self::Host(error.to_string())
    }
}

impl CompileHelper {
    async fn run(
        &self,
        part: Part,
        component: &Path,
        output: &Path,
        limits: CompileLimits,
    ) -> Result<(), CompileError> {
        let mut child = Command::new(&self.program.path)
            .args(&self.program.compile_helper)
            .arg(HelperLimits::new(&limits, part).to_argument())
            .env_clear()
            .envs(self.program.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::from(File::open(component)?))
            .stdout(Stdio::from(File::create(output)?))
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
        match ended {
            // Dropping the child kills it.
            Err(_) => Err(CompileError::Component(format!(
                "compiling took longer than {} s",
                limits.deadline.as_secs()
            ))),
            Ok(status) => {
                let status = status?;
                if status.success() {
                    return Ok(());
                }
                let message = String::from_utf8_lossy(&message).trim().to_owned();
                Err(CompileError::Component(match status.code() {
                    Some(_) if !message.is_empty() => message,
                    _ => format!("compiling ended with {status}: a limit of memory or time, or a defect"),
                }))
            }
        }
    }
}

impl Compile for CompileHelper {
    fn compile<'a>(
        &'a self,
        part: Part,
        component: &'a Path,
        output: &'a Path,
        limits: CompileLimits,
    ) -> BoxFuture<'a, Result<(), CompileError>> {
        Box::pin(self.run(part, component, output, limits))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;

    /// What is told of a helper that is a shell with this script. Its last argument, the limits, is `$0`.
    async fn told(script: &str, limits: CompileLimits) -> Result<String, CompileError> {
        let directory = tempfile::tempdir().unwrap();
        let (component, output) = (directory.path().join("component"), directory.path().join("code"));
        fs::write(&component, "a component").unwrap();
        let helper = CompileHelper {
            program: Program {
                path: "/bin/sh".into(),
                runner: Vec::new(),
                compile_helper: vec!["-c".into(), script.into()],
                environment: vec![("OWN".into(), "own".into())],
            },
        };
        helper.compile(Part::Component, &component, &output, limits).await?;
        Ok(fs::read_to_string(output).unwrap())
    }

    async fn fault(script: &str) -> String {
        match told(script, CompileLimits::default()).await.unwrap_err() {
            CompileError::Component(text) => text,
            CompileError::Host(text) => panic!("the component is to blame, not the host: {text}"),
        }
    }

    #[tokio::test]
    async fn a_helper_gets_its_component_its_limits_and_nothing_else() {
        // As an agent does when it starts.
        crate::keeper::process::keep_descriptors();
        let limits = CompileLimits::default();
        let script = "cat; echo; pwd; echo $OWN; echo $HOME$USER; echo $0; ls /proc/$$/fd";
        let all = told(script, limits).await.unwrap();
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(lines[..4], ["a component", "/", "own", ""]);
        assert_eq!(lines[4], HelperLimits::new(&limits, Part::Component).to_argument());
        assert_eq!(lines[5..], ["0", "1", "2"], "other descriptors of the keeper's are not the helper's");
    }

    #[tokio::test]
    async fn a_helper_that_does_not_end_is_ended() {
        let limits = CompileLimits { deadline: Duration::from_secs(1), ..CompileLimits::default() };
        let error = told("while :; do :; done", limits).await.unwrap_err();
        assert_eq!(error.to_string(), "compiling took longer than 1 s");
    }

    #[tokio::test]
    async fn a_helper_that_dies_is_told_as_a_fault_of_the_component() {
        let died = |signal: &str| {
            format!("compiling ended with signal: {signal}: a limit of memory or time, or a defect")
        };
        assert_eq!(fault("ulimit -c 0; kill -SEGV $$").await, died("11 (SIGSEGV)"));
        assert_eq!(fault("ulimit -c 0; echo half a word >&2; kill -XCPU $$").await, died("24 (SIGXCPU)"));
        assert_eq!(fault("kill -KILL $$").await, died("9 (SIGKILL)"));
        assert_eq!(
            fault("exit 3").await,
            "compiling ended with exit status: 3: a limit of memory or time, or a defect"
        );
    }

    #[tokio::test]
    async fn what_a_helper_says_is_the_fault_within_bounds() {
        assert_eq!(fault("echo 'no world that we know' >&2; exit 1").await, "no world that we know");
        let long = fault("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1").await;
        assert!(long.len() as u64 <= MESSAGE_BYTES, "{} bytes", long.len());
    }
}
