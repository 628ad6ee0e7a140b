//! Entities that show themselves: each for itself, whatever else is seen.

use std::sync::Arc;

use periapt_host_api::UnitName;

use super::Own;
use crate::{entity::Kind, root::ModelState};

/// A kind of entity that is seen for itself. It is declared so ([`kinds`](crate::entity::kinds)); from that follow its part
/// of a whole view, and of the next view after a change.
pub(crate) trait Seen: Kind + 'static {
    /// What is seen of it.
    type View;

    /// Those that come and go with a unit.
    fn of_unit<'a>(state: &'a ModelState, unit: &UnitName) -> impl Iterator<Item = &'a Arc<Self>>;

    /// Those that a runner may see beside.
    fn beside<'a>(_own: &Own<'a>) -> impl Iterator<Item = &'a Arc<Self>> {
        std::iter::empty()
    }

    /// What a runner sees of the entity; none: nothing.
    fn seen(&self, own: &Own<'_>) -> Option<Self::View>;
}
