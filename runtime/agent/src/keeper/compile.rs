//! The compilation of a component in its own process, which sees nothing else.

use std::{fs::File, io, path::Path};

use futures_util::future::BoxFuture;
use periapt_helper::Failure;

use crate::{
    helper::Part,
    options::{ChildProgram, CompileLimits},
};

/// An error of compiling.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CompileError {
    /// The component is invalid: another attempt would fail, too.
    #[error("{0}")]
    Component(String),
    /// The helper failed on this host.
    #[error("the compile helper could not be run: {0}")]
    Host(String),
}

/// A compiler of components and modules.
pub(crate) trait Compile: Send + Sync + 'static {
    /// Compiles the file of a component or a module into another, empty file.
    fn compile<'a>(
        &'a self,
        part: Part,
        component: &'a Path,
        output: &'a Path,
        limits: CompileLimits,
    ) -> BoxFuture<'a, Result<(), CompileError>>;
}

/// A compiler that starts a helper process for each part.
#[derive(Debug, Clone)]
pub(crate) struct CompileHelper {
    pub(crate) program: ChildProgram,
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
        let program = periapt_helper::Program {
            path: self.program.path.clone(),
            arguments: self.program.compile_helper.clone(),
            environment: self.program.environment.clone(),
        };
        let (input, output) = (File::open(component)?, File::create(output)?);
        program.run(part, limits.into(), input, output).await.map_err(|failure| match failure {
            Failure::Refused(text) => CompileError::Component(text),
            Failure::Host(text) => CompileError::Host(text),
            failure @ (Failure::Late(_) | Failure::Died(_)) => {
                CompileError::Component(format!("compiling it failed: {failure}"))
            }
        })
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

    /// Returns the error of a helper that is a shell with this script.
    async fn output_of(script: &str, limits: CompileLimits) -> Result<String, CompileError> {
        let directory = tempfile::tempdir().unwrap();
        let (component, output) = (directory.path().join("component"), directory.path().join("code"));
        fs::write(&component, "a component").unwrap();
        let helper = CompileHelper {
            program: ChildProgram {
                path: "/bin/sh".into(),
                runner: Vec::new(),
                compile_helper: vec!["-c".into(), script.into()],
                pod: Vec::new(),
                holder: Vec::new(),
                unpack_helper: Vec::new(),
                count_helper: Vec::new(),
                environment: Vec::new(),
            },
        };
        helper.compile(Part::Component, &component, &output, limits).await?;
        Ok(fs::read_to_string(output).unwrap())
    }

    async fn fault(script: &str, limits: CompileLimits) -> String {
        match output_of(script, limits).await.unwrap_err() {
            CompileError::Component(text) => text,
            CompileError::Host(text) => panic!("the component is to blame, not the host: {text}"),
        }
    }

    #[tokio::test]
    async fn what_a_helper_makes_of_a_component_is_its_code() {
        assert_eq!(
            output_of("cat; echo ' compiled'", CompileLimits::default()).await.unwrap(),
            "a component compiled\n"
        );
    }

    #[tokio::test]
    async fn a_helper_that_refuses_dies_or_does_not_end_is_told_as_a_fault_of_the_component() {
        let limits = CompileLimits { deadline: Duration::from_secs(1), ..CompileLimits::default() };
        assert_eq!(
            fault("while :; do :; done", limits).await,
            "compiling it failed: it took longer than 1 s"
        );
        let limits = CompileLimits::default();
        assert_eq!(
            fault("ulimit -c 0; kill -SEGV $$", limits).await,
            "compiling it failed: it ended with signal: 11 (SIGSEGV): a limit of memory or time, or a defect"
        );
        assert_eq!(fault("echo 'no world that we know' >&2; exit 1", limits).await, "no world that we know");
    }

    #[tokio::test]
    async fn a_helper_that_cannot_begin_is_the_hosts_fault() {
        let error = output_of("echo 'a limit cannot be set' >&2; exit 2", CompileLimits::default()).await;
        assert!(matches!(error.unwrap_err(), CompileError::Host(text) if text == "a limit cannot be set"));
    }
}
