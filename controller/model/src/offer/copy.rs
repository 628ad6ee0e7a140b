//! The copy of another model's part in a relation: members with their bags, the application's bag, the end and the
//! suspension of the relation. Each step compares the current states of both models, so missed or repeated steps do
//! no harm.

use std::{collections::BTreeSet, sync::Arc};

use periapt_host_api::{
    ApplicationName, ModelUuid, Refusal, RelationId, UnitName,
    network::{HostNetwork, Subnet, egress_of, network_info},
    offer::RemoteEndpoint,
    relation::{BagKey, BagOwner, Endpoint, Role, Scope},
    size,
    status::Life,
    view::Membership,
};

use super::{check_connection, consumer_name};
use crate::{
    entity::{
        Bag, CrossModelId, CrossModelPart, CrossModelSide, Member, ModelKey, Relation, RelationProgress,
        RemoteApplication, RemoteSource, SequenceKey,
    },
    relation,
    root::{ModelState, changes::CrossModelCopy},
    transaction::Transaction,
};

/// The most units of another model that one relation has in this model, and the most bytes of their bags. The bounds
/// protect this model from other models' data. Units beyond the bounds are ignored; the order is by number.
const MAX_UNITS: usize = 1_000;
const MAX_BYTES: usize = 8 << 20;

/// The entities for one unit: its membership and its bag.
const ROOM_OF_UNIT: usize = 2;

/// The most entities for the creation or the end of a relation.
const ROOM_OF_RELATION: usize = 40;

/// The progress of the copy of one relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Done,
    More,
}

/// Copies changes of other models while the commit has room.
pub(crate) fn run(tx: &mut Transaction<'_>) {
    let behind: Vec<CrossModelId> = tx.root.behind(tx.uuid).collect();
    for id in behind {
        if !tx.has_room(ROOM_OF_RELATION) || copy(tx, id) == Progress::More {
            return;
        }
        tx.note_copy(tx.uuid, id, CrossModelCopy::UpToDate);
    }
}

fn copy(tx: &mut Transaction<'_>, id: CrossModelId) -> Progress {
    let own = match tx.state.crossing(&id).cloned() {
        Some(own) => own,
        None => match meet(tx, id) {
            Some(made) => made,
            None => return Progress::Done,
        },
    };
    let Some(other) = own.cross.as_ref().map(CrossModelPart::other_model) else { return Progress::Done };
    let state = tx.root.model(&other);
    let Some((state, theirs)) = state.and_then(|state| Some((state, state.crossing(&id)?))) else {
        missing(tx, &own, other, id);
        return Progress::Done;
    };
    let Some(own) = copy_relation(tx, &own, theirs, state) else { return Progress::Done };
    copy_units(tx, &own, state, theirs)
}

/// Creates the offering model's part of a relation that a consumer made to one of its offers.
fn meet(tx: &mut Transaction<'_>, id: CrossModelId) -> Option<Arc<Relation>> {
    let consumer = tx.root.model(&id.consumer)?;
    let theirs = consumer.crossing(&id).filter(|theirs| theirs.life == Life::Alive)?;
    let cross = theirs.cross.as_ref()?;
    match &cross.side {
        CrossModelSide::Consumer { model, met: false, .. } if *model == tx.uuid => {}
        CrossModelSide::Consumer { .. } | CrossModelSide::Offerer { .. } => return None,
    }
    match connectable(tx.root, &tx.state, theirs, cross) {
        // A refusal means that all numbers are used up.
        Ok(end) => connect(tx, theirs, cross, end).ok(),
        Err(_) => {
            // The consumer itself finds that the relation is impossible, and ends it.
            tx.note_copy(id.consumer, id, CrossModelCopy::Behind);
            None
        }
    }
}

/// Creates this model's part of a relation.
fn connect(
    tx: &mut Transaction<'_>,
    theirs: &Relation,
    cross: &CrossModelPart,
    own: Endpoint,
) -> Result<Arc<Relation>, Refusal> {
    let Some(their_end) = theirs.own_end() else { return Err(crate::access::check::denied()) };
    let name = consumer_name(&cross.id, &tx.state, &their_end.application)?;
    let end = Endpoint { application: name.clone(), ..their_end.clone() };
    let known = tx.state.remote_application(&name).cloned();
    let mut remote = known.map_or_else(
        || RemoteApplication {
            name: name.clone(),
            life: Life::Alive,
            source: RemoteSource::Consumer {
                model: cross.id.consumer,
                application: their_end.application.clone(),
            },
            endpoints: Default::default(),
            created_at: tx.now(),
        },
        |known| RemoteApplication::clone(&known),
    );
    remote
        .endpoints
        .insert(end.name.clone(), RemoteEndpoint { interface: end.interface.clone(), role: end.role });
    tx.put(remote);
    let mut endpoints = vec![own, end];
    endpoints.sort_by_key(|end| end.role != Role::Provider);
    let id = RelationId(tx.take_numbers(SequenceKey::Relation, 1)?);
    tx.put(Relation {
        id,
        endpoints,
        scope: Scope::Global,
        life: Life::Alive,
        suspended: false,
        suspended_reason: String::new(),
        cross: Some(CrossModelPart {
            id: cross.id,
            offer: cross.offer,
            remote: name,
            side: CrossModelSide::Offerer { ingress: BTreeSet::new() },
        }),
        egress: Vec::new(),
        progress: RelationProgress::Joining,
        state_since: None,
        created_at: tx.now(),
    });
    tx.relation(&id)
}

/// Returns the offered end of a consumer's relation, if the relation is still possible.
fn connectable(
    root: &crate::root::Root,
    offering: &ModelState,
    theirs: &Relation,
    cross: &CrossModelPart,
) -> Result<Endpoint, Refusal> {
    let ends = (theirs.own_end(), theirs.endpoints.iter().find(|end| end.application == cross.remote));
    let (Some(consuming), Some(offered)) = ends else { return Err(crate::access::check::denied()) };
    check_connection(root, offering, offering.offer_with(&cross.offer), consuming, &offered.name)
        .map_err(|(code, reason)| Refusal::new(code, reason))
}

/// Handles a relation that the other model does not have: it waits if the other model has yet to create it, and ends
/// it otherwise.
fn missing(tx: &mut Transaction<'_>, own: &Arc<Relation>, other: ModelUuid, id: CrossModelId) {
    let cross = own.cross.as_ref();
    let waits = cross.is_some_and(|cross| {
        matches!(cross.side, CrossModelSide::Consumer { met: false, .. })
            && own.life == Life::Alive
            && tx.root.model(&other).is_some_and(|state| connectable(tx.root, state, own, cross).is_ok())
    });
    if waits {
        tx.note_copy(other, id, CrossModelCopy::Behind);
    } else {
        relation::life::destroy(tx, own, None);
    }
}

/// Copies the life, suspension and progress. Returns the updated relation if its units are still to be copied.
fn copy_relation(
    tx: &mut Transaction<'_>,
    own: &Arc<Relation>,
    theirs: &Relation,
    state: &ModelState,
) -> Option<Arc<Relation>> {
    if theirs.life != Life::Alive || own.life != Life::Alive {
        relation::life::destroy(tx, own, None);
        return None;
    }
    let mut next = Relation::clone(own);
    if let Some(cross) = &mut next.cross {
        match &mut cross.side {
            CrossModelSide::Consumer { met, .. } => {
                *met = true;
                next.suspended = theirs.suspended;
                next.suspended_reason.clone_from(&theirs.suspended_reason);
            }
            CrossModelSide::Offerer { ingress } => *ingress = ingress_of(tx, state, theirs),
        }
    }
    let joined = theirs.progress == RelationProgress::Joined && !theirs.suspended && !next.suspended;
    if joined {
        next.progress = RelationProgress::Joined;
    }
    if next.state() != own.state() {
        next.state_since = Some(tx.now());
    }
    tx.put(next);
    if own.suspended != theirs.suspended {
        // There may be no unit in scope to leave.
        relation::life::remove_if_done(tx, &own.id);
    }
    tx.state.relation(&own.id).cloned()
}

/// Returns the egress subnets of the other model's units, from the hosts of their agents. A charm's own text in its
/// bag never opens the firewall.
fn ingress_of(tx: &Transaction<'_>, state: &ModelState, theirs: &Relation) -> BTreeSet<Subnet> {
    let Some(end) = theirs.own_end() else { return BTreeSet::new() };
    let Some(application) = state.application(&end.application) else { return BTreeSet::new() };
    let space = application.bindings.space_of(end.name.as_str());
    let egress = egress_of(&theirs.egress, state.config());
    let mut subnets = BTreeSet::new();
    for (unit, _) in visible(state, theirs, end) {
        let agent = state.unit(unit).and_then(|unit| state.agent_of(unit));
        let Some(host) = agent.and_then(|agent| tx.root.agent(agent)).map(|agent| &agent.host) else {
            continue;
        };
        let network = HostNetwork { addresses: &host.addresses, interfaces: &host.interfaces };
        subnets.extend(network_info(network, &state.model().spaces, egress, space).egress_subnets);
    }
    subnets
}

/// Returns the units of another model that this model copies, by number, within the bounds.
fn visible<'a>(
    state: &'a ModelState,
    theirs: &'a Relation,
    end: &'a Endpoint,
) -> impl Iterator<Item = (&'a UnitName, Membership)> {
    let mut bytes = 0_usize;
    let members = state.members(&theirs.id).filter(|(unit, _)| *unit.application() == end.application);
    members.take(MAX_UNITS).map(|(unit, membership)| (unit, *membership)).take_while(move |(unit, _)| {
        let bag = bag_of(state, theirs.id, BagOwner::Unit((*unit).clone()));
        bytes = bytes.saturating_add(bag.map_or(0, |bag| weight(bag)));
        bytes <= MAX_BYTES
    })
}

fn bag_of(state: &ModelState, relation: RelationId, owner: BagOwner) -> Option<&Arc<Bag>> {
    state.bag(&BagKey { relation, owner })
}

fn weight(bag: &Bag) -> usize {
    bag.settings.iter().map(|(key, value)| key.len() + value.len()).sum()
}

/// Copies the application's bag, then each unit's bag with its membership, then the departures.
fn copy_units(tx: &mut Transaction<'_>, own: &Relation, state: &ModelState, theirs: &Relation) -> Progress {
    let (Some(cross), Some(end)) = (&own.cross, theirs.own_end()) else { return Progress::Done };
    let remote = &cross.remote;
    let from = BagOwner::Application(end.application.clone());
    let owner = BagOwner::Application(remote.clone());
    if let Some(bag) = bag_of(state, theirs.id, from)
        && !copy_bag(tx, BagKey { relation: own.id, owner }, bag)
    {
        return Progress::More;
    }
    let mut seen = BTreeSet::new();
    for (unit, membership) in visible(state, theirs, end) {
        let name = UnitName::new(remote.clone(), unit.number());
        let key = BagKey { relation: own.id, owner: BagOwner::Unit(name.clone()) };
        let bag = bag_of(state, theirs.id, BagOwner::Unit(unit.clone()));
        if !tx.has_room(ROOM_OF_UNIT) || !bag.is_none_or(|bag| copy_bag(tx, key, bag)) {
            return Progress::More;
        }
        tx.put(Member { relation: own.id, unit: name.clone(), membership });
        seen.insert(name);
    }
    let members = tx.state.members(&own.id).map(|(unit, _)| unit);
    let gone: Vec<UnitName> =
        members.filter(|unit| unit.application() == remote && !seen.contains(*unit)).cloned().collect();
    for unit in gone {
        if !tx.has_room(1) {
            return Progress::More;
        }
        tx.delete(ModelKey::Member(own.id, unit));
    }
    forget_bags(tx, own, remote)
}

/// Copies one bag, and returns false if the commit is full. Equal content makes no new version.
fn copy_bag(tx: &mut Transaction<'_>, key: BagKey, bag: &Bag) -> bool {
    let present = tx.state.bag(&key);
    if present.is_some_and(|present| present.settings == bag.settings) {
        return true;
    }
    let version = present.map_or(0, |present| present.version).saturating_add(1);
    // A bag may fill most of a commit.
    let bag = Bag { key, settings: bag.settings.clone(), version, container: None };
    let fits = tx.has_room_for(size::of_json(&bag));
    if fits {
        tx.put(bag);
    }
    fits
}

/// Deletes bags of former members beyond the bounds for members, the oldest first, except those of members that a
/// unit of this model was told of. Other bags stay.
fn forget_bags(tx: &mut Transaction<'_>, own: &Relation, remote: &ApplicationName) -> Progress {
    let Some(end) = own.own_end() else { return Progress::Done };
    let told = |unit: &UnitName| {
        tx.state.units_of(&end.application).any(|own_unit| {
            let record = own_unit.record.relations.get(&own.id);
            record.is_some_and(|record| record.members.contains_key(unit))
        })
    };
    let (mut count, mut bytes, mut former) = (0_usize, 0_usize, Vec::new());
    for bag in tx.state.bags(&own.id) {
        let BagOwner::Unit(unit) = &bag.key.owner else { continue };
        if unit.application() == remote && tx.state.membership(&own.id, unit).is_none() {
            count += 1;
            bytes = bytes.saturating_add(weight(bag));
            former.push((bag.key.clone(), weight(bag)));
        }
    }
    if count <= MAX_UNITS && bytes <= MAX_BYTES {
        return Progress::Done;
    }
    former.retain(|(key, _)| !matches!(&key.owner, BagOwner::Unit(unit) if told(unit)));
    for (key, weight) in former {
        if count <= MAX_UNITS && bytes <= MAX_BYTES {
            break;
        }
        if !tx.has_room(1) {
            return Progress::More;
        }
        tx.delete(ModelKey::Bag(key));
        (count, bytes) = (count - 1, bytes - weight);
    }
    Progress::Done
}
