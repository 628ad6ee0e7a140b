//! The invariants that hold after every command.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use periapt_host_api::{
    AgentName, Digest, ModelUuid, StoreId, Timestamp,
    access::ModelAccess,
    command::Caller,
    relation::{BagKey, BagOwner, Settings},
    status::Life,
    view::{Membership, View},
};
use periapt_model::{
    ModelState, Right, Root, Subject, agent_summaries, assignment, assignments,
    entity::{CrossModelSide, Offer, Relation, RemoteSource, ResourceContent, Work},
    follow, is_allowed, is_superuser, model_access, models_with_offers, offer_access, readable_models, view,
};

use crate::world::World;

pub(crate) fn check(before: &Root, world: &World) {
    for (_, state) in world.root.models() {
        references(state);
        counts(world.root.agents().map(|agent| &agent.name), state);
        lives(state);
    }
    indexes(&world.root);
    stored_entities_make_the_same_state(world);
    frames_lead_to_the_view(before, world);
}

/// Checks that every reference has its target.
fn references(state: &ModelState) {
    for unit in state.units() {
        assert!(state.application(unit.name.application()).is_some(), "{} has no application", unit.name);
        if let Some(machine) = unit.machine {
            assert!(state.machine(&machine).is_some(), "{} has no machine", unit.name);
            assert!(state.units_on(&machine).any(|on| on.name == unit.name), "{} is not indexed", unit.name);
        }
        if let Some(principal) = &unit.principal {
            assert!(state.unit(principal).is_some(), "{} has no principal", unit.name);
        }
        for relation in state.scopes_of(&unit.name) {
            assert!(state.membership(relation, &unit.name).is_some(), "{} is not in {relation}", unit.name);
        }
        if let Some(charm) = unit.record.charm {
            assert!(state.charm(&charm.digest).is_some(), "the charm of {} is gone", unit.name);
        }
    }
    for unit in state.units_with_state() {
        assert!(state.unit(unit).is_some(), "the state of {unit} is left over (L-8)");
    }
    for unit in state.units_with_events() {
        assert!(state.unit(unit).is_some(), "the events of {unit} are left over");
    }
    for machine in state.machines() {
        assert!(state.unit_count_on(&machine.id) > 0, "machine {} is empty", machine.id);
    }
    for application in state.applications() {
        assert!(state.charm(&application.charm.digest).is_some(), "{} has no charm", application.name);
        if let Some(leader) = &application.leader {
            assert!(state.unit(&leader.unit).is_some(), "{} leads and is gone", leader.unit);
            assert!(leader.term <= application.last_term);
        }
    }
    for relation in state.relations() {
        for (unit, _) in state.members(&relation.id) {
            assert!(relation.end_of(unit.application()).is_some());
            if relation.is_remote(unit.application()) {
                continue;
            }
            let unit = state.unit(unit).unwrap_or_else(|| panic!("{unit} is a member and gone"));
            assert!(state.scopes_of(&unit.name).any(|id| *id == relation.id));
        }
    }
    for relation in state.relations().filter(|relation| relation.life != Life::Dead) {
        for end in &relation.endpoints {
            let there = state.application(&end.application).is_some();
            let remote = relation.is_remote(&end.application);
            assert!(there != remote, "{} has no end {end}", relation.id);
            assert!(!remote || state.remote_application(&end.application).is_some(), "{end} is unknown");
        }
    }
    for remote in state.remote_applications() {
        assert!(state.application(&remote.name).is_none(), "two are called {}", remote.name);
        let mut relations = state.relations_of(&remote.name).filter(|relation| relation.life != Life::Dead);
        let consumed = matches!(remote.source, RemoteSource::Offer { .. });
        let wanted = consumed && remote.life == Life::Alive;
        assert!(wanted || relations.next().is_some(), "{} is left over", remote.name);
    }
    for offer in state.offers() {
        assert!(state.application(&offer.application).is_some(), "{} offers nothing", offer.name);
    }
    let being_removed: BTreeSet<_> = state
        .work()
        .filter_map(|item| match &item.work {
            Work::RemoveBags { relation } => Some(*relation),
            _ => None,
        })
        .collect();
    for relation in state.relations_with_bags() {
        let known = state.relation(relation).is_some() || being_removed.contains(relation);
        assert!(known || state.model().life != Life::Alive, "bags of {relation} are left over");
        for bag in state.bags(relation) {
            assert!(bag.version > 0);
            assert!(bag.settings.values().all(|value| !value.is_empty()), "an empty value was kept");
            let Some(relation) = state.relation(relation) else { continue };
            let application = match &bag.key.owner {
                BagOwner::Unit(unit) => unit.application(),
                BagOwner::Application(application) => application,
            };
            assert!(relation.end_of(application).is_some());
        }
    }
}

/// Checks that the counts of hosted units equal the actual ones.
fn counts<'a>(agents: impl Iterator<Item = &'a AgentName>, state: &ModelState) {
    for agent in agents {
        let units: Vec<_> =
            state.machines_of(agent).flat_map(|machine| state.units_on(&machine.id)).collect();
        assert_eq!(state.unit_count_of(agent), units.len(), "units of {agent}");
        let mut charms: BTreeSet<Digest> = BTreeSet::new();
        for unit in &units {
            charms.extend(unit.record.charm.map(|charm| charm.digest));
            charms.extend(state.application(unit.name.application()).map(|found| found.charm.digest));
        }
        let assigned = assignment(state, agent);
        let assigned =
            assigned.map(|assigned| (assigned.units as usize, assigned.charms)).unwrap_or_default();
        assert_eq!(assigned, (units.len(), charms.into_iter().collect()), "charms of {agent}");
    }
}

/// Checks that the indexes over all models find what a look at every model finds.
fn indexes(root: &Root) {
    let all = || root.models().map(|(_, state)| state);
    for state in all() {
        let model = state.model();
        let named = root.model_named(&model.owner, &model.name).map(|state| state.model().uuid);
        assert_eq!(named, Some(model.uuid));
        let same = all().filter(|other| other.model().name == model.name).count();
        assert_eq!(root.models_named(&model.name).count(), same, "models named {}", model.name);
    }
    for agent in root.agents().map(|agent| &agent.name) {
        let every = root.models_and_remains();
        let assigned: BTreeMap<_, _> =
            every.filter_map(|(uuid, state)| Some((*uuid, assignment(state, agent)?))).collect();
        assert_eq!(assignments(root, agent).models, assigned, "models of {agent}");
        let units: usize = all().map(|state| state.unit_count_of(agent)).sum();
        let machines: usize = all().map(|state| state.machines_of(agent).count()).sum();
        let told = agent_summaries(root, (Timestamp::UNIX_EPOCH, 0), all());
        let told = told.iter().find(|summary| summary.name == *agent).unwrap();
        assert_eq!((told.units as usize, told.machines as usize), (units, machines), "units of {agent}");
    }
    for charm in root.charms() {
        let used = root.models_and_remains().any(|(_, state)| state.charm(&charm.digest).is_some());
        assert_eq!(root.uses_charm(&charm.digest), used, "charm {}", charm.digest);
    }
    let attached: BTreeSet<Digest> = all()
        .flat_map(|state| state.applications())
        .flat_map(|application| application.resources.values())
        .flat_map(|resource| {
            let former = resource.former.iter().map(|former| former.content.digest);
            former.chain([resource.current.digest])
        })
        .collect();
    for content in root.resource_contents() {
        assert_eq!(root.is_attached(&content.digest), attached.contains(&content.digest));
        let is_part = |whole: &ResourceContent| {
            whole.parts.as_ref().is_some_and(|parts| parts.digests().contains(&content.digest))
        };
        assert_eq!(root.is_part(&content.digest), root.resource_contents().any(is_part));
    }
    for user in root.users().filter(|user| user.may_log_in() && !is_superuser(user)) {
        let caller = Caller::User(user.name.clone());
        let access = |state: &ModelState| model_access(root, state, &caller);
        let writes = all().any(|state| access(state) >= Some(ModelAccess::Write));
        assert_eq!(is_allowed(root, &caller, Right::Upload, Subject::Controller), writes, "{caller:?}");
        for state in all() {
            let mut named = root.granted_models_named(user, &state.model().name);
            assert_eq!(named.any(|found| found.model().uuid == state.model().uuid), access(state).is_some());
        }
        let uuid = |state: &Arc<ModelState>| state.model().uuid;
        let readable: Vec<_> = all().filter(|state| access(state).is_some()).map(uuid).collect();
        assert_eq!(readable_models(root, &caller).map(uuid).collect::<Vec<_>>(), readable, "{caller:?}");
        let offering = |state: &&Arc<ModelState>| {
            let offered = |offer: &Arc<Offer>| offer_access(root, state, offer, &caller).is_some();
            access(state).is_some() || state.offers().any(offered)
        };
        let found = models_with_offers(root, &caller).into_iter().map(uuid);
        assert!(found.eq(all().filter(offering).map(uuid)), "models with offers for {caller:?}");
    }
}

/// Checks that every dying entity still has a reason or a work item to go on.
fn lives(state: &ModelState) {
    for application in state.applications().filter(|application| application.life != Life::Alive) {
        let waits = state.units_of(&application.name).next().is_some()
            || state.relations_of(&application.name).any(|relation| relation.life != Life::Dead)
            || state.work().next().is_some();
        assert!(waits, "{} is dying and waits for nothing", application.name);
    }
    for relation in state.relations() {
        match relation.life {
            Life::Alive => {}
            // A cross-model relation may wait for the other model.
            Life::Dying if relation.cross.is_some() => {}
            Life::Dying => assert!(state.member_count(&relation.id) > 0, "{} waits for nobody", relation.id),
            Life::Dead => {
                assert_eq!(state.member_count(&relation.id), 0);
                let remembered = |unit: &Arc<periapt_model::entity::Unit>| {
                    unit.record.relations.contains_key(&relation.id)
                };
                assert!(state.units().any(remembered), "{} is dead and kept for nobody", relation.id);
            }
        }
    }
    for unit in state.units().filter(|unit| unit.life == Life::Dead) {
        let in_work = state
            .work()
            .any(|item| matches!(&item.work, Work::UnitScopes { unit: name } if *name == unit.name));
        assert!(in_work, "{} is dead and nobody removes it", unit.name);
    }
}

/// Checks that the stored entities are complete: indexes and derived data come out the same.
fn stored_entities_make_the_same_state(world: &World) {
    let stored = world.stored.iter().map(|(key, entity)| (key.clone(), entity.clone()));
    indexes(&Root::from_entities(stored.clone().rev(), world.root.revision()).unwrap());
    let loaded = Root::from_entities(stored, world.root.revision()).unwrap();
    assert_eq!(loaded.models().count(), world.root.models().count());
    indexes(&loaded);
    for caller in callers(&world.root, world) {
        assert_eq!(view(&loaded, &caller), view(&world.root, &caller));
    }
    for ((_, left), (_, right)) in loaded.models().zip(world.root.models()) {
        assert!(left.units().eq(right.units()));
        assert!(left.unplaced().eq(right.unplaced()));
        assert!(left.work().eq(right.work()));
        for unit in left.units() {
            assert!(left.scopes_of(&unit.name).eq(right.scopes_of(&unit.name)));
            assert!(left.subordinates_of(&unit.name).eq(right.subordinates_of(&unit.name)));
        }
    }
}

/// Checks that frames lead to the view, however many changes they span, and that states that look the same give the
/// same view.
pub(crate) fn frames_lead_to_the_view(before: &Root, world: &World) {
    for caller in callers(before, world) {
        let (mut mirror, now) = (view(before, &caller), view(&world.root, &caller));
        let Caller::Runner { model, .. } = &caller else {
            let nothing = View { revision: now.revision, ..View::default() };
            assert_eq!(now, nothing, "{caller:?} watches nothing of a model's inside");
            continue;
        };
        if before.looks_the_same(&world.root, &caller, model) {
            let same = View { revision: now.revision, ..mirror.clone() };
            assert_eq!(same, now, "it looked the same, and is not");
        }
        let followed = follow(before, &mirror, &world.root, &caller);
        assert_eq!(followed, now, "following the state leads elsewhere");
        let kept = of_one_model(before, *model);
        assert_eq!(view(&kept, &caller), mirror, "the kept parts of a state show something else");
        assert_eq!(follow(&kept, &mirror, &world.root, &caller), now);
        let frame = mirror.frame_to(&now, StoreId(Default::default()));
        mirror.apply(frame).unwrap();
        assert_eq!(mirror, now);
    }
}

/// Returns what a controller keeps of a state for watchers of one model that come back.
fn of_one_model(root: &Root, model: ModelUuid) -> Root {
    Root::of_one_model(root.shared_parts(), model, root.model_or_remains(&model).cloned(), root.revision())
}

/// Returns callers of every kind: the runners of each agent, in this model and in a missing one, the agents, the
/// controller's worker, and a user.
pub(crate) fn callers(root: &Root, world: &World) -> Vec<Caller> {
    let elsewhere = ModelUuid(Default::default());
    let of_agent = |agent: &AgentName| {
        let runner = |model| Caller::Runner { agent: agent.clone(), model };
        let models = root.models().map(|(model, _)| *model).chain([world.model, elsewhere]);
        let models: BTreeSet<_> = models.collect();
        models.into_iter().map(runner).chain([Caller::Agent(agent.clone())]).collect::<Vec<_>>()
    };
    let agents = root.agents().flat_map(|agent| of_agent(&agent.name));
    agents.chain([Caller::Worker, world.user()]).collect()
}

/// Checks that both sides of each cross-model relation have equal copies.
pub(crate) fn copied(root: &Root) {
    for (uuid, state) in root.models() {
        for relation in state.relations().filter(|relation| relation.life != Life::Dead) {
            let Some(cross) = &relation.cross else { continue };
            let other = root.model(&cross.other_model());
            let theirs = other.and_then(|other| {
                let same = |found: &Relation| found.cross.as_ref().is_some_and(|it| it.id == cross.id);
                let mut relations = other.relations().filter(|found| found.life != Life::Dead);
                Some((other, relations.find(|found| same(found))?))
            });
            let Some((other, theirs)) = theirs else {
                assert_eq!(relation.life, Life::Dying, "{uuid}: {} has no other side", relation.id);
                continue;
            };
            if (relation.life, theirs.life) != (Life::Alive, Life::Alive) {
                assert_eq!(
                    (relation.life, theirs.life),
                    (Life::Dying, Life::Dying),
                    "one side goes on alone"
                );
                continue;
            }
            assert_eq!(
                (relation.suspended, &relation.suspended_reason),
                (theirs.suspended, &theirs.suspended_reason)
            );
            if let CrossModelSide::Consumer { met, .. } = &cross.side {
                assert!(met, "the other side is there");
            }
            assert_eq!(parts(state, relation, true), parts(other, theirs, false), "{uuid}: {}", relation.id);
        }
    }
}

/// Returns the units in scope with their memberships and bags, and the application's bag, for the remote or the own
/// end of a relation.
fn parts(
    state: &ModelState,
    relation: &Relation,
    remote: bool,
) -> (Vec<(u32, Membership, Settings)>, Settings) {
    let mut ends = relation.endpoints.iter().map(|end| &end.application);
    let application = ends.find(|name| relation.is_remote(name) == remote).unwrap();
    let bag = |owner| {
        let key = BagKey { relation: relation.id, owner };
        state.bag(&key).map(|bag| bag.settings.clone()).unwrap_or_default()
    };
    let members = state.members(&relation.id).filter(|(unit, _)| unit.application() == application);
    let members = members
        .map(|(unit, membership)| (unit.number(), *membership, bag(BagOwner::Unit(unit.clone()))))
        .collect();
    (members, bag(BagOwner::Application(application.clone())))
}
