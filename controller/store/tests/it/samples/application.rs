//! Applications: one with every field filled, and one that was just deployed.

use periapt_host_api::{
    LeaderTerm,
    command::Exposure,
    network::Bindings,
    record::CharmRef,
    settings::WorkloadCrash,
    status::{Life, StatusInfo, WorkloadStatus},
    storage::StorageDirective,
    view::Leader,
};
use periapt_model::entity::Application;

use super::{Named, awkward_text, charm, digest, infrastructure, parse, resource, time};

pub(crate) fn applications() -> Named<Application> {
    let (budgets, removed_usage) = (infrastructure::budgets(), infrastructure::usage());
    let with_budgets = Application { budgets, removed_usage, ..just_deployed() };
    let resources = [("data", resource::attached_twice()), ("settings", resource::attached_once())];
    let resources = resources.map(|(name, attached)| (parse(name), attached)).into();
    let with_resources = Application { resources, ..just_deployed() };
    let resources = [(parse("image"), resource::attached_image())].into();
    let with_image = Application { resources, ..just_deployed() };
    let configured = Application { settings_version: 6, ..just_deployed() };
    let asking = Application { kept_constraints: infrastructure::kept_constraints(), ..just_deployed() };
    let workload_egress = Some(parse("example.com:443,*.example.com,10.1.0.0/16,[2001:db8::7]:80"));
    let calling = Application { workload_egress, ..just_deployed() };
    let cautious = Application { workload_crash: WorkloadCrash::Error, ..just_deployed() };
    let constrained = Application { constraints: infrastructure::constraints(), ..just_deployed() };
    let refreshed = Application { former_charms: vec![digest("first"), digest("second")], ..just_deployed() };
    vec![
        ("full", full()),
        ("just-deployed", just_deployed()),
        ("with-budgets-and-usage", with_budgets),
        ("with-resources", with_resources),
        ("configured-often", configured),
        ("with-constraints", constrained),
        ("with-kept-constraints", asking),
        ("with-image", with_image),
        ("with-former-charms", refreshed),
        ("with-workload-egress", calling),
        ("with-workload-crash", cautious),
    ]
}

fn full() -> Application {
    Application {
        name: parse("wordpress"),
        life: Life::Dying,
        charm: CharmRef { digest: digest("wordpress"), modified_version: 4 },
        force_charm: true,
        former_charms: Vec::new(),
        subordinate: false,
        config: charm::values().into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        constraints: Default::default(),
        kept_constraints: Default::default(),
        budgets: Default::default(),
        removed_usage: Default::default(),
        config_hash: "0f1e2d3c4b5a69788796a5b4c3d2e1f0".into(),
        settings_version: 0,
        storage: [(
            parse("data"),
            StorageDirective { pool: Some("rootfs".into()), size: Some(2048), count: Some(2) },
        )]
        .into(),
        resources: [].into(),
        trust: true,
        trust_hash: "00112233445566778899aabbccddeeff".into(),
        update_status_interval: Some(120),
        workload_egress: None,
        workload_crash: WorkloadCrash::Retry,
        exposed: true,
        exposures: [
            (String::new(), Exposure::default()),
            (
                "website".into(),
                Exposure { cidrs: [parse("10.0.0.0/8")].into(), spaces: [parse("internal")].into() },
            ),
        ]
        .into(),
        bindings: Bindings {
            default: Some(parse("internal")),
            endpoints: [("db".into(), parse("internal"))].into(),
        },
        leader: Some(Leader { unit: parse("wordpress/10"), term: LeaderTerm(6) }),
        last_term: LeaderTerm(6),
        leader_settings: [("password".into(), awkward_text()), ("".into(), "an empty key".into())].into(),
        leader_settings_version: 9,
        status: Some(StatusInfo {
            status: WorkloadStatus::Active,
            message: "serving".into(),
            data: super::record::status_data(),
            since: time(20),
        }),
        status_refreshed: Some(time(23)),
        workload_version: "6.5.2".into(),
        created_at: time(21),
    }
}

fn just_deployed() -> Application {
    Application {
        name: parse("logging"),
        life: Life::Alive,
        charm: CharmRef { digest: digest("logging"), modified_version: 1 },
        force_charm: false,
        former_charms: Vec::new(),
        subordinate: true,
        config: [].into(),
        constraints: Default::default(),
        kept_constraints: Default::default(),
        budgets: Default::default(),
        removed_usage: Default::default(),
        config_hash: String::new(),
        settings_version: 0,
        storage: [].into(),
        resources: [].into(),
        trust: false,
        trust_hash: String::new(),
        update_status_interval: None,
        workload_egress: None,
        workload_crash: WorkloadCrash::Retry,
        exposed: false,
        exposures: [].into(),
        bindings: Bindings { default: None, endpoints: [].into() },
        leader: None,
        last_term: LeaderTerm(0),
        leader_settings: [].into(),
        leader_settings_version: 0,
        status: None,
        status_refreshed: None,
        workload_version: String::new(),
        created_at: time(22),
    }
}
