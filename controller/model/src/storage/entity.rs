//! The storage entity.

use periapt_host_api::{
    AgentName, StorageId, Timestamp, UnitName, status::Life, storage::StorageEnd, view::StorageAttachment,
};
use serde::{Deserialize, Serialize};

/// A storage instance: a directory of bounded size on an agent's disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Storage {
    /// The instance's id. It is never reused.
    pub id: StorageId,
    /// The storage pool of the instance.
    pub pool: String,
    /// The size limit, in mebibytes.
    pub size: u64,
    /// The agent that has it on its disk; none until it is provisioned.
    pub agent: Option<AgentName>,
    /// The attachment to a unit, if it is attached.
    pub attachment: Option<StorageAttachment>,
    /// The kind of its removal (destroy or release), once it is being removed.
    pub end: Option<StorageEnd>,
    /// The number of times that a unit has detached it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub detachments: u32,
    /// True if it was removed by force before its agent deleted the directory. Only the agent still sees it, to
    /// delete the directory when it reconnects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forgotten: bool,
    /// The reason why the agent cannot provision or delete it.
    pub failure: Option<String>,
    /// The reason why it is not provisioned yet, if its agent has no room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_room: Option<String>,
    /// The time of the last change.
    pub since: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over by reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Storage {
    /// Returns the life: dying once it is being removed.
    pub fn life(&self) -> Life {
        match self.end {
            None => Life::Alive,
            Some(_) => Life::Dying,
        }
    }

    /// Returns the unit that it is attached to.
    pub fn unit(&self) -> Option<&UnitName> {
        self.attachment.as_ref().map(|attachment| &attachment.unit)
    }

    /// Returns true if the agent has yet to delete the directory, and no unit uses it.
    pub fn is_to_be_deleted(&self) -> bool {
        self.end == Some(StorageEnd::Destroy) && self.attachment.is_none() && self.agent.is_some()
    }
}
