//! A model's secrets, and what is derived from them to find them quickly.

use std::{collections::BTreeSet, sync::Arc};

use imbl::{OrdMap, OrdSet, ordmap::DiffItem};
use periapt_host_api::{
    Timestamp, UnitName,
    secret::{SecretId, SecretOwner, SecretReader, SecretRevision},
    status::Life,
};

use super::ModelState;
use crate::{
    entity::{PART_BYTES, Secret, SecretConsumer, SecretContent, SecretExpiry},
    root::index::Index,
};

/// What a time that a secret waits for is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bell {
    Rotate,
    Expire(SecretRevision),
}

/// All secrets of a model.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets {
    secrets: OrdMap<SecretId, Arc<Secret>>,
    contents: OrdMap<SecretId, OrdMap<SecretRevision, Arc<SecretContent>>>,
    expiries: OrdMap<SecretId, OrdMap<SecretRevision, Arc<SecretExpiry>>>,
    consumers: OrdMap<SecretId, OrdMap<UnitName, Arc<SecretConsumer>>>,

    owned_by: Index<SecretOwner, SecretId>,
    granted_to: Index<SecretReader, SecretId>,
    consumed_by: Index<UnitName, SecretId>,
    bells: OrdSet<(Timestamp, SecretId, Bell)>,
    bytes: usize,
}

impl Secrets {
    pub(super) fn put_secret(&mut self, id: SecretId, secret: Option<&Arc<Secret>>) {
        if let Some(old) = self.secrets.remove(&id) {
            self.bytes = self.bytes.saturating_sub(old.weight());
            self.owned_by.remove(&old.owner, &id);
            for reader in old.access.keys() {
                self.granted_to.remove(reader, &id);
            }
            if let Some(at) = rotates_at(&old) {
                self.bells.remove(&(at, id, Bell::Rotate));
            }
        }
        let Some(secret) = secret else { return };
        self.bytes = self.bytes.saturating_add(secret.weight());
        self.owned_by.insert(secret.owner.clone(), id);
        for reader in secret.access.keys() {
            self.granted_to.insert(reader.clone(), id);
        }
        if let Some(at) = rotates_at(secret) {
            self.bells.insert((at, id, Bell::Rotate));
        }
        self.secrets.insert(id, Arc::clone(secret));
    }

    pub(super) fn put_content(
        &mut self,
        id: SecretId,
        revision: SecretRevision,
        content: Option<&Arc<SecretContent>>,
    ) {
        let rang_at = self.tells_at(&id, revision);
        let revisions = self.contents.entry(id).or_default();
        let old = match content {
            Some(content) => revisions.insert(revision, Arc::clone(content)),
            None => revisions.remove(&revision),
        };
        if revisions.is_empty() {
            self.contents.remove(&id);
        }
        if let Some(old) = old {
            self.bytes = self.bytes.saturating_sub(old.weight());
        }
        if let Some(content) = content {
            self.bytes = self.bytes.saturating_add(content.weight());
        }
        self.move_bell(id, revision, rang_at);
    }

    pub(super) fn put_expiry(
        &mut self,
        id: SecretId,
        revision: SecretRevision,
        expiry: Option<&Arc<SecretExpiry>>,
    ) {
        let rang_at = self.tells_at(&id, revision);
        let revisions = self.expiries.entry(id).or_default();
        match expiry {
            Some(expiry) => revisions.insert(revision, Arc::clone(expiry)),
            None => revisions.remove(&revision),
        };
        if revisions.is_empty() {
            self.expiries.remove(&id);
        }
        self.move_bell(id, revision, rang_at);
    }

    /// What became of a revision's expiry; none: nothing yet.
    pub(super) fn expiry_entity(
        &self,
        id: &SecretId,
        revision: SecretRevision,
    ) -> Option<&Arc<SecretExpiry>> {
        self.expiries.get(id)?.get(&revision)
    }

    /// When the owner is told that a revision expired. What has no content rings for nobody.
    fn tells_at(&self, id: &SecretId, revision: SecretRevision) -> Option<Timestamp> {
        let content = self.contents.get(id)?.get(&revision)?;
        self.expiry_entity(id, revision).map_or(content.tell_at, |expiry| expiry.tell_at)
    }

    fn move_bell(&mut self, id: SecretId, revision: SecretRevision, rang_at: Option<Timestamp>) {
        let rings_at = self.tells_at(&id, revision);
        if rang_at == rings_at {
            return;
        }
        if let Some(at) = rang_at {
            self.bells.remove(&(at, id, Bell::Expire(revision)));
        }
        if let Some(at) = rings_at {
            self.bells.insert((at, id, Bell::Expire(revision)));
        }
    }

    pub(super) fn put_consumer(
        &mut self,
        id: SecretId,
        unit: &UnitName,
        consumer: Option<&Arc<SecretConsumer>>,
    ) {
        let consumers = self.consumers.entry(id).or_default();
        let old = match consumer {
            Some(consumer) => {
                self.consumed_by.insert(unit.clone(), id);
                self.bytes = self.bytes.saturating_add(PART_BYTES);
                consumers.insert(unit.clone(), Arc::clone(consumer))
            }
            None => {
                self.consumed_by.remove(unit, &id);
                consumers.remove(unit)
            }
        };
        if old.is_some() {
            self.bytes = self.bytes.saturating_sub(PART_BYTES);
        }
        if consumers.is_empty() {
            self.consumers.remove(&id);
        }
    }

    /// The secrets of which anything differs.
    pub(super) fn touched(&self, newer: &Self, touched: &mut BTreeSet<SecretId>) {
        touched.extend(self.secrets.diff(&newer.secrets).map(id_of));
        touched.extend(self.contents.diff(&newer.contents).map(id_of));
        touched.extend(self.expiries.diff(&newer.expiries).map(id_of));
        touched.extend(self.consumers.diff(&newer.consumers).map(id_of));
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.bells.is_empty()
    }
}

fn id_of<V>(item: DiffItem<'_, '_, SecretId, V>) -> SecretId {
    match item {
        DiffItem::Add(id, _) | DiffItem::Remove(id, _) | DiffItem::Update { new: (id, _), .. } => *id,
    }
}

/// When the owner is to be told of rotation; none while it is being told.
fn rotates_at(secret: &Secret) -> Option<Timestamp> {
    secret.next_rotate.filter(|_| !secret.rotate_due)
}

impl ModelState {
    /// A secret.
    pub fn secret(&self, id: &SecretId) -> Option<&Arc<Secret>> {
        self.secrets.secrets.get(id)
    }

    /// All secrets, by id.
    pub fn secrets(&self) -> impl Iterator<Item = &Arc<Secret>> {
        self.secrets.secrets.values()
    }

    /// The secrets of an owner.
    pub fn secrets_of(&self, owner: &SecretOwner) -> impl Iterator<Item = &Arc<Secret>> {
        self.secrets.owned_by.get(owner).filter_map(|id| self.secret(id))
    }

    /// How many secrets an owner has.
    pub fn secret_count(&self, owner: &SecretOwner) -> usize {
        self.secrets.owned_by.len(owner)
    }

    /// The secrets that are granted to a unit or an application by name.
    pub(crate) fn secrets_granted_to(&self, reader: &SecretReader) -> impl Iterator<Item = &SecretId> {
        self.secrets.granted_to.get(reader)
    }

    /// The secrets that a unit has read.
    pub(crate) fn secrets_consumed_by(&self, unit: &UnitName) -> impl Iterator<Item = &SecretId> {
        self.secrets.consumed_by.get(unit)
    }

    /// How many secrets a unit has read.
    pub(crate) fn consumed_count(&self, unit: &UnitName) -> usize {
        self.secrets.consumed_by.len(unit)
    }

    /// The content of one revision.
    pub fn secret_content(&self, id: &SecretId, revision: SecretRevision) -> Option<&Arc<SecretContent>> {
        self.secrets.contents.get(id)?.get(&revision)
    }

    /// All revisions of a secret that are there.
    pub fn secret_contents(&self, id: &SecretId) -> impl DoubleEndedIterator<Item = &Arc<SecretContent>> {
        self.secrets.contents.get(id).into_iter().flat_map(OrdMap::values)
    }

    /// How many revisions of a secret there are.
    pub(crate) fn secret_revision_count(&self, id: &SecretId) -> usize {
        self.secrets.contents.get(id).map_or(0, OrdMap::len)
    }

    /// When a revision expires, and how far its owner was told.
    pub fn secret_expiry(&self, id: &SecretId, revision: SecretRevision) -> Option<SecretExpiry> {
        let content = self.secret_content(id, revision)?;
        let changed = self.secrets.expiry_entity(id, revision);
        Some(changed.map_or_else(|| SecretExpiry::first(content), |changed| SecretExpiry::clone(changed)))
    }

    /// Revisions of a secret of whose expiry something came.
    pub(crate) fn secret_expiries(&self, id: &SecretId) -> impl Iterator<Item = &Arc<SecretExpiry>> {
        self.secrets.expiries.get(id).into_iter().flat_map(OrdMap::values)
    }

    /// What a unit tracks of a secret.
    pub fn secret_consumer(&self, id: &SecretId, unit: &UnitName) -> Option<&Arc<SecretConsumer>> {
        self.secrets.consumers.get(id)?.get(unit)
    }

    /// All units that have read a secret.
    pub fn secret_consumers(&self, id: &SecretId) -> impl Iterator<Item = &Arc<SecretConsumer>> {
        self.secrets.consumers.get(id).into_iter().flat_map(OrdMap::values)
    }

    /// Whether content, expiries or consumers of a secret are there, though it may be gone.
    pub(crate) fn has_secret_parts(&self, id: &SecretId) -> bool {
        let Secrets { contents, expiries, consumers, .. } = &self.secrets;
        contents.contains_key(id) || expiries.contains_key(id) || consumers.contains_key(id)
    }

    /// Secrets of which content is there, those that are gone included.
    pub(crate) fn secret_ids_with_contents(&self) -> impl Iterator<Item = &SecretId> {
        self.secrets.contents.keys()
    }

    /// Secrets of whose expiries something came, those that are gone included.
    pub(crate) fn secret_ids_with_expiries(&self) -> impl Iterator<Item = &SecretId> {
        self.secrets.expiries.keys()
    }

    /// Secrets that somebody has read, those that are gone included.
    pub(crate) fn secret_ids_with_consumers(&self) -> impl Iterator<Item = &SecretId> {
        self.secrets.consumers.keys()
    }

    /// What all secrets, their revisions and their readers count for, in bytes.
    pub(crate) fn secret_bytes(&self) -> usize {
        self.secrets.bytes
    }

    /// Times that secrets wait for, the next first.
    pub(crate) fn bells(&self) -> impl Iterator<Item = &(Timestamp, SecretId, Bell)> {
        self.secrets.bells.iter()
    }

    /// Whether a unit may read a secret: as its owner, as a unit of the owning application (S-7), or by a grant,
    /// whose relation must still be there (S-6, G18).
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

    /// Whether a grant still counts.
    pub(crate) fn grant_holds(&self, relation: Option<&periapt_host_api::RelationId>) -> bool {
        relation.is_none_or(|id| self.relation(id).is_some_and(|relation| relation.life != Life::Dead))
    }

    /// The revisions of a secret that are in use: the latest, and those that somebody who may read it tracks. The others
    /// are obsolete (S-8).
    pub fn revisions_in_use(&self, secret: &Secret) -> BTreeSet<SecretRevision> {
        let readers =
            self.secret_consumers(&secret.id).filter(|consumer| self.may_read_secret(secret, &consumer.unit));
        readers.map(|consumer| consumer.tracked).chain([secret.latest]).collect()
    }
}
