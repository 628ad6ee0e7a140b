//! Defects that are planted beside the product, so that a search is seen to find them.

use periapt_host_api::status::{FullStatus, Life};
use periapt_lab::Lab;

use super::moves::Move;

/// What is wrong with a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plant {
    /// Nothing.
    Sound,
    /// What this unit does once it is dying is never heard of, its death least of all.
    UnheardEnd(&'static str),
    /// Nobody says what a unit of this application waits for.
    SilentUnit(&'static str, &'static str),
    /// For forced removal no time passes.
    StoppedClock,
}

impl Plant {
    /// Whether a move that could be made is made by nobody.
    pub(super) fn withholds(self, step: &Move, lab: &Lab) -> bool {
        match (self, step) {
            (Self::UnheardEnd(name), Move::Finish(unit) | Move::Step(unit)) => {
                unit.to_string() == name && lab.unit(name).is_ok_and(|unit| unit.life != Life::Alive)
            }
            _ => false,
        }
    }

    /// What status says instead.
    pub(super) fn distort(self, status: &mut FullStatus) {
        let Self::SilentUnit(application, unit) = self else { return };
        let units = status.applications.get_mut(application).map(|found| &mut found.units);
        if let Some(found) = units.and_then(|units| units.get_mut(unit)) {
            found.waits_for.clear();
        }
    }
}
