//! The check of a charm's `containers` (`docs/hook-model.md` M-5). No container runs here, but an invalid declaration is
//! refused as in Juju.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{ResourceKind, ResourceMeta, StorageMeta};
use crate::{ResourceName, StorageName, excerpt::shortened, rule::BrokenRule};

/// The ids of a host's own users.
const HOST_IDS: std::ops::RangeInclusive<u64> = 1_000..=9_999;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawContainer {
    resource: Option<String>,
    mounts: Option<Vec<RawMount>>,
    uid: Option<u64>,
    gid: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawMount {
    storage: Option<String>,
    location: Option<String>,
}

/// Checks the section `containers` against resources and storage. The error names the container and the mistake.
pub(super) fn check(
    raw: Option<&Value>,
    resources: &BTreeMap<ResourceName, ResourceMeta>,
    storage: &BTreeMap<StorageName, StorageMeta>,
) -> Result<(), BrokenRule> {
    let Some(raw) = raw.filter(|raw| !raw.is_null()) else { return Ok(()) };
    let containers = BTreeMap::<String, Option<RawContainer>>::deserialize(raw)
        .map_err(|error| BrokenRule::of(error).at("containers"))?;
    for (name, container) in containers {
        let container = container.unwrap_or_default();
        container
            .check(resources, storage)
            .map_err(|broken| broken.at(format_args!("container {}", shortened(&name))))?;
    }
    Ok(())
}

impl RawContainer {
    fn check(
        &self,
        resources: &BTreeMap<ResourceName, ResourceMeta>,
        storage: &BTreeMap<StorageName, StorageMeta>,
    ) -> Result<(), BrokenRule> {
        if let Some(wanted) = self.resource.as_deref().filter(|wanted| !wanted.is_empty()) {
            match resources.iter().find(|(name, _)| name.as_str() == wanted) {
                None => return Err(format!("referenced resource {:?} not found", shortened(wanted)).into()),
                Some((_, ResourceMeta { kind: ResourceKind::OciImage, .. })) => {}
                Some(_) => return Err(format!("referenced resource {wanted:?} is not a oci-image").into()),
            }
        }
        for mount in self.mounts.iter().flatten() {
            let wanted = mount.storage.as_deref().ok_or("storage must be specified on mount")?;
            if mount.location.as_deref().is_none_or(str::is_empty) {
                return Err("location must be specified on mount".into());
            }
            if !storage.keys().any(|name| name.as_str() == wanted) {
                return Err(format!("storage {:?} not valid", shortened(wanted)).into());
            }
        }
        for (what, id) in [("uid", self.uid), ("gid", self.gid)] {
            if let Some(id) = id.filter(|id| HOST_IDS.contains(id)) {
                return Err(format!(
                    "container {what} {id} must not be from {} to {}",
                    HOST_IDS.start(),
                    HOST_IDS.end()
                )
                .into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::charm::{CharmFiles, CharmMeta};

    fn check(container: &str) -> Result<(), String> {
        let text = format!(
            "name: c\nsummary: s\ndescription: d\nresources:\n  image: {{type: oci-image}}\n  \
             data: {{type: file, filename: x}}\nstorage: {{disk: {{type: filesystem}}}}\n\
             containers: {{main: {container}}}\n"
        );
        let files = CharmFiles { charmcraft: Some(text), ..CharmFiles::default() };
        CharmMeta::parse(&files).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_container_has_a_declared_image_and_storage() {
        assert_eq!(check("{resource: image, mounts: [{storage: disk, location: /d}], uid: 584792}"), Ok(()));
        assert_eq!(check("{bases: [{name: ubuntu, channel: '22.04'}]}"), Ok(()));
        for (container, reason) in [
            ("{resource: other}", "referenced resource \"other\" not found"),
            ("{resource: data}", "referenced resource \"data\" is not a oci-image"),
            ("{mounts: [{location: /d}]}", "storage must be specified on mount"),
            ("{mounts: [{storage: disk}]}", "location must be specified on mount"),
            ("{mounts: [{storage: other, location: /d}]}", "storage \"other\" not valid"),
            ("{uid: 1000}", "container uid 1000"),
            ("{gid: 9999}", "container gid 9999"),
            ("[1]", "containers: "),
        ] {
            let error = check(container).unwrap_err();
            assert!(error.contains(reason), "{container}: {error}");
        }
    }
}
