//! What operators and hosts do to the model.

use std::time::Duration;

use periapt_host_api::{
    EventId, RelationId, UnitName,
    command::{Command, ControllerCommand, Force, RelationSelector, ResolveMode},
    pending::PendingEvent,
    status::Life,
    storage::UnitStorage,
};

use super::{HOST, LEASE, World};

/// Another agent, with units of `a`.
pub(super) const PEER: &str = "peer";

impl World {
    #[track_caller]
    pub(crate) fn configure_model(&mut self, key: &str, value: &str) {
        self.change(|lab| lab.configure_model(&[(key, value)]));
    }

    /// How often update-status runs.
    #[track_caller]
    pub(crate) fn update_status_every(&mut self, interval: &str) {
        self.configure_model("update-status-hook-interval", interval);
    }

    /// Failed hooks wait for an operator.
    #[track_caller]
    pub(crate) fn without_retries(&mut self) {
        self.configure_model("automatically-retry-hooks", "false");
    }

    /// Sets the option that is in every test.
    #[track_caller]
    pub(crate) fn configure(&mut self, settings: &str) {
        self.set_option("settings", settings);
    }

    #[track_caller]
    pub(crate) fn set_option(&mut self, option: &str, value: &str) {
        self.change(|lab| lab.configure("a", &[(option, value)]));
    }

    /// Refreshes the application. The same charm again is refused, and nothing happens.
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

    /// The host goes down and comes up.
    #[track_caller]
    pub(crate) fn reboot(&mut self) {
        self.change(|lab| lab.reboot_host(HOST));
    }

    /// The host gets another address, and the agent is started anew.
    #[track_caller]
    pub(crate) fn readdress(&mut self, address: &str) {
        self.change(|lab| {
            lab.move_addresses(HOST, &[address])?;
            lab.kill_agent(HOST)?;
            lab.start_agent(HOST)
        });
    }

    /// A unit's claim of leadership is granted; the lease of whoever led before lapsed.
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

    /// The leader's lease lapsed, and no other unit's claim has been answered.
    #[track_caller]
    pub(crate) fn lead_by_nobody(&mut self) {
        if let Some(leader) = self.leader() {
            // A lapsed lease is taken from its holder once another living unit could have it.
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

    /// Whether a unit leads that is not about to go.
    pub(crate) fn leader_lives(&self) -> bool {
        let life = |leader: UnitName| self.lab.unit(&leader.to_string()).map(|unit| unit.life);
        self.leader().is_some_and(|leader| life(leader).is_ok_and(|life| life == Life::Alive))
    }

    /// Lets time pass; who leads renews its lease.
    pub(crate) fn advance(&mut self, seconds: u64) {
        let application = self.view.applications.get(self.unit.application());
        let leader = application.and_then(|application| application.leader.clone());
        self.change(|lab| {
            lab.pass(Duration::from_secs(seconds));
            leader.map_or(Ok(()), |leader| lab.claim(&leader.unit))
        });
    }

    /// Relates an endpoint of `a` to an application, which is deployed if it is not there.
    #[track_caller]
    pub(crate) fn relate(&mut self, own: &str, remote: &str) -> RelationId {
        self.application_for(remote);
        let theirs = match own {
            "juju-info" => "info",
            _ => "remote",
        };
        self.integrate(&format!("a:{own}"), &format!("{remote}:{theirs}"))
    }

    /// Relates two ends, the first of which is the unit's.
    #[track_caller]
    pub(crate) fn integrate(&mut self, own: &str, other: &str) -> RelationId {
        let id = self.change(|lab| lab.integrate(own, other));
        let endpoint = own.split_once(':').unwrap().1;
        self.relations.insert(endpoint.to_owned(), id);
        id
    }

    /// The peers' relation, which came with the application.
    #[track_caller]
    pub(crate) fn peers(&mut self, endpoint: &str) {
        let own = self.unit.application();
        let relations = self.view.relations.values();
        let mut ends = relations.filter_map(|relation| Some((relation.end_of(own)?, relation.id)));
        let (_, id) = ends.find(|(end, _)| end.name.as_str() == endpoint).unwrap();
        self.relations.insert(endpoint.to_owned(), id);
    }

    /// An operator removes a relation.
    #[track_caller]
    pub(crate) fn remove_relation(&mut self, endpoint: &str) {
        let id = self.id(endpoint);
        self.change(|lab| lab.remove_relation(id));
    }

    /// The same, without waiting for anybody.
    #[track_caller]
    pub(crate) fn remove_by_force(&mut self, endpoint: &str) {
        let relation = RelationSelector::Id(self.id(endpoint));
        self.command(&Command::RemoveRelation { relation, force: Some(Force { max_wait: 0 }) });
    }

    /// An operator removes the unit.
    #[track_caller]
    pub(crate) fn die(&mut self) {
        let unit = self.unit.to_string();
        self.change(|lab| lab.remove_unit(&unit));
    }

    /// The same, without waiting for it.
    #[track_caller]
    pub(crate) fn die_by_force(&mut self) {
        let unit = self.unit.clone();
        let force = Some(Force { max_wait: 0 });
        self.command(&Command::RemoveUnit { unit, force, storage: UnitStorage::Detach });
    }

    /// Whether the relation is there for units to be in.
    pub(crate) fn is_open(&self, endpoint: &str) -> bool {
        self.relation(endpoint).is_some_and(|relation| relation.life == Life::Alive && !relation.suspended)
    }

    #[track_caller]
    pub(crate) fn resolved(&mut self, mode: ResolveMode) {
        let unit = self.unit.to_string();
        self.change(|lab| lab.resolve(&unit, mode));
    }

    /// The application and its relations are going, and the controller has not come to the units yet.
    pub(crate) fn begin_to_remove_application(&mut self) {
        self.lab.remove_application("a").unwrap();
        self.lab.deliver().unwrap();
        self.view = self.lab.mirror(HOST).unwrap();
    }

    /// The model is destroyed, whatever its agents do.
    #[track_caller]
    pub(crate) fn destroy_model(&mut self) {
        let force = Some(Force { max_wait: 0 });
        let destroy = ControllerCommand::DestroyModel { model: self.lab.model(), force, storage: None };
        self.change(|lab| lab.control(&destroy));
    }

    /// New content for a resource of the charm.
    #[track_caller]
    pub(crate) fn attach_resource(&mut self, resource: &str) {
        self.change(|lab| lab.attach_resource("a", resource, b"new"));
    }

    /// A hook of the unit asked for an event.
    #[track_caller]
    pub(crate) fn ask_later(&mut self, id: EventId, event: PendingEvent) {
        let unit = self.unit.to_string();
        self.change(|lab| {
            lab.by_hand(&unit)?
                .commit(|commit| {
                    commit.effects.events.emit.insert(id, event);
                })
                .map(|_| ())
        });
    }

    /// An operator takes such an event back.
    #[track_caller]
    pub(crate) fn cancel_event(&mut self, event: EventId) {
        let unit = self.unit.clone();
        self.command(&Command::CancelEvent { unit, event });
    }
}
