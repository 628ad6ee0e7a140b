//! The firewall rules of machines (`docs/hook-model.md` 7.3), with a provider that only keeps what it was told.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ErrorCode, MachineId, Refusal,
    command::{Command, Exposure},
    commit::PortRequest,
    firewall::{IngressChanges, IngressRules},
    network::Subnet,
};
use periapt_model::ingress_rules;

use crate::world::{World, on_machine, unit};

/// The firewall rules of a provider, which follow those of the model.
#[derive(Default)]
struct Provider(BTreeMap<MachineId, IngressRules>);

impl Provider {
    /// Opens and closes the difference, and returns the number of changes.
    fn follow(&mut self, world: &World) -> usize {
        let mut changed = 0;
        let known: BTreeSet<MachineId> =
            world.state().machines().map(|machine| machine.id).chain(self.0.keys().copied()).collect();
        for machine in known {
            let present = self.0.entry(machine).or_default();
            let changes = IngressChanges::between(present, &ingress_rules(world.state(), &machine));
            changed += changes.open.len() + changes.close.len();
            for (range, from) in changes.open {
                assert!(present.entry(range).or_default().insert(from), "what is open is not opened");
            }
            for (range, from) in changes.close {
                assert!(present.get_mut(&range).unwrap().remove(&from), "what is closed is not closed");
            }
            present.retain(|_, from| !from.is_empty());
        }
        self.0.retain(|_, rules| !rules.is_empty());
        changed
    }

    /// Returns the rules as `MACHINE RANGE from CIDR,...`
    fn lines(&self) -> Vec<String> {
        let rules = self.0.iter().flat_map(|(machine, rules)| rules.iter().map(move |rule| (machine, rule)));
        rules
            .map(|(machine, (range, from))| {
                let from: Vec<String> = from.iter().map(ToString::to_string).collect();
                format!("{machine} {range} from {}", from.join(","))
            })
            .collect()
    }
}

/// Returns a world with `app/0` (80 open for `web`, 22 for all) and `db/0` on the same machine (3306).
fn world() -> World {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    let charm = world.upload(crate::world::DB);
    let deploy = crate::world::deploy_command(charm, "db", 0);
    world.run(deploy).unwrap();
    let add = Command::AddUnits {
        application: "db".parse().unwrap(),
        count: 1,
        placement: on_machine(0),
        attach_storage: vec![],
    };
    world.run(add).unwrap();
    world.settle();
    world.start("db/0");
    open(&mut world, "app/0", "80/tcp", Some("web"));
    open(&mut world, "app/0", "22/tcp", None);
    open(&mut world, "db/0", "3306/tcp", None);
    world
}

fn open(world: &mut World, unit: &str, range: &str, endpoint: Option<&str>) {
    let request =
        PortRequest { range: range.parse().unwrap(), endpoint: endpoint.map(|name| name.parse().unwrap()) };
    world.commit(unit, |commit| assert!(commit.effects.ports.open.insert(request))).unwrap();
}

fn expose(world: &mut World, endpoints: &[(&str, &[&str], &[&str])]) -> Result<(), Refusal> {
    let exposure = |cidrs: &[&str], spaces: &[&str]| Exposure {
        cidrs: cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect(),
        spaces: spaces.iter().map(|space| space.parse().unwrap()).collect(),
    };
    let endpoints =
        endpoints.iter().map(|(name, cidrs, spaces)| ((*name).to_owned(), exposure(cidrs, spaces)));
    let command = Command::Expose { application: "app".parse().unwrap(), endpoints: endpoints.collect() };
    world.run(command).map(|_| ())
}

fn subnets(all: &[&str]) -> Vec<Subnet> {
    all.iter().map(|subnet| subnet.parse().unwrap()).collect()
}

#[test]
fn j07_open_ports_of_an_application_that_is_not_exposed_let_nobody_in() {
    let world = world();
    let mut provider = Provider::default();
    assert_eq!((provider.follow(&world), provider.lines().len()), (0, 0));
    assert!(world.view("a1").machines[&MachineId(0)].ingress.is_empty());
}

#[test]
fn j08_rules_come_and_go_with_the_exposure() {
    let (mut world, mut provider) = (world(), Provider::default());
    expose(&mut world, &[]).unwrap();
    provider.follow(&world);
    let everybody = ["0 22/tcp from 0.0.0.0/0,::/0", "0 80/tcp from 0.0.0.0/0,::/0"];
    assert_eq!(provider.lines(), everybody);
    assert_eq!(world.view("a1").machines[&MachineId(0)].ingress.len(), 2, "the agent sees them");
    assert_eq!(world.status().machines["0"].ingress_rules.len(), 2, "and so do people");
    assert_eq!(provider.follow(&world), 0, "nothing is opened twice");
    // F-1: changes from outside are corrected.
    provider.0.get_mut(&MachineId(0)).unwrap().clear();
    provider.0.insert(MachineId(9), [("1/tcp".parse().unwrap(), Subnet::EVERYWHERE.into())].into());
    provider.follow(&world);
    assert_eq!(provider.lines(), everybody);
    let unexpose = Command::Unexpose { application: "app".parse().unwrap(), endpoints: vec![] };
    world.run(unexpose).unwrap();
    provider.follow(&world);
    assert!(provider.lines().is_empty());
}

#[test]
fn an_endpoints_own_exposure_replaces_that_of_all() {
    let (mut world, mut provider) = (world(), Provider::default());
    expose(&mut world, &[("web", &["10.0.0.0/8"], &[])]).unwrap();
    provider.follow(&world);
    assert_eq!(provider.lines(), ["0 22/tcp from 10.0.0.0/8", "0 80/tcp from 10.0.0.0/8"]);
    expose(&mut world, &[("", &["192.168.0.0/16"], &[])]).unwrap();
    provider.follow(&world);
    assert_eq!(provider.lines(), ["0 22/tcp from 10.0.0.0/8,192.168.0.0/16", "0 80/tcp from 10.0.0.0/8"]);
    let unexpose = |endpoint: &str| Command::Unexpose {
        application: "app".parse().unwrap(),
        endpoints: vec![endpoint.to_owned()],
    };
    world.run(unexpose("web")).unwrap();
    provider.follow(&world);
    assert_eq!(provider.lines(), ["0 22/tcp from 192.168.0.0/16", "0 80/tcp from 192.168.0.0/16"]);
    assert_eq!(world.run(unexpose("web")).unwrap_err().message, "endpoint \"web\" is not exposed");
    world.run(unexpose("")).unwrap();
    assert!(!world.application("app").exposed);
}

#[test]
fn j11_rules_follow_a_space() {
    let (mut world, mut provider) = (world(), Provider::default());
    let name: periapt_host_api::SpaceName = "dmz".parse().unwrap();
    assert_eq!(expose(&mut world, &[("", &[], &["dmz"])]).unwrap_err().code, ErrorCode::NotFound);
    world.run(Command::AddSpace { name: name.clone(), subnets: subnets(&["10.1.0.0/16"]) }).unwrap();
    expose(&mut world, &[("", &[], &["dmz"])]).unwrap();
    provider.follow(&world);
    assert_eq!(provider.lines()[0], "0 22/tcp from 10.1.0.0/16");
    world.run(Command::MoveToSpace { space: name.clone(), subnets: subnets(&["10.2.0.0/16"]) }).unwrap();
    provider.follow(&world);
    assert_eq!(provider.lines()[0], "0 22/tcp from 10.1.0.0/16,10.2.0.0/16");
    world.run(Command::RemoveSpace { name }).unwrap();
    provider.follow(&world);
    assert!(provider.lines().is_empty(), "a space that is gone is not everywhere");
}

#[test]
fn j12_rules_of_a_removed_unit_go_and_those_of_its_neighbours_stay() {
    let (mut world, mut provider) = (world(), Provider::default());
    expose(&mut world, &[]).unwrap();
    world.run(Command::Expose { application: "db".parse().unwrap(), endpoints: BTreeMap::new() }).unwrap();
    provider.follow(&world);
    assert_eq!(provider.lines().len(), 3);
    world.run(Command::RemoveUnit { unit: unit("app/0"), force: None, storage: Default::default() }).unwrap();
    world.terminate("app/0").unwrap();
    provider.follow(&world);
    assert_eq!(provider.lines(), ["0 3306/tcp from 0.0.0.0/0,::/0"]);
}

#[test]
fn an_agent_sees_the_rules_of_each_of_its_units() {
    let mut world = world();
    // Both units of the machine have ports open, and one application is exposed.
    open(&mut world, "db/0", "81/tcp", None);
    expose(&mut world, &[("web", &["10.0.0.0/8"], &[])]).unwrap();
    let rules = |world: &World| {
        let machine = world.view("a1").machines[&MachineId(0)].clone();
        let lines = machine.unit_ingress.into_iter().flat_map(|(unit, rules)| {
            rules.into_iter().map(move |(range, from)| format!("{unit} {range} from {}", from.len()))
        });
        lines.collect::<Vec<_>>()
    };
    assert_eq!(rules(&world), ["app/0 22/tcp from 1", "app/0 80/tcp from 1"]);
    let mode = |world: &mut World, mode: &str| {
        let set = BTreeMap::from([("firewall-mode".to_owned(), mode.to_owned())]);
        world.run(Command::SetModelConfig { set, reset: vec![] }).unwrap();
    };
    mode(&mut world, "global");
    assert_eq!(rules(&world), ["app/0 22/tcp from 1", "app/0 80/tcp from 1"]);
    mode(&mut world, "none");
    assert!(rules(&world).is_empty());
    mode(&mut world, "instance");
    world
        .commit("app/0", |commit| {
            let request =
                PortRequest { range: "80/tcp".parse().unwrap(), endpoint: Some("web".parse().unwrap()) };
            assert!(commit.effects.ports.close.insert(request));
        })
        .unwrap();
    assert_eq!(rules(&world), ["app/0 22/tcp from 1"]);
    world.run(Command::Unexpose { application: "app".parse().unwrap(), endpoints: vec![] }).unwrap();
    assert!(rules(&world).is_empty());
}

#[test]
fn what_there_is_not_cannot_be_exposed() {
    let mut world = world();
    for (endpoint, spaces, message) in [
        ("x", &[][..], "endpoint \"x\" not found"),
        ("web", &["x"], "space \"x\" not found"),
        ("web", &["alpha"], "space \"alpha\" has no subnets of its own: name CIDRs instead"),
    ] {
        assert_eq!(expose(&mut world, &[(endpoint, &[], spaces)]).unwrap_err().message, message);
    }
    assert!(!world.application("app").exposed);
}

#[test]
fn the_mode_says_which_machines_let_in_what_is_open() {
    // 7.3, F-2
    let mut world = world();
    world.deploy_db("far", 1);
    world.run(Command::Expose { application: "app".parse().unwrap(), endpoints: BTreeMap::new() }).unwrap();
    let mode = |world: &mut World, mode: &str| {
        let set = BTreeMap::from([("firewall-mode".to_owned(), mode.to_owned())]);
        world.run(Command::SetModelConfig { set, reset: vec![] }).unwrap();
    };
    let rules = |world: &World| {
        let rules = |machine| ingress_rules(world.state(), &MachineId(machine)).len();
        (rules(0), rules(1))
    };
    assert_eq!(rules(&world), (2, 0));
    mode(&mut world, "global");
    assert_eq!(rules(&world), (2, 2));
    world.run(Command::Unexpose { application: "app".parse().unwrap(), endpoints: vec![] }).unwrap();
    assert_eq!(rules(&world), (0, 0), "the last user of a rule takes it along");
    world.run(Command::Expose { application: "app".parse().unwrap(), endpoints: BTreeMap::new() }).unwrap();
    mode(&mut world, "none");
    assert_eq!(rules(&world), (0, 0));
    mode(&mut world, "instance");
    assert_eq!(rules(&world), (2, 0));
}
