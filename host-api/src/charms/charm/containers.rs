//! The containers that a charm declares (`docs/hook-model.md` M-5).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ResourceKind, ResourceMeta, StorageMeta, WorkloadMeta};
use crate::{ContainerName, ResourceName, StorageName, excerpt::shortened, rule::BrokenRule};

/// The most containers that a charm may declare: each has a process of its own beside the unit.
pub const MAX_CONTAINERS: usize = 16;

/// The most mounts of one container.
const MAX_MOUNTS: usize = 32;

/// The longest path of a mount, in bytes.
const MAX_LOCATION: usize = 1_024;

/// The ids of a host's own users.
const HOST_IDS: std::ops::RangeInclusive<u64> = 1_000..=9_999;

/// A container as the charm declares it: a workload beside each unit, behind a Pebble of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct ContainerMeta {
    /// The resource with its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceName>,
    /// The unit's storage that it sees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<ContainerMount>,
    /// The user of what runs in it and names none, and of its new files; none means root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u64>,
    /// The group of what runs in it and names none, and of its new files; none means root's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<u64>,
    /// The component that runs in it, for a WebAssembly workload; none for a container with an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadMeta>,
}

/// Storage in a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ContainerMount {
    /// The storage.
    pub storage: StorageName,
    /// The path in the container.
    pub location: String,
}

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

/// Reads the section `containers`, and checks it against resources and storage. The error names the container and the
/// mistake.
pub(super) fn declared(
    raw: Option<&Value>,
    resources: &BTreeMap<ResourceName, ResourceMeta>,
    storage: &BTreeMap<StorageName, StorageMeta>,
) -> Result<BTreeMap<ContainerName, ContainerMeta>, BrokenRule> {
    let Some(raw) = raw.filter(|raw| !raw.is_null()) else { return Ok(BTreeMap::new()) };
    let containers = BTreeMap::<String, Option<RawContainer>>::deserialize(raw)
        .map_err(|error| BrokenRule::of(error).at("containers"))?;
    if containers.len() > MAX_CONTAINERS {
        let declared = containers.len();
        return Err(
            format!("{declared} containers are declared; at most {MAX_CONTAINERS} are allowed").into()
        );
    }
    let read = |(text, raw): (String, Option<RawContainer>)| {
        let at = |broken: BrokenRule| broken.at(format_args!("container {}", shortened(&text)));
        let name = ContainerName::new(&text).map_err(BrokenRule::of)?;
        Ok((name, raw.unwrap_or_default().check(resources, storage).map_err(at)?))
    };
    containers.into_iter().map(read).collect()
}

impl RawContainer {
    fn check(
        self,
        resources: &BTreeMap<ResourceName, ResourceMeta>,
        storage: &BTreeMap<StorageName, StorageMeta>,
    ) -> Result<ContainerMeta, BrokenRule> {
        let resource = match self.resource.as_deref().filter(|wanted| !wanted.is_empty()) {
            None => None,
            Some(wanted) => match resources.iter().find(|(name, _)| name.as_str() == wanted) {
                None => return Err(format!("referenced resource {:?} not found", shortened(wanted)).into()),
                Some((name, ResourceMeta { kind: ResourceKind::OciImage, .. })) => Some(name.clone()),
                Some(_) => return Err(format!("referenced resource {wanted:?} is not a oci-image").into()),
            },
        };
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
        let raw = self.mounts.unwrap_or_default();
        if raw.len() > MAX_MOUNTS {
            return Err(format!("{} mounts; at most {MAX_MOUNTS} are allowed", raw.len()).into());
        }
        let mounts = raw.into_iter().map(|mount| mount.check(storage)).collect::<Result<_, _>>()?;
        Ok(ContainerMeta { resource, mounts, uid: self.uid, gid: self.gid, workload: None })
    }
}

impl RawMount {
    fn check(self, storage: &BTreeMap<StorageName, StorageMeta>) -> Result<ContainerMount, BrokenRule> {
        let wanted = self.storage.ok_or("storage must be specified on mount")?;
        let location = self.location.filter(|location| !location.is_empty());
        let location = location.ok_or("location must be specified on mount")?;
        if location.len() > MAX_LOCATION {
            return Err(
                format!("location {:?} is longer than {MAX_LOCATION} bytes", shortened(&location)).into()
            );
        }
        let found = storage.keys().find(|name| name.as_str() == wanted);
        let storage = found.ok_or_else(|| format!("storage {:?} not valid", shortened(&wanted)))?;
        Ok(ContainerMount { storage: storage.clone(), location })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn containers_are_read_with_all_that_they_declare() {
        let text = "name: c\nsummary: s\ndescription: d\nresources: {image: {type: oci-image}}\n\
                    storage: {disk: {type: filesystem}}\ncontainers:\n  \
                    web: {resource: image, mounts: [{storage: disk, location: /d}], uid: 584792}\n  side:\n";
        let files = CharmFiles { charmcraft: Some(text.to_owned()), ..CharmFiles::default() };
        let containers = CharmMeta::parse(&files).unwrap().containers;
        let name = |text: &str| ContainerName::new(text).unwrap();
        assert_eq!(containers.keys().collect::<Vec<_>>(), [&name("side"), &name("web")]);
        let web = containers.get(&name("web")).unwrap();
        assert_eq!(web.resource.as_ref().unwrap().as_str(), "image");
        assert_eq!((web.mounts[0].location.as_str(), web.uid, web.gid), ("/d", Some(584_792), None));
        assert_eq!(containers.get(&name("side")), Some(&ContainerMeta::default()));
    }

    #[test]
    fn names_and_numbers_of_containers_have_bounds() {
        let parse = |containers: &str| {
            let text = format!("name: c\nsummary: s\ndescription: d\ncontainers: {{{containers}}}\n");
            let files = CharmFiles { charmcraft: Some(text), ..CharmFiles::default() };
            CharmMeta::parse(&files).unwrap_err().to_string()
        };
        assert!(parse("'../web': null").contains("invalid container name"));
        let many: Vec<String> = (0..=MAX_CONTAINERS).map(|number| format!("c{number}: null")).collect();
        assert!(parse(&many.join(", ")).contains("17 containers are declared"));
    }
}
