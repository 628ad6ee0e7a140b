//! The relation that a script runs in.

use periapt_host_api::{UnitName, event::RelationContext};

/// The relation and remote unit of a run whose event names none.
#[derive(Debug, Clone)]
pub(crate) struct ExecRelation {
    pub(super) relation: RelationContext,
    pub(super) remote_unit: Option<UnitName>,
}
