//! The typed interface for secrets.

use periapt_host_api::{
    RelationId,
    secret::{SecretData, SecretReader, SecretRevision, policy::parse_expire},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    CallAnswer, CallError, CallTime, GetMode, NewOwner, SecretInfo, SecretMetadata,
    context::{HookContext, HookRun, Privacy},
    lease::Interruption,
};

/// A secret's values by key, as charms write and read them.
type Values = Vec<(String, Vec<u8>)>;

/// The typed interface: `secrets`.
impl HookContext {
    /// Makes a call that holds content. The record keeps its arguments and answer apart, to be sealed.
    fn confidential<A: Serialize, T: Serialize + DeserializeOwned>(
        &mut self,
        function: &str,
        arguments: A,
        behaviour: impl FnOnce(&mut HookRun) -> Result<T, Interruption>,
    ) -> CallAnswer<Result<T, CallError>> {
        self.recorded(function, Privacy::Sealed, &arguments, behaviour)
    }

    /// Makes a secret with the commit, and returns its URI. `expire` is a duration or a time, as `secret-add`
    /// takes it.
    pub fn secret_add(
        &mut self,
        now: CallTime,
        owner: NewOwner,
        content: &Values,
        metadata: SecretMetadata,
        expire: Option<&str>,
    ) -> CallAnswer<Result<String, CallError>> {
        self.confidential("secrets.add", (owner, content, metadata.clone(), expire), |run| {
            let metadata = with_expire(now, metadata, expire)?;
            let content = data(run, content)?;
            Ok(run.add_secret(now, owner, content, metadata)?.uri())
        })
    }

    /// Changes a secret with the commit.
    pub fn secret_set(
        &mut self,
        now: CallTime,
        uri: &str,
        content: Option<&Values>,
        metadata: SecretMetadata,
        expire: Option<&str>,
    ) -> CallAnswer<Result<(), CallError>> {
        self.confidential("secrets.set", (uri, content, metadata.clone(), expire), |run| {
            let id = run.secret_uri(uri)?;
            let metadata = with_expire(now, metadata, expire)?;
            let content = content.map(|content| data(run, content)).transpose()?;
            run.set_secret(now, id, content, metadata)
        })
    }

    /// Returns content, by URI or label. With both, the unit's own label for the secret is set, too.
    pub fn secret_get(
        &mut self,
        uri: Option<&str>,
        label: Option<&str>,
        mode: GetMode,
    ) -> CallAnswer<Result<Values, CallError>> {
        self.confidential("secrets.get", (uri, label, mode), |run| {
            let (id, label) = run.named_secret(uri, label)?;
            Ok(run.secret_content(id, label, mode)?.values())
        })
    }

    /// Returns the metadata of a secret that the unit manages.
    pub fn secret_info(
        &mut self,
        now: CallTime,
        uri: Option<&str>,
        label: Option<&str>,
    ) -> CallAnswer<Result<SecretInfo, CallError>> {
        self.leader_call("secrets.info", (uri, label), |run| run.secret_info(now, uri, label))
    }

    /// Returns the URIs of the secrets that the unit manages.
    pub fn secret_ids(&mut self, now: CallTime) -> CallAnswer<Result<Vec<String>, CallError>> {
        self.leader_call("secrets.ids", (), |run| {
            Ok(run.secret_ids(now)?.iter().map(|id| id.uri()).collect())
        })
    }

    /// Grants a secret to the application at the other end of a relation, or to one unit of it.
    pub fn secret_grant(
        &mut self,
        now: CallTime,
        uri: &str,
        relation: RelationId,
        unit: Option<&str>,
    ) -> CallAnswer<Result<(), CallError>> {
        self.leader_call("secrets.grant", (uri, relation, unit), |run| {
            let id = run.secret_uri(uri)?;
            run.grant_secret(now, id, relation, unit)
        })
    }

    /// Revokes a grant to an application (`mysql`) or a unit (`mysql/0`).
    pub fn secret_revoke(
        &mut self,
        now: CallTime,
        uri: &str,
        reader: &str,
    ) -> CallAnswer<Result<(), CallError>> {
        self.leader_call("secrets.revoke", (uri, reader), |run| {
            let id = run.secret_uri(uri)?;
            let reader: SecretReader =
                reader.parse().map_err(|error| CallError::invalid(format!("{error}")))?;
            run.revoke_secret(now, id, reader)
        })
    }

    /// Removes a secret, or one revision of it.
    pub fn secret_remove(
        &mut self,
        now: CallTime,
        uri: &str,
        revision: Option<u32>,
    ) -> CallAnswer<Result<(), CallError>> {
        self.leader_call("secrets.remove", (uri, revision), |run| {
            let id = run.secret_uri(uri)?;
            run.remove_secret(now, id, revision.map(SecretRevision))
        })
    }
}

fn with_expire(
    now: CallTime,
    metadata: SecretMetadata,
    expire: Option<&str>,
) -> Result<SecretMetadata, CallError> {
    let expire = expire.map(|text| parse_expire(text, now.at)).transpose();
    let expire = expire.map_err(|error| CallError::invalid(error.to_string()))?;
    Ok(SecretMetadata { expire, ..metadata })
}

fn data(run: &HookRun, content: &Values) -> Result<SecretData, CallError> {
    run.check_call(content.iter().map(|(key, value)| key.len() + value.len()).sum())?;
    SecretData::from_values(content.iter().cloned()).map_err(|error| CallError::invalid(error.to_string()))
}
