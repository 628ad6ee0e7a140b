//! The update of the runner's units, and of the outlines of all units.

use std::sync::Arc;

use periapt_host_api::ApplicationName;

use super::Follow;
use crate::{entity::Unit, view::project};

impl Follow<'_> {
    pub(super) fn units(&mut self) {
        for unit in self.touched.gone_units.clone() {
            self.next.outlines.remove(&unit.name);
            self.show_principal(unit);
        }
        for unit in self.touched.new_units.clone() {
            if self.is_related(unit.name.application()) {
                self.next.outlines.insert(unit.name.clone(), project::outline(unit));
            }
            self.show_principal(unit);
        }
        for (_, after) in &self.touched.units {
            if self.next.outlines.contains_key(&after.name) {
                self.next.outlines.insert(after.name.clone(), project::outline(after));
            }
            if self.next.units.contains_key(&after.name)
                && let Some(unit) = project::unit(self.own.state, after)
            {
                self.next.units.insert(after.name.clone(), unit);
            }
        }
        for unit in &self.units.came {
            self.own.add_unit(unit, &mut self.next);
        }
        for unit in &self.units.went {
            self.next.units.remove(&unit.name);
            self.own.take_kinds_of(self.old, &unit.name, &mut self.next);
        }
    }

    /// Updates the principal of a unit, whose view lists its subordinates.
    fn show_principal(&mut self, subordinate: &Arc<Unit>) {
        let Some(name) = &subordinate.principal else { return };
        let principal = self.own.state.unit(name);
        if let Some(principal) = principal.filter(|_| self.next.units.contains_key(name))
            && let Some(found) = project::unit(self.own.state, principal)
        {
            self.next.units.insert(name.clone(), found);
        }
    }

    /// Returns true if an application is the runner's, or at the other end of a relation of one.
    fn is_related(&self, application: &ApplicationName) -> bool {
        self.own.has_units_of(application)
            || self
                .own
                .state
                .relations_of(application)
                .any(|relation| self.next.relations.contains_key(&relation.id))
    }
}
