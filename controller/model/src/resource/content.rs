//! The content of resources: its upload, its download by units, and its removal when no application has it.

use periapt_host_api::{
    Digest, ErrorCode, Refusal, UnitName,
    api::ResourceDetails,
    command::Caller,
    resource::{ArchiveParts, ResourceKey, ResourceRevision, check_layers},
};

use crate::{
    access::check::{active_user, denied},
    entity::{Application, AttachedResource, EntityKey, ResourceContent, User},
    input::{Environment, UploadedResource},
    root::{ModelState, Root, changes::Changes},
    user::uploaders::Uploaders,
};

/// Registers uploaded content with its parts, so that its uploader can attach it to applications. A content that is known
/// stays as it is stored.
pub(crate) fn upload(
    root: &Root,
    caller: &Caller,
    uploaded: &UploadedResource,
    env: &Environment,
) -> Result<Changes, Refusal> {
    let UploadedResource { digest, size, ref image, ref parts } = *uploaded;
    let user = active_user(root, caller).ok_or_else(denied)?;
    let known = root.resource_content(&digest);
    let mut changes = Changes::default();
    let is_known = known.is_some_and(|known| known.uploaders.has(user));
    let is_checked = known.is_some_and(|known| known.image.is_some()) || image.is_none();
    if !is_known || !is_checked {
        let mut uploaders = known.map(|known| known.uploaders.clone()).unwrap_or_default();
        if !is_known {
            uploaders = uploaders.with(user);
        }
        let uploaded_at = known.map_or(env.now, |known| known.uploaded_at);
        // What was found in the content once is in it for ever.
        let image = known.and_then(|known| known.image.clone()).or_else(|| image.clone());
        let parts = known.map_or(parts, |known| &known.parts).clone();
        let content = ResourceContent { digest, size, uploaded_at, uploaders, image, parts };
        changes.puts.insert(EntityKey::ResourceContent(digest), Some(content.into()));
    }
    // A user who has uploaded the whole has uploaded each part, and may leave it out of the next upload.
    let parts = known.map_or(parts.as_ref(), |known| known.parts.as_ref());
    if let Some(parts) = parts {
        register_parts(root, user, (parts, size), env, &mut changes)?;
    }
    Ok(changes)
}

/// Registers the parts of a content of some size in bytes. Each is a blob of its own, so that nothing is put together of
/// what is in parts itself.
fn register_parts(
    root: &Root,
    user: &User,
    (parts, size): (&ArchiveParts, u64),
    env: &Environment,
    changes: &mut Changes,
) -> Result<(), Refusal> {
    check_layers(&parts.layers, size).map_err(|broken| Refusal::bad_request(broken.to_string()))?;
    for (digest, size) in parts.sizes(size) {
        let content = match root.resource_content(&digest) {
            Some(known) if known.parts.is_some() => {
                let text = format!(
                    "part {} of the image was uploaded as an image meanwhile; send it again",
                    digest.short()
                );
                return Err(Refusal::new(ErrorCode::TryAgain, text));
            }
            Some(known) if known.uploaders.has(user) => continue,
            Some(known) => ResourceContent { uploaders: known.uploaders.with(user), ..known.clone() },
            None => ResourceContent {
                digest,
                size,
                uploaded_at: env.now,
                uploaders: Uploaders::default().with(user),
                image: None,
                parts: None,
            },
        };
        changes.puts.insert(EntityKey::ResourceContent(digest), Some(content.into()));
    }
    Ok(())
}

pub(crate) fn forget(root: &Root, digest: &Digest) -> Changes {
    let mut changes = Changes::default();
    if root.resource_content(digest).is_some() && !root.uses_content(digest) {
        changes.puts.insert(EntityKey::ResourceContent(*digest), None);
    }
    changes
}

/// Checks that a runner may read content for one of its units. The current state decides, not the runner's snapshot:
/// the resource of the unit's application must have the content, or must have had it recently, for a hook that is
/// still running.
///
/// # Errors
/// `permission denied` for content that the unit does not have, even if it exists.
pub fn resource_for_unit(
    root: &Root,
    caller: &Caller,
    unit: &UnitName,
    key: &ResourceKey,
) -> Result<(), Refusal> {
    let Caller::Runner { agent, model } = caller else { return Err(denied()) };
    let state = root.model_for_runner(model).ok_or_else(denied)?;
    let found = state.unit(unit).filter(|unit| state.agent_of(unit) == Some(agent)).ok_or_else(denied)?;
    let application = state.application(found.name.application()).ok_or_else(denied)?;
    let attached = application.resources.get(&key.name).filter(|attached| attached.knows(&key.digest));
    attached.map(drop).ok_or_else(denied)
}

/// Returns the former contents of a resource that the controller still has, the newest last.
fn former(root: &Root, attached: &AttachedResource) -> Vec<ResourceRevision> {
    let former = attached.former.iter().map(|former| &former.content);
    former.filter(|content| root.resource_content(&content.digest).is_some()).cloned().collect()
}

/// Returns the resources that an application's charm declares, with the revision that each unit was told.
pub fn resource_details(root: &Root, state: &ModelState, application: &Application) -> Vec<ResourceDetails> {
    let Some(charm) = root.charm(&application.charm.digest) else { return Vec::new() };
    let declared = charm.meta.resources.iter();
    declared
        .map(|(name, meta)| {
            let attached = application.resources.get(name);
            let told = |version| attached.and_then(|attached| attached.as_of(version)).cloned();
            let units = state.units_of(&application.name).map(|unit| {
                let charm = unit.record.charm;
                (unit.name.clone(), charm.and_then(|charm| told(charm.modified_version)))
            });
            ResourceDetails {
                name: name.clone(),
                meta: meta.clone(),
                attached: attached.map(|attached| attached.current.clone()),
                former: attached.into_iter().flat_map(|attached| former(root, attached)).collect(),
                units: units.collect(),
            }
        })
        .collect()
}
