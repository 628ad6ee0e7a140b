//! The files and images of an application's resources, given at deploy or attached later (`docs/hook-model.md` 1.10).

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, Refusal, ResourceName,
    charm::{CharmMeta, ResourceKind},
    command::{Answer, Caller},
    resource::{ResourceRevision, ResourceUpload},
    status::Life,
};

use crate::{
    access::check::{denied, may_use_content},
    application,
    entity::{Application, AttachedResource, FormerContent},
    transaction::Transaction,
};

/// The number of former contents of a resource that stay readable, and that an operator can go back to. A running hook
/// whose content is older fails, and runs again on a newer snapshot.
const FORMER: usize = 4;

/// Attaches new content to a resource. Equal content changes nothing. Other content raises the charm's modified
/// version for the application's units.
pub(crate) fn attach(
    tx: &mut Transaction<'_>,
    caller: &Caller,
    name: &ApplicationName,
    resource: &ResourceName,
    upload: &ResourceUpload,
) -> Result<Answer, Refusal> {
    let mut application = Application::clone(&*tx.application(name)?);
    let about = |refusal: Refusal| refusal.about(format!("application {name}"));
    if application.life != Life::Alive {
        let text =
            format!("cannot attach resource {resource:?}: application {:?} is not alive", name.as_str());
        return Err(about(Refusal::not_alive(text)));
    }
    let meta = tx.charm_meta(&application)?;
    let (revision, fresh) = give(tx, caller, &mut application, meta, resource, upload).map_err(about)?;
    if fresh {
        application.config_hash =
            application::config::config_hash(meta, &application.config, application.charm);
        tx.put(application);
    }
    Ok(Answer::Resource { revision, fresh })
}

/// Attaches content to a resource, and returns its revision and true if the revision is new. The caller stores the
/// application, with the hash that its units see.
pub(crate) fn give(
    tx: &Transaction<'_>,
    caller: &Caller,
    application: &mut Application,
    meta: &CharmMeta,
    resource: &ResourceName,
    upload: &ResourceUpload,
) -> Result<(u64, bool), Refusal> {
    let next = match application.resources.get(resource) {
        Some(attached) if attached.current.digest == upload.digest => {
            return Ok((attached.current.revision, false));
        }
        Some(attached) => attached.current.revision.saturating_add(1),
        None => 1,
    };
    let content = content(tx, caller, meta, resource, upload, next)?;
    application.charm.modified_version = application.charm.modified_version.saturating_add(1);
    let version = application.charm.modified_version;
    let attached = match application.resources.remove(resource) {
        None => AttachedResource::first(content, version),
        Some(AttachedResource { current, version: before, mut former }) => {
            former.push(FormerContent { content: current, version: before });
            former.drain(..former.len().saturating_sub(FORMER));
            AttachedResource { current: content, version, former }
        }
    };
    application.resources.insert(resource.clone(), attached);
    Ok((next, true))
}

/// Returns the first resources of a new application.
pub(crate) fn first(
    tx: &Transaction<'_>,
    caller: &Caller,
    meta: &CharmMeta,
    uploads: &BTreeMap<ResourceName, ResourceUpload>,
) -> Result<BTreeMap<ResourceName, AttachedResource>, Refusal> {
    let attached = uploads.iter().map(|(name, upload)| {
        Ok((name.clone(), AttachedResource::first(content(tx, caller, meta, name, upload, 1)?, 0)))
    });
    attached.collect()
}

/// Returns uploaded content as a revision of a resource that the charm declares.
fn content(
    tx: &Transaction<'_>,
    caller: &Caller,
    meta: &CharmMeta,
    name: &ResourceName,
    upload: &ResourceUpload,
    revision: u64,
) -> Result<ResourceRevision, Refusal> {
    let Caller::User(user) = caller else { return Err(denied()) };
    let declared = meta.resources.get(name).ok_or_else(|| {
        let known: Vec<_> = meta.resources.keys().map(ResourceName::as_str).collect();
        let known = match known.is_empty() {
            true => "no resources".to_owned(),
            false => known.join(", "),
        };
        Refusal::not_found(format!("unrecognized resource {name:?}; charm {:?} declares {known}", meta.name))
    })?;
    declared
        .admits(name, upload.filename.as_deref())
        .map_err(|broken| Refusal::bad_request(broken.to_string()))?;
    let uploaded = tx.root.resource_content(&upload.digest);
    let uploaded = uploaded.filter(|_| may_use_content(tx.root, caller, &upload.digest));
    let uploaded = uploaded.ok_or_else(|| {
        let text = format!(
            "the content {} of resource {name:?} is not uploaded: upload it first",
            upload.digest.short()
        );
        Refusal::not_found(text)
    })?;
    let image = match declared.kind {
        ResourceKind::File { .. } => None,
        ResourceKind::OciImage => Some(uploaded.image.clone().ok_or_else(|| {
            let text = format!(
                "the content {} of resource {name:?} was uploaded as a file, and is to be an image: upload it as one",
                upload.digest.short()
            );
            Refusal::bad_request(text)
        })?),
    };
    Ok(ResourceRevision {
        revision,
        digest: upload.digest,
        size: uploaded.size,
        attached_at: tx.now(),
        attached_by: user.clone(),
        reference: image.as_ref().and(upload.reference.clone()),
        image,
    })
}
