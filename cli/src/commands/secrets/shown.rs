//! The output of `secrets` and `show-secret`, in Juju's form, because its clients read it.

use periapt_host_api::{
    Timestamp,
    api::SecretDetails,
    secret::{SecretData, SecretOwner},
};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The owner's name for secrets of a model's users.
const OF_MODEL: &str = "<model>";

/// The choice whether all revisions of a secret are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Revisions {
    Listed,
    LeftOut,
}

/// A secret as Juju's client prints it, with times in seconds.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ShownSecret {
    revision: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotates: Option<Timestamp>,
    pub(super) owner: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    created: Timestamp,
    updated: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    revisions: Vec<Revision>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    access: Vec<Access>,
}

#[derive(Debug, Clone, Serialize)]
struct Revision {
    revision: u32,
    backend: &'static str,
    created: Timestamp,
    updated: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
}

#[derive(Debug, Clone, Serialize)]
struct Access {
    target: String,
    scope: String,
    role: String,
}

impl ShownSecret {
    pub(super) fn of(secret: &SecretDetails, revisions: Revisions) -> Self {
        let (owner, name, label) = match &secret.owner {
            SecretOwner::Model => (OF_MODEL.to_owned(), secret.label.clone(), None),
            SecretOwner::Application(owner) => (owner.to_string(), None, secret.label.clone()),
            SecretOwner::Unit(owner) => (owner.to_string(), None, secret.label.clone()),
        };
        let lines = secret.revisions.iter().map(|(revision, details)| Revision {
            revision: revision.0,
            backend: "internal",
            created: second(details.created_at),
            updated: second(details.updated_at),
            expires: details.expire.map(second),
        });
        let access = secret.access.iter().map(|access| Access {
            target: access.target.clone(),
            scope: access.scope.clone(),
            role: access.role.clone(),
        });
        Self {
            revision: secret.revision.0,
            expires: secret.expire.map(second),
            // A secret of users has no rotation.
            rotation: (secret.owner != SecretOwner::Model).then(|| secret.rotate.as_str()),
            rotates: secret.next_rotate.map(second),
            owner,
            description: secret.description.clone(),
            name,
            label,
            created: second(secret.created_at),
            updated: second(secret.updated_at),
            content: secret.content.as_ref().map(|content| json!({ "Data": content.texts() })),
            checksum: secret.content.as_ref().map(checksum),
            revisions: if revisions == Revisions::Listed { lines.collect() } else { Vec::new() },
            access: access.collect(),
        }
    }

    /// Converts the content for YAML, which has the map itself. JSON has it within `Data`.
    pub(super) fn for_yaml(mut self) -> Self {
        self.content = self.content.and_then(|mut content| content.get_mut("Data").map(Value::take));
        self
    }
}

/// Cuts a time to the second.
fn second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Returns Juju's checksum: the SHA-256 of the content as a JSON object of base64 values.
fn checksum(content: &SecretData) -> String {
    // The content has texts alone, so it can be encoded.
    let text = serde_json::to_vec(content).unwrap_or_default();
    hex::encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use periapt_host_api::{
        Digest,
        api::SecretRevisionDetails,
        secret::{RotatePolicy, SecretId, SecretRevision},
    };

    use super::*;

    #[test]
    fn a_secret_is_printed_as_jujus_clients_read_it() {
        let time: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
        let revision = SecretRevisionDetails { created_at: time, updated_at: time, expire: None };
        let secret = SecretDetails {
            id: SecretId::from_bytes([7; 12]),
            owner: SecretOwner::Model,
            revision: SecretRevision(1),
            label: Some("db".into()),
            description: String::new(),
            rotate: RotatePolicy::Never,
            next_rotate: None,
            expire: None,
            auto_prune: false,
            created_at: time,
            updated_at: time,
            revisions: BTreeMap::from([(SecretRevision(1), revision)]),
            access: Vec::new(),
            content: Some(SecretData::from_texts([("password".to_owned(), "x".to_owned())]).unwrap()),
        };
        let at = "2026-01-01T00:00:00Z";
        assert_eq!(
            serde_json::to_value(ShownSecret::of(&secret, Revisions::Listed)).unwrap(),
            json!({
                "revision": 1, "owner": "<model>", "name": "db", "created": at, "updated": at,
                "content": {"Data": {"password": "x"}},
                "checksum": Digest::of(br#"{"password":"eA=="}"#).to_string(),
                "revisions": [{"revision": 1, "backend": "internal", "created": at, "updated": at}],
            })
        );
        let yaml = serde_json::to_value(ShownSecret::of(&secret, Revisions::LeftOut).for_yaml()).unwrap();
        assert_eq!(yaml["content"], json!({"password": "x"}));
    }
}
