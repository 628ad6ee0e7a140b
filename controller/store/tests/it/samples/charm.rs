//! Charms, with endpoints of every role and options of every type.

use std::collections::BTreeMap;

use periapt_host_api::{
    ContainerName, ResourceName,
    charm::{
        ActionMeta, Assumes, CharmMeta, ContainerMeta, ContainerMount, CountRange, EndpointMeta, OptionMeta,
        OptionType, ResourceKind, ResourceMeta, StorageMeta, WorkloadMeta,
        assumes::{Assumption, FeatureAssumption, FeatureName, VersionBound},
    },
    imports::Grant,
    relation::{Role, Scope},
    settings::OptionValue,
};
use periapt_model::entity::{Charm, MetaReader, ModelCharm, Uploaders};
use uuid::Uuid;

use super::{Named, awkward_text, digest, every, parse, time};

pub(crate) fn charms() -> Named<Charm> {
    let meta = CharmMeta {
        name: "wordpress".into(),
        summary: "A blog".into(),
        description: awkward_text(),
        subordinate: false,
        endpoints: endpoints().into_iter().map(|(name, meta)| (parse(name), meta)).collect(),
        extra_bindings: ["admin-api".into()].into(),
        resources: [].into(),
        storage: [(parse("data"), storage(Some(4))), (parse("logs"), storage(None))].into(),
        containers: [].into(),
        options: options(),
        actions: actions(),
        assumes: Default::default(),
        grants: [Grant::OutboundHttp].into(),
    };
    let charm = |name: &str, meta| Charm {
        digest: digest(name),
        component: digest("component"),
        meta,
        size: 1_234_567,
        uploaded_at: time(10),
        uploaders: Uploaders::default(),
        reader: MetaReader::FIRST,
    };
    let plain = CharmMeta {
        name: "logging".into(),
        summary: "Logs".into(),
        description: "Sends logs away".into(),
        subordinate: true,
        endpoints: [].into(),
        extra_bindings: [].into(),
        resources: [].into(),
        storage: [].into(),
        containers: [].into(),
        options: [].into(),
        actions: [].into(),
        assumes: Default::default(),
        grants: [].into(),
    };
    let with_resources = CharmMeta { resources: resources(), ..plain.clone() };
    let with_workloads = CharmMeta { containers: workloads(), ..plain.clone() };
    let with_containers = CharmMeta { containers: containers(), ..plain.clone() };
    let batching = EndpointMeta {
        role: Role::Requirer,
        interface: parse("syslog"),
        limit: None,
        scope: Scope::Global,
        optional: false,
        batch: true,
    };
    let demanding = CharmMeta { assumes: assumes(), ..plain.clone() };
    let collector = CharmMeta { endpoints: [(parse("log"), batching)].into(), ..plain.clone() };
    let uploaders = Uploaders::new([Uuid::from_u128(1), Uuid::from_u128(2)]);
    let uploaded = Charm { uploaders, ..charm("uploaded", plain.clone()) };
    let read_anew = Charm { reader: MetaReader(1), ..charm("logging", plain.clone()) };
    vec![
        ("full", charm("wordpress", meta)),
        ("bare-subordinate", charm("logging", plain)),
        ("with-resources", charm("logging", with_resources)),
        ("with-containers", charm("logging", with_containers)),
        ("with-workloads", charm("logging", with_workloads)),
        ("asks-for-batches", charm("collector", collector)),
        ("assumes-features", charm("demanding", demanding)),
        ("with-uploaders", uploaded),
        ("with-reader", read_anew),
    ]
}

fn containers() -> BTreeMap<ContainerName, ContainerMeta> {
    let mount = ContainerMount { storage: parse("data"), location: "/srv/data".into() };
    let web = ContainerMeta {
        resource: Some(parse("web-image")),
        mounts: vec![mount],
        uid: Some(584_792),
        gid: Some(584_792),
        workload: None,
    };
    [(parse("web"), web), (parse("side"), ContainerMeta::default())].into()
}

/// Returns WebAssembly workloads of every kind.
fn workloads() -> BTreeMap<ContainerName, ContainerMeta> {
    let runs = |component: &str, http| {
        let workload = Some(WorkloadMeta { component: component.into(), http });
        ContainerMeta { workload, ..ContainerMeta::default() }
    };
    [(parse("web"), runs("web.wasm", Some(8_080))), (parse("job"), runs("parts/job.wasm", None))].into()
}

/// Returns conditions of every kind.
fn assumes() -> Assumes {
    let feature = |name: &str, version| {
        Assumption::Feature(FeatureAssumption { name: FeatureName::new(name).unwrap(), version })
    };
    let bounds = every!(VersionBound {
        "earlier": VersionBound::Below(_) => VersionBound::Below("5".parse().unwrap()),
        "later": VersionBound::AtLeast(_) => VersionBound::AtLeast("3.6.26".parse().unwrap()),
    });
    let bounded: Vec<_> = bounds.into_iter().map(|(_, bound)| feature("juju", Some(bound))).collect();
    let kinds = every!(Assumption {
        "all": Assumption::AllOf(_) => Assumption::AllOf(bounded.clone()),
        "any": Assumption::AnyOf(_) => Assumption::AnyOf(vec![Assumption::AllOf(bounded), feature("k8s-api", None)]),
        "feature": Assumption::Feature(_) => feature("k8s-api", None),
    });
    kinds.into_iter().map(|(_, kind)| kind).collect()
}

fn resources() -> std::collections::BTreeMap<ResourceName, ResourceMeta> {
    let kinds = every!(ResourceKind {
        "data": ResourceKind::File { .. } => ResourceKind::File { filename: "rows.tar.gz".into() },
        "image": ResourceKind::OciImage => ResourceKind::OciImage,
    });
    let meta = |kind| ResourceMeta { kind, description: awkward_text() };
    kinds.into_iter().map(|(name, kind)| (parse(name), meta(kind))).collect()
}

fn actions() -> std::collections::BTreeMap<String, ActionMeta> {
    let params = serde_json::json!({"type": "object", "properties": {"to": {"default": awkward_text()}}});
    let action = |parallel, execution_group| ActionMeta {
        description: awkward_text(),
        parallel,
        execution_group,
        params: params.clone(),
    };
    [("backup", action(false, Some("disk".into()))), ("ping", action(true, None))]
        .map(|(name, action)| (name.to_owned(), action))
        .into()
}

pub(crate) fn model_charms() -> Named<ModelCharm> {
    vec![("used", ModelCharm { digest: digest("wordpress"), revision: 5 })]
}

fn storage(max: Option<u32>) -> StorageMeta {
    StorageMeta {
        description: awkward_text(),
        read_only: max.is_some(),
        count: CountRange { min: 1, max },
        minimum_size: 100,
        location: max.map(|_| "/srv/data".into()),
    }
}

/// Returns endpoints, named by role and scope.
fn endpoints() -> Named<EndpointMeta> {
    let endpoint = |role, scope, limit| EndpointMeta {
        role,
        interface: parse("my_sql-2"),
        limit,
        scope,
        optional: limit.is_some(),
        batch: false,
    };
    let mut endpoints: Named<EndpointMeta> =
        roles().into_iter().map(|(name, role)| (name, endpoint(role, Scope::Global, Some(1)))).collect();
    endpoints.extend(scopes().into_iter().map(|(name, scope)| (name, endpoint(Role::Requirer, scope, None))));
    endpoints
}

pub(crate) fn roles() -> Named<Role> {
    every!(Role {
        "provider": Role::Provider => Role::Provider,
        "requirer": Role::Requirer => Role::Requirer,
        "peer": Role::Peer => Role::Peer,
    })
}

pub(crate) fn scopes() -> Named<Scope> {
    every!(Scope {
        "global": Scope::Global => Scope::Global,
        "container": Scope::Container => Scope::Container,
    })
}

fn options() -> std::collections::BTreeMap<String, OptionMeta> {
    let kinds = every!(OptionType {
        "text": OptionType::String => OptionType::String,
        "integer": OptionType::Int => OptionType::Int,
        "number": OptionType::Float => OptionType::Float,
        "boolean": OptionType::Boolean => OptionType::Boolean,
        "secret": OptionType::Secret => OptionType::Secret,
    });
    let default =
        |kind: OptionType| values().into_iter().map(|(_, value)| value).find(|value| kind.admits(value));
    kinds
        .into_iter()
        .flat_map(|(name, kind)| {
            let option = |default| OptionMeta { kind, description: format!("a {name}"), default };
            [(name.to_owned(), option(default(kind))), (format!("{name}-unset"), option(None))]
        })
        .collect()
}

/// Returns values of options, named as the options of the sample charm.
pub(crate) fn values() -> Named<OptionValue> {
    every!(OptionValue {
        "text": OptionValue::Text(_) => OptionValue::Text(awkward_text()),
        "integer": OptionValue::Integer(_) => OptionValue::Integer(i64::MIN),
        "number": OptionValue::Number(_) => OptionValue::Number(0.1),
        "boolean": OptionValue::Boolean(_) => OptionValue::Boolean(true),
        "secret": OptionValue::Secret(_) => OptionValue::Secret("secret:9m4e2mr0ui3e8a215n4g".into()),
    })
}
