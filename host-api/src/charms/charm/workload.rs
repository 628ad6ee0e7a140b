//! One WebAssembly workload.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::workloads::WorkloadInterface;

/// A workload as a charm's metadata declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WorkloadMeta {
    /// The path of the component in the charm.
    pub component: String,
    /// The port of a server of HTTP; none for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<u16>,
}

impl WorkloadMeta {
    /// Returns the interface that the component must export.
    pub fn interface(&self) -> WorkloadInterface {
        match self.http {
            Some(_) => WorkloadInterface::Http,
            None => WorkloadInterface::Command,
        }
    }
}
