//! Reads of secrets: content, metadata, and the list of them.

use periapt_host_api::{
    RelationId, Timestamp,
    secret::{
        AccessChange, Confidential, RotatePolicy, SecretData, SecretId, SecretKey, SecretOwner, SecretReader,
        SecretRevision, Tracked, Tracking,
    },
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::{CHANGE_BYTES, MAX_LABEL_BYTES, NewOwner, check_text, label_taken, not_found};
use crate::{CallError, CallTime, context::HookRun, lease::Interruption};

/// The revision to read (S-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GetMode {
    /// The tracked revision.
    Tracked,
    /// The latest revision; tracking stays.
    Peek,
    /// The latest revision, which the unit tracks from now on.
    Refresh,
}

/// The metadata of a secret, for its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SecretInfo {
    /// The secret.
    pub id: SecretId,
    /// The latest revision, with this hook's.
    pub revision: SecretRevision,
    /// The owner's label.
    pub label: Option<String>,
    /// The owner.
    pub owner: NewOwner,
    /// The description, for operators.
    pub description: String,
    /// The rotation policy.
    pub rotation: RotatePolicy,
    /// The time of the next rotation.
    pub rotates: Option<Timestamp>,
    /// The time at which the latest revision expires.
    pub expiry: Option<Timestamp>,
    /// The readers, with the relation of each grant.
    pub access: BTreeMap<SecretReader, RelationId>,
}

/// The source of content: a stored revision, or this hook's own write.
enum Source {
    Stored(SecretRevision),
    Pending(SecretData),
}

impl HookRun {
    /// Returns the secret of a URI or a label, and the label to set for the unit's reading of it (S-5). The errors are
    /// those of `secret-get`.
    pub(crate) fn named_secret(
        &self,
        uri: Option<&str>,
        label: Option<&str>,
    ) -> Result<(SecretId, Option<String>), CallError> {
        match (uri, label) {
            (None, None) => Err(CallError::invalid("require either a secret URI or label")),
            (Some(uri), None) => Ok((self.secret_uri(uri)?, None)),
            (Some(uri), Some(label)) => {
                check_text("label", Some(label), MAX_LABEL_BYTES)?;
                let id = self.secret_uri(uri)?;
                // An owner names its secrets by the owner's labels.
                let label = (self.own_secret(&id).is_none()).then(|| label.to_owned());
                Ok((id, label))
            }
            (None, Some(label)) => {
                let own = self.own_secrets().find(|id| self.owner_label(id) == Some(label));
                let found = own.or_else(|| self.secret_of_consumer_label(label));
                found
                    .map(|id| (id, None))
                    .ok_or_else(|| CallError::NotFound(format!("consumer label {label:?} not found")))
            }
        }
    }

    fn secret_of_consumer_label(&self, label: &str) -> Option<SecretId> {
        let tracked = self.secrets.changes.track.keys();
        let seen = self.snapshot.view.secrets.keys();
        tracked.chain(seen).copied().find(|id| self.consumer_label(id) == Some(label))
    }

    /// Returns content that the unit may read. Tracking and label change only once the content has arrived.
    pub(crate) fn secret_content(
        &mut self,
        id: SecretId,
        label: Option<String>,
        mode: GetMode,
    ) -> Result<SecretData, Interruption> {
        if let Some(label) = &label {
            let other = self.secret_of_consumer_label(label).filter(|other| *other != id);
            if other.is_some() {
                return Err(label_taken(label).into());
            }
        }
        self.check_in_view(&id)?;
        let (source, tracked) = self.source(&id, mode)?;
        let content = match source {
            Source::Pending(content) => content,
            Source::Stored(revision) => self.secrets.content(SecretKey { id, revision })?,
        };
        self.track(id, tracked, label)?;
        Ok(content)
    }

    /// Refuses a secret that the view lacks. A host that does not run the owner has no secrets in its view without a
    /// grant to its units. So the controller says whether the secret exists, and the charm gets the same error on every
    /// host.
    fn check_in_view(&mut self, id: &SecretId) -> Result<(), Interruption> {
        if self.secrets.changes.add.contains_key(id) || self.snapshot.view.secrets.contains_key(id) {
            return Ok(());
        }
        self.secrets.content(SecretKey { id: *id, revision: SecretRevision::NONE })?;
        // An answer with content would be wrong: no secret has that revision, and the view has no grant.
        Err(CallError::denied().into())
    }

    /// Returns the source of content and the revision to track. None: tracking stays.
    fn source(&self, id: &SecretId, mode: GetMode) -> Result<(Source, Option<Tracked>), CallError> {
        let changes = &self.secrets.changes;
        let refreshed = (mode == GetMode::Refresh).then_some(Tracked::Latest);
        if let Some(new) = changes.add.get(id) {
            return Ok((Source::Pending(open(&new.content)?), refreshed));
        }
        let secret = self.secret_view(id).ok_or_else(|| not_found(id))?;
        if !secret.is_readable_by(&self.snapshot.unit) {
            return Err(CallError::denied());
        }
        let pending = changes.update.get(id).and_then(|update| update.content.as_ref());
        let own = changes.track.get(id).map(|tracking| tracking.revision);
        let stored = secret.consumers.get(&self.snapshot.unit).map(|consumer| consumer.tracked);
        let tracked = own.or(stored.map(Tracked::Revision));
        Ok(match (mode, pending, tracked) {
            (GetMode::Peek | GetMode::Refresh, Some(content), _) => {
                (Source::Pending(open(content)?), refreshed)
            }
            (GetMode::Tracked, Some(content), Some(Tracked::Latest)) => {
                (Source::Pending(open(content)?), None)
            }
            (GetMode::Tracked, _, Some(Tracked::Revision(revision))) => (Source::Stored(revision), None),
            (GetMode::Peek, _, Some(_)) | (GetMode::Tracked, None, Some(Tracked::Latest)) => {
                (Source::Stored(secret.latest), None)
            }
            // The unit reads the secret for the first time, or tracks the latest from now on.
            (_, _, None) | (GetMode::Refresh, None, Some(_)) => {
                (Source::Stored(secret.latest), Some(Tracked::Revision(secret.latest)))
            }
        })
    }

    fn track(
        &mut self,
        id: SecretId,
        tracked: Option<Tracked>,
        label: Option<String>,
    ) -> Result<(), CallError> {
        let view = self.secret_view(&id).and_then(|secret| secret.consumers.get(&self.snapshot.unit));
        let stored = view.map(|consumer| Tracked::Revision(consumer.tracked));
        let before = self.secrets.changes.track.get(&id).map(|tracking| tracking.revision).or(stored);
        let same_label = label.as_deref().is_none_or(|label| self.consumer_label(&id) == Some(label));
        let Some(revision) = tracked.or(before) else { return Ok(()) };
        if Some(revision) == before && same_label {
            return Ok(());
        }
        let fresh = !self.secrets.changes.track.contains_key(&id);
        let bytes = CHANGE_BYTES + label.as_ref().map_or(0, |label| label.len() * 6);
        self.effects.charge(bytes, usize::from(fresh), &self.limits)?;
        let entry = self.secrets.changes.track.entry(id);
        let tracking = entry.or_insert(Tracking { revision, label: None });
        tracking.revision = revision;
        tracking.label = label.or(tracking.label.take());
        Ok(())
    }

    /// Returns the metadata of a secret. A unit sees its own, a leader those of its application, too.
    pub(crate) fn secret_info(
        &mut self,
        now: CallTime,
        uri: Option<&str>,
        label: Option<&str>,
    ) -> Result<SecretInfo, Interruption> {
        let (id, shown) = match (uri, label) {
            (Some(uri), _) => (Some(self.secret_uri(uri)?), uri),
            (None, Some(label)) => (self.own_secrets().find(|id| self.owner_label(id) == Some(label)), label),
            (None, None) => return Err(CallError::invalid("require either a secret URI or label").into()),
        };
        let id = id.ok_or_else(|| not_found(shown))?;
        let shown = uri.map_or(shown.to_owned(), |_| id.to_string());
        let owner = match self.own_secret(&id).cloned() {
            Some(SecretOwner::Unit(_)) => NewOwner::Unit,
            Some(SecretOwner::Application(_)) if self.leader_term(now)?.is_some() => NewOwner::Application,
            _ => return Err(not_found(shown).into()),
        };
        self.info(id, owner).ok_or_else(|| not_found(shown).into())
    }

    fn info(&self, id: SecretId, owner: NewOwner) -> Option<SecretInfo> {
        let access = self.effective_access(&id);
        if let Some(new) = self.secrets.changes.add.get(&id) {
            return Some(SecretInfo {
                id,
                revision: SecretRevision(1),
                label: new.label.clone(),
                owner,
                description: new.description.clone(),
                rotation: new.rotate,
                rotates: None,
                expiry: new.expire,
                access,
            });
        }
        let secret = self.secret_view(&id)?;
        let owned = secret.as_owned_by(&self.snapshot.unit)?;
        let update = self.secrets.changes.update.get(&id).cloned().unwrap_or_default();
        let revised = update.content.is_some();
        let stored_expiry = owned.revisions.get(&secret.latest).and_then(|revision| revision.expire);
        Some(SecretInfo {
            id,
            revision: if revised { secret.latest.next() } else { secret.latest },
            label: update.label.or_else(|| owned.label.clone()),
            owner,
            description: update.description.unwrap_or_else(|| owned.description.clone()),
            rotation: update.rotate.unwrap_or(owned.rotate),
            rotates: owned.next_rotate.filter(|_| update.rotate.is_none_or(|rotate| rotate == owned.rotate)),
            expiry: update.expire.or(stored_expiry.filter(|_| !revised)),
            access,
        })
    }

    /// Returns the readers of an own secret, with this hook's grants and revocations.
    pub(super) fn effective_access(&self, id: &SecretId) -> BTreeMap<SecretReader, RelationId> {
        let stored = self.secret_view(id).and_then(|secret| secret.as_owned_by(&self.snapshot.unit));
        let stored = stored.into_iter().flat_map(|owned| &owned.access);
        let mut access: BTreeMap<SecretReader, RelationId> =
            stored.filter_map(|(reader, relation)| Some((reader.clone(), (*relation)?))).collect();
        for (reader, change) in self.secrets.changes.access.get(id).into_iter().flatten() {
            match change {
                AccessChange::Grant(relation) => access.insert(reader.clone(), *relation),
                AccessChange::Revoke => access.remove(reader),
            };
        }
        access
    }

    /// Returns the secrets that the unit manages, with this hook's.
    pub(crate) fn secret_ids(&mut self, now: CallTime) -> Result<Vec<SecretId>, Interruption> {
        let own: Vec<SecretId> = self.own_secrets().collect();
        let of_application =
            |run: &Self, id: &SecretId| matches!(run.own_secret(id), Some(SecretOwner::Application(_)));
        let leads = match own.iter().any(|id| of_application(self, id)) {
            true => self.leader_term(now)?.is_some(),
            false => false,
        };
        Ok(own.into_iter().filter(|id| leads || !of_application(self, id)).collect())
    }
}

fn open(content: &Confidential<SecretData>) -> Result<SecretData, CallError> {
    match content {
        Confidential::Open(content) => Ok(content.clone()),
        // A hook holds in the open only content that it wrote itself.
        Confidential::Sealed(_) => Err(CallError::Failed("the secret's content is sealed".to_owned())),
    }
}
