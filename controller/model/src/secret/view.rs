//! The view of secrets: those that the runner's units own, may read, or have read. It never has content
//! (`docs/design/secrets.md`).

use std::collections::BTreeSet;

use periapt_host_api::{
    UnitName,
    secret::{SecretId, SecretOwner, SecretReader, SecretRevision},
    view::{OwnedRevisionView, OwnedSecretView, SecretConsumerView, SecretView, View},
};

use crate::{entity::Secret, root::ModelState, view::RunnerEntities};

/// Returns the secrets that a unit owns, has a grant for, or has read.
pub(crate) fn secrets_around(state: &ModelState, unit: &UnitName) -> Vec<SecretId> {
    let (owner, reader) = (SecretOwner::Unit(unit.clone()), SecretReader::Unit(unit.clone()));
    let owned = state.secrets_of(&owner).map(|secret| secret.id);
    let granted = state.secrets_granted_to(&reader).copied();
    owned.chain(granted).chain(state.secrets_consumed_by(unit).copied()).collect()
}

impl RunnerEntities<'_> {
    pub(crate) fn add_secrets(&self, view: &mut View) {
        let mut ids = BTreeSet::new();
        for name in self.applications() {
            ids.extend(
                self.state.secrets_of(&SecretOwner::Application(name.clone())).map(|secret| secret.id),
            );
            ids.extend(self.state.secrets_granted_to(&SecretReader::Application(name.clone())));
        }
        ids.extend(self.units().flat_map(|unit| secrets_around(self.state, &unit.name)));
        for id in ids {
            if let Some(secret) = self.secret(&id) {
                view.secrets.insert(id, secret);
            }
        }
    }

    /// Returns the view of a secret, or none if the runner may not see it. A unit that has read it and lost access
    /// still sees it, so that its charm gets "permission denied" and not "not found".
    pub(crate) fn secret(&self, id: &SecretId) -> Option<SecretView> {
        let secret = self.state.secret(id)?;
        let owned = match &secret.owner {
            SecretOwner::Model => false,
            SecretOwner::Application(name) => self.has_units_of(name),
            SecretOwner::Unit(name) => self.has_unit(name),
        };
        let readers = secret.access.iter().filter(|(reader, relation)| {
            let own = match reader {
                SecretReader::Application(name) => self.has_units_of(name),
                SecretReader::Unit(name) => self.has_unit(name),
            };
            own && self.state.grant_holds(relation.as_ref())
        });
        let readers: BTreeSet<SecretReader> = readers.map(|(reader, _)| reader.clone()).collect();
        let consumers = self.state.secret_consumers(id).filter(|consumer| self.has_unit(&consumer.unit));
        let consumers: std::collections::BTreeMap<_, _> = consumers
            .map(|consumer| {
                let view = SecretConsumerView { tracked: consumer.tracked, label: consumer.label.clone() };
                (consumer.unit.clone(), view)
            })
            .collect();
        if !owned && readers.is_empty() && consumers.is_empty() {
            return None;
        }
        let readable = owned || !readers.is_empty();
        Some(SecretView {
            id: *id,
            owner: secret.owner.clone(),
            latest: if readable { secret.latest } else { SecretRevision::default() },
            readers,
            consumers,
            owned: owned.then(|| self.owned(secret)),
        })
    }

    fn owned(&self, secret: &Secret) -> OwnedSecretView {
        let in_use = self.state.revisions_in_use(secret);
        let revisions = self.state.secret_contents(&secret.id).filter_map(|content| {
            let expiry = self.state.secret_expiry(&secret.id, content.revision)?;
            let view = OwnedRevisionView {
                expire: expiry.expire,
                expire_due: expiry.expire_due,
                obsolete: !in_use.contains(&content.revision),
            };
            Some((content.revision, view))
        });
        let access = secret.access.iter().filter(|(_, relation)| self.state.grant_holds(relation.as_ref()));
        OwnedSecretView {
            label: secret.label.clone(),
            description: secret.description.clone(),
            rotate: secret.rotate,
            next_rotate: secret.next_rotate,
            rotate_due: secret.rotate_due,
            revisions: revisions.collect(),
            access: access.map(|(reader, relation)| (reader.clone(), *relation)).collect(),
        }
    }
}
