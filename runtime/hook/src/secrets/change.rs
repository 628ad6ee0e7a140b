//! Creation, change and removal of secrets.

use periapt_host_api::secret::{
    Confidential, NewSecret, Removal, SecretData, SecretId, SecretOwner, SecretRevision, SecretUpdate,
};

use super::{CHANGE_BYTES, NewOwner, SecretMetadata, content_bytes, label_taken};
use crate::{CallError, CallTime, context::HookRun, lease::Interruption};

/// The entities of a new secret: itself and its first revision.
const ADD_KEYS: usize = 2;

impl HookRun {
    /// Makes a secret with the commit. Its id is known, and its content readable, at once (S-4).
    pub(crate) fn add_secret(
        &mut self,
        now: CallTime,
        owner: NewOwner,
        content: SecretData,
        metadata: SecretMetadata,
    ) -> Result<SecretId, Interruption> {
        content.check().map_err(|error| CallError::Failed(error.to_string()))?;
        metadata.check()?;
        let owner = match owner {
            NewOwner::Application => {
                self.must_lead(now)?;
                SecretOwner::Application(self.snapshot.unit.application().clone())
            }
            NewOwner::Unit => SecretOwner::Unit(self.snapshot.unit.clone()),
        };
        if let Some(label) = &metadata.label {
            self.check_owner_label(None, &owner, label)?;
        }
        let bytes = CHANGE_BYTES + metadata.bytes() + content_bytes(&content);
        self.effects.charge(bytes, ADD_KEYS, &self.limits)?;
        let id = self.secrets.draw();
        let SecretMetadata { label, description, rotate, expire } = metadata;
        let new = NewSecret {
            owner,
            content: Confidential::Open(content),
            label,
            description: description.unwrap_or_default(),
            rotate: rotate.unwrap_or_default(),
            expire,
        };
        self.secrets.changes.add.insert(id, new);
        Ok(id)
    }

    /// Changes a secret. The commit refuses the change of a secret of another owner.
    pub(crate) fn set_secret(
        &mut self,
        now: CallTime,
        id: SecretId,
        content: Option<SecretData>,
        metadata: SecretMetadata,
    ) -> Result<(), Interruption> {
        if let Some(content) = &content {
            content.check().map_err(|error| CallError::Failed(error.to_string()))?;
        }
        metadata.check()?;
        self.may_manage(now, &id)?;
        if let (Some(label), Some(owner)) = (&metadata.label, self.own_secret(&id).cloned()) {
            self.check_owner_label(Some(id), &owner, label)?;
        }
        if content.is_none() && self.changes_nothing(&id, &metadata) {
            return Ok(());
        }
        let fresh =
            !self.secrets.changes.add.contains_key(&id) && !self.secrets.changes.update.contains_key(&id);
        let content_size = content.as_ref().map_or(0, content_bytes);
        let bytes = CHANGE_BYTES + metadata.bytes() + content_size;
        // A new revision is an entity of its own, and its expiry is another.
        let parts = usize::from(content.is_some()) + usize::from(metadata.expire.is_some());
        self.effects.charge(bytes, usize::from(fresh) + parts, &self.limits)?;
        let content = content.map(Confidential::Open);
        if let Some(new) = self.secrets.changes.add.get_mut(&id) {
            merge_into_new(new, content, metadata);
        } else {
            let update = self.secrets.changes.update.entry(id).or_default();
            merge_into_update(update, content, metadata);
        }
        Ok(())
    }

    /// Removes a secret, or one revision of it. A secret made in this hook is then never made.
    pub(crate) fn remove_secret(
        &mut self,
        now: CallTime,
        id: SecretId,
        revision: Option<SecretRevision>,
    ) -> Result<(), Interruption> {
        self.may_manage(now, &id)?;
        let first = revision.is_none_or(|revision| revision == SecretRevision(1));
        if self.secrets.changes.add.contains_key(&id) && first {
            let changes = &mut self.secrets.changes;
            changes.add.remove(&id);
            changes.access.remove(&id);
            changes.track.remove(&id);
            return Ok(());
        }
        // The commit removes the secret; of one revision it removes the content and the expiry.
        let fresh = !self.secrets.changes.remove.contains_key(&id);
        let keys = usize::from(fresh) + if revision.is_some() { 2 } else { 0 };
        self.effects.charge(CHANGE_BYTES, keys, &self.limits)?;
        let changes = &mut self.secrets.changes;
        match (revision, changes.remove.get_mut(&id)) {
            (None, _) => {
                changes.remove.insert(id, Removal::Secret);
                changes.update.remove(&id);
                changes.access.remove(&id);
                changes.track.remove(&id);
            }
            (Some(_), Some(Removal::Secret)) => {}
            (Some(revision), Some(Removal::Revisions(revisions))) => {
                revisions.insert(revision);
            }
            (Some(revision), None) => {
                changes.remove.insert(id, Removal::Revisions([revision].into()));
            }
        }
        Ok(())
    }

    fn check_owner_label(
        &self,
        id: Option<SecretId>,
        owner: &SecretOwner,
        label: &str,
    ) -> Result<(), CallError> {
        let taken = self.own_secrets().any(|other| {
            Some(other) != id
                && self.own_secret(&other) == Some(owner)
                && self.owner_label(&other) == Some(label)
        });
        if taken { Err(label_taken(label)) } else { Ok(()) }
    }

    /// Returns true for a call without any change, which records nothing (S-3).
    fn changes_nothing(&self, id: &SecretId, metadata: &SecretMetadata) -> bool {
        if *metadata == SecretMetadata::default() {
            return true;
        }
        let pending = self.secrets.changes.update.contains_key(id);
        let Some(owned) = self.secret_view(id).and_then(|secret| secret.as_owned_by(&self.snapshot.unit))
        else {
            return false;
        };
        let SecretMetadata { label, description, rotate, expire } = metadata;
        !pending
            && expire.is_none()
            && label.as_ref().is_none_or(|label| owned.label.as_ref() == Some(label))
            && description.as_ref().is_none_or(|description| owned.description == *description)
            && rotate.is_none_or(|rotate| owned.rotate == rotate)
    }
}

fn merge_into_new(new: &mut NewSecret, content: Option<Confidential<SecretData>>, metadata: SecretMetadata) {
    let SecretMetadata { label, description, rotate, expire } = metadata;
    if let Some(content) = content {
        new.content = content;
    }
    if let Some(description) = description {
        new.description = description;
    }
    if let Some(rotate) = rotate {
        new.rotate = rotate;
    }
    new.label = label.or(new.label.take());
    new.expire = expire.or(new.expire);
}

fn merge_into_update(
    update: &mut SecretUpdate,
    content: Option<Confidential<SecretData>>,
    metadata: SecretMetadata,
) {
    let SecretMetadata { label, description, rotate, expire } = metadata;
    update.content = content.or(update.content.take());
    update.label = label.or(update.label.take());
    update.description = description.or(update.description.take());
    update.rotate = rotate.or(update.rotate);
    update.expire = expire.or(update.expire);
}
