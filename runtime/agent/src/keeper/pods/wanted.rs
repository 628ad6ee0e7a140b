//! The pods that a model's units on this agent need, from the frames that the keeper forwards.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ApplicationName, ContainerName, Digest, UnitName,
    status::Life,
    view::{FrameLine, UnitView, ViewEntity, ViewKey},
};

use super::PodId;

/// The units of one model on this agent, with the containers that their charms declare.
#[derive(Debug, Default, Clone)]
pub(crate) struct WantedPods {
    /// The units that are there, with the charm that each runs; none before its first.
    units: BTreeMap<UnitName, Option<Digest>>,
    /// The charms of applications, which new units will run.
    applications: BTreeMap<ApplicationName, Digest>,
    containers: BTreeMap<Digest, BTreeSet<ContainerName>>,
    /// The replacement from a full view whose last line has not arrived.
    coming: Option<Box<WantedPods>>,
}

impl WantedPods {
    /// Records the changes of a frame's line. Returns true after a frame's last line.
    pub(crate) fn observe(&mut self, line: &FrameLine) -> bool {
        let coming = self.coming.take();
        if line.from.is_some() {
            self.note(line);
            return line.is_last() && !line.is_heartbeat();
        }
        let mut coming = coming.filter(|_| !line.is_first()).unwrap_or_default();
        coming.note(line);
        if line.is_last() {
            *self = *coming;
            return true;
        }
        self.coming = Some(coming);
        false
    }

    /// Returns the pods.
    pub(crate) fn pods(&self) -> BTreeSet<PodId> {
        let of_unit = |(unit, charm): (&UnitName, &Option<Digest>)| {
            let charm = charm.or_else(|| self.applications.get(unit.application()).copied());
            let containers = charm.and_then(|charm| self.containers.get(&charm));
            let unit = unit.clone();
            containers.into_iter().flatten().map(move |container| (unit.clone(), container.clone()))
        };
        self.units.iter().flat_map(of_unit).collect()
    }

    fn note(&mut self, line: &FrameLine) {
        for key in &line.deletes {
            match key {
                ViewKey::Unit(unit) => drop(self.units.remove(unit)),
                ViewKey::Application(application) => drop(self.applications.remove(application)),
                ViewKey::Charm(charm) => drop(self.containers.remove(charm)),
                _ => {}
            }
        }
        for entity in &line.puts {
            match entity {
                ViewEntity::Unit(unit) if has_workloads(unit) => {
                    let charm = unit.record.charm.map(|charm| charm.digest);
                    self.units.insert(unit.name.clone(), charm);
                }
                ViewEntity::Unit(unit) => drop(self.units.remove(&unit.name)),
                ViewEntity::Application(application) => {
                    self.applications.insert(application.name.clone(), application.charm.digest);
                }
                ViewEntity::Charm(charm) => {
                    let containers = charm.meta.containers.keys().cloned().collect();
                    self.containers.insert(charm.digest, containers);
                }
                _ => {}
            }
        }
    }
}

/// Returns true until a unit has run its last hook.
fn has_workloads(unit: &UnitView) -> bool {
    unit.life != Life::Dead && !unit.record.removed
}
