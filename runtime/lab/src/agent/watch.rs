//! The units that a frame concerns.

use periapt_host_api::{UnitName, view::View};
use periapt_uniter::{Decision, executor::ChangedDependencies, resolve};

use super::{Agent, Driver};
use crate::{LabError, clock::Clock};

impl Agent {
    /// Notes the units whose decisions depend on a frame's changes.
    pub(super) fn touch(
        &mut self,
        changed: &ChangedDependencies,
        before: &View,
        after: &View,
        clock: Clock,
    ) -> Result<(), LabError> {
        match changed {
            ChangedDependencies::All => self.changed.extend(self.drivers.keys().cloned()),
            ChangedDependencies::These(these) => {
                let units = self.dependents.of(these);
                if self.doubts {
                    let waiting = self.drivers.values().filter(|driver| driver.waits_for_frames());
                    for unit in waiting.map(Driver::name).filter(|unit| !units.contains(unit)) {
                        self.concerns_nobody_else(unit, before, after, clock)?;
                    }
                }
                self.changed.extend(units);
            }
        }
        Ok(())
    }

    /// Checks that the decision of a unit outside a frame's concern stays the same.
    fn concerns_nobody_else(
        &self,
        unit: &UnitName,
        before: &View,
        after: &View,
        clock: Clock,
    ) -> Result<(), LabError> {
        let decided = |view: &View| reduced_state(resolve(view, unit, self.time(clock).timer));
        let (before, after) = (decided(before), decided(after));
        match before == after {
            true => Ok(()),
            false => Err(LabError::NotTouched { unit: unit.clone(), before, after }),
        }
    }
}

/// Describes a decision without the data that its run reads.
fn reduced_state(decision: Decision) -> String {
    match decision {
        Decision::RunHook(run) => format!("run {:?} of {:?}", run.event, run.charm),
        Decision::RunAction(run) => format!("run {} in {:?} of {:?}", run.task, run.group, run.run.charm),
        other => format!("{other:?}"),
    }
}
