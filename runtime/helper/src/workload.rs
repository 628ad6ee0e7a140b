//! The order by which a pod starts the process of a workload (`docs/decisions/0086-*`).

use std::{fmt, path::PathBuf, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::limits::forbid_core_dumps;

/// The variable with a workload's order. Command lines are for all users of a host to see, environments are not.
pub const WORKLOAD_VARIABLE: &str = "PERIAPT_WORKLOAD";

/// The most bytes of an order: the kernel's bound for one variable is 128 KiB.
pub const MAX_WORKLOAD_ORDER: usize = 120 << 10;

/// The memory of the process beside its guests: the compiler's, the compiled code, and connections.
const OWN_MEMORY: u64 = 1 << 30;

/// The memory of an instance beside its linear memory: its stack and its tables.
const INSTANCE_MEMORY: u64 = 32 << 20;

/// The most open descriptors beside those of instances: connections, threads' events and the log.
const DESCRIPTORS: u64 = 1_024;

/// The most open descriptors of an instance: as many files as it may have handles, and its directories.
const INSTANCE_DESCRIPTORS: u64 = 512;

/// The order of a workload's process.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WorkloadOrder {
    /// The component's file.
    pub component: PathBuf,
    /// The kind.
    pub kind: WorkloadKind,
    /// The arguments; the first is the workload's name.
    pub arguments: Vec<String>,
    /// The whole environment of the guest.
    pub environment: Vec<(String, String)>,
    /// The directories of the guest.
    pub directories: Vec<WorkloadDirectory>,
    /// The limits.
    pub limits: WorkloadLimits,
    /// The number of the open descriptor of a socket on which the workload calls other units (`periapt_host_api::pod`); none:
    /// it calls nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<i32>,
}

/// The kinds of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// A server of HTTP, with its listening socket as standard input.
    Http,
    /// A command.
    Command,
}

/// A directory of the host that a workload has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WorkloadDirectory {
    /// The directory on the host.
    pub host: PathBuf,
    /// Its absolute path in the workload.
    pub guest: String,
    /// The use that the workload can make of it.
    pub access: DirectoryAccess,
}

/// The use that a workload can make of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DirectoryAccess {
    /// It reads.
    ReadOnly,
    /// It reads and writes, and makes files and directories, but no links and no special files.
    ReadWrite,
}

/// The limits of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WorkloadLimits {
    /// The most instances at a time.
    pub instances: u32,
    /// The linear memory of all instances, in bytes.
    pub memory: u64,
    /// The linear memory of one instance, in bytes.
    pub instance_memory: u64,
    /// The CPU time of the workload, in thousandths of one processor; none for all processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// The CPU time of a request.
    pub request_cpu: Duration,
    /// The time of a request, to the end of its response.
    pub request_time: Duration,
    /// The most bytes of a request's body.
    pub request_bytes: u64,
    /// The most bytes of a response's body.
    pub response_bytes: u64,
}

impl Default for WorkloadLimits {
    fn default() -> Self {
        Self {
            instances: 32,
            memory: 512 << 20,
            instance_memory: 128 << 20,
            cpu: None,
            request_cpu: Duration::from_secs(10),
            request_time: Duration::from_secs(60),
            request_bytes: 64 << 20,
            response_bytes: 1 << 30,
        }
    }
}

impl WorkloadOrder {
    /// Encodes the order; none if it is larger than a process can be given.
    #[must_use]
    pub fn to_text(&self) -> Option<String> {
        serde_json::to_string(self).ok().filter(|text| text.len() <= MAX_WORKLOAD_ORDER)
    }
}

impl WorkloadLimits {
    /// Applies the limits to this process: the kernel holds it to them although the engine should not.
    ///
    /// # Errors
    /// The system refuses a limit.
    pub fn bind(&self) -> rustix::io::Result<()> {
        let count = u64::from(self.instances);
        let instances = count.saturating_mul(INSTANCE_MEMORY);
        let memory = self.memory.saturating_add(instances).saturating_add(OWN_MEMORY);
        let descriptors = DESCRIPTORS.saturating_add(count.saturating_mul(INSTANCE_DESCRIPTORS));
        for (resource, limit) in [(Resource::Data, memory), (Resource::Nofile, descriptors)] {
            let limit = getrlimit(resource).maximum.map_or(limit, |most| most.min(limit));
            setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
        }
        forbid_core_dumps()
    }
}

impl fmt::Debug for WorkloadOrder {
    /// Leaves the environment out, which may contain passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkloadOrder")
            .field("component", &self.component)
            .field("kind", &self.kind)
            .field("arguments", &self.arguments)
            .field("directories", &self.directories)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(environment: &str) -> WorkloadOrder {
        WorkloadOrder {
            component: "/charm/web.wasm".into(),
            kind: WorkloadKind::Http,
            arguments: vec!["web".to_owned()],
            environment: vec![("PASSWORD".to_owned(), environment.to_owned())],
            directories: vec![WorkloadDirectory {
                host: "/srv".into(),
                guest: "/".to_owned(),
                access: DirectoryAccess::ReadOnly,
            }],
            limits: WorkloadLimits::default(),
            calls: Some(5),
        }
    }

    #[test]
    fn an_order_is_read_back_and_shows_no_environment() {
        let order = order("secret");
        let text = order.to_text().unwrap();
        assert_eq!(serde_json::from_str::<WorkloadOrder>(&text).unwrap(), order);
        assert!(!format!("{order:?}").contains("secret"));
    }

    #[test]
    fn an_order_that_no_process_can_be_given_is_none() {
        assert_eq!(order(&"x".repeat(MAX_WORKLOAD_ORDER)).to_text(), None);
    }
}
