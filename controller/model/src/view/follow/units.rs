//! The update of the runner's units, and of the outlines of all units.

use std::sync::Arc;

use periapt_host_api::{
    ApplicationName,
    view::{ViewEntity, ViewKey},
};

use super::Follow;
use crate::entity::Unit;

impl Follow<'_> {
    pub(super) fn units(&mut self) {
        for unit in self.differences.gone_units.clone() {
            self.next.outlines.remove(&unit.name);
            self.show_principal(unit);
        }
        for unit in self.differences.new_units.clone() {
            if self.is_related(unit.name.application()) {
                self.next.outlines.insert(unit.name.clone(), unit.outline(self.own.state));
            }
            self.show_principal(unit);
        }
        for (_, after) in &self.differences.units {
            if self.next.outlines.contains_key(&after.name) {
                self.next.outlines.insert(after.name.clone(), after.outline(self.own.state));
            }
        }
        for unit in &self.units.came {
            self.own.add_kinds_of(&unit.name, &mut self.next);
        }
        for unit in &self.units.went {
            self.own.take_kinds_of(self.old, &unit.name, &mut self.next);
        }
    }

    /// Updates the principal of a unit, whose view lists its subordinates.
    fn show_principal(&mut self, subordinate: &Arc<Unit>) {
        let Some(name) = &subordinate.principal else { return };
        if let Some(principal) = self.own.state.unit(name) {
            self.own.show(principal, ViewEntity::Unit, ViewKey::Unit, &mut self.next);
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
