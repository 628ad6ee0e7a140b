//! The errors of trials.

use std::{io, path::PathBuf};

use periapt_archive::{ArchiveError, InspectError, ReaderPanicked};
use periapt_hook::ContextError;
use periapt_sandbox::{ArtifactError, Busy, CompileError, PrepareError, SandboxError};

use crate::SceneError;

/// The reason why a charm cannot be tried, or a scene cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The charm is invalid, or cannot run here.
    #[error(transparent)]
    Charm(#[from] InspectError),
    /// The archive cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The component does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The compiler panicked.
    #[error("the component cannot be compiled here, because of a defect of the compiler: {}", .0.reason())]
    Compiler(#[from] ReaderPanicked),
    /// The compiled component cannot be stored or read.
    #[error(transparent)]
    Compiled(#[from] ArtifactError),
    /// The component does not fit the sandbox.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// This host has no sandbox.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The charm's files cannot be unpacked, or there is no randomness.
    #[error("this host: {0}")]
    Io(#[from] io::Error),
    /// The cache of compiled components cannot be used.
    #[error("cannot use {}: {source}", .path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The scene is invalid for the charm.
    #[error("scene: {0}")]
    Scene(#[from] SceneError),
    /// The scene lacks an entry that every hook needs.
    #[error("scene: {0}")]
    Context(#[from] ContextError),
    /// Another trial is running.
    #[error(transparent)]
    Busy(#[from] Busy),
}
