//! Random sequences of commands, commits and time keep the invariants ([`crate::invariants`]), and end in an empty
//! model after a forced removal of everything.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use periapt_host_api::{
    AgentName, MachineId, ModelUuid, RelationId,
    command::{
        Caller, Command, ControllerCommand, Force, Placement, RefreshWith, RelationSelector, ResolveMode,
    },
    commit::EarlyEffect,
    event::Event,
    status::{Life, WorkloadStatus},
    timing::FAILOVER_AFTER,
    view::View,
};
use periapt_model::{ModelState, Root, WorkerCommand, view};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::{
    invariants::{callers, frames_lead_to_the_view},
    world::{World, deploy_command},
};

/// A random step. Small numbers pick among the existing entities.
#[derive(Debug, Clone)]
enum Step {
    Deploy(u8, u8),
    AddUnits(u8, u8),
    PlaceOnMachine(u8, u8),
    RemoveUnit(u8, Option<u8>),
    RemoveApplication(u8, Option<u8>),
    Integrate(u8, u8),
    RemoveRelation(u8, Option<u8>),
    Refresh(u8, u8),
    Start(u8),
    Fail(u8),
    Resolve(u8),
    Enter(u8, u8),
    Leave(u8, u8),
    Tell(u8, u8, u8, bool),
    Write(u8, u8, u8),
    WriteAsLeader(u8, u8, u8),
    Say(u8, u8),
    Terminate(u8),
    Claim(u8),
    Connect(bool, bool),
    /// The agent is gone for so long that its units go elsewhere.
    Lose(bool),
    Attach(bool),
    /// Goes on in the other model.
    Switch,
    Offer(u8),
    Consume(u8, bool),
    IntegrateAcross(u8, bool),
    Suspend(u8, bool),
    RemoveOffer(u8, Option<u8>),
    RemoveSaas(bool, Option<u8>),
    Advance(u8),
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let n = any::<u8>;
    let force = || prop::option::of(0..90_u8);
    prop_oneof![
        1 => (n(), 0..4_u8).prop_map(|(a, b)| Step::Deploy(a, b)),
        1 => (n(), 1..4_u8).prop_map(|(a, b)| Step::AddUnits(a, b)),
        1 => (n(), n()).prop_map(|(a, b)| Step::PlaceOnMachine(a, b)),
        2 => (n(), force()).prop_map(|(a, b)| Step::RemoveUnit(a, b)),
        1 => (n(), force()).prop_map(|(a, b)| Step::RemoveApplication(a, b)),
        3 => (n(), n()).prop_map(|(a, b)| Step::Integrate(a, b)),
        1 => (n(), force()).prop_map(|(a, b)| Step::RemoveRelation(a, b)),
        1 => (n(), n()).prop_map(|(a, b)| Step::Refresh(a, b)),
        4 => n().prop_map(Step::Start),
        1 => n().prop_map(Step::Fail),
        1 => n().prop_map(Step::Resolve),
        8 => (n(), n()).prop_map(|(a, b)| Step::Enter(a, b)),
        3 => (n(), n()).prop_map(|(a, b)| Step::Leave(a, b)),
        3 => (n(), n(), n(), any::<bool>()).prop_map(|(a, b, c, d)| Step::Tell(a, b, c, d)),
        3 => (n(), n(), 0..3_u8).prop_map(|(a, b, c)| Step::Write(a, b, c)),
        2 => (n(), n(), 0..3_u8).prop_map(|(a, b, c)| Step::WriteAsLeader(a, b, c)),
        1 => (n(), 0..3_u8).prop_map(|(a, b)| Step::Say(a, b)),
        3 => n().prop_map(Step::Terminate),
        2 => n().prop_map(Step::Claim),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(a, b)| Step::Connect(a, b)),
        2 => any::<bool>().prop_map(Step::Lose),
        1 => any::<bool>().prop_map(Step::Attach),
        2 => Just(Step::Switch),
        1 => n().prop_map(Step::Offer),
        1 => (n(), any::<bool>()).prop_map(|(a, b)| Step::Consume(a, b)),
        3 => (n(), any::<bool>()).prop_map(|(a, b)| Step::IntegrateAcross(a, b)),
        1 => (n(), any::<bool>()).prop_map(|(a, b)| Step::Suspend(a, b)),
        1 => (n(), force()).prop_map(|(a, b)| Step::RemoveOffer(a, b)),
        1 => (any::<bool>(), force()).prop_map(|(a, b)| Step::RemoveSaas(a, b)),
        2 => (1..90_u8).prop_map(Step::Advance),
        3 => Just(Step::Settle),
    ]
}

const NAMES: [&str; 4] = ["app", "db", "logging", "other"];

fn name(pick: u8) -> &'static str {
    NAMES[usize::from(pick) % NAMES.len()]
}

/// Returns the name of a consumed offer.
fn consumed(first: bool) -> &'static str {
    if first { "theirs" } else { "others" }
}

fn agent(first: bool) -> &'static str {
    if first { "a1" } else { "a2" }
}

fn pick<T>(items: Vec<T>, pick: u8) -> Option<T> {
    let count = items.len();
    items.into_iter().nth(usize::from(pick).checked_rem(count)?)
}

/// Returns a unit that has a machine.
fn placed(world: &World, by: u8) -> Option<String> {
    let units = world.state().units().filter(|unit| unit.machine.is_some());
    pick(units.map(|unit| unit.name.to_string()).collect(), by)
}

fn relation_of(world: &World, unit: &str, by: u8) -> Option<RelationId> {
    let application = crate::world::unit(unit).application().clone();
    pick(world.state().relations_of(&application).map(|relation| relation.id).collect(), by)
}

fn forced(force: Option<u8>) -> Option<Force> {
    force.map(|seconds| Force { max_wait: u32::from(seconds) })
}

/// Runs a step. Refusals are fine: the test is about the invariants.
fn take(world: &mut World, step: Step) -> Option<()> {
    match step {
        Step::Deploy(by, units) => {
            let (charm, units) = match name(by) {
                "app" | "other" => (world.upload_app(), units),
                "db" => (world.upload(crate::world::DB), units),
                _ => (world.upload(crate::world::LOGGING), 0),
            };
            world.run(deploy_command(charm, name(by), u32::from(units))).ok()?;
        }
        Step::AddUnits(by, count) => {
            let application = name(by).parse().unwrap();
            world
                .run(Command::AddUnits {
                    application,
                    count: u32::from(count),
                    placement: vec![],
                    attach_storage: vec![],
                })
                .ok()?;
        }
        Step::PlaceOnMachine(by, machine) => {
            let machines = world.state().machines().map(|machine| machine.id).collect();
            let placement = vec![Placement::Machine(pick(machines, machine)?)];
            let application = name(by).parse().unwrap();
            world.run(Command::AddUnits { application, count: 1, placement, attach_storage: vec![] }).ok()?;
        }
        Step::RemoveUnit(by, force) => {
            let unit = pick(world.state().units().map(|unit| unit.name.clone()).collect(), by)?;
            world
                .run(Command::RemoveUnit { unit, force: forced(force), storage: Default::default() })
                .ok()?;
        }
        Step::RemoveApplication(by, force) => {
            let application = name(by).parse().unwrap();
            world
                .run(Command::RemoveApplication {
                    application,
                    force: forced(force),
                    storage: Default::default(),
                })
                .ok()?;
        }
        Step::Integrate(a, b) => {
            world.integrate(name(a), name(b)).ok()?;
        }
        Step::RemoveRelation(by, force) => {
            let id = pick(world.state().relations().map(|relation| relation.id).collect(), by)?;
            let relation = RelationSelector::Id(id);
            world.run(Command::RemoveRelation { relation, force: forced(force) }).ok()?;
        }
        Step::Refresh(by, version) => {
            let metadata = format!("{}\n# {}", crate::world::APP, version % 2);
            let charm = world.upload(&metadata);
            let application = name(by).parse().unwrap();
            let (force, with) = (version % 3 == 0, RefreshWith::default());
            world.run(Command::Refresh { application, charm, force, with }).ok()?;
        }
        Step::Start(by) => {
            let unit = placed(world, by)?;
            world.start(&unit);
        }
        Step::Fail(by) => {
            let unit = placed(world, by)?;
            world.fail(&unit, Event::ConfigChanged);
        }
        Step::Resolve(by) => {
            let unit = pick(world.state().units().map(|unit| unit.name.clone()).collect(), by)?;
            world.run(Command::Resolve { unit, mode: ResolveMode::Retry }).ok()?;
        }
        Step::Enter(by, relation) => {
            let unit = placed(world, by)?;
            let relation = relation_of(world, &unit, relation)?;
            world.enter(&unit, relation).ok()?;
        }
        Step::Leave(by, relation) => {
            let unit = placed(world, by)?;
            let relation = relation_of(world, &unit, relation)?;
            world.leave(&unit, relation).ok()?;
        }
        Step::Tell(by, relation, other, joined) => {
            let unit = placed(world, by)?;
            let relation = relation_of(world, &unit, relation)?;
            let members = world.state().members(&relation).map(|(unit, _)| unit.to_string());
            let other = pick(members.collect(), other)?;
            world.tell(&unit, relation, &other, joined);
        }
        Step::Write(by, relation, value) => {
            let unit = placed(world, by)?;
            let relation = relation_of(world, &unit, relation)?;
            let value = if value == 0 { String::new() } else { value.to_string() };
            let write = |commit: &mut periapt_host_api::commit::UnitCommit| {
                commit.effects.bags.entry(relation).or_default().unit.insert("k".into(), value);
            };
            world.commit(&unit, write).ok()?;
        }
        Step::WriteAsLeader(by, relation, value) => {
            let unit = placed(world, by)?;
            let relation = relation_of(world, &unit, relation)?;
            let application = crate::world::unit(&unit).application().clone();
            let term = world.root.leader_term(&world.model, &application);
            let write = |commit: &mut periapt_host_api::commit::UnitCommit| {
                commit.leader_term = term;
                let bags = commit.effects.bags.entry(relation).or_default();
                bags.application.insert("k".into(), value.to_string());
                commit.effects.leader_settings.insert("k".into(), value.to_string());
            };
            world.commit(&unit, write).ok()?;
        }
        Step::Say(by, message) => {
            let unit = placed(world, by)?;
            let message = message.to_string();
            let item = world.item(&unit, EarlyEffect::UnitStatus { status: WorkloadStatus::Active, message });
            world.commit(&unit, |commit| commit.early.push(item)).ok()?;
        }
        Step::Terminate(by) => {
            let dying = world.state().units().filter(|unit| unit.life == Life::Dying);
            let unit = pick(dying.map(|unit| unit.name.to_string()).collect(), by)?;
            world.terminate(&unit).ok()?;
        }
        Step::Claim(by) => {
            let unit = placed(world, by)?;
            world.claim(&unit, 60).ok()?;
        }
        Step::Connect(first, up) => {
            let agent = agent(first).parse().unwrap();
            world.work(if up {
                WorkerCommand::AgentConnected(agent)
            } else {
                WorkerCommand::AgentDisconnected(agent)
            });
        }
        Step::Lose(first) => {
            world.work(WorkerCommand::AgentDisconnected(agent(first).parse().unwrap()));
            world.advance(u32::try_from(FAILOVER_AFTER.as_secs()).unwrap());
            world.settle();
        }
        Step::Attach(first) => {
            world.attach(agent(first));
        }
        Step::Switch => {
            let others = world.root.models().map(|(model, _)| *model).filter(|model| *model != world.model);
            world.model = pick(others.collect(), 0)?;
        }
        Step::Offer(by) => {
            let endpoint = if name(by) == "db" { "server" } else { "web" };
            world.offer(name(by), &[endpoint]).ok()?;
        }
        Step::Consume(by, first) => {
            let others = world.root.models().filter(|(model, _)| **model != world.model);
            let urls: Vec<String> = others
                .flat_map(|(_, state)| state.offers().map(|it| format!("{}.{}", state.model().name, it.name)))
                .collect();
            world.consume(&pick(urls, by)?, Some(consumed(first))).ok()?;
        }
        Step::IntegrateAcross(by, first) => {
            world.integrate(name(by), consumed(first)).ok()?;
        }
        Step::Suspend(by, on) => {
            let relation = pick(world.state().relations().map(|relation| relation.id).collect(), by)?;
            let command = match on {
                true => Command::SuspendRelation { relation, message: "unpaid".into() },
                false => Command::ResumeRelation { relation },
            };
            world.run(command).ok()?;
        }
        Step::RemoveOffer(by, force) => {
            let offer = pick(world.state().offers().map(|offer| offer.name.clone()).collect(), by)?;
            world.run(Command::RemoveOffer { offer, force: forced(force) }).ok()?;
        }
        Step::RemoveSaas(first, force) => {
            let application = consumed(first).parse().unwrap();
            world.run(Command::RemoveSaas { application, force: forced(force) }).ok()?;
        }
        Step::Advance(seconds) => world.advance(u32::from(seconds)),
        Step::Settle => world.settle(),
    }
    Some(())
}

/// Returns a world with two agents and some applications with units, of which a third agent has one.
fn populated() -> World {
    let mut world = World::new();
    world.agent("a2");
    for name in ["app", "db", "logging"] {
        let by = NAMES.iter().position(|known| *known == name).unwrap();
        take(&mut world, Step::Deploy(u8::try_from(by).unwrap(), 2));
    }
    world.settle();
    world.agent("a3");
    let (application, placement) = ("app".parse().unwrap(), vec![Placement::Agent("a3".parse().unwrap())]);
    world.run(Command::AddUnits { application, count: 1, placement, attach_storage: vec![] }).unwrap();
    world.agent("idle");
    // The other model offers its `db` to this one, and this one to the other.
    let other = world.other_model("n", &["a1", "a2", "a3", "idle"]);
    world.offer("db", &["server"]).unwrap();
    world.within(other, |world| {
        world.deploy_app("app", 1);
        world.deploy_db("db", 1);
        world.offer("db", &["server"]).unwrap();
        world.consume("m.db", Some("theirs")).unwrap();
    });
    world.consume("n.db", Some("theirs")).unwrap();
    world
}

/// Returns the agents of all machines.
fn hosts(root: &Root) -> BTreeMap<(ModelUuid, MachineId), AgentName> {
    let machines = |(uuid, state): (&ModelUuid, &Arc<ModelState>)| {
        let machines = state.machines().map(|machine| ((*uuid, machine.id), machine.agent.clone()));
        machines.collect::<Vec<_>>()
    };
    root.models().flat_map(machines).collect()
}

/// The properties below say something about failover only if units move in random lives, and go on there.
#[test]
fn random_lives_move_units_to_other_agents() {
    let mut runner = TestRunner::deterministic();
    let lives = prop::collection::vec(step(), 60..80);
    let (mut moved, mut went_on) = (0, 0);
    for _ in 0..24 {
        let mut world = populated();
        let mut elsewhere = BTreeSet::new();
        for step in lives.new_tree(&mut runner).unwrap().current() {
            let before = world.root.clone();
            take(&mut world, step);
            let hosts_before = hosts(&before);
            for (machine, agent) in hosts(&world.root) {
                if hosts_before.get(&machine).is_some_and(|before| *before != agent) {
                    moved += 1;
                    elsewhere.insert(machine);
                }
            }
            went_on += elsewhere
                .iter()
                .filter_map(|(uuid, machine)| {
                    let record = |root: &Root| {
                        let units = root.model(uuid)?.units_on(machine);
                        Some(units.map(|unit| unit.record.clone()).collect::<Vec<_>>())
                    };
                    Some(record(&before)? != record(&world.root)?)
                })
                .filter(|differs| *differs)
                .count();
        }
    }
    assert!(moved >= 24 && went_on >= 24, "{moved} machines moved, {went_on} steps of units there");
}

/// The properties below are only worth something if the views of some dozen random lives are of every kind.
#[test]
fn random_lives_meet_watchers_of_every_kind() {
    let mut runner = TestRunner::deterministic();
    let lives = prop::collection::vec(step(), 60..80);
    let mut kinds = BTreeSet::new();
    for _ in 0..24 {
        let mut world = populated();
        for step in lives.new_tree(&mut runner).unwrap().current() {
            take(&mut world, step);
            for caller in callers(&world.root, &world) {
                kinds.extend(kind(&caller, &view(&world.root, &caller)));
            }
        }
    }
    let wanted = [
        "an agent",
        "no unit",
        "one unit that leads",
        "one unit that does not lead",
        "several units, the leader among them",
        "several units without the leader",
        "the controller",
        "a user",
    ];
    assert_eq!(kinds, BTreeSet::from(wanted));
}

/// Returns the kind of a caller, by the number of its units and the leadership among them.
fn kind(caller: &Caller, view: &View) -> Option<&'static str> {
    match caller {
        Caller::User(_) => return Some("a user"),
        Caller::Worker => return Some("the controller"),
        Caller::Agent(_) => return Some("an agent"),
        Caller::Runner { .. } => {}
    }
    let Some(first) = view.units.keys().next() else { return Some("no unit") };
    let leader = view.applications.get(first.application())?.leader.as_ref()?;
    Some(match (view.units.len(), view.units.contains_key(&leader.unit)) {
        (1, true) => "one unit that leads",
        (1, false) => "one unit that does not lead",
        (_, true) => "several units, the leader among them",
        (_, false) => "several units without the leader",
    })
}

/// Runs a few dozen cases by default; `PROPTEST_CASES` sets another number.
fn config() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(48),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_lives_hold_together_and_can_be_ended(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = populated();
        for step in steps {
            take(&mut world, step);
            world.status();
        }
        // Every state has a way on: all that is stuck can be removed by force.
        world.settle();
        let models: Vec<_> = world.root.models().map(|(model, _)| *model).collect();
        for model in models {
            let force = Some(Force { max_wait: 5 });
            world.control(ControllerCommand::DestroyModel { model, force, storage: None }).unwrap();
            world.settle();
            world.advance(90);
            world.settle();
            prop_assert!(world.root.model(&model).is_none(), "the model did not go");
        }
    }

    /// A slow reader's frame has all changes since its last one.
    #[test]
    fn one_frame_of_many_changes_leads_to_the_view_as_well(
        steps in prop::collection::vec(step(), 20..60),
        slowness in 2..15_usize,
    ) {
        let mut world = populated();
        for since_the_last in steps.chunks(slowness) {
            let before = world.root.clone();
            for step in since_the_last {
                take(&mut world, step.clone());
            }
            frames_lead_to_the_view(&before, &world);
        }
    }
}
