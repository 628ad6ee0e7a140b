//! Relations, their members and bags.

use periapt_host_api::{
    RelationId,
    relation::{BagKey, BagOwner, Endpoint, Role, Scope},
    status::Life,
    view::Membership,
};
use periapt_model::entity::{Bag, Member, Relation, RelationProgress};

use super::{Named, awkward_text, every, parse, time};

pub(crate) fn relations() -> Named<Relation> {
    let endpoint = |application, name, role| Endpoint {
        application: parse(application),
        name: parse(name),
        role,
        interface: parse("my_sql-2"),
    };
    let provider = endpoint("mysql", "server", Role::Provider);
    let requirer = endpoint("wordpress", "db", Role::Requirer);
    let peer = endpoint("mysql", "replicas", Role::Peer);
    let between = |scope, life, suspended, progress| Relation {
        id: RelationId(2),
        endpoints: vec![provider.clone(), requirer.clone()],
        scope,
        life,
        suspended,
        progress,
        state_since: Some(time(42)),
        created_at: time(40),
    };
    let peers = Relation {
        id: RelationId(0),
        endpoints: vec![peer],
        scope: Scope::Global,
        life: Life::Alive,
        suspended: false,
        progress: RelationProgress::Joining,
        state_since: None,
        created_at: time(41),
    };
    let progress = every!(RelationProgress {
        "joining": RelationProgress::Joining => RelationProgress::Joining,
        "joined": RelationProgress::Joined => RelationProgress::Joined,
    });
    let mut relations = vec![
        ("peers", peers),
        ("suspended-in-container", between(Scope::Container, Life::Alive, true, RelationProgress::Joined)),
        ("removed-by-force", between(Scope::Global, Life::Dead, false, RelationProgress::Joined)),
    ];
    relations.extend(
        progress
            .into_iter()
            .map(|(name, progress)| (name, between(Scope::Global, Life::Alive, false, progress))),
    );
    relations
}

pub(crate) fn members() -> Named<Member> {
    let memberships = every!(Membership {
        "joined": Membership::Joined => Membership::Joined,
        "departing": Membership::Departing => Membership::Departing,
    });
    let member = |membership| Member { relation: RelationId(2), unit: parse("wordpress/10"), membership };
    memberships.into_iter().map(|(name, membership)| (name, member(membership))).collect()
}

pub(crate) fn bags() -> Named<Bag> {
    let owners = every!(BagOwner {
        "unit": BagOwner::Unit(_) => BagOwner::Unit(parse("wordpress/10")),
        "application": BagOwner::Application(_) => BagOwner::Application(parse("wordpress")),
    });
    let bag = |owner| Bag {
        key: BagKey { relation: RelationId(2), owner },
        settings: [("ingress-address".into(), "10.0.0.7".into()), ("note \"1\"".into(), awkward_text())]
            .into(),
        version: 12,
    };
    owners.into_iter().map(|(name, owner)| (name, bag(owner))).collect()
}
