//! Identities: who may use the API, and for what.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    limits::PodLimits,
    message::{IdentitiesBody, PodCaller, PodRefusal},
    word::words,
};

words! {
    /// A right to use the API.
    pub enum Access {
        /// The endpoints that are open to all.
        Untrusted = "untrusted",
        /// Metrics beside.
        Metrics = "metrics",
        /// All that changes nothing.
        Read = "read",
        /// All.
        Admin = "admin",
    }
}

/// An identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Identity {
    #[serde(deserialize_with = "Access::optional", default)]
    access: Option<Access>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    local: Option<Local>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    basic: Option<Basic>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cert: Option<Cert>,
}

/// A user of the host, known by the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Local {
    user_id: u32,
}

/// A password's hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Basic {
    password: String,
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cert {
    pem: String,
}

/// The text in the place of a secret.
const HIDDEN: &str = "*****";

/// The most bytes of a certificate.
const MAX_PEM: usize = 16 << 10;

/// All identities.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identities(BTreeMap<String, Identity>);

impl Identities {
    /// Returns the right of a caller: of the identity with its user, else that of an owner, else to read.
    pub(crate) fn access(&self, caller: PodCaller) -> Access {
        if caller.is_owner {
            return Access::Admin;
        }
        let Some(user) = caller.user_id else { return Access::Untrusted };
        let known = self.0.values().find(|it| it.local.as_ref().is_some_and(|local| local.user_id == user));
        known.map_or(Access::Read, |it| it.access.unwrap_or(Access::Untrusted))
    }

    /// Returns all identities, without secrets.
    pub(crate) fn shown(&self) -> Value {
        let shown = self.0.iter().map(|(name, identity)| {
            let mut identity = identity.clone();
            if let Some(basic) = &mut identity.basic {
                HIDDEN.clone_into(&mut basic.password);
            }
            if let Some(cert) = &mut identity.cert {
                HIDDEN.clone_into(&mut cert.pem);
            }
            (name.clone(), json!(identity))
        });
        Value::Object(shown.collect())
    }

    /// Adds, updates, replaces or removes identities: all of them, or none.
    pub(crate) fn act(&mut self, body: &IdentitiesBody, limits: &PodLimits) -> Result<(), PodRefusal> {
        let mut next = self.0.clone();
        let (mut missing, mut there) = (Vec::new(), Vec::new());
        for (name, value) in &body.identities {
            let is_known = next.contains_key(name);
            match body.action.as_str() {
                "add" if is_known => there.push(name.as_str()),
                "update" | "remove" if !is_known => missing.push(name.as_str()),
                "remove" if !value.is_null() => {
                    return Err(PodRefusal::bad(format!(
                        "identity value for {name:?} must be null when removing"
                    )));
                }
                "remove" => {
                    next.remove(name);
                }
                "replace" if value.is_null() => {
                    next.remove(name);
                }
                "add" | "update" | "replace" => {
                    let identity = read(name, value, next.get(name), limits)?;
                    next.insert(name.clone(), identity);
                }
                other => return Err(PodRefusal::bad(format!("invalid action {other:?}"))),
            }
        }
        if !there.is_empty() {
            return Err(PodRefusal::bad(format!("identities already exist: {}", there.join(", "))));
        }
        if !missing.is_empty() {
            return Err(PodRefusal::missing(format!("identities do not exist: {}", missing.join(", "))));
        }
        if next.len() > limits.identities {
            return Err(PodRefusal::bad(format!("at most {} identities are kept", limits.identities)));
        }
        check_users(&next)?;
        self.0 = next;
        Ok(())
    }
}

/// Reads an identity. Secrets that a client was shown as hidden stay those of the identity that is there.
fn read(
    name: &str,
    value: &Value,
    known: Option<&Identity>,
    limits: &PodLimits,
) -> Result<Identity, PodRefusal> {
    let refuse = |why: String| Err(PodRefusal::bad(format!("identity {name:?} invalid: {why}")));
    if name.is_empty() || name.len() > limits.name || name.chars().any(char::is_control) {
        return refuse(format!("its name must be 1 to {} bytes of printable text", limits.name));
    }
    if value.is_null() {
        return refuse("identity must not be null".to_owned());
    }
    let mut identity = match serde_json::from_value::<Identity>(value.clone()) {
        Ok(identity) => identity,
        Err(error) => return refuse(error.to_string()),
    };
    if let (Some(basic), Some(known)) = (&mut identity.basic, known.and_then(|it| it.basic.as_ref()))
        && basic.password == HIDDEN
    {
        basic.password.clone_from(&known.password);
    }
    if let (Some(cert), Some(known)) = (&mut identity.cert, known.and_then(|it| it.cert.as_ref()))
        && cert.pem == HIDDEN
    {
        cert.pem.clone_from(&known.pem);
    }
    if identity.access.is_none() {
        return refuse(
            "access value must be specified (\"admin\", \"read\", \"metrics\" or \"untrusted\")".to_owned(),
        );
    }
    if identity.local.is_none() && identity.basic.is_none() && identity.cert.is_none() {
        return refuse("identity must have at least one type (\"local\", \"basic\" or \"cert\")".to_owned());
    }
    if identity.basic.as_ref().is_some_and(|basic| !is_sha512_crypt(&basic.password)) {
        return refuse("basic identity must specify a password hashed by sha512-crypt".to_owned());
    }
    if identity.cert.as_ref().is_some_and(|cert| !is_certificate(&cert.pem)) {
        return refuse("cert identity must include one PEM-encoded certificate".to_owned());
    }
    Ok(identity)
}

/// Returns true for the form `$6$[rounds=N$]SALT$HASH`.
fn is_sha512_crypt(text: &str) -> bool {
    let is_text = |text: &str| text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'.' || it == b'/');
    let Some(rest) = text.strip_prefix("$6$") else { return false };
    let rest = match rest.strip_prefix("rounds=").and_then(|it| it.split_once('$')) {
        Some((rounds, rest)) if rounds.parse::<u32>().is_ok() => rest,
        Some(_) => return false,
        None => rest,
    };
    rest.split_once('$')
        .is_some_and(|(salt, hash)| salt.len() <= 16 && is_text(salt) && hash.len() == 86 && is_text(hash))
}

/// Returns true for the form of one certificate in PEM. No connection shows certificates to a pod yet.
fn is_certificate(text: &str) -> bool {
    let body = text
        .trim()
        .strip_prefix("-----BEGIN CERTIFICATE-----")
        .and_then(|it| it.strip_suffix("-----END CERTIFICATE-----"));
    let is_base64 = |it: u8| it.is_ascii_alphanumeric() || b"+/=\r\n".contains(&it);
    text.len() <= MAX_PEM && body.is_some_and(|body| !body.trim().is_empty() && body.bytes().all(is_base64))
}

/// Refuses two identities of one user.
fn check_users(identities: &BTreeMap<String, Identity>) -> Result<(), PodRefusal> {
    let mut users = BTreeMap::new();
    for (name, identity) in identities {
        let Some(local) = &identity.local else { continue };
        if let Some(other) = users.insert(local.user_id, name) {
            let user = local.user_id;
            return Err(PodRefusal::bad(format!(
                "cannot have multiple identities with user ID {user}: {other}, {name}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(identities: &mut Identities, action: &str, values: Value) -> Result<(), String> {
        let Value::Object(values) = values else { panic!("an object") };
        let body = IdentitiesBody { action: action.to_owned(), identities: values.into_iter().collect() };
        identities.act(&body, &PodLimits::default()).map_err(|it| it.message)
    }

    fn user(user_id: u32) -> PodCaller {
        PodCaller { user_id: Some(user_id), is_owner: false }
    }

    #[test]
    fn an_identity_gives_its_user_its_access() {
        let mut identities = Identities::default();
        assert_eq!(identities.access(user(42)), Access::Read);
        assert_eq!(identities.access(PodCaller { user_id: None, is_owner: false }), Access::Untrusted);
        act(&mut identities, "add", json!({"bob": {"access": "admin", "local": {"user-id": 42}}})).unwrap();
        assert_eq!(identities.access(user(42)), Access::Admin);
        act(&mut identities, "replace", json!({"bob": {"access": "untrusted", "local": {"user-id": 42}}}))
            .unwrap();
        assert_eq!(identities.access(user(42)), Access::Untrusted);
        act(&mut identities, "replace", json!({"bob": null})).unwrap();
        assert_eq!(identities.shown(), json!({}));
    }

    #[test]
    fn a_secret_that_was_shown_hidden_stays() {
        let mut identities = Identities::default();
        let hash = format!("$6$salt${}", "a".repeat(86));
        let with = |password: &str| json!({"web": {"access": "metrics", "basic": {"password": password}}});
        act(&mut identities, "add", with(&hash)).unwrap();
        assert_eq!(identities.shown(), with(HIDDEN));
        let shown = identities.shown();
        act(&mut identities, "replace", shown).unwrap();
        assert_eq!(identities.0["web"].basic.as_ref().unwrap().password, hash);
    }

    #[test]
    fn what_is_wrong_changes_nothing_and_is_named() {
        let mut identities = Identities::default();
        let good = json!({"access": "read", "local": {"user-id": 1}});
        for (action, values, part) in [
            ("add", json!({"a": good, "b": good}), "multiple identities with user ID 1"),
            ("add", json!({"a": {"access": "read"}}), "at least one type"),
            ("add", json!({"a": {"local": {"user-id": 1}}}), "access value must be specified"),
            ("add", json!({"a": {"access": "root", "local": {"user-id": 1}}}), "\"root\" is none of"),
            ("add", json!({"a": {"access": "read", "basic": {"password": "secret"}}}), "sha512-crypt"),
            ("add", json!({"a": {"access": "read", "basic": {"password": HIDDEN}}}), "sha512-crypt"),
            ("add", json!({"a": {"access": "read", "cert": {"pem": "x"}}}), "PEM"),
            ("add", json!({"a": {"access": "read", "locall": {}}}), "locall"),
            ("add", json!({"a": null}), "must not be null"),
            ("update", json!({"a": good}), "do not exist: a"),
            ("remove", json!({"a": null}), "do not exist: a"),
            ("burn", json!({"a": good}), "invalid action"),
        ] {
            let message = act(&mut identities, action, values).unwrap_err();
            assert!(message.contains(part), "{message}");
            assert_eq!(identities.shown(), json!({}));
        }
    }
}
