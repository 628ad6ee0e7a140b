//! The runner's view in a scene.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ApplicationName, Digest, InterfaceName, LeaderTerm, MachineId, ResourceName, TaskId, Timestamp, UnitName,
    action::TaskStatus,
    charm::{CharmMeta, OptionType},
    event::Event,
    ports::OpenedPorts,
    record::{CharmRef, RelationRecord, UnitRecord},
    relation::{BagKey, BagOwner, Endpoint, Role, Settings},
    secret::SecretRevision,
    settings::{ModelConfig, OptionValues, SettingError},
    state::StateKey,
    status::{AgentStatus, Life, RelationState, StatusInfo, WorkloadStatus},
    view::{
        ApplicationView, BagView, CharmView, Leader, MachineView, Membership, ModelView, OwnedRevisionView,
        OwnedSecretView, RelationView, RemoteEnd, ResourceView, SecretConsumerView, SecretView, StateView,
        StorageAttachment, StorageView, TaskView, UnitOutline, UnitView, View,
    },
};
use serde_json::Value;

use super::{RelationScene, Scene, SceneError, SecretScene, StatusScene, check, constant, declared};

/// The only machine.
const MACHINE: MachineId = MachineId(0);

/// The leadership term of a unit that leads.
pub(crate) const TERM: LeaderTerm = LeaderTerm(1);

/// The size in MiB that a storage reports.
pub(crate) const STORAGE_MIB: u64 = 1 << 10;

/// The most planned units of an application: each is an entry of the view.
const MAX_PLANNED: u32 = 10_000;

/// The metadata and digest of a charm opened for trials.
pub(crate) struct OfCharm<'a> {
    pub(crate) digest: Digest,
    pub(crate) meta: &'a CharmMeta,
}

/// Builds the view of a scene. `resources` are the digests and sizes of their contents.
pub(crate) fn view(
    scene: &Scene,
    event: &Event,
    charm: &OfCharm<'_>,
    resources: &BTreeMap<ResourceName, ResourceView>,
    now: Timestamp,
) -> Result<View, SceneError> {
    if scene.planned_units > MAX_PLANNED {
        let text = format!("planned-units is {}; at most {MAX_PLANNED} are taken", scene.planned_units);
        return Err(SceneError::Contradiction(text));
    }
    let own = scene.unit.application();
    let reference = CharmRef { digest: charm.digest, modified_version: 0 };
    let model = ModelView {
        uuid: scene.model.uuid,
        name: scene.model.name.clone(),
        life: Life::Alive,
        config: ModelConfig::default(),
        workload_limits: Default::default(),
        spaces: scene.spaces.clone(),
    };
    let mut view = View { model: Some(model), ..View::default() };
    let described =
        CharmView { digest: charm.digest, component: charm.digest, revision: 0, meta: charm.meta.clone() };
    view.charms.insert(charm.digest, described);
    view.applications.insert(own.clone(), application(scene, charm.meta, reference, resources, now)?);
    let mut record = UnitRecord { charm: Some(reference), installed: true, ..UnitRecord::default() };
    for relation in &scene.relations {
        put_relation(&mut view, &mut record, scene, relation, charm.meta, now)?;
    }
    for (key, value) in &scene.state {
        let key = StateKey { unit: scene.unit.clone(), key: key.clone() };
        view.states.insert(key.clone(), StateView { key, value: value.clone() });
    }
    for storage in &scene.storages {
        let meta = declared(charm.meta, &storage.id)?;
        let attachment = StorageAttachment {
            unit: scene.unit.clone(),
            life: Life::Alive,
            location: meta.location_of(&storage.id),
            read_only: meta.read_only,
        };
        record.storages.insert(storage.id.clone());
        let id = storage.id.clone();
        let attachment = Some(attachment);
        let put = StorageView { id, life: Life::Alive, size: STORAGE_MIB, provisioned: true, attachment };
        view.storages.insert(storage.id.clone(), put);
    }
    for secret in &scene.secrets {
        let put = secret_view(scene, secret)?;
        view.secrets.insert(secret.id, put);
    }
    if let Event::Action { name, task } = event {
        view.tasks.insert(*task, task_view(scene, name, *task));
    }
    for outline in outlines(scene, now) {
        view.outlines.insert(outline.name.clone(), outline);
    }
    view.machines.insert(MACHINE, machine(scene));
    let unit = UnitView {
        name: scene.unit.clone(),
        life: Life::Alive,
        machine: MACHINE,
        principal: scene.principal.clone(),
        subordinates: BTreeSet::new(),
        resolved: None,
        record,
        early_number: 0,
        workload_status: status(&scene.unit_status, now),
        agent_status: StatusInfo::new(AgentStatus::Executing, "", now),
    };
    view.units.insert(scene.unit.clone(), unit);
    Ok(view)
}

fn application(
    scene: &Scene,
    meta: &CharmMeta,
    charm: CharmRef,
    resources: &BTreeMap<ResourceName, ResourceView>,
    now: Timestamp,
) -> Result<ApplicationView, SceneError> {
    let leader = Leader { unit: scene.unit.clone(), term: TERM };
    Ok(ApplicationView {
        name: scene.unit.application().clone(),
        life: Life::Alive,
        charm,
        force_charm: false,
        config: options(scene, meta)?,
        config_hash: String::new(),
        settings_version: 0,
        trust_hash: String::new(),
        trust: false,
        bindings: scene.bindings.clone(),
        bindings_hash: String::new(),
        leader: scene.leader.then_some(leader),
        leader_settings: Settings::new(),
        leader_settings_version: 0,
        update_status_interval: None,
        status: scene.application_status.as_ref().map(|said| status(said, now)),
        workload_egress: None,
        workload_crash: Default::default(),
        exposed: false,
        budgets: scene.budget_settings()?,
        workload_limits: Default::default(),
        resources: resources.clone(),
    })
}

/// Checks options as an operator's, but with the options' own types: no text stands for a number.
fn options(scene: &Scene, meta: &CharmMeta) -> Result<OptionValues, SceneError> {
    let mut options = OptionValues::new();
    for (name, value) in &scene.config {
        let kind = meta.option(name)?.kind;
        let (text, fits) = match value {
            Value::String(text) => (text.clone(), matches!(kind, OptionType::String | OptionType::Secret)),
            Value::Number(number) => {
                (number.to_string(), matches!(kind, OptionType::Int | OptionType::Float))
            }
            Value::Bool(truth) => (truth.to_string(), kind == OptionType::Boolean),
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => return Err(SceneError::OptionShape(name.clone())),
        };
        if !fits {
            let (name, kind, text) = (name.clone(), kind.as_str(), value.to_string());
            return Err(SettingError::WrongType { name, kind, text }.into());
        }
        if let Some(value) = meta.setting(name, &text)? {
            options.insert(name.clone(), value);
        }
    }
    Ok(options)
}

/// Adds a relation with its bags, and the unit's record of it.
fn put_relation(
    view: &mut View,
    record: &mut UnitRecord,
    scene: &Scene,
    relation: &RelationScene,
    meta: &CharmMeta,
    now: Timestamp,
) -> Result<(), SceneError> {
    let own = scene.unit.application();
    let declared = meta
        .endpoints
        .get(&relation.endpoint)
        .ok_or_else(|| SceneError::Undeclared { what: "endpoint", name: relation.endpoint.to_string() })?;
    let remote = check::remote_application(scene, relation, declared)?;
    let end = |application: &ApplicationName, role: Role, interface: &InterfaceName| Endpoint {
        application: application.clone(),
        name: relation.endpoint.clone(),
        role,
        interface: interface.clone(),
    };
    let mut endpoints = vec![end(own, declared.role, &declared.interface)];
    if declared.role != Role::Peer {
        endpoints.push(end(remote, declared.role.counterpart(), &declared.interface));
        endpoints.sort_by_key(|end| end.role != Role::Provider);
    }
    let joined = relation.members.keys().chain([&scene.unit]);
    let put = RelationView {
        id: relation.id,
        endpoints,
        scope: declared.scope,
        life: relation.life,
        suspended: false,
        state: RelationState::Joined,
        state_since: now,
        members: joined.map(|unit| (unit.clone(), Membership::Joined)).collect(),
        remote: relation.remote_model.map(|model| RemoteEnd { model, offer: None }),
        egress: Vec::new(),
    };
    if view.relations.insert(relation.id, put).is_some() {
        let text = format!("relation {} is given twice", relation.id);
        return Err(SceneError::Contradiction(text));
    }
    let remote_settings = match declared.role {
        // In a peer relation the remote application's bag is the own application's.
        Role::Peer => None,
        Role::Provider | Role::Requirer => {
            Some((BagOwner::Application(remote.clone()), &relation.remote_settings))
        }
    };
    let units = relation.members.iter().chain(&relation.former_members);
    let bags = units
        .map(|(unit, settings)| (BagOwner::Unit(unit.clone()), settings))
        .chain(remote_settings)
        .chain([
            (BagOwner::Unit(scene.unit.clone()), &relation.unit_settings),
            (BagOwner::Application(own.clone()), &relation.application_settings),
        ]);
    for (owner, settings) in bags {
        let key = BagKey { relation: relation.id, owner };
        view.bags
            .insert(key.clone(), BagView { key, settings: settings.clone(), version: 1, container: None });
    }
    let told = RelationRecord {
        endpoint: relation.endpoint.clone(),
        remote_application: remote.clone(),
        created: true,
        members: relation.members.keys().map(|unit| (unit.clone(), 1)).collect(),
        applications: BTreeMap::new(),
        changed_pending: None,
        gone: 0,
    };
    record.relations.insert(relation.id, told);
    Ok(())
}

fn secret_view(scene: &Scene, secret: &SecretScene) -> Result<SecretView, SceneError> {
    let Some(latest) = secret.revisions.keys().next_back() else {
        let text = format!("secret {} has no revision", secret.id);
        return Err(SceneError::Contradiction(text));
    };
    let consumer =
        secret.tracked.map(|tracked| SecretConsumerView { tracked, label: secret.consumer_label.clone() });
    let mut view = SecretView {
        id: secret.id,
        owner: secret.owner.clone(),
        latest: *latest,
        readers: secret.grants.keys().filter(|reader| reader.includes(&scene.unit)).cloned().collect(),
        consumers: consumer.map(|consumer| (scene.unit.clone(), consumer)).into_iter().collect(),
        owned: None,
    };
    if view.is_owned_by(&scene.unit) {
        let revision = |number: &SecretRevision| {
            let is_latest = number == latest;
            let expire = secret.expire.filter(|_| is_latest);
            let obsolete = !is_latest && secret.tracked != Some(*number);
            (*number, OwnedRevisionView { expire, expire_due: false, obsolete })
        };
        view.owned = Some(OwnedSecretView {
            label: secret.label.clone(),
            description: secret.description.clone(),
            rotate: secret.rotate,
            next_rotate: None,
            rotate_due: false,
            revisions: secret.revisions.keys().map(revision).collect(),
            access: secret.grants.clone(),
        });
    }
    Ok(view)
}

fn task_view(scene: &Scene, name: &str, task: TaskId) -> TaskView {
    TaskView {
        id: task,
        unit: scene.unit.clone(),
        action: name.to_owned(),
        parameters: scene.parameters.clone(),
        group: None,
        status: TaskStatus::Running,
    }
}

/// Iterates over the planned units, the scene's own first, and the members of other applications.
fn outlines(scene: &Scene, now: Timestamp) -> impl Iterator<Item = UnitOutline> {
    let own = scene.unit.application();
    let others = (0..).map(|number| UnitName::new(own.clone(), number)).filter(|unit| *unit != scene.unit);
    let planned = usize::try_from(scene.planned_units).unwrap_or(usize::MAX);
    let members = scene.relations.iter().flat_map(|relation| relation.members.keys());
    let members = members.filter(move |unit| unit.application() != own).cloned();
    let units = std::iter::once(scene.unit.clone()).chain(others).take(planned).chain(members);
    units.map(move |name| {
        let said = if name == scene.unit { scene.unit_status.clone() } else { StatusScene::default() };
        UnitOutline { name, life: Life::Alive, workload_status: status(&said, now), agent: None }
    })
}

fn machine(scene: &Scene) -> MachineView {
    let opened = |range: &_| OpenedPorts { range: *range, endpoints: BTreeSet::new() };
    MachineView {
        id: MACHINE,
        agent: constant("trial"),
        boot_id: String::new(),
        addresses: scene.addresses.clone(),
        interfaces: scene.interfaces.clone(),
        addresses_hash: String::new(),
        availability_zone: scene.availability_zone.clone(),
        ports: BTreeMap::from([(scene.unit.clone(), scene.ports.iter().map(opened).collect())]),
        ingress: Default::default(),
        unit_ingress: Default::default(),
    }
}

fn status(said: &StatusScene, now: Timestamp) -> StatusInfo<WorkloadStatus> {
    StatusInfo::new(said.status, said.message.clone(), now)
}
