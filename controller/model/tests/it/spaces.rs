//! Spaces, bindings, and the addresses of units that follow from them.

use periapt_host_api::{
    ErrorCode, Refusal, RelationId,
    agent::Register,
    command::{Caller, Command, Exposure},
    network::{Bindings, HostInterface, InterfaceAddress, Subnet},
};
use periapt_model::Input;

use crate::world::World;

/// Returns a world in which the agent's host has `eth0` with 10.0.0.1, the preferred address, and `eth1` with
/// 192.168.7.1.
fn world() -> World {
    let mut world = World::new();
    let at = |address: &str| {
        let address = address.parse().unwrap();
        InterfaceAddress { address, subnet: Subnet::around(address, 24).unwrap() }
    };
    let interface = |name: &str, address| HostInterface {
        name: name.into(),
        mac: String::new(),
        addresses: vec![at(address)],
    };
    let host = world.root.agent(&"a1".parse().unwrap()).unwrap().host.clone();
    let interfaces = vec![interface("eth0", "10.0.0.1"), interface("eth1", "192.168.7.1")];
    let agent: periapt_host_api::AgentName = "a1".parse().unwrap();
    let register = Register { interfaces, ..host };
    world.ask(&Caller::Agent(agent.clone()), &Input::Register(agent, register)).unwrap();
    world.deploy_app("app", 1);
    world.start("app/0");
    world
}

fn add_space(world: &mut World, name: &str, subnets: &[&str]) -> Result<(), Refusal> {
    let subnets = subnets.iter().map(|subnet| subnet.parse().unwrap()).collect();
    world.run(Command::AddSpace { name: name.parse().unwrap(), subnets }).map(|_| ())
}

fn bind(world: &mut World, default: Option<&str>, endpoints: &[(&str, &str)]) -> Result<(), Refusal> {
    let endpoints = endpoints.iter().map(|(name, space)| ((*name).to_owned(), space.parse().unwrap()));
    let bindings =
        Bindings { default: default.map(|name| name.parse().unwrap()), endpoints: endpoints.collect() };
    world.run(Command::Bind { application: "app".parse().unwrap(), bindings }).map(|_| ())
}

fn addresses(world: &World, id: RelationId) -> [String; 3] {
    let bag = world.bag(id, "app/0").unwrap();
    ["ingress-address", "private-address", "egress-subnets"].map(|key| bag.settings[key].clone())
}

/// the addresses are written on entering, and again with config-changed.
#[test]
fn a_units_bag_has_the_addresses_of_its_binding() {
    let mut world = world();
    add_space(&mut world, "internal", &["192.168.7.0/24"]).unwrap();
    let peers = RelationId(0);
    world.enter("app/0", peers).unwrap();
    assert_eq!(addresses(&world, peers), ["10.0.0.1", "10.0.0.1", "10.0.0.1/32"]);
    bind(&mut world, None, &[("ring", "internal")]).unwrap();
    assert_eq!(addresses(&world, peers)[0], "10.0.0.1", "not at the moment when it changes");
    world.commit("app/0", |commit| commit.transitions.refresh_addresses = true).unwrap();
    assert_eq!(addresses(&world, peers), ["192.168.7.1", "192.168.7.1", "192.168.7.1/32"]);
}

/// D03: changes of a binding's addresses make config-changed due; the start of a second agent does not.
#[test]
fn d03_bindings_and_spaces_are_among_what_config_changed_compares() {
    let mut world = world();
    let seen = |world: &World| {
        let view = world.view("a1");
        let machine = view.machines.values().next().unwrap().addresses_hash.clone();
        (machine, view.applications.values().next().unwrap().bindings_hash.clone())
    };
    let first = seen(&world);
    assert_eq!(first.1, "");
    world.agent("a2");
    assert_eq!(seen(&world), first);
    add_space(&mut world, "internal", &["192.168.7.0/24"]).unwrap();
    let with_space = seen(&world);
    assert_ne!(with_space, first);
    bind(&mut world, Some("internal"), &[]).unwrap();
    assert_ne!(seen(&world), with_space);
}

#[test]
fn a_subnet_is_in_one_space() {
    let mut world = world();
    add_space(&mut world, "one", &["10.0.0.0/24", "10.0.1.0/24"]).unwrap();
    add_space(&mut world, "two", &["10.0.1.0/24"]).unwrap();
    let spaces = |world: &World| -> Vec<String> {
        let list = periapt_model::spaces(&world.root, world.state()).spaces;
        list.iter()
            .map(|(name, subnets)| {
                format!("{name}: {}", subnets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            })
            .collect()
    };
    assert_eq!(spaces(&world), ["alpha: 192.168.7.0/24", "one: 10.0.0.0/24", "two: 10.0.1.0/24"]);
    let back = Command::MoveToSpace {
        space: "alpha".parse().unwrap(),
        subnets: vec!["10.0.0.0/24".parse().unwrap()],
    };
    world.run(back).unwrap();
    assert_eq!(spaces(&world)[..2], ["alpha: 10.0.0.0/24 192.168.7.0/24", "one: "]);
}

#[test]
fn mistakes_are_named() {
    let mut world = world();
    add_space(&mut world, "one", &[]).unwrap();
    bind(&mut world, None, &[("db", "one")]).unwrap();
    let code = |result: Result<(), Refusal>| result.unwrap_err().code;
    assert_eq!(code(add_space(&mut world, "one", &[])), ErrorCode::AlreadyExists);
    assert_eq!(code(add_space(&mut world, "alpha", &[])), ErrorCode::AlreadyExists);
    assert_eq!(code(bind(&mut world, Some("nowhere"), &[])), ErrorCode::NotFound);
    assert_eq!(code(bind(&mut world, None, &[("x", "one")])), ErrorCode::BadRequest);
    let expose = |space: &str| {
        let exposure = Exposure {
            spaces: ["one".parse().unwrap(), space.parse().unwrap()].into(),
            ..Exposure::default()
        };
        Command::Expose {
            application: "app".parse().unwrap(),
            endpoints: [("db".to_owned(), exposure)].into(),
        }
    };
    let refusal = world.run(expose("nowhere")).unwrap_err();
    assert_eq!(
        (refusal.code, refusal.message.as_str()),
        (ErrorCode::NotFound, "space \"nowhere\" not found")
    );
    assert!(!world.application("app").exposed);
    world.run(expose("one")).unwrap();
    let remove = |name: &str| Command::RemoveSpace { name: name.parse().unwrap() };
    assert_eq!(world.run(remove("one")).unwrap_err().message, "space \"one\" is bound by app");
    assert_eq!(world.run(remove("alpha")).unwrap_err().code, ErrorCode::BadRequest);
    bind(&mut world, None, &[("db", "alpha")]).unwrap();
    world.run(remove("one")).unwrap();
}

#[test]
fn what_an_agent_tells_of_its_host_is_bounded() {
    let mut world = world();
    let agent: periapt_host_api::AgentName = "a1".parse().unwrap();
    let host = world.root.agent(&agent).unwrap().host.clone();
    let one = host.interfaces[0].clone();
    let long = HostInterface { name: "x".repeat(300), ..one.clone() };
    let crowded = HostInterface { addresses: vec![one.addresses[0]; 40], ..one.clone() };
    for interfaces in [vec![one; 33], vec![long], vec![crowded]] {
        let register = Register { interfaces, ..host.clone() };
        let refusal = world.ask(&Caller::Agent(agent.clone()), &Input::Register(agent.clone(), register));
        assert_eq!(refusal.unwrap_err().code, ErrorCode::BadRequest);
    }
}

/// R-14, 7.9: the model's egress subnets make config-changed due, and are in the bags after it.
#[test]
fn a_models_egress_subnets_stand_in_the_bags() {
    let mut world = world();
    let peers = RelationId(0);
    world.enter("app/0", peers).unwrap();
    let due = |world: &World| world.view("a1").applications.values().next().unwrap().bindings_hash.clone();
    let before = due(&world);
    let set = [("egress-subnets".to_owned(), "192.0.2.0/24,198.51.100.0/24".to_owned())];
    world.run(Command::SetModelConfig { set: set.into(), reset: vec![] }).unwrap();
    assert_ne!(due(&world), before);
    world.commit("app/0", |commit| commit.transitions.refresh_addresses = true).unwrap();
    assert_eq!(addresses(&world, peers), ["10.0.0.1", "10.0.0.1", "192.0.2.0/24,198.51.100.0/24"]);
    let reset = vec!["egress-subnets".to_owned()];
    world.run(Command::SetModelConfig { set: Default::default(), reset }).unwrap();
    assert_eq!(due(&world), before);
}

#[test]
fn a_space_is_renamed_with_all_that_is_bound_to_it() {
    let mut world = world();
    add_space(&mut world, "internal", &["192.168.7.0/24"]).unwrap();
    add_space(&mut world, "dmz", &[]).unwrap();
    bind(&mut world, Some("internal"), &[("ring", "internal"), ("web", "dmz")]).unwrap();
    let exposure = Exposure { spaces: ["internal".parse().unwrap()].into(), ..Exposure::default() };
    let endpoints = [("web".to_owned(), exposure)].into();
    world.run(Command::Expose { application: "app".parse().unwrap(), endpoints }).unwrap();
    let rename =
        |name: &str, to: &str| Command::RenameSpace { name: name.parse().unwrap(), to: to.parse().unwrap() };
    for (name, to, code) in [
        ("internal", "dmz", ErrorCode::AlreadyExists),
        ("alpha", "beta", ErrorCode::BadRequest),
        ("nowhere", "beta", ErrorCode::NotFound),
    ] {
        assert_eq!(world.run(rename(name, to)).unwrap_err().code, code, "{name} {to}");
    }
    world.run(rename("internal", "inside")).unwrap();
    let app = world.application("app");
    let bound: Vec<_> = ["ring", "web", "db"].map(|name| app.bindings.space_of(name)).into();
    assert_eq!(bound, ["inside", "dmz", "inside"]);
    assert_eq!(app.exposures["web"].spaces, ["inside".parse().unwrap()].into());
    let names: Vec<_> = world.state().model().spaces.0.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["dmz", "inside"]);
}
