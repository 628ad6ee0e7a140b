//! The controller, its agents, models, machines and counters.

use periapt_host_api::network::{HostInterface, InterfaceAddress, Spaces};
use periapt_host_api::{
    Incarnation, MachineId,
    agent::Register,
    budget::{BudgetKey, BudgetSettings},
    settings::ModelConfig,
    status::Life,
    storage::StorageEnd,
    usage::Usage,
};
use periapt_model::entity::{Agent, Controller, Machine, Model, Runner, Sequence, SequenceKey};
use uuid::Uuid;

use super::{MODEL, Named, awkward_text, every, parse, time};

pub(crate) fn controllers() -> Named<Controller> {
    let uuid = Uuid::from_u128(0x0190_a7c4_0000_7000_8000_0000_0000_0001);
    vec![("made", Controller { uuid, name: awkward_text(), created_at: time(0) })]
}

pub(crate) fn agents() -> Named<Agent> {
    let host = Register {
        addresses: vec!["10.0.0.7".into(), "2001:db8::7".into()],
        interfaces: vec![HostInterface {
            name: "eth0".into(),
            mac: "00:16:3e:aa:bb:cc".into(),
            addresses: vec![InterfaceAddress { address: parse("10.0.0.7"), subnet: parse("10.0.0.0/24") }],
        }],
        boot_id: "5d9f0a6e-30f5-4a3c-9d2e-b7f1c0de0001".into(),
        hostname: "host-7.example".into(),
        availability_zone: "zone-1".into(),
        version: "0.1.0".into(),
        engine: "wasmtime 48.0.0".into(),
    };
    vec![("registered", Agent { name: parse("host-7.example"), host, created_at: time(1) })]
}

pub(crate) fn runners() -> Named<Runner> {
    vec![("attached", Runner { agent: parse("host-7.example"), incarnation: Incarnation(u64::MAX) })]
}

pub(crate) fn models() -> Named<Model> {
    let model = |life| Model {
        uuid: MODEL,
        name: parse("blog-2"),
        owner: parse("jane.doe"),
        life,
        config: ModelConfig {
            update_status_hook_interval: 600,
            automatically_retry_hooks: false,
            max_action_results_age: 10_800,
            max_action_results_size: 2048,
            max_status_history_age: 7200,
            max_status_history_size: 1024,
            storage_default_max_size: 512,
            budgets: BudgetSettings::default(),
        },
        storage_end: Some(StorageEnd::Release),
        removed_usage: Usage::default(),
        spaces: Spaces([(parse("internal"), [parse("10.0.0.0/24"), parse("fd00::/64")].into())].into()),
        created_at: time(2),
        life_since: time(3),
    };
    let mut models: Named<Model> = lives().into_iter().map(|(name, life)| (name, model(life))).collect();
    let config = ModelConfig { budgets: budgets(), ..ModelConfig::default() };
    models.push(("with-budgets-and-usage", Model { config, removed_usage: usage(), ..model(Life::Alive) }));
    models
}

/// Each budget, in the order of the list.
pub(crate) fn budgets() -> BudgetSettings {
    BudgetSettings((1..).zip(BudgetKey::ALL).map(|(value, key)| (key, value)).collect())
}

pub(crate) fn usage() -> Usage {
    Usage {
        hooks: 12,
        failed: 3,
        fuel: u64::MAX,
        wall_us: 4_500_000,
        peak_memory: 17 << 20,
        host_calls: 345,
        log_bytes: 6_789,
    }
}

pub(crate) fn machines() -> Named<Machine> {
    let machine =
        |life| Machine { id: MachineId(3), agent: parse("host-7.example"), life, created_at: time(4) };
    lives().into_iter().map(|(name, life)| (name, machine(life))).collect()
}

pub(crate) fn sequences() -> Named<Sequence> {
    let keys = every!(SequenceKey {
        "machine": SequenceKey::Machine => SequenceKey::Machine,
        "relation": SequenceKey::Relation => SequenceKey::Relation,
        "task": SequenceKey::Task => SequenceKey::Task,
        "storage": SequenceKey::Storage => SequenceKey::Storage,
        "work": SequenceKey::Work => SequenceKey::Work,
        "unit": SequenceKey::Unit(_) => SequenceKey::Unit(parse("wordpress")),
        "charm-revision": SequenceKey::CharmRevision(_) => SequenceKey::CharmRevision("wordpress".into()),
    });
    keys.into_iter().map(|(name, key)| (name, Sequence { key, next: 12 })).collect()
}

pub(crate) fn lives() -> Named<Life> {
    every!(Life {
        "alive": Life::Alive => Life::Alive,
        "dying": Life::Dying => Life::Dying,
        "dead": Life::Dead => Life::Dead,
    })
}
