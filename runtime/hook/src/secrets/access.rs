//! Grants and revocations of secrets (S-6).

use periapt_host_api::{
    RelationId, UnitName,
    secret::{AccessChange, SecretId, SecretReader},
};

use super::{CHANGE_BYTES, not_found};
use crate::{CallError, CallTime, context::HookRun, lease::Interruption};

impl HookRun {
    /// Grants a secret to the application at the other end of a relation, or to one unit of it. The grant
    /// lasts as long as the relation.
    pub(crate) fn grant_secret(
        &mut self,
        now: CallTime,
        id: SecretId,
        relation: RelationId,
        unit: Option<&str>,
    ) -> Result<(), Interruption> {
        self.own_secret(&id).ok_or_else(|| not_found(id))?;
        self.may_manage(now, &id)?;
        let remote = self.relation(relation)?.remote_application.clone();
        let reader = match unit {
            None => SecretReader::Application(remote.clone()),
            Some(name) => {
                let wrong = |_| CallError::invalid(format!("invalid unit name {name:?}"));
                let unit: UnitName = name.parse().map_err(wrong)?;
                if *unit.application() != remote {
                    let text = format!("unit {name:?} is not in relation {relation}");
                    return Err(CallError::invalid(text).into());
                }
                SecretReader::Unit(unit)
            }
        };
        let access = self.effective_access(&id);
        if access.contains_key(&SecretReader::Application(remote.clone())) || access.contains_key(&reader) {
            return Ok(());
        }
        let of_unit = access.keys().find(|other| *other.application() == remote);
        if let Some(other) = of_unit.filter(|_| matches!(reader, SecretReader::Application(_))) {
            let text = format!(
                "cannot grant secret {:?} to application {:?}: it is granted to unit {:?} already",
                id.to_string(),
                remote.as_str(),
                other.to_string()
            );
            return Err(CallError::Conflict(text).into());
        }
        self.change_access(id, reader, AccessChange::Grant(relation))
    }

    /// Revokes a grant. Without a grant there is nothing to do.
    pub(crate) fn revoke_secret(
        &mut self,
        now: CallTime,
        id: SecretId,
        reader: SecretReader,
    ) -> Result<(), Interruption> {
        self.own_secret(&id).ok_or_else(|| not_found(id))?;
        self.may_manage(now, &id)?;
        if !self.effective_access(&id).contains_key(&reader) {
            return Ok(());
        }
        self.change_access(id, reader, AccessChange::Revoke)
    }

    /// Returns the reader that a relation stands for: the application at its other end.
    pub(crate) fn reader_of(&self, relation: RelationId) -> Result<SecretReader, CallError> {
        Ok(SecretReader::Application(self.relation(relation)?.remote_application.clone()))
    }

    fn change_access(
        &mut self,
        id: SecretId,
        reader: SecretReader,
        change: AccessChange,
    ) -> Result<(), Interruption> {
        let fresh = !self.secrets.changes.access.contains_key(&id);
        self.effects.charge(CHANGE_BYTES, usize::from(fresh), &self.limits)?;
        self.secrets.changes.access.entry(id).or_default().insert(reader, change);
        Ok(())
    }
}
