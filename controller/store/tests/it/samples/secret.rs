//! Secrets of each kind of owner, with every field filled.

use periapt_host_api::{
    RelationId,
    secret::{RotatePolicy, Sealed, SecretId, SecretOwner, SecretReader, SecretRevision},
};
use periapt_model::entity::{Secret, SecretConsumer, SecretContent, SecretExpiry};

use super::{Named, awkward_text, every, parse, time};

fn id() -> SecretId {
    SecretId::from_bytes([7; 12])
}

pub(crate) fn secrets() -> Named<Secret> {
    let owners = every!(SecretOwner {
        "of-model": SecretOwner::Model => SecretOwner::Model,
        "of-application": SecretOwner::Application(_) => SecretOwner::Application(parse("wordpress")),
        "of-unit": SecretOwner::Unit(_) => SecretOwner::Unit(parse("wordpress/10")),
    });
    let secret = |owner| Secret {
        id: id(),
        owner,
        label: Some(awkward_text()),
        description: awkward_text(),
        rotate: RotatePolicy::Quarterly,
        next_rotate: Some(time(60)),
        rotate_due: true,
        auto_prune: true,
        latest: SecretRevision(3),
        made: SecretRevision(4),
        access: [
            (SecretReader::Application(parse("mysql")), Some(RelationId(2))),
            (SecretReader::Unit(parse("mysql/0")), None),
        ]
        .into(),
        created_at: time(50),
        updated_at: time(55),
    };
    owners.into_iter().map(|(name, owner)| (name, secret(owner))).collect()
}

pub(crate) fn contents() -> Named<SecretContent> {
    let sealed = Sealed { checksum: "ab".repeat(32), bytes: "c2VhbGVk".into() };
    let content = SecretContent {
        id: id(),
        revision: SecretRevision(3),
        sealed,
        expire: Some(time(70)),
        tell_at: Some(time(71)),
        expire_due: true,
        created_at: time(50),
        updated_at: time(55),
    };
    vec![("expired", content)]
}

pub(crate) fn expiries() -> Named<SecretExpiry> {
    let expiry = SecretExpiry {
        id: id(),
        revision: SecretRevision(3),
        expire: Some(time(70)),
        tell_at: Some(time(71)),
        expire_due: true,
        updated_at: time(55),
    };
    let never = SecretExpiry { expire: None, tell_at: None, expire_due: false, ..expiry.clone() };
    vec![("due", expiry), ("none", never)]
}

pub(crate) fn consumers() -> Named<SecretConsumer> {
    let consumer =
        |label| SecretConsumer { id: id(), unit: parse("mysql/0"), tracked: SecretRevision(2), label };
    vec![("labelled", consumer(Some(awkward_text()))), ("plain", consumer(None))]
}
