//! Deliberate defects beside the product, which show that a search finds them.

use periapt_host_api::status::{FullStatus, Life};
use periapt_lab::Lab;

use super::moves::Move;

/// A defect of a scene's world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlantedDefect {
    /// No defect.
    Sound,
    /// No commit of this unit arrives once it is dying.
    UnheardEnd(&'static str),
    /// The status of this unit of this application does not name the reason it waits.
    SilentUnit(&'static str, &'static str),
    /// No time passes for forced removal.
    StoppedClock,
}

impl PlantedDefect {
    /// Returns true for a move that the defect prevents.
    pub(super) fn withholds(self, step: &Move, lab: &Lab) -> bool {
        match (self, step) {
            (Self::UnheardEnd(name), Move::Finish(unit) | Move::Step(unit)) => {
                unit.to_string() == name && lab.unit(name).is_ok_and(|unit| unit.life != Life::Alive)
            }
            _ => false,
        }
    }

    /// Changes a status as the defect does.
    pub(super) fn distort(self, status: &mut FullStatus) {
        let Self::SilentUnit(application, unit) = self else { return };
        let units = status.applications.get_mut(application).map(|found| &mut found.units);
        if let Some(found) = units.and_then(|units| units.get_mut(unit)) {
            found.waits_for.clear();
        }
    }
}
