//! Subordinates and their relations of container scope.

use periapt_host_api::RelationId;

use super::{HOST, World, charm};

impl World {
    /// Deploys a subordinate, and relates it to an endpoint of `a`.
    #[track_caller]
    pub(crate) fn accompany_at(&mut self, endpoint: &str, subordinate: &str) -> RelationId {
        let charm = charm::subordinate();
        self.versions.insert(charm.digest(), 1);
        self.change(|lab| lab.deploy(subordinate, &charm, 0));
        self.integrate(&format!("a:{endpoint}"), &format!("{subordinate}:sink"))
    }

    /// Deploys a subordinate, and relates it to the implicit endpoint of `a`.
    #[track_caller]
    pub(crate) fn accompany(&mut self, subordinate: &str) -> RelationId {
        self.change(|lab| lab.deploy(subordinate, &charm::subordinate(), 0));
        self.integrate("a:juju-info", &format!("{subordinate}:host"))
    }

    /// Relates a subordinate to another application, whose unit on the agent of `a/0` then gets its subordinate.
    #[track_caller]
    pub(crate) fn accompany_another(&mut self, principal: &str, subordinate: &str) -> RelationId {
        self.change(|lab| lab.deploy_to(principal, &charm::remote(), 1, HOST));
        let ends = [format!("{principal}:juju-info"), format!("{subordinate}:host")];
        let id = self.change(|lab| lab.integrate(&ends[0], &ends[1]));
        let unit = format!("{principal}/0");
        self.steps_of(&unit, |world| world.has_member(id, &unit));
        id
    }

    /// Switches the test to another unit of this agent, and lets that unit lead its application.
    #[track_caller]
    pub(crate) fn play(&mut self, unit: &str) {
        assert!(self.has_unit(unit));
        self.unit = unit.parse().unwrap();
        self.lead_by(unit);
    }
}
