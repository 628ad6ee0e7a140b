//! Secrets in a view: what own units own, read, or have read. Never content (`design.md` section 7).

use std::collections::BTreeSet;

use periapt_host_api::{
    secret::{SecretId, SecretOwner, SecretReader, SecretRevision},
    view::{OwnedRevisionView, OwnedSecretView, SecretConsumerView, SecretView, View},
};

use crate::{entity::Secret, view::Own};

impl Own<'_> {
    pub(crate) fn add_secrets(&self, view: &mut View) {
        let mut ids = BTreeSet::new();
        for name in &self.applications {
            ids.extend(
                self.state.secrets_of(&SecretOwner::Application(name.clone())).map(|secret| secret.id),
            );
            ids.extend(self.state.secrets_granted_to(&SecretReader::Application(name.clone())));
        }
        for unit in self.units.keys() {
            ids.extend(self.state.secrets_of(&SecretOwner::Unit(unit.clone())).map(|secret| secret.id));
            ids.extend(self.state.secrets_granted_to(&SecretReader::Unit(unit.clone())));
            ids.extend(self.state.secrets_consumed_by(unit));
        }
        for id in ids {
            if let Some(secret) = self.secret(&id) {
                view.secrets.insert(id, secret);
            }
        }
    }

    /// What is seen of a secret; none: nothing. A unit that has read it and may no more still sees that it did:
    /// it is told "permission denied", and not that there is no such secret.
    pub(crate) fn secret(&self, id: &SecretId) -> Option<SecretView> {
        let secret = self.state.secret(id)?;
        let owned = match &secret.owner {
            SecretOwner::Model => false,
            SecretOwner::Application(name) => self.applications.contains(name),
            SecretOwner::Unit(name) => self.units.contains_key(name),
        };
        let readers = secret.access.iter().filter(|(reader, relation)| {
            let own = match reader {
                SecretReader::Application(name) => self.applications.contains(name),
                SecretReader::Unit(name) => self.units.contains_key(name),
            };
            own && self.state.grant_holds(relation.as_ref())
        });
        let readers: BTreeSet<SecretReader> = readers.map(|(reader, _)| reader.clone()).collect();
        let consumers =
            self.state.secret_consumers(id).filter(|consumer| self.units.contains_key(&consumer.unit));
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
