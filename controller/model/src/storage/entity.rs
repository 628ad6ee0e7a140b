//! Storage.

use periapt_host_api::{
    AgentName, StorageId, Timestamp, UnitName, status::Life, storage::StorageEnd, view::StorageAttachment,
};
use serde::{Deserialize, Serialize};

/// An instance of storage: a bounded directory on an agent's disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Storage {
    /// Its id; never reused.
    pub id: StorageId,
    /// From where it comes.
    pub pool: String,
    /// Its bound, in mebibytes.
    pub size: u64,
    /// The agent on whose disk it lies; none until it is provisioned there.
    pub agent: Option<AgentName>,
    /// The unit that has it.
    pub attachment: Option<StorageAttachment>,
    /// What is to become of it; none: it is wanted.
    pub end: Option<StorageEnd>,
    /// How often units have let it go.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub detachments: u32,
    /// Removed by force before its agent said that its files are deleted: nobody sees it any more but the agent, which
    /// deletes them when it is back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forgotten: bool,
    /// Why the agent cannot make or delete it.
    pub failure: Option<String>,
    /// Why it is not provisioned yet, though nothing has failed: its agent has no room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_room: Option<String>,
    /// Since when it is as it is.
    pub since: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over by reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Storage {
    /// Alive, or dying once somebody wants it gone.
    pub fn life(&self) -> Life {
        match self.end {
            None => Life::Alive,
            Some(_) => Life::Dying,
        }
    }

    /// The unit that has it.
    pub fn unit(&self) -> Option<&UnitName> {
        self.attachment.as_ref().map(|attachment| &attachment.unit)
    }

    /// Whether the agent has still to delete its files, and nobody uses them any more.
    pub fn is_to_be_deleted(&self) -> bool {
        self.end == Some(StorageEnd::Destroy) && self.attachment.is_none() && self.agent.is_some()
    }
}
