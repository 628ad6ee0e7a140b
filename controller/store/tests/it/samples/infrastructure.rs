//! The controller, its agents, models, machines and counters.

use periapt_host_api::network::{HostInterface, InterfaceAddress, Spaces};
use periapt_host_api::{
    Incarnation, Level, MachineId, Timestamp,
    agent::{ControllerPlace, Register},
    budget::{BudgetKey, BudgetSettings},
    cloud::StoredClouds,
    constraints::{AgentConstraints, KeptConstraint, KeptConstraints, Tags},
    program::{FailedProgram, ProgramOffer, ProgramTarget, RunningProgram},
    secret::Sealed,
    settings::{
        FailoverAfter, FirewallMode, KeptKey, KeptSettings, ModelConfig, ModelSettings, WorkloadQuota,
    },
    status::Life,
    storage::StorageEnd,
    usage::Usage,
};
use periapt_model::entity::{
    Agent, AgentPool, Controller, ControllerMember, Enrolment, Export, Failed, Import, JoinToken, Machine,
    Migration, Model, Moved, Runner, Sequence, SequenceKey,
};
use serde_json::json;
use uuid::Uuid;

use super::{MODEL, Named, awkward_text, digest, every, parse, time};

pub(crate) fn controllers() -> Named<Controller> {
    let uuid = Uuid::from_u128(0x0190_a7c4_0000_7000_8000_0000_0000_0001);
    let made = Controller {
        uuid,
        name: awkward_text(),
        model_defaults: ModelSettings::default(),
        kept: StoredClouds::default(),
        level: Level::FIRST,
        members: std::collections::BTreeMap::new(),
        program: None,
        created_at: time(0),
    };
    let started = ControllerMember { url: Some("https://one:1".into()), level: Level(2), removed: false };
    let removed = ControllerMember { url: None, level: Level(1), removed: true };
    let members = [("one".into(), started), ("two".into(), removed)].into();
    vec![
        ("made", made.clone()),
        ("with-clouds-and-credentials", Controller { kept: kept(), ..made.clone() }),
        ("with-model-defaults", Controller { model_defaults: settings(), ..made.clone() }),
        ("with-level", Controller { level: Level(2), ..made.clone() }),
        ("with-members", Controller { level: Level(2), members, ..made.clone() }),
        ("with-program", Controller { level: Level(2), program: Some(target()), ..made }),
    ]
}

fn target() -> ProgramTarget {
    let (version, architecture) = ("1.2.3".to_owned(), "x86_64".to_owned());
    let offer = ProgramOffer { digest: digest("program"), version, architecture, level: Level(2) };
    ProgramTarget { offer, size: 7, number: 3, released: true }
}

fn kept() -> StoredClouds {
    let definition = json!({"type": "openstack", "regions": {"one": {"endpoint": "https://one"}}, "own": 1});
    StoredClouds {
        clouds: [(parse("stack"), serde_json::from_value(definition).unwrap())].into(),
        credentials: [(parse("stack"), [(parse("mine"), "userpass".to_owned())].into())].into(),
    }
}

pub(crate) fn enrolments() -> Named<Enrolment> {
    let admitted = Enrolment {
        agent: parse("host-7.example"),
        key: None,
        token: Some(JoinToken { digest: digest("token"), expires_at: time(3_600), used_at: None }),
    };
    let used = admitted.token.clone().map(|token| JoinToken { used_at: Some(time(60)), ..token });
    let joined = Enrolment { key: Some(digest("key")), token: used, ..admitted.clone() };
    vec![("admitted", admitted), ("joined", joined)]
}

pub(crate) fn pools() -> Named<AgentPool> {
    let pool = AgentPool { name: parse("workers"), token: digest("token"), expires_at: time(3_600), uses: 7 };
    vec![("open", pool)]
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
        cores: 0,
        tags: Default::default(),
        version: "0.1.0".into(),
        engine: "wasmtime 48.0.0".into(),
        storage_limit: None,
        program: None,
        peer_port: None,
        firewall_problem: None,
        container_problem: None,
    };
    let agent = |host| Agent { name: parse("host-7.example"), host, created_at: time(1) };
    let tagged = Register { tags: [parse("ssd")].into(), ..host.clone() };
    let counted = Register { cores: 4, ..host.clone() };
    let bounded = Register { storage_limit: Some(102_400), ..host.clone() };
    let failed = FailedProgram { digest: digest("other"), number: 3, reason: "it ended".into() };
    let program = RunningProgram {
        version: "1.2.3".into(),
        digest: digest("program"),
        trial: true,
        failed: Some(failed),
    };
    let replaced = Register { program: Some(program), ..host.clone() };
    let reached = Register { peer_port: Some(17_072), ..host.clone() };
    let troubled = Register { firewall_problem: Some("the kernel refused the rules".into()), ..host.clone() };
    let lacking = Register { container_problem: Some("containers run without users".into()), ..host.clone() };
    vec![
        ("registered", agent(host)),
        ("with-cores", agent(counted)),
        ("with-storage-limit", agent(bounded)),
        ("with-tags", agent(tagged)),
        ("with-program", agent(replaced)),
        ("with-peer-port", agent(reached)),
        ("with-firewall-problem", agent(troubled)),
        ("with-container-problem", agent(lacking)),
    ]
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
        settings: before_inheritance(),
        constraints: AgentConstraints::default(),
        kept_constraints: KeptConstraints::default(),
        storage_end: Some(StorageEnd::Release),
        removed_usage: Usage::default(),
        spaces: Spaces([(parse("internal"), [parse("10.0.0.0/24"), parse("fd00::/64")].into())].into()),
        ssh_keys: Vec::new(),
        migration: None,
        arrived: None,
        created_at: time(2),
        life_since: time(3),
    };
    let mut models: Named<Model> = lives().into_iter().map(|(name, life)| (name, model(life))).collect();
    let alive = || model(Life::Alive);
    let with_budgets = ModelSettings {
        agent_failover_after: None,
        workload_egress: None,
        budgets: budgets(),
        ..ModelConfig::default().into()
    };
    let granted = ModelSettings { workload_egress: Some(parse("example.com")), ..ModelSettings::default() };
    let nothing = ModelSettings { workload_egress: Some(Default::default()), ..ModelSettings::default() };
    let failover = |after| ModelSettings { agent_failover_after: Some(after), ..ModelSettings::default() };
    models.extend([
        ("with-budgets-and-usage", Model { settings: with_budgets, removed_usage: usage(), ..alive() }),
        ("with-ssh-keys", Model { ssh_keys: vec![parse("ssh-ed25519 AAAAC3Nz jane@host")], ..alive() }),
        ("with-constraints", Model { constraints: constraints(), ..alive() }),
        ("with-kept-constraints", Model { kept_constraints: kept_constraints(), ..alive() }),
        ("with-kept-settings", Model { settings: kept_settings(), ..alive() }),
        ("with-settings", Model { settings: settings(), ..alive() }),
        ("with-workload-egress", Model { settings: granted, ..alive() }),
        ("with-no-workload-egress", Model { settings: nothing, ..alive() }),
        ("with-nothing-set", Model { settings: ModelSettings::default(), ..alive() }),
        ("with-late-failover", Model { settings: failover(FailoverAfter::Seconds(300)), ..alive() }),
        ("exporting", Model { migration: Some(Migration::Exporting(export())), ..alive() }),
        ("handed-over", Model { migration: Some(Migration::HandedOver(export())), ..alive() }),
        ("moved", Model { migration: Some(Migration::Moved(moved())), ..alive() }),
        (
            "importing",
            Model { migration: Some(Migration::Importing(import(Some(time(9)), None))), ..alive() },
        ),
        ("given-up", Model { migration: Some(Migration::Importing(import(None, Some(time(8))))), ..alive() }),
        ("failed-to-migrate", Model { migration: Some(Migration::Failed(failed())), ..alive() }),
        ("arrived", Model { arrived: Some(Uuid::from_u128(11)), ..alive() }),
        ("with-no-failover", Model { settings: failover(FailoverAfter::Never), ..alive() }),
    ]);
    models
}

fn place() -> ControllerPlace {
    ControllerPlace {
        controller: Uuid::from_u128(12),
        addresses: vec!["https://node-1.example:17070".to_owned()],
        authority: "-----BEGIN CERTIFICATE-----\n".to_owned(),
    }
}

fn export() -> Export {
    Export {
        id: Uuid::from_u128(11),
        target: place(),
        token: Sealed { checksum: "ab".to_owned(), bytes: "c2VhbGVk".to_owned() },
        since: time(7),
        expires_at: time(8),
    }
}

fn moved() -> Moved {
    Moved { id: Uuid::from_u128(11), target: place(), since: time(8), expires_at: time(9) }
}

fn import(expires_at: Option<Timestamp>, given_up_at: Option<Timestamp>) -> Import {
    let (id, source) = (Uuid::from_u128(11), Uuid::from_u128(12));
    Import { id, source, since: time(7), next_page: u64::MAX, expires_at, given_up_at }
}

fn failed() -> Failed {
    Failed { id: Uuid::from_u128(11), at: time(8), reason: "an operator ended it".to_owned(), untold: None }
}

pub(crate) fn constraints() -> AgentConstraints {
    let tags = Tags { with: [parse("ssd")].into(), without: [parse("slow")].into() };
    AgentConstraints { cores: Some(4), tags: Some(tags), zones: Some(["zone-1".to_owned()].into()) }
}

/// Returns constraints with every key that has no effect.
pub(crate) fn kept_constraints() -> KeptConstraints {
    let others = KeptConstraint::ALL.map(|key| {
        let value = match key {
            KeptConstraint::AllocatePublicIp => "true",
            KeptConstraint::CpuPower => "100",
            KeptConstraint::RootDisk => "20480M",
            _ => "some-name",
        };
        (key, value.to_owned())
    });
    KeptConstraints { mem: Some(8 << 30), others: others.into() }
}

/// Returns settings with every key that has no effect.
fn kept_settings() -> ModelSettings {
    let kept = KeptKey::ALL.map(|key| (key, key.as_str().to_owned()));
    ModelSettings { kept: kept.into(), ..ModelSettings::default() }
}

/// Returns settings as models stored them before models inherited the controller's defaults.
fn before_inheritance() -> ModelSettings {
    ModelSettings {
        agent_failover_after: None,
        update_status_hook_interval: Some(600),
        automatically_retry_hooks: Some(false),
        egress_subnets: None,
        firewall_mode: None,
        workload_egress: None,
        max_action_results_age: Some(10_800),
        max_action_results_size: Some(2048),
        max_status_history_age: Some(7200),
        max_status_history_size: Some(1024),
        storage_default_max_size: Some(512),
        workload_memory_quota: None,
        workload_quota: None,
        budgets: BudgetSettings::default(),
        kept: KeptSettings::default(),
    }
}

/// Returns settings with every key that has an effect.
fn settings() -> ModelSettings {
    ModelSettings {
        egress_subnets: Some(vec![parse("192.0.2.0/24"), parse("2001:db8::/64")]),
        firewall_mode: Some(FirewallMode::Global),
        workload_memory_quota: Some(WorkloadQuota::Most(4096)),
        workload_quota: Some(WorkloadQuota::Unlimited),
        budgets: budgets(),
        ..before_inheritance()
    }
}

/// Returns every budget, in the order of the list.
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
