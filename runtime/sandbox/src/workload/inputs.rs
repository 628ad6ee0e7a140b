//! The surroundings of a workload's instances.

use std::{path::PathBuf, sync::Arc};

use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder};

use super::{
    log::{Form, Output, WorkloadLog, WorkloadStream},
    outbound::Outbound,
};
use crate::limits;

/// A directory of the host that a workload has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreopenedDirectory {
    /// The directory on the host.
    pub host: PathBuf,
    /// Its absolute path in the workload.
    pub guest: String,
    /// True if the workload cannot change it.
    pub is_read_only: bool,
}

/// The surroundings of all instances of a workload.
#[derive(Clone)]
pub struct WorkloadInputs {
    /// The arguments; the first is the workload's name.
    pub arguments: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// Its directories.
    pub directories: Vec<PreopenedDirectory>,
    /// The receiver of what it writes to its standard streams.
    pub log: WorkloadLog,
    /// The policy for its HTTP requests.
    pub outbound: Arc<dyn Outbound>,
}

impl std::fmt::Debug for WorkloadInputs {
    /// Leaves the environment out, which may contain passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkloadInputs")
            .field("arguments", &self.arguments)
            .field("directories", &self.directories)
            .finish_non_exhaustive()
    }
}

/// The standard streams of one instance.
pub(super) struct Streams {
    pub(super) stdout: Output,
    pub(super) stderr: Output,
}

impl Streams {
    pub(super) fn new(form: Form, log: &WorkloadLog) -> Self {
        Self {
            stdout: Output::new(WorkloadStream::Stdout, form, log),
            stderr: Output::new(WorkloadStream::Stderr, form, log),
        }
    }

    /// Logs last lines without an end of line.
    pub(super) async fn finish(&self) {
        self.stdout.finish().await;
        self.stderr.finish().await;
    }
}

impl WorkloadInputs {
    /// Creates the WASI context of an instance, without standard input.
    pub(super) fn context(&self, streams: &Streams) -> wasmtime::Result<WasiCtxBuilder> {
        let mut builder = WasiCtx::builder();
        builder
            .args(&self.arguments)
            .envs(&self.environment)
            .initial_cwd("/")
            .stdout(streams.stdout.clone())
            .stderr(streams.stderr.clone())
            .max_random_size(limits::MAX_RANDOM_BYTES)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        for PreopenedDirectory { host, guest, is_read_only } in &self.directories {
            let permissions = if *is_read_only { FsPerms::ReadOnly } else { FsPerms::ReadWrite };
            builder.preopened_dir(host, guest, permissions)?;
        }
        Ok(builder)
    }
}
