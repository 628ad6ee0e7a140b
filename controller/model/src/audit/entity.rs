//! The end of the audit log.

use periapt_host_api::Digest;
use serde::{Deserialize, Serialize};

/// The newest entry of the audit log. The next one follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AuditHead {
    /// The number of the log. There is one, 0.
    pub log: u8,
    /// The number of the entry.
    pub number: u64,
    /// The digest of the entry.
    pub digest: Digest,
}
