//! Impossible states: a test that sets one up would prove nothing, so it fails. `try-hook` and the harnesses of the
//! other SDKs refuse the same states with the same messages (`runtime/hook/tests/impossible.json`).

use super::state::{RelationState, State};
use crate::{Event, Relation};

#[expect(clippy::panic, reason = "a test of what cannot be has failed")]
pub(super) fn inconsistent(says: &str) -> ! {
    panic!("inconsistent: {says}")
}

/// Returns the application of a unit's name. Any other text fails the test.
pub(super) fn application_of(unit: &str) -> &str {
    let (application, number) = unit.split_once('/').unwrap_or((unit, ""));
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name =
        application.starts_with(|c: char| c.is_ascii_lowercase()) && application.chars().all(letters);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if !is_name || !is_number {
        let example = if is_name { application } else { "app" };
        inconsistent(&format!("{unit:?} is no unit's name; one is written {example}/0"));
    }
    application
}

impl State {
    /// Checks that a principal is a unit of another application.
    pub(super) fn check_principal(&self, principal: &str) {
        let own = self.application();
        if application_of(principal) == own {
            inconsistent(&format!(
                "{principal} cannot be the principal: it is a unit of {own} itself; name a unit of another application"
            ));
        }
    }

    /// Checks that a relation is with the unit's own application exactly if its endpoint is one of peers.
    pub(super) fn check_peers(&self, id: u32, endpoint: &str, remote: &str) {
        let Some(peers) = &self.declared.peers else { return };
        let own = self.application();
        match (peers.contains(endpoint), remote == own) {
            (true, false) => {
                inconsistent(&format!("relation {id} is of peers: it has no remote application"))
            }
            // Only metadata with known endpoints refuses the relation.
            (false, true) if self.declared.endpoints.is_some() => inconsistent(&format!(
                "relation {id} cannot be with {own} itself: {endpoint} is no endpoint of peers; name another application"
            )),
            _ => {}
        }
    }

    /// Checks that each storage has a number and is attached once.
    pub(super) fn check_storage(&self, id: &str) {
        let number = id.split_once('/').map_or("", |(_, number)| number);
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            let name = id.split('/').next().unwrap_or(id);
            inconsistent(&format!("{id:?} is no storage's id; one is written {name}/0"));
        }
        if self.storage.contains_key(id) {
            inconsistent(&format!("storage {id} is given twice; give each a number of its own"));
        }
    }

    /// Checks that a relation is not over.
    pub(super) fn check_relation(&self, relation: &Relation) {
        if self.durable.relations.get(&relation.id()).is_some_and(|state| state.broken) {
            inconsistent(&format!("relation {} is over; relate again for another", relation.id()));
        }
    }

    /// Checks that a remote unit is one of the remote application, and not the unit itself.
    pub(super) fn check_remote_unit(&self, relation: &Relation, unit: &str) {
        let Some(RelationState { remote, .. }) = self.durable.relations.get(&relation.id()) else { return };
        let (application, id) = (application_of(unit), relation.id());
        if unit == self.unit {
            inconsistent(&format!(
                "{unit} cannot be a remote unit of relation {id}: it is the unit itself; name another unit of {remote}"
            ));
        }
        if application != remote {
            inconsistent(&format!(
                "{unit} cannot be a remote unit of relation {id}: the remote application is {remote}; name a unit of \
                 {remote}"
            ));
        }
    }

    /// Checks that a unit has joined before it changes or departs.
    pub(super) fn check_member(&self, relation: &Relation, unit: &str) {
        self.check_relation(relation);
        self.check_remote_unit(relation, unit);
        let state = self.durable.relations.get(&relation.id());
        if !state.is_some_and(|state| state.members.contains(unit)) {
            inconsistent(&format!("{unit} is no member of relation {}; it has to join first", relation.id()));
        }
    }

    /// Checks that the event's relation, storage or secret exists.
    pub(super) fn check_event(&self, event: &Event) {
        let missing = match event {
            Event::StorageAttached(about) | Event::StorageDetaching(about) => {
                (!self.storage.contains_key(&about.id)).then(|| format!("storage {}", about.id))
            }
            Event::SecretChanged(about) | Event::SecretRotate(about) => {
                self.durable.secrets.of(&about.uri).is_none().then(|| format!("secret {}", about.uri))
            }
            Event::SecretExpired(about) | Event::SecretRemove(about) => {
                self.durable.secrets.of(&about.uri).is_none().then(|| format!("secret {}", about.uri))
            }
            event => event
                .relation()
                .filter(|relation| !self.durable.relations.contains_key(&relation.id()))
                .map(|relation| format!("relation {relation}")),
        };
        if let Some(missing) = missing {
            inconsistent(&format!("{} is about {missing}, which the unit has not", event.hook_name()));
        }
        match event {
            Event::RelationJoined(about) => self.check_remote_unit(&about.relation, &about.unit),
            Event::RelationDeparted(about) => self.check_remote_unit(&about.relation, &about.unit),
            Event::RelationChanged(about) => {
                about.unit.iter().for_each(|unit| self.check_remote_unit(&about.relation, unit));
            }
            Event::RelationBatch(about) => {
                let units = about.joined.iter().chain(&about.changed).chain(&about.departed);
                units.for_each(|unit| self.check_remote_unit(&about.relation, unit));
            }
            _ => {}
        }
    }
}
