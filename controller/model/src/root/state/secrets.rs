//! A model's secrets: their lookup, and the times of rotations and expiries.

use std::{collections::BTreeSet, sync::Arc};

use periapt_host_api::{
    Timestamp, UnitName,
    secret::{SecretId, SecretOwner, SecretReader, SecretRevision},
    status::Life,
};

use super::{
    ModelState,
    derived::{SecretDue, derive},
};
use crate::entity::{Secret, SecretConsumer, SecretContent, SecretExpiry};

/// Returns the time at which the owner is told that a revision expired. A revision without content has none.
fn expiry_report_at(content: Option<&SecretContent>, expiry: Option<&SecretExpiry>) -> Option<Timestamp> {
    let content = content?;
    expiry.map_or(content.tell_at, |expiry| expiry.tell_at)
}

/// Updates the expiry time of a revision whose content was added or removed.
pub(super) fn content_changed(
    state: &mut ModelState,
    old: Option<&SecretContent>,
    new: Option<&SecretContent>,
) {
    let Some(SecretContent { id, revision, .. }) = new.or(old) else { return };
    let expiry = state.tables.expiries.find(&(*id, *revision)).cloned();
    let due = |content: &SecretContent| {
        expiry_report_at(Some(content), expiry.as_deref())
            .map(|at| (at, content.id, SecretDue::Expire(content.revision)))
    };
    derive(&mut state.derived.secrets_due, old, new, due);
}

/// Updates the expiry time of a revision whose expiry state changed.
pub(super) fn expiry_changed(state: &mut ModelState, old: Option<&SecretExpiry>, new: Option<&SecretExpiry>) {
    let Some(SecretExpiry { id, revision, .. }) = new.or(old) else { return };
    let content = state.tables.contents.find(&(*id, *revision)).cloned();
    let due = |expiry: &Option<&SecretExpiry>| {
        expiry_report_at(content.as_deref(), *expiry).map(|at| (at, *id, SecretDue::Expire(*revision)))
    };
    derive(&mut state.derived.secrets_due, Some(&old), Some(&new), due);
}

impl ModelState {
    /// Returns a secret.
    pub fn secret(&self, id: &SecretId) -> Option<&Arc<Secret>> {
        self.tables.secrets.get(id)
    }

    /// Returns all secrets, by id.
    pub fn secrets(&self) -> impl Iterator<Item = &Arc<Secret>> {
        self.tables.secrets.values()
    }

    /// Returns the secrets of an owner.
    pub fn secrets_of(&self, owner: &SecretOwner) -> impl Iterator<Item = &Arc<Secret>> {
        self.derived.owned_by.get(owner).filter_map(|id| self.secret(id))
    }

    /// Returns the number of secrets of an owner.
    pub fn secret_count(&self, owner: &SecretOwner) -> usize {
        self.derived.owned_by.len(owner)
    }

    /// Returns the secrets that are granted to a unit or an application by name.
    pub(crate) fn secrets_granted_to(&self, reader: &SecretReader) -> impl Iterator<Item = &SecretId> {
        self.derived.granted_to.get(reader)
    }

    /// Returns the secrets that a unit has read.
    pub(crate) fn secrets_consumed_by(&self, unit: &UnitName) -> impl Iterator<Item = &SecretId> {
        self.derived.consumed_by.get(unit)
    }

    /// Returns the number of secrets that a unit has read.
    pub(crate) fn consumed_count(&self, unit: &UnitName) -> usize {
        self.derived.consumed_by.len(unit)
    }

    /// Returns the content of one revision.
    pub fn secret_content(&self, id: &SecretId, revision: SecretRevision) -> Option<&Arc<SecretContent>> {
        self.tables.contents.find(&(*id, revision))
    }

    /// Returns all existing revisions of a secret.
    pub fn secret_contents(&self, id: &SecretId) -> impl DoubleEndedIterator<Item = &Arc<SecretContent>> {
        self.tables.contents.of(id)
    }

    /// Returns the number of existing revisions of a secret.
    pub(crate) fn secret_revision_count(&self, id: &SecretId) -> usize {
        self.tables.contents.count(id)
    }

    /// Returns the expiry state of a revision: its time, and what its owner was told.
    pub fn secret_expiry(&self, id: &SecretId, revision: SecretRevision) -> Option<SecretExpiry> {
        let content = self.secret_content(id, revision)?;
        let changed = self.tables.expiries.find(&(*id, revision));
        Some(changed.map_or_else(|| SecretExpiry::first(content), |changed| SecretExpiry::clone(changed)))
    }

    /// Returns the stored expiry states of a secret's revisions.
    pub(crate) fn secret_expiries(&self, id: &SecretId) -> impl Iterator<Item = &Arc<SecretExpiry>> {
        self.tables.expiries.of(id)
    }

    /// Returns the tracking record of a unit for a secret.
    pub fn secret_consumer(&self, id: &SecretId, unit: &UnitName) -> Option<&Arc<SecretConsumer>> {
        self.tables.consumers.get(id)?.get(unit)
    }

    /// Returns all units that have read a secret.
    pub fn secret_consumers(&self, id: &SecretId) -> impl Iterator<Item = &Arc<SecretConsumer>> {
        self.tables.consumers.of(id)
    }

    /// Returns true if contents, expiries or consumers of a secret exist, even if the secret itself is removed.
    pub(crate) fn has_secret_parts(&self, id: &SecretId) -> bool {
        let tables = &self.tables;
        tables.contents.contains_key(id)
            || tables.expiries.contains_key(id)
            || tables.consumers.contains_key(id)
    }

    /// Returns the bytes that all secrets, their revisions and their consumers count for.
    pub(crate) fn secret_bytes(&self) -> usize {
        usize::try_from(self.derived.secret_bytes.0).unwrap_or(usize::MAX)
    }

    /// Returns the times of rotations and expiries, the next one first.
    pub(crate) fn secrets_due(&self) -> impl Iterator<Item = &(Timestamp, SecretId, SecretDue)> {
        self.derived.secrets_due.iter()
    }

    /// Returns true if a unit may read a secret: as its owner, as a unit of the owning application (S-7), or by a
    /// grant whose relation still exists (S-6, G18).
    pub fn may_read_secret(&self, secret: &Secret, unit: &UnitName) -> bool {
        let owns = match &secret.owner {
            SecretOwner::Unit(owner) => owner == unit,
            SecretOwner::Application(owner) => owner == unit.application(),
            SecretOwner::Model => false,
        };
        let granted = |reader: &SecretReader| {
            secret.access.get(reader).is_some_and(|relation| self.grant_holds(relation.as_ref()))
        };
        owns || granted(&SecretReader::Application(unit.application().clone()))
            || granted(&SecretReader::Unit(unit.clone()))
    }

    /// Returns true if a grant is valid: its relation, if it has one, still exists.
    pub(crate) fn grant_holds(&self, relation: Option<&periapt_host_api::RelationId>) -> bool {
        relation.is_none_or(|id| self.relation(id).is_some_and(|relation| relation.life != Life::Dead))
    }

    /// Returns the revisions of a secret that are in use: the latest, and those that a unit with access tracks. The
    /// others are obsolete (S-8).
    pub fn revisions_in_use(&self, secret: &Secret) -> BTreeSet<SecretRevision> {
        let readers =
            self.secret_consumers(&secret.id).filter(|consumer| self.may_read_secret(secret, &consumer.unit));
        readers.map(|consumer| consumer.tracked).chain([secret.latest]).collect()
    }
}
