//! Two models for tests of tables.

use std::collections::BTreeMap;

use periapt_host_api::status::{
    ApplicationStatus, Base, ControllerStatus, FullStatus, MachineStatus, ModelStatus, RelatedApplication,
    RelationStatus, StatusText, UnitStatus,
};

fn text(current: &str, message: &str) -> StatusText {
    StatusText { current: current.into(), message: message.into(), ..StatusText::default() }
}

fn unit(machine: &str, port: Option<&str>, message: &str) -> UnitStatus {
    UnitStatus {
        workload_status: text("active", message),
        juju_status: text("idle", ""),
        leader: false,
        machine: machine.into(),
        open_ports: port.map(str::to_owned).into_iter().collect(),
        address: "10.0.0.1".into(),
        public_address: "10.0.0.1".into(),
        subordinates: BTreeMap::new(),
        life: String::new(),
        waits_for: Vec::new(),
        upgrading_from: String::new(),
        workload_problems: Vec::new(),
    }
}

fn application(name: &str, version: &str, units: Vec<(&str, UnitStatus)>) -> ApplicationStatus {
    ApplicationStatus {
        charm: format!("local:{name}-3"),
        charm_origin: "local".into(),
        charm_name: name.into(),
        charm_rev: 3,
        charm_digest: "00".repeat(32),
        base: Base::default(),
        exposed: false,
        scale: units.len(),
        life: String::new(),
        waits_for: Vec::new(),
        application_status: text("active", ""),
        version: version.into(),
        relations: BTreeMap::from([(
            "db".to_owned(),
            vec![RelatedApplication {
                related_application: "other".into(),
                interface: "mysql".into(),
                scope: "global".into(),
            }],
        )]),
        subordinate_to: Vec::new(),
        units: units.into_iter().map(|(name, unit)| (name.to_owned(), unit)).collect(),
        endpoint_bindings: BTreeMap::new(),
    }
}

fn machine() -> MachineStatus {
    MachineStatus {
        juju_status: text("started", ""),
        hostname: "node".into(),
        dns_name: "10.0.0.1".into(),
        ip_addresses: vec!["10.0.0.1".into()],
        instance_id: "node".into(),
        machine_status: text("running", ""),
        modification_status: text("idle", ""),
        base: Base::default(),
        network_interfaces: BTreeMap::new(),
        life: String::new(),
        ingress_rules: Default::default(),
        hardware: "arch=amd64 availability-zone=z1".into(),
        program: None,
    }
}

/// Returns a model at rest.
pub(crate) fn settled() -> FullStatus {
    let mut first = unit("0", Some("3306/tcp"), "primary, accounts: 1");
    first.leader = true;
    let mut leader = unit("2", Some("80/tcp"), "serving");
    leader.leader = true;
    let mut wordpress = application(
        "wordpress",
        "6.8-with-a-long-suffix",
        vec![("wordpress/2", leader), ("wordpress/10", unit("10", Some("80/tcp"), "serving"))],
    );
    wordpress.exposed = true;
    FullStatus {
        model: ModelStatus {
            name: "blog".into(),
            kind: "iaas".into(),
            controller: "local".into(),
            cloud: "periapt".into(),
            region: "default".into(),
            version: "3.6.26".into(),
            model_status: text("available", ""),
        },
        machines: ["0", "1", "2", "10"].map(|number| (number.to_owned(), machine())).into(),
        applications: BTreeMap::from([
            (
                "mysql".to_owned(),
                application(
                    "mysql",
                    "8.4",
                    vec![("mysql/0", first), ("mysql/1", unit("1", None, "replica of mysql/0"))],
                ),
            ),
            ("wordpress".to_owned(), wordpress),
        ]),
        storage: None,
        remote_applications: BTreeMap::new(),
        offers: BTreeMap::new(),
        relations: vec![RelationStatus {
            id: 1,
            provider: "mysql:db".into(),
            requirer: "wordpress:db".into(),
            interface: "mysql".into(),
            kind: "regular".into(),
            status: "joined".into(),
            message: String::new(),
            waits_for: Vec::new(),
        }],
        controller: ControllerStatus {
            periapt_version: "0.1.0".into(),
            timestamp: "2026-01-02T03:04:05Z".parse().unwrap(),
            engine: "wasmtime 48".into(),
            problems: Vec::new(),
            members: BTreeMap::new(),
            revision: None,
        },
    }
}

/// Returns a model in which everything is in progress or has failed.
pub(crate) fn unsettled() -> FullStatus {
    let mut status = settled();
    status.model.model_status = text("destroying", "");
    status.controller.problems.push("the store cannot be written: no space left on device".into());
    let wordpress = status.applications.get_mut("wordpress").unwrap();
    wordpress.life = "dying".into();
    wordpress.waits_for = vec!["unit wordpress/2".into()];
    wordpress.application_status = text("waiting", "for the database");
    let executing = wordpress.units.get_mut("wordpress/2").unwrap();
    executing.juju_status = text("executing", "running config-changed hook");
    executing.workload_status = text("waiting", "for the database");
    let mut subordinate = unit("2", None, "");
    subordinate.workload_status = text("error", "hook failed: \"install\"");
    executing.subordinates.insert("proxy/0".into(), subordinate);
    let allocating = wordpress.units.get_mut("wordpress/10").unwrap();
    allocating.juju_status = text("allocating", "waiting for an agent");
    allocating.workload_status = text("unknown", "");
    allocating.public_address = String::new();
    let mut proxy = application("proxy", "", Vec::new());
    proxy.application_status = text("error", "hook failed: \"install\"");
    proxy.subordinate_to = vec!["wordpress".into()];
    status.applications.insert("proxy".into(), proxy);
    let relation = status.relations.first_mut().unwrap();
    relation.status = "dying".into();
    relation.waits_for = vec!["wordpress/2".into()];
    let lost = status.machines.get_mut("10").unwrap();
    lost.juju_status = text("down", "");
    lost.machine_status = text("unknown", "agent is not communicating");
    status
}
