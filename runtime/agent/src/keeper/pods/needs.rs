//! The needs of a pod that runs in a container: an image and storage, from the frames that the keeper forwards.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use periapt_host_api::{
    ApplicationName, ContainerName, Digest, ResourceName, StorageId, StorageName, UnitName,
    charm::{ContainerMeta, StorageMeta},
    resource::ResourceKey,
    view::{FrameLine, StorageView, ViewEntity, ViewKey},
};

use super::PodId;

/// The users, and the groups, that a container may have (`periapt-pod`).
const CONTAINER_IDS: u64 = 1 << 20;

/// The needs of one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PodNeeds {
    /// It can be started.
    Met(Box<ContainerFiles>),
    /// It waits for this.
    Unmet(String),
}

/// The files of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerFiles {
    /// The resource with its image.
    pub(crate) image: ResourceKey,
    /// Its storage.
    pub(crate) mounts: PodMounts,
    /// Its network.
    pub(crate) network: PodNetwork,
    /// The ports of its unit's WebAssembly workloads, by which it reaches them in its network.
    pub(crate) forwarded: BTreeSet<u16>,
    /// The user and the group that its charm declares for it; none for root.
    pub(crate) user: Option<(u32, u32)>,
}

/// The network of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PodNetwork {
    /// A network of its own: its unit has nothing else.
    Own,
    /// The network of all containers of its unit, in which its WebAssembly workloads are reached as well.
    OfUnit,
}

/// The storage of a pod, by the paths at which its workload finds it.
pub(crate) type PodMounts = BTreeMap<String, MountedStorage>;

/// Storage that a workload uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountedStorage {
    /// The instance.
    pub(crate) id: StorageId,
    /// Its directory on the host.
    pub(crate) directory: PathBuf,
    /// Its bound, in mebibytes.
    pub(crate) size: u64,
    /// True if the workload may only read it.
    pub(crate) is_read_only: bool,
}

/// The parts of a model's view that needs depend on.
#[derive(Debug, Default, Clone)]
pub(super) struct ModelFiles {
    resources: BTreeMap<ApplicationName, BTreeMap<ResourceName, Digest>>,
    charms: BTreeMap<Digest, DeclaredFiles>,
    /// The storage that is made and attached, by unit.
    storage: BTreeMap<UnitName, BTreeMap<StorageId, HeldStorage>>,
    /// The units of attached storage.
    holders: BTreeMap<StorageId, UnitName>,
}

/// The parts of a model whose pods may need something else.
#[derive(Debug, Default)]
pub(super) struct ChangedNeeds {
    pub(super) units: BTreeSet<UnitName>,
    pub(super) applications: BTreeSet<ApplicationName>,
    pub(super) charms: BTreeSet<Digest>,
}

/// Storage that a unit holds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HeldStorage {
    /// The path at which hooks find it.
    location: String,
    /// The bound, in mebibytes.
    size: u64,
    is_read_only: bool,
}

/// The containers and the storage that a charm declares.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct DeclaredFiles {
    containers: BTreeMap<ContainerName, ContainerMeta>,
    storage: BTreeMap<StorageName, StorageMeta>,
}

impl ModelFiles {
    /// Records a line, and adds those whose needs it may change.
    pub(super) fn note(&mut self, line: &FrameLine, changed: &mut ChangedNeeds) {
        for key in &line.deletes {
            match key {
                ViewKey::Application(application) if self.resources.remove(application).is_some() => {
                    changed.applications.insert(application.clone());
                }
                ViewKey::Charm(charm) if self.charms.remove(charm).is_some() => {
                    changed.charms.insert(*charm);
                }
                ViewKey::Storage(storage) => self.attach(storage, None, &mut changed.units),
                _ => {}
            }
        }
        for entity in &line.puts {
            match entity {
                ViewEntity::Application(application) => {
                    let digests = application.resources.iter();
                    let digests: BTreeMap<_, _> =
                        digests.map(|(name, content)| (name.clone(), content.digest)).collect();
                    let name = application.name.clone();
                    if self.resources.insert(name.clone(), digests.clone()) != Some(digests) {
                        changed.applications.insert(name);
                    }
                }
                ViewEntity::Charm(charm) => {
                    let declared = DeclaredFiles {
                        containers: charm.meta.containers.clone(),
                        storage: charm.meta.storage.clone(),
                    };
                    let is_changed = match declared.containers.is_empty() {
                        true => self.charms.remove(&charm.digest).is_some(),
                        false => self.charms.insert(charm.digest, declared.clone()) != Some(declared),
                    };
                    if is_changed {
                        changed.charms.insert(charm.digest);
                    }
                }
                ViewEntity::Storage(storage) => self.attach(&storage.id, held(storage), &mut changed.units),
                _ => {}
            }
        }
    }

    /// Records how storage is attached, and adds the units for which that changes.
    fn attach(
        &mut self,
        storage: &StorageId,
        held: Option<(&UnitName, HeldStorage)>,
        changed: &mut BTreeSet<UnitName>,
    ) {
        let before = self.holders.get(storage);
        let before = before.and_then(|unit| Some((unit, self.storage.get(unit)?.get(storage)?)));
        if before == held.as_ref().map(|(unit, held)| (*unit, held)) {
            return;
        }
        if let Some(before) = self.holders.remove(storage) {
            if let Some(held) = self.storage.get_mut(&before) {
                held.remove(storage);
                if held.is_empty() {
                    self.storage.remove(&before);
                }
            }
            changed.insert(before);
        }
        if let Some((unit, held)) = held {
            self.holders.insert(storage.clone(), unit.clone());
            self.storage.entry(unit.clone()).or_default().insert(storage.clone(), held);
            changed.insert(unit.clone());
        }
    }

    /// Returns the needs of a pod whose unit runs a charm. Storage is below `directory`.
    pub(super) fn of(&self, (unit, container): &PodId, charm: &Digest, directory: &Path) -> PodNeeds {
        let declared = self.charms.get(charm);
        let meta = declared.and_then(|declared| Some((declared, declared.containers.get(container)?)));
        let Some((declared, meta)) = meta else {
            return PodNeeds::Unmet("its charm declares no such container".to_owned());
        };
        let network = match declared.containers.len() {
            0 | 1 => PodNetwork::Own,
            _ => PodNetwork::OfUnit,
        };
        match self.files(unit, (network, declared.ports()), meta, &declared.storage, directory) {
            Ok(files) => PodNeeds::Met(Box::new(files)),
            Err(reason) => PodNeeds::Unmet(reason),
        }
    }

    fn files(
        &self,
        unit: &UnitName,
        (network, forwarded): (PodNetwork, BTreeSet<u16>),
        meta: &ContainerMeta,
        storage: &BTreeMap<StorageName, StorageMeta>,
        directory: &Path,
    ) -> Result<ContainerFiles, String> {
        let name = meta.resource.as_ref().ok_or("its charm names no resource with an image for it")?;
        let resources = self.resources.get(unit.application());
        let digest = resources.and_then(|resources| resources.get(name)).copied().ok_or_else(|| {
            let application = unit.application();
            format!(
                "no image is attached: `periapt attach-resource {application} {name}=./image.tar` attaches one"
            )
        })?;
        let mut mounts = BTreeMap::new();
        for mount in &meta.mounts {
            let Some(declared) = storage.get(&mount.storage) else { continue };
            for (id, held) in self.held(unit, &mount.storage, declared)? {
                let place = match declared.count.max {
                    Some(1) => mount.location.clone(),
                    _ => format!("{}/{id}", mount.location),
                };
                add(&mut mounts, place, held.at(id, directory))?;
            }
        }
        let user = user(meta)?;
        let image = ResourceKey { name: name.clone(), digest };
        Ok(ContainerFiles { image, mounts, network, forwarded, user })
    }

    /// Returns the storage of a WebAssembly workload: all of its unit's, where hooks find it. The error is in words.
    pub(super) fn mounts(
        &self,
        unit: &UnitName,
        charm: &Digest,
        directory: &Path,
    ) -> Result<PodMounts, String> {
        let mut mounts = BTreeMap::new();
        for (name, declared) in self.charms.get(charm).into_iter().flat_map(|charm| &charm.storage) {
            for (id, held) in self.held(unit, name, declared)? {
                add(&mut mounts, held.location.clone(), held.at(id, directory))?;
            }
        }
        Ok(mounts)
    }

    /// Returns the storage of a name that a unit holds, once that is as much as its charm needs.
    fn held<'a>(
        &'a self,
        unit: &UnitName,
        name: &StorageName,
        declared: &StorageMeta,
    ) -> Result<Vec<(&'a StorageId, &'a HeldStorage)>, String> {
        let held = self.storage.get(unit).into_iter().flatten();
        let held: Vec<_> = held.filter(|(id, _)| id.name() == name).collect();
        match (held.len() as u64) < u64::from(declared.count.min) {
            true => Err(format!("its storage {:?} is not there yet", name.as_str())),
            false => Ok(held),
        }
    }
}

impl DeclaredFiles {
    /// Returns the ports of WebAssembly workloads.
    fn ports(&self) -> BTreeSet<u16> {
        let workloads = self.containers.values().filter_map(|container| container.workload.as_ref());
        workloads.filter_map(|workload| workload.http).collect()
    }
}

impl HeldStorage {
    /// Returns it as a workload uses it. Storage is below `directory`.
    fn at(&self, id: &StorageId, directory: &Path) -> MountedStorage {
        MountedStorage {
            id: id.clone(),
            directory: directory.join(format!("{}-{}", id.name(), id.number())),
            size: self.size,
            is_read_only: self.is_read_only,
        }
    }
}

fn add(mounts: &mut PodMounts, place: String, storage: MountedStorage) -> Result<(), String> {
    match mounts.insert(place.clone(), storage) {
        Some(_) => Err(format!("two of its mounts are at {place:?}")),
        None => Ok(()),
    }
}

/// Returns the user and the group that a charm declares for a container; none if it declares neither. Root is what is left
/// out.
fn user(meta: &ContainerMeta) -> Result<Option<(u32, u32)>, String> {
    let id = |id: Option<u64>| match id.unwrap_or_default() {
        id if id < CONTAINER_IDS => Ok(u32::try_from(id).unwrap_or_default()),
        id => {
            Err(format!("its charm declares the user or group {id} for it: they are below {CONTAINER_IDS}"))
        }
    };
    match (meta.uid, meta.gid) {
        (None, None) => Ok(None),
        (user, group) => Ok(Some((id(user)?, id(group)?))),
    }
}

/// Returns how storage which the agent has made is attached.
fn held(storage: &StorageView) -> Option<(&UnitName, HeldStorage)> {
    let attachment = storage.attachment.as_ref().filter(|_| storage.provisioned)?;
    let (location, is_read_only) = (attachment.location.clone(), attachment.read_only);
    Some((&attachment.unit, HeldStorage { location, size: storage.size, is_read_only }))
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        charm::{CharmFiles, CharmMeta},
        status::Life,
        view::{CharmView, ResourceView, StorageAttachment},
    };

    use super::*;
    use crate::keeper::{
        pods::wanted::WantedPods,
        tests::fake::{frame, led_by, unit},
    };

    fn charm(container: &str, storage: &str) -> ViewEntity {
        let text = format!(
            "name: c\nsummary: s\ndescription: d\nresources: {{image: {{type: oci-image}}}}\n\
             storage: {{data: {{type: filesystem{storage}}}}}\ncontainers: {{web: {{{container}}}}}\n"
        );
        let files = CharmFiles { charmcraft: Some(text), ..CharmFiles::default() };
        let digest = Digest::of(b"charm");
        let meta = CharmMeta::parse(&files).unwrap();
        ViewEntity::Charm(CharmView { digest, component: digest, revision: 0, meta })
    }

    fn with_image(content: &str) -> ViewEntity {
        let ViewEntity::Application(mut application) = led_by("app", "app/0") else { panic!() };
        let view = ResourceView { revision: 1, digest: Digest::of(content.as_bytes()), size: 1 };
        application.resources.insert("image".parse().unwrap(), view);
        ViewEntity::Application(application)
    }

    fn storage(number: u32, provisioned: bool, of: Option<&str>) -> ViewEntity {
        let attachment = of.map(|unit| StorageAttachment {
            unit: unit.parse().unwrap(),
            life: Life::Alive,
            location: "/srv".to_owned(),
            read_only: false,
        });
        let id = format!("data/{number}").parse().unwrap();
        ViewEntity::Storage(StorageView { id, life: Life::Alive, size: 1, provisioned, attachment })
    }

    /// Returns the image and the mounts of the pod, or what it waits for.
    fn told(wanted: &WantedPods) -> String {
        let pod = ("app/0".parse().unwrap(), "web".parse().unwrap());
        match wanted.needs(&pod, Path::new("/s")) {
            PodNeeds::Unmet(reason) => reason,
            PodNeeds::Met(files) => {
                let user = files.user.map(|(user, group)| format!(" as {user}:{group}")).unwrap_or_default();
                let mounts = files
                    .mounts
                    .iter()
                    .map(|(place, storage)| format!(" {}:{place}", storage.directory.display()));
                format!("{}{}{user}", files.image.digest.short(), mounts.collect::<String>())
            }
        }
    }

    fn short(content: &str) -> String {
        Digest::of(content.as_bytes()).short().to_string()
    }

    #[test]
    fn a_container_waits_for_its_image_and_for_storage_that_its_charm_needs() {
        let mut wanted = WantedPods::default();
        let mount = "resource: image, mounts: [{storage: data, location: /data}]";
        let puts = vec![led_by("app", "app/0"), charm(mount, ""), unit("app/0", Life::Alive)];
        assert!(wanted.sees(&frame(None, 5, puts)));
        assert!(
            told(&wanted).contains("`periapt attach-resource app image=./image.tar`"),
            "{}",
            told(&wanted)
        );
        assert!(wanted.sees(&frame(Some(5), 6, vec![with_image("one")])));
        assert!(told(&wanted).contains("storage \"data\" is not there yet"));
        assert!(!wanted.sees(&frame(Some(6), 7, vec![storage(0, false, Some("app/0"))])), "not made yet");
        assert!(wanted.sees(&frame(Some(7), 8, vec![storage(0, true, Some("app/0"))])));
        assert_eq!(told(&wanted), format!("{} /s/data-0:/data", short("one")));
        assert!(!wanted.sees(&frame(Some(8), 9, vec![storage(0, true, Some("app/0"))])));
        assert!(wanted.sees(&frame(Some(9), 10, vec![with_image("two")])));
        assert!(told(&wanted).starts_with(&short("two")));
        assert!(wanted.sees(&frame(Some(10), 11, vec![storage(0, true, None)])));
        assert!(told(&wanted).contains("not there yet"));
    }

    #[test]
    fn storage_of_any_number_lies_below_its_place() {
        let mut wanted = WantedPods::default();
        let mount = "resource: image, mounts: [{storage: data, location: /data}]";
        let many = charm(mount, ", multiple: {range: 0-}");
        wanted.sees(&frame(None, 5, vec![with_image("one"), many, unit("app/0", Life::Alive)]));
        assert_eq!(told(&wanted), short("one"));
        let two = [0, 1].map(|number| storage(number, true, Some("app/0")));
        assert!(wanted.sees(&frame(Some(5), 6, two.to_vec())));
        let expected = format!("{} /s/data-0:/data/data/0 /s/data-1:/data/data/1", short("one"));
        assert_eq!(told(&wanted), expected);
        let mut line = frame(Some(6), 7, Vec::new());
        line.deletes = vec![ViewKey::Storage("data/1".parse().unwrap())];
        assert!(wanted.sees(&line));
        assert_eq!(told(&wanted), format!("{} /s/data-0:/data/data/0", short("one")));
    }

    #[test]
    fn a_workload_has_all_storage_of_its_unit_where_hooks_find_it() {
        let mut wanted = WantedPods::default();
        let puts = vec![led_by("app", "app/0"), charm("resource: image", ""), unit("app/0", Life::Alive)];
        wanted.sees(&frame(None, 5, puts));
        let app: UnitName = "app/0".parse().unwrap();
        let waits = wanted.mounts(&app, Path::new("/s")).unwrap_err();
        assert!(waits.contains("storage \"data\" is not there yet"), "{waits}");
        assert!(wanted.sees(&frame(Some(5), 6, vec![storage(3, true, Some("app/0"))])));
        let mounts = wanted.mounts(&app, Path::new("/s")).unwrap();
        assert_eq!(mounts["/srv"].directory, Path::new("/s/data-3"));
        assert_eq!(mounts["/srv"].size, 1);
    }

    #[test]
    fn a_container_has_the_user_that_its_charm_declares() {
        for (declared, expected) in [
            ("uid: 584792", " as 584792:0"),
            ("uid: 584792, gid: 33", " as 584792:33"),
            ("gid: 33", " as 0:33"),
            ("uid: 0", " as 0:0"),
        ] {
            let mut wanted = WantedPods::default();
            let plain = charm("resource: image", "");
            wanted.observe(&frame(None, 5, vec![with_image("one"), plain, unit("app/0", Life::Alive)]));
            assert_eq!(told(&wanted), short("one"));
            let with_user = charm(&format!("resource: image, {declared}"), "");
            assert!(wanted.sees(&frame(Some(5), 6, vec![with_user])), "{declared} is another need");
            assert_eq!(told(&wanted), format!("{}{expected}", short("one")));
        }
        let mut wanted = WantedPods::default();
        let large = charm("resource: image, uid: 4294967296", "");
        wanted.observe(&frame(None, 5, vec![with_image("one"), large, unit("app/0", Life::Alive)]));
        assert!(told(&wanted).contains("user or group 4294967296"), "{}", told(&wanted));
    }

    #[test]
    fn a_container_has_the_ports_of_the_webassembly_workloads_of_its_unit() {
        let with = |workloads: &str| {
            let text = format!(
                "name: c\nsummary: s\ndescription: d\nresources: {{image: {{type: oci-image}}}}\n\
                 containers: {{web: {{resource: image}}}}\nx-periapt: {{workloads: {{{workloads}}}}}\n"
            );
            let files = CharmFiles { charmcraft: Some(text), ..CharmFiles::default() };
            let digest = Digest::of(b"charm");
            let meta = CharmMeta::parse(&files).unwrap();
            ViewEntity::Charm(CharmView { digest, component: digest, revision: 0, meta })
        };
        let page = "page: {component: page.wasm, http: 8080}";
        let job = "job: {component: job.wasm}";
        let mut wanted = WantedPods::default();
        let pod = ("app/0".parse().unwrap(), "web".parse().unwrap());
        let mut seen = 5;
        let mut told = |workloads: &str| {
            let from = (seen > 5).then_some(seen);
            seen += 1;
            wanted.sees(&frame(
                from,
                seen,
                vec![with_image("one"), with(workloads), unit("app/0", Life::Alive)],
            ));
            match wanted.needs(&pod, Path::new("/s")) {
                PodNeeds::Met(files) => (files.network, files.forwarded),
                PodNeeds::Unmet(reason) => panic!("{reason}"),
            }
        };
        assert_eq!(told(""), (PodNetwork::Own, BTreeSet::new()));
        assert_eq!(told(job), (PodNetwork::OfUnit, BTreeSet::new()), "a command has no port");
        assert_eq!(told(&format!("{job}, {page}")), (PodNetwork::OfUnit, [8080].into()));
        assert_eq!(told(page), (PodNetwork::OfUnit, [8080].into()));
    }

    #[test]
    fn a_container_without_an_image_says_so() {
        let mut wanted = WantedPods::default();
        wanted.sees(&frame(None, 5, vec![led_by("app", "app/0"), charm("", ""), unit("app/0", Life::Alive)]));
        assert_eq!(told(&wanted), "its charm names no resource with an image for it");
    }
}
