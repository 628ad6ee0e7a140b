//! Units: one in every kind of operation, with records whose fields are all filled, and a new one.

use periapt_host_api::{
    EventId, MachineId, OperationId, RelationId,
    command::{Placement, ResolveMode},
    container::{
        CheckState, CheckStatus, ContainerReport, ContainerState, ContainerUsage, PodState, ReportedDriver,
        ReportedStartup, ServiceCurrent, ServiceState, TakenPort, UnitTraffic, WorkloadsReport,
    },
    event::Event,
    pending::{Condition, PendingEvent},
    ports::OpenedPorts,
    record::{
        Begun, CharmRef, HookFailure, HookStep, InterruptedHook, Operation, RelationRecord, SecretRecord,
        SeenHashes, UnitRecord, WorkloadRecord,
    },
    relation::BagOwner,
    secret::{SecretId, SecretRevision},
    state::StateKey,
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
    usage::WorkloadCounts,
};
use periapt_model::entity::{
    CommitMark, PendingEvents, ReportedWorkloads, StateEntry, StatusRefreshes, Unit,
};

use super::{Named, awkward_text, digest, every, parse, record, time};

pub(crate) fn units() -> Named<Unit> {
    let resolved = every!(ResolveMode {
        "resolved-retry": ResolveMode::Retry => ResolveMode::Retry,
        "resolved-no-retry": ResolveMode::NoRetry => ResolveMode::NoRetry,
    });
    let placed = every!(Placement {
        "placed-on-machine": Placement::Machine(_) => Placement::Machine(MachineId(3)),
        "placed-on-agent": Placement::Agent(_) => Placement::Agent(parse("host-7.example")),
    });
    let mut units: Named<Unit> = vec![("new", new())];
    units.extend(operations().into_iter().map(|(name, operation)| (name, full(operation))));
    units.extend(resolved.into_iter().map(|(name, mode)| (name, Unit { resolved: Some(mode), ..new() })));
    units.extend(placed.into_iter().map(|(name, place)| (name, Unit { placement: Some(place), ..new() })));
    let usage = super::infrastructure::usage();
    units.push(("with-usage", Unit { usage, ..new() }));
    let told = RelationRecord { gone: 4, ..relation(None) };
    let mut versed = new();
    versed.record.settings_version = Some(6);
    versed.record.relations.insert(RelationId(3), told);
    units.push(("with-versions-and-former-members", versed));
    let mut served = new();
    served.record.begun = Some(Begun { beside_workloads: true, ..begun() });
    units.push(("with-a-hook-beside-workloads", served));
    let mut cut = new();
    let failure = HookFailure { cut_short: true, ..failure() };
    cut.record.operation = hook(HookStep::Failed(failure));
    units.push(("with-a-hook-that-was-cut-short", cut));
    units
}

fn operations() -> Named<Operation> {
    let mut operations = every!(Operation {
        "continue": Operation::Continue => Operation::Continue,
        "hook-queued": Operation::Hook { .. } => hook(HookStep::Queued),
        "deploy-failed": Operation::DeployFailed { .. } => Operation::DeployFailed {
            charm: charm(),
            failure: failure(),
            interrupted: Some(Box::new(InterruptedHook { event: Event::Install, failure: failure() })),
        },
    });
    let steps = every!(HookStep {
        "hook-queued": HookStep::Queued => HookStep::Queued,
        "hook-failed": HookStep::Failed(_) => HookStep::Failed(failure()),
    });
    operations.retain(|(name, _)| *name != "hook-queued");
    operations.extend(steps.into_iter().map(|(name, step)| (name, hook(step))));
    operations
}

fn hook(step: HookStep) -> Operation {
    let event = Event::RelationChanged { relation: record::relation(), remote_unit: Some(parse("mysql/0")) };
    Operation::Hook { event, step }
}

fn failure() -> HookFailure {
    HookFailure {
        message: awkward_text(),
        attempts: 3,
        failed_at: time(30),
        retry_after_ms: 20_250,
        cut_short: false,
    }
}

fn begun() -> Begun {
    Begun { event: Event::Start, attempt: 2, operation: OperationId(39), beside_workloads: false }
}

fn charm() -> CharmRef {
    CharmRef { digest: digest("wordpress"), modified_version: 4 }
}

fn full(operation: Operation) -> Unit {
    let told = SecretRecord { changed: Some(SecretRevision(3)), obsolete: [SecretRevision(1)].into() };
    Unit {
        name: parse("wordpress/10"),
        life: Life::Dying,
        machine: Some(MachineId(3)),
        placement: Some(Placement::Machine(MachineId(3))),
        principal: Some(parse("mysql/0")),
        resolved: Some(ResolveMode::NoRetry),
        record: UnitRecord {
            secrets: [(SecretId::from_bytes([7; 12]), told)].into(),
            workloads: [(parse("web"), WorkloadRecord { boot_id: "b1".into(), told: 12 })].into(),
            seq: 41,
            operation,
            action: None,
            installed: true,
            started: true,
            stopped: true,
            removed: true,
            leader: true,
            status_set: true,
            charm: Some(charm()),
            seen: SeenHashes { config: "c0".into(), trust: "70".into(), addresses: "ad".into() },
            settings_version: None,
            leader_settings_version: Some(9),
            relations: [(RelationId(2), relation(Some("mysql/11"))), (RelationId(10), relation(None))].into(),
            storages: [parse("data/3"), parse("logs/12")].into(),
            begun: Some(begun()),
            boot_id: Some("5d9f0a6e-30f5-4a3c-9d2e-b7f1c0de0001".into()),
            update_status_due: Some(time(31)),
        },
        last_commit: Some(CommitMark { seq: 40, digest: "8d1f".into() }),
        early_number: 77,
        workload_status: StatusInfo {
            status: WorkloadStatus::Waiting,
            message: awkward_text(),
            data: record::status_data(),
            since: time(32),
        },
        agent_status: StatusInfo {
            status: AgentStatus::Error,
            message: "hook failed: \"db-relation-changed\"".into(),
            data: record::status_data(),
            since: time(33),
        },
        refreshed: StatusRefreshes { workload: Some(time(35)), agent: Some(time(36)) },
        usage: Default::default(),
        ports: [("80/tcp", vec!["website", "admin"]), ("8000-8999/udp", vec![]), ("icmp", vec![])]
            .map(|(range, endpoints)| OpenedPorts {
                range: parse(range),
                endpoints: endpoints.into_iter().map(parse).collect(),
            })
            .into(),
        created_at: time(34),
    }
}

fn relation(changed_pending: Option<&str>) -> RelationRecord {
    RelationRecord {
        endpoint: parse("db"),
        remote_application: parse("mysql"),
        created: changed_pending.is_some(),
        members: [(parse("mysql/0"), 12), (parse("mysql/11"), 0)].into(),
        applications: [(parse("mysql"), 3), (parse("wordpress"), 1)].into(),
        changed_pending: changed_pending.map(parse),
        gone: 0,
    }
}

fn new() -> Unit {
    Unit {
        name: parse("wordpress/11"),
        life: Life::Alive,
        machine: None,
        placement: None,
        principal: None,
        resolved: None,
        record: UnitRecord {
            secrets: [].into(),
            workloads: [].into(),
            seq: 0,
            operation: Operation::Continue,
            action: None,
            installed: false,
            started: false,
            stopped: false,
            removed: false,
            leader: false,
            status_set: false,
            charm: None,
            seen: SeenHashes { config: String::new(), trust: String::new(), addresses: String::new() },
            settings_version: None,
            leader_settings_version: None,
            relations: [].into(),
            storages: [].into(),
            begun: None,
            boot_id: None,
            update_status_due: None,
        },
        last_commit: None,
        early_number: 0,
        workload_status: StatusInfo::new(WorkloadStatus::Waiting, "waiting for machine", time(35)),
        agent_status: StatusInfo::new(AgentStatus::Allocating, "", time(36)),
        refreshed: StatusRefreshes { workload: None, agent: None },
        usage: Default::default(),
        ports: vec![],
        created_at: time(37),
    }
}

pub(crate) fn state_entries() -> Named<StateEntry> {
    let entry = |key: &str, value: String| StateEntry {
        key: StateKey { unit: parse("wordpress/10"), key: key.into() },
        value,
    };
    vec![("text", entry("seen \"1\"/\u{fc}", awkward_text())), ("empty", entry("done", String::new()))]
}

pub(crate) fn pending_events() -> Named<PendingEvents> {
    let conditions = every!(Condition {
        "config": Condition::Config { .. } =>
            Condition::Config { option: "mode".into(), seen: "0f1e2d3c4b5a69788796a5b4c3d2e1f0".into() },
        "relation": Condition::Relation { .. } => Condition::Relation {
            relation: RelationId(2),
            owner: BagOwner::Unit(parse("mysql/0")),
            key: "host".into(),
            seen: "74234e98afe7498fb5daf1f36ac2d78a".into(),
        },
        "leader": Condition::Leader { .. } => Condition::Leader { seen: Some(parse("wordpress/11")) },
    });
    let event = |after_ms, conditions| PendingEvent {
        name: "look-again".into(),
        data: format!("{:?}", "it's \"down\""),
        asked_at: time(50),
        after_ms,
        conditions,
    };
    let timed = event(Some(600_000), vec![]);
    let conditional = event(None, conditions.into_iter().map(|(_, condition)| condition).collect());
    let of = |events| PendingEvents { unit: parse("wordpress/10"), next: EventId(7), events };
    vec![("full", of([(EventId(3), timed), (EventId(6), conditional)].into())), ("none", of([].into()))]
}

pub(crate) fn workloads() -> Named<ReportedWorkloads> {
    let states = every!(ContainerState {
        "starting": ContainerState::Starting => ContainerState::Starting,
        "running": ContainerState::Running { .. } => ContainerState::Running { boot_id: "2b1c".into() },
        "down": ContainerState::Down { .. } => ContainerState::Down { reason: awkward_text() },
    });
    let currents = every!(ServiceCurrent {
        "active": ServiceCurrent::Active => ServiceCurrent::Active,
        "inactive": ServiceCurrent::Inactive => ServiceCurrent::Inactive,
        "backoff": ServiceCurrent::Backoff => ServiceCurrent::Backoff,
        "error": ServiceCurrent::Error => ServiceCurrent::Error,
    });
    let statuses = every!(CheckStatus {
        "up": CheckStatus::Up => CheckStatus::Up,
        "down": CheckStatus::Down => CheckStatus::Down,
        "inactive": CheckStatus::Inactive => CheckStatus::Inactive,
    });
    let drivers = every!(ReportedDriver {
        "driver-namespaces": ReportedDriver::Namespaces => ReportedDriver::Namespaces,
        "driver-plain": ReportedDriver::Plain => ReportedDriver::Plain,
        "driver-wasm": ReportedDriver::Wasm => ReportedDriver::Wasm,
    });
    let startup = ReportedStartup::Enabled;
    let service = |(name, current): (&str, ServiceCurrent)| {
        let cannot_start = (current == ServiceCurrent::Error).then(awkward_text);
        ServiceState { name: name.into(), startup, current, restarts: 3, cannot_start }
    };
    let check = |(name, status): (&str, _)| {
        let startup = ReportedStartup::Disabled;
        CheckState { name: name.into(), startup, status, failures: 2, threshold: 3 }
    };
    let pod = PodState {
        services: currents.into_iter().map(service).collect(),
        checks: statuses.into_iter().map(check).collect(),
        left_out: 9,
    };
    let container = |driver, state| ContainerReport {
        driver: Some(driver),
        content: Some(digest("image")),
        state,
        starts: 4,
        pod: pod.clone(),
        usage: Some(ContainerUsage { memory: 5 << 20, cpu_ms: 600, storage: 7 }),
    };
    let of = |containers| ReportedWorkloads {
        unit: parse("wordpress/10"),
        agent: parse("host-7.example"),
        at: time(60),
        report: WorkloadsReport {
            containers,
            taken_ports: vec![TakenPort { port: 80, address: "10.0.0.1".into(), reason: awkward_text() }],
            traffic: UnitTraffic { connections: 8, received: 9, sent: 10 },
            counted_since: Some(time(30)),
        },
        counts: WorkloadCounts { cpu_ms: 1_200, connections: 16, received: 18, sent: 20 },
    };
    let one = |state| of([(parse("web"), container(ReportedDriver::Wasm, state))].into());
    let mut samples: Named<ReportedWorkloads> =
        states.into_iter().map(|(name, state)| (name, one(state))).collect();
    let driven = |driver| of([(parse("web"), container(driver, ContainerState::Starting))].into());
    samples.extend(drivers.into_iter().map(|(name, driver)| (name, driven(driver))));
    samples.push(("ports-alone", of([].into())));
    samples
}
