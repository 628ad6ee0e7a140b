//! The unit's relations, and the members that it was told of (`docs/hook-model.md` 2.8, R-42).

use std::collections::BTreeSet;

use periapt_host_api::{
    ApplicationName, EndpointName, ModelUuid, RelationId, UnitName,
    event::{Event, RelationBatch},
    record::RelationRecord,
    relation::{BagKey, BagOwner, Scope},
    status::Life,
    view::RelationView,
};

use crate::{
    CallError,
    context::{HookContext, HookRun},
};

/// A relation of the unit: one on its record, or the hook's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnRelation<'a> {
    pub(crate) id: RelationId,
    pub(crate) endpoint: &'a EndpointName,
    pub(crate) remote_application: &'a ApplicationName,
    record: Option<&'a RelationRecord>,
    /// None once the relation was removed by force.
    view: Option<&'a RelationView>,
    /// True if it joins the units of the unit's own application.
    pub(crate) peer: bool,
}

impl OwnRelation<'_> {
    /// Returns true if `relation-ids` leaves it out: the relation ends or is suspended, and the unit has no members
    /// left in it.
    fn is_over(&self) -> bool {
        let going = self.view.is_none_or(|view| view.life != Life::Alive || view.suspended);
        !self.peer && going && self.record.is_none_or(|record| record.members.is_empty())
    }

    fn is_container(&self) -> bool {
        self.view.is_some_and(|view| view.scope == Scope::Container)
    }
}

/// The typed interface: `relations`.
impl HookContext {
    /// Returns the relations of an endpoint, by number. None for an unknown endpoint.
    pub fn relation_ids(&mut self, endpoint: &str) -> Vec<RelationId> {
        self.call("relations.ids", (endpoint,), |run| run.relation_ids(endpoint))
    }

    /// Returns the endpoint on this unit's side.
    pub fn relation_endpoint(&mut self, relation: RelationId) -> Result<EndpointName, CallError> {
        self.call("relations.endpoint", (relation,), |run| Ok(run.relation(relation)?.endpoint.clone()))
    }

    /// Returns the application at the other end; in a peer relation the unit's own.
    pub fn relation_remote_application(
        &mut self,
        relation: RelationId,
    ) -> Result<ApplicationName, CallError> {
        self.call("relations.remote-application", (relation,), |run| {
            Ok(run.relation(relation)?.remote_application.clone())
        })
    }

    /// Returns the remote units that this unit has been told of, sorted.
    pub fn relation_members(&mut self, relation: RelationId) -> Result<Vec<UnitName>, CallError> {
        self.call("relations.members", (relation,), |run| {
            Ok(run.members(run.relation(relation)?).into_iter().collect())
        })
    }
}

impl HookRun {
    /// Returns a relation by its number. A relation of other units gives the same error as one that does not exist
    ///
    pub(crate) fn relation(&self, id: RelationId) -> Result<OwnRelation<'_>, CallError> {
        let record = self.snapshot.own().record.relations.get(&id);
        let context = self.hook_relation().filter(|context| context.relation == id);
        let (endpoint, remote_application) = match (record, context) {
            (Some(record), _) => (&record.endpoint, &record.remote_application),
            (None, Some(context)) => (&context.endpoint, &context.remote_application),
            (None, None) => return Err(CallError::NotFound("relation not found".to_owned())),
        };
        let view = self.snapshot.view.relations.get(&id);
        let peer = remote_application == self.snapshot.unit.application();
        Ok(OwnRelation { id, endpoint, remote_application, record, view, peer })
    }

    /// Returns the relations of an endpoint, by number.
    pub(crate) fn relation_ids(&self, endpoint: &str) -> Vec<RelationId> {
        let recorded = self.snapshot.own().record.relations.keys().copied();
        let all: BTreeSet<_> = recorded.chain(self.hook_relation().map(|context| context.relation)).collect();
        all.into_iter()
            .filter_map(|id| self.relation(id).ok())
            .filter(|relation| relation.endpoint.as_str() == endpoint && !relation.is_over())
            .map(|relation| relation.id)
            .collect()
    }

    /// Returns the members that the unit was told of, with those joining now and without those departing now.
    pub(crate) fn members(&self, relation: OwnRelation<'_>) -> BTreeSet<UnitName> {
        let recorded = relation.record.map(|record| &record.members);
        let mut members: BTreeSet<_> = recorded.into_iter().flat_map(|members| members.keys()).collect();
        match &self.event {
            Event::RelationJoined { relation: context, remote_unit } if context.relation == relation.id => {
                members.insert(remote_unit.clone());
            }
            Event::RelationDeparted { relation: context, remote_unit, .. }
                if context.relation == relation.id =>
            {
                members.remove(remote_unit);
            }
            Event::RelationBatch { relation: context, batch } if context.relation == relation.id => {
                members.extend(batch.joined.iter().cloned());
                members.retain(|unit| !batch.departed.contains(unit));
            }
            Event::RelationBroken(context) if context.relation == relation.id => members.clear(),
            _ => {}
        }
        members
    }

    /// Returns the changes of the hook's relation, in a batch hook.
    pub(crate) fn relation_batch(&self) -> Result<&RelationBatch, CallError> {
        let none = || CallError::WrongContext("not running a batch hook".to_owned());
        self.event.batch().ok_or_else(none)
    }

    /// Returns true if the hook is about a remote unit.
    fn is_about(&self, unit: &UnitName) -> bool {
        let in_batch = |batch: &RelationBatch| batch.members().any(|member| member == unit);
        self.event.remote_unit() == Some(unit) || self.event.batch().is_some_and(in_batch)
    }

    /// Returns a relation as Juju's tags name it: `relation-REQUIRER.ENDPOINT#PROVIDER.ENDPOINT`.
    pub(crate) fn relation_tag(&self, id: RelationId) -> String {
        let view = self.snapshot.view.relations.get(&id);
        let ends = view.into_iter().flat_map(|view| view.endpoints.iter().rev());
        let ends: Vec<String> = ends.map(|end| format!("{}.{}", end.application, end.name)).collect();
        format!("relation-{}", ends.join("#"))
    }

    /// Returns the model at the other end of a relation.
    pub(crate) fn relation_model(&self, id: RelationId) -> ModelUuid {
        let remote = self.snapshot.view.relations.get(&id).and_then(|view| view.remote.as_ref());
        remote.map_or(self.snapshot.model().uuid, |remote| remote.model)
    }

    /// Returns true if a unit is at the other end of a relation and this unit may see it. In a container relation only
    /// units that share a container see each other; a unit that has gone stays readable.
    pub(crate) fn is_opposite(&self, relation: OwnRelation<'_>, unit: &UnitName) -> bool {
        if unit.application() != relation.remote_application || *unit == self.snapshot.unit {
            return false;
        }
        let own = self.snapshot.own();
        let told = || {
            relation.record.is_some_and(|record| record.members.contains_key(unit))
                || (self.hook_relation().is_some_and(|context| context.relation == relation.id)
                    && self.is_about(unit))
        };
        let shared_its_container = || {
            let owner = BagOwner::Unit(unit.clone());
            let bag = self.snapshot.view.bags.get(&BagKey { relation: relation.id, owner });
            bag.and_then(|bag| bag.container.as_ref())
                .is_some_and(|principal| *principal == own.name || own.principal.as_ref() == Some(principal))
        };
        !relation.is_container()
            || own.principal.as_ref() == Some(unit)
            || own.subordinates.contains(unit)
            || told()
            || shared_its_container()
    }
}
