//! Addresses of bindings (`hook-model.md` 5.7).

use periapt_hook::CallError;
use periapt_host_api::{
    MachineId,
    network::{HostInterface, InterfaceAddress, Spaces, Subnet},
    yaml,
};
use serde_json::json;

use crate::world::{DB, World};

/// The machine has `eth0` in no space and `eth1` in `internal`, which `web` is bound to.
fn world() -> World {
    let mut world = World::new();
    let interface = |name: &str, mac: &str, address: &str| {
        let address = address.parse().unwrap();
        let subnet = Subnet::around(address, 24).unwrap();
        HostInterface {
            name: name.into(),
            mac: mac.into(),
            addresses: vec![InterfaceAddress { address, subnet }],
        }
    };
    let machine = world.inputs.view.machines.get_mut(&MachineId(4)).unwrap();
    machine.addresses = vec!["10.0.0.9".into()];
    machine.interfaces = vec![
        interface("eth1", "00:16:3e:00:00:02", "192.168.7.9"),
        interface("eth0", "00:16:3e:00:00:01", "10.0.0.9"),
    ];
    let internal = ("internal".parse().unwrap(), ["192.168.7.0/24".parse().unwrap()].into());
    world.inputs.view.model.as_mut().unwrap().spaces = Spaces([internal].into());
    let bindings = &mut world.own_application().bindings;
    bindings.endpoints.insert("web".into(), "internal".parse().unwrap());
    bindings.endpoints.insert("ring".into(), "elsewhere".parse().unwrap());
    world
}

#[test]
fn a_binding_is_shown_whole_or_by_what_is_asked_for() {
    let mut hook = world().start();
    let shown: serde_json::Value = yaml::parse(&hook.tool("network-get db").stdout).unwrap();
    let address = json!({"hostname": "", "value": "10.0.0.9", "cidr": "10.0.0.0/24", "address": "10.0.0.9"});
    let (name, mac) = ("eth0", "00:16:3e:00:00:01");
    assert_eq!(
        shown,
        json!({
            "bind-addresses": [{
                "mac-address": mac, "interface-name": name, "addresses": [address],
                "macaddress": mac, "interfacename": name,
            }],
            "egress-subnets": ["10.0.0.9/32"],
            "ingress-addresses": ["10.0.0.9"],
        })
    );
    hook.check(&[
        ("network-get --bind-address db", "10.0.0.9\n"),
        ("network-get db --primary-address", "10.0.0.9\n"),
        ("network-get db --ingress-address --format json", "\"10.0.0.9\"\n"),
        ("network-get db --egress-subnets", "- 10.0.0.9/32\n"),
        ("network-get db --egress-subnets --format smart", "10.0.0.9/32\n"),
        (
            "network-get web --bind-address --ingress-address",
            "bind-address: 192.168.7.9\ningress-address: 192.168.7.9\n",
        ),
        (
            "network-get db -r db:1 --bind-address --egress-subnets --format json",
            "{\"bind-address\":\"10.0.0.9\",\"egress-subnets\":[\"10.0.0.9/32\"]}\n",
        ),
        ("network-get juju-info --bind-address", "10.0.0.9\n"),
    ]);
}

#[test]
fn o07_an_unknown_binding_is_refused() {
    let mut hook = world().start();
    hook.check_errors(&[
        ("network-get x", 1, "no network config found for binding \"x\""),
        ("network-get", 2, "no arguments specified"),
        ("network-get ''", 2, "no binding name specified"),
        ("network-get db web", 2, "unrecognized args: [\"web\"]"),
        ("network-get ring", 1, "machine \"4\" has no devices in space \"elsewhere\""),
        ("network-get web -r db:1", 2, "relation 1 is of endpoint \"db\", not of \"web\""),
        ("network-get db -r 77", 2, "invalid value \"77\" for option -r: relation not found"),
    ]);
}

#[test]
fn o08_the_first_bind_address_is_reached_where_no_other_is_known() {
    let mut world = world();
    world.inputs.view.machines.get_mut(&MachineId(4)).unwrap().addresses = vec!["203.0.113.1".into()];
    let mut hook = world.start();
    hook.check(&[("network-get web --ingress-address", "192.168.7.9\n")]);
}

#[test]
fn both_doors_lead_to_the_same() {
    let mut hook = world().start();
    let info = hook.context.network_get("db", Some(DB)).unwrap();
    assert_eq!(info.ingress_address(), Some("10.0.0.9"));
    let unknown = CallError::NotFound("no network config found for binding \"x\"".to_owned());
    assert_eq!(hook.context.network_get("x", None), Err(unknown));
}
