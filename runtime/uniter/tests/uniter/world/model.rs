//! Changes of the model by operators and hosts.

use std::time::Duration;

use periapt_host_api::{
    EventId, RelationId, UnitName,
    command::{Command, ControllerCommand, Force, RelationSelector, ResolveMode},
    pending::PendingEvent,
    status::Life,
    storage::UnitStorage,
};

use super::{HOST, LEASE, World};

/// Another agent with units of `a`.
pub(super) const PEER: &str = "peer";

impl World {
    #[track_caller]
    pub(crate) fn configure_model(&mut self, key: &str, value: &str) {
        self.change(|lab| lab.configure_model(&[(key, value)]));
    }

    /// Sets the interval of update-status.
    #[track_caller]
    pub(crate) fn update_status_every(&mut self, interval: &str) {
        self.configure_model("update-status-hook-interval", interval);
    }

    /// Turns off automatic retries of failed hooks.
    #[track_caller]
    pub(crate) fn without_retries(&mut self) {
        self.configure_model("automatically-retry-hooks", "false");
    }

    /// Sets the option of every test.
    #[track_caller]
    pub(crate) fn configure(&mut self, settings: &str) {
        self.set_option("settings", settings);
    }

    #[track_caller]
    pub(crate) fn set_option(&mut self, option: &str, value: &str) {
        self.change(|lab| lab.configure("a", &[(option, value)]));
    }

    /// Refreshes the application. A refresh to the same charm is refused, without effect.
    #[track_caller]
    pub(crate) fn want_charm(&mut self, version: u64, force: bool) {
        let charm = self.charm(version);
        let wanted = self.application().charm.digest == charm.digest();
        let done = self.attempt(|lab| match force {
            true => lab.force_refresh("a", &charm),
            false => lab.refresh("a", &charm),
        });
        assert!(done.is_ok() || wanted, "{done:?}");
    }

    /// Reboots the host.
    #[track_caller]
    pub(crate) fn reboot(&mut self) {
        self.change(|lab| lab.reboot_host(HOST));
    }

    /// Gives the host another address, and restarts the agent.
    #[track_caller]
    pub(crate) fn readdress(&mut self, address: &str) {
        self.change(|lab| {
            lab.move_addresses(HOST, &[address])?;
            lab.kill_agent(HOST)?;
            lab.start_agent(HOST)
        });
    }

    /// Grants leadership to a unit, after the lease of the leader before has lapsed.
    #[track_caller]
    pub(crate) fn lead_by(&mut self, unit: &str) {
        let name = unit.parse().unwrap();
        if self.leader().as_ref() == Some(&name) {
            return;
        }
        self.ensure(unit);
        self.lead_by_nobody();
        self.change(|lab| lab.claim(&name));
        assert_eq!(self.leader(), Some(name));
    }

    /// Lets the leader's lease lapse, without answering another unit's claim.
    #[track_caller]
    pub(crate) fn lead_by_nobody(&mut self) {
        if let Some(leader) = self.leader() {
            // A lapsed lease is taken from its holder once another living unit exists.
            self.another_than(&leader);
            self.change(|lab| {
                lab.pass(LEASE);
                Ok(())
            });
        }
        assert_eq!(self.leader(), None);
    }

    pub(crate) fn leader(&self) -> Option<UnitName> {
        self.application().leader.as_ref().map(|leader| leader.unit.clone())
    }

    /// Returns true if a unit leads that is not being removed.
    pub(crate) fn leader_lives(&self) -> bool {
        let life = |leader: UnitName| self.lab.unit(&leader.to_string()).map(|unit| unit.life);
        self.leader().is_some_and(|leader| life(leader).is_ok_and(|life| life == Life::Alive))
    }

    /// Lets time pass. A leader renews its lease.
    pub(crate) fn advance(&mut self, seconds: u64) {
        let application = self.view.applications.get(self.unit.application());
        let leader = application.and_then(|application| application.leader.clone());
        self.change(|lab| {
            lab.pass(Duration::from_secs(seconds));
            leader.map_or(Ok(()), |leader| lab.claim(&leader.unit))
        });
    }

    /// Relates an endpoint of `a` to an application, deployed if needed.
    #[track_caller]
    pub(crate) fn relate(&mut self, own: &str, remote: &str) -> RelationId {
        self.application_for(remote);
        let theirs = match own {
            "juju-info" => "info",
            _ => "remote",
        };
        self.integrate(&format!("a:{own}"), &format!("{remote}:{theirs}"))
    }

    /// Relates two ends, of which the first is the unit's.
    #[track_caller]
    pub(crate) fn integrate(&mut self, own: &str, other: &str) -> RelationId {
        let id = self.change(|lab| lab.integrate(own, other));
        let endpoint = own.split_once(':').unwrap().1;
        self.relations.insert(endpoint.to_owned(), id);
        id
    }

    /// Registers the peer relation, which exists since the application's deployment.
    #[track_caller]
    pub(crate) fn peers(&mut self, endpoint: &str) {
        let own = self.unit.application();
        let relations = self.view.relations.values();
        let mut ends = relations.filter_map(|relation| Some((relation.end_of(own)?, relation.id)));
        let (_, id) = ends.find(|(end, _)| end.name.as_str() == endpoint).unwrap();
        self.relations.insert(endpoint.to_owned(), id);
    }

    /// Removes a relation as an operator.
    #[track_caller]
    pub(crate) fn remove_relation(&mut self, endpoint: &str) {
        let id = self.id(endpoint);
        self.change(|lab| lab.remove_relation(id));
    }

    /// Removes a relation by force.
    #[track_caller]
    pub(crate) fn remove_by_force(&mut self, endpoint: &str) {
        let relation = RelationSelector::Id(self.id(endpoint));
        self.command(&Command::RemoveRelation { relation, force: Some(Force { max_wait: 0 }) });
    }

    /// Removes the unit as an operator.
    #[track_caller]
    pub(crate) fn die(&mut self) {
        let unit = self.unit.to_string();
        self.change(|lab| lab.remove_unit(&unit));
    }

    /// Removes the unit by force.
    #[track_caller]
    pub(crate) fn die_by_force(&mut self) {
        let unit = self.unit.clone();
        let force = Some(Force { max_wait: 0 });
        self.command(&Command::RemoveUnit { unit, force, storage: UnitStorage::Detach });
    }

    /// Returns true if units may be in the relation.
    pub(crate) fn is_open(&self, endpoint: &str) -> bool {
        self.relation(endpoint).is_some_and(|relation| relation.life == Life::Alive && !relation.suspended)
    }

    #[track_caller]
    pub(crate) fn resolved(&mut self, mode: ResolveMode) {
        let unit = self.unit.to_string();
        self.change(|lab| lab.resolve(&unit, mode));
    }

    /// Starts to remove the application and its relations. The controller has not handled the units
    /// yet.
    pub(crate) fn begin_to_remove_application(&mut self) {
        self.lab.remove_application("a").unwrap();
        self.lab.deliver().unwrap();
        self.view = self.lab.mirror(HOST).unwrap();
    }

    /// Destroys the model by force.
    #[track_caller]
    pub(crate) fn destroy_model(&mut self) {
        let force = Some(Force { max_wait: 0 });
        let destroy = ControllerCommand::DestroyModel { model: self.lab.model(), force, storage: None };
        self.change(|lab| lab.control(&destroy));
    }

    /// Attaches new content of a resource.
    #[track_caller]
    pub(crate) fn attach_resource(&mut self, resource: &str) {
        self.change(|lab| lab.attach_resource("a", resource, b"new"));
    }

    /// Commits a hook's request for a delayed event.
    #[track_caller]
    pub(crate) fn ask_later(&mut self, id: EventId, event: PendingEvent) {
        let unit = self.unit.to_string();
        self.change(|lab| {
            lab.manual_unit(&unit)?
                .commit(|commit| {
                    commit.effects.events.emit.insert(id, event);
                })
                .map(|_| ())
        });
    }

    /// Cancels a delayed event as an operator.
    #[track_caller]
    pub(crate) fn cancel_event(&mut self, event: EventId) {
        let unit = self.unit.clone();
        self.command(&Command::CancelEvent { unit, event });
    }
}
