//! Relations, their members and bags.

use periapt_host_api::{
    OfferUuid, RelationId,
    relation::{BagKey, BagOwner, Endpoint, Role, Scope},
    status::Life,
    view::Membership,
};
use periapt_model::entity::{
    Bag, CrossModelId, CrossModelPart, CrossModelSide, Member, Relation, RelationProgress,
};

use super::{MODEL, Named, awkward_text, every, offer::OTHER_MODEL, parse, time};

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
        suspended_reason: String::new(),
        cross: None,
        egress: Vec::new(),
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
        suspended_reason: String::new(),
        cross: None,
        egress: Vec::new(),
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
        (
            "with-egress",
            Relation {
                egress: vec![parse("192.0.2.0/24"), parse("2001:db8::/64")],
                ..between(Scope::Global, Life::Alive, false, RelationProgress::Joined)
            },
        ),
        ("removed-by-force", between(Scope::Global, Life::Dead, false, RelationProgress::Joined)),
    ];
    let sides = every!(CrossModelSide {
        "consumer-of-another-model": CrossModelSide::Consumer { .. } => CrossModelSide::Consumer {
            model: OTHER_MODEL,
            url: parse("admin/prod.mysql"),
            met: true,
        },
        "offered-to-another-model": CrossModelSide::Offerer { .. } => CrossModelSide::Offerer {
            ingress: [parse("10.0.0.7/32")].into(),
        },
    });
    relations.extend(sides.into_iter().map(|(name, side)| {
        let cross = CrossModelPart {
            id: CrossModelId { consumer: MODEL, relation: RelationId(2) },
            offer: OfferUuid(OTHER_MODEL.0),
            remote: parse("mysql"),
            side,
        };
        let between = between(Scope::Global, Life::Alive, true, RelationProgress::Joined);
        (name, Relation { cross: Some(cross), suspended_reason: awkward_text(), ..between })
    }));
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
        container: None,
    };
    let contained = Bag { container: Some(parse("mysql/3")), ..bag(BagOwner::Unit(parse("logging/0"))) };
    let bags = owners.into_iter().map(|(name, owner)| (name, bag(owner)));
    bags.chain([("unit-in-container", contained)]).collect()
}
