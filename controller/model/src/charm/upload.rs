//! The registration of uploaded charms, and the removal of charms that no model uses.

use std::sync::Arc;

use periapt_host_api::{Digest, ErrorCode, Refusal, command::Caller};

use crate::{
    access::check::{active_user, denied},
    entity::{Charm, Entity, EntityKey},
    input::{Environment, UploadedCharm},
    root::{Root, changes::Changes},
    transaction::check_size,
    user::uploaders::Uploaders,
};

pub(crate) fn upload_charm(
    root: &Root,
    caller: &Caller,
    charm: &UploadedCharm,
    env: &Environment,
) -> Result<Changes, Refusal> {
    let user = active_user(root, caller).ok_or_else(denied)?;
    let UploadedCharm { digest, component, meta, size, reader } = charm;
    let mut changes = Changes::default();
    match root.charm(digest) {
        // The digest covers the whole archive, so equal archives must have equal metadata. A newer reader keeps more
        // of it.
        Some(known) if known.component == *component && known.agrees_with(meta, *reader) => {
            let (is_read_better, is_new) = (known.reader < *reader, !known.uploaders.has(user));
            if is_read_better || is_new {
                let mut charm = known.clone();
                if is_read_better {
                    (charm.meta, charm.reader) = (meta.clone(), *reader);
                }
                if is_new {
                    charm.uploaders = known.uploaders.with(user);
                }
                changes.puts.insert(EntityKey::Charm(*digest), Some(charm.into()));
            }
        }
        Some(_) => return Err(Refusal::new(ErrorCode::Internal, "one archive was read in two ways")),
        None => {
            let charm = Arc::new(Charm {
                digest: *digest,
                component: *component,
                meta: meta.clone(),
                size: *size,
                uploaded_at: env.now,
                uploaders: Uploaders::default().with(user),
                reader: *reader,
            });
            changes.puts.insert(EntityKey::Charm(*digest), Some(Entity::Charm(charm)));
        }
    }
    check_size(&changes)?;
    Ok(changes)
}

pub(crate) fn forget_charm(root: &Root, digest: &Digest) -> Changes {
    let mut changes = Changes::default();
    if root.charm(digest).is_some() && !root.uses_charm(digest) {
        changes.puts.insert(EntityKey::Charm(*digest), None);
    }
    changes
}
