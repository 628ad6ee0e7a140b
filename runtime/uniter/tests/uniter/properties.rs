//! Properties that hold for any changes of the model in any order, with failing hooks and lost runs in between.

use std::collections::BTreeMap;

use periapt_host_api::{
    RelationId, UnitName,
    command::ResolveMode,
    event::{Event, MAX_BATCH_MEMBERS},
    record::{HookStep, Operation},
    status::Life,
    view::Membership,
};
use periapt_uniter::{Decision, HookEnd};
use proptest::prelude::*;

use crate::World;

/// The endpoints of the unit, each with the application at the other end: peers, an application of the model, and an
/// application that another model offers.
const ENDS: [(&str, &str); 3] = [("ring", "a"), ("db", "b"), ("web", "o")];

/// The most other units in a relation; few, so that changes meet.
const MOST_MEMBERS: usize = 3;

/// A change. A number stands for the relation of that entry in [`ENDS`].
#[derive(Debug, Clone)]
enum Change {
    /// The unit takes some steps.
    Steps(usize),
    /// A change happens during a hook, whose outcome is then lost or committed.
    While(Box<Change>, bool),
    Relate(usize),
    /// Another unit enters the scope.
    Join(usize),
    /// An operator removes a member. If the flag is true, the member also leaves the scope.
    Leave(usize, usize, bool),
    Write(usize, usize),
    WriteApplication(usize),
    EndRelation(usize),
    /// Suspends or resumes the relation across models.
    Suspend(bool),
    RemoveByForce(usize),
    Configure(u8),
    Charm(u64, bool),
    Lead(bool),
    /// The leader's lease lapses, and the next claim is not answered yet.
    LoseLeader,
    LeaderSettings,
    Reboot,
    Fail(&'static str),
    Fix,
    Resolve(bool),
    Advance(u64),
    Die,
}

fn simple_change() -> impl Strategy<Value = Change> {
    let relation = 0..3usize;
    let unit = 0..MOST_MEMBERS;
    let hook = prop::sample::select(vec![
        "install",
        "config-changed",
        "start",
        "upgrade-charm",
        "leader-elected",
        "db-relation-created",
        "db-relation-joined",
        "db-relation-changed",
        "db-relation-departed",
        "db-relation-batch",
        "db-relation-broken",
        "web-relation-joined",
        "web-relation-broken",
        "deploy",
    ]);
    prop_oneof![
        8 => (1..12usize).prop_map(Change::Steps),
        4 => (1..3usize).prop_map(Change::Relate),
        6 => relation.clone().prop_map(Change::Join),
        4 => (relation.clone(), unit.clone(), any::<bool>()).prop_map(|(end, unit, gone)| Change::Leave(end, unit, gone)),
        4 => (relation.clone(), unit).prop_map(|(end, unit)| Change::Write(end, unit)),
        2 => relation.prop_map(Change::WriteApplication),
        1 => (1..3usize).prop_map(Change::EndRelation),
        2 => any::<bool>().prop_map(Change::Suspend),
        1 => (1..3usize).prop_map(Change::RemoveByForce),
        2 => (0..3u8).prop_map(Change::Configure),
        1 => (1..4u64, any::<bool>()).prop_map(|(version, force)| Change::Charm(version, force)),
        2 => any::<bool>().prop_map(Change::Lead),
        1 => Just(Change::LoseLeader),
        1 => Just(Change::LeaderSettings),
        1 => Just(Change::Reboot),
        2 => hook.prop_map(Change::Fail),
        2 => Just(Change::Fix),
        2 => any::<bool>().prop_map(Change::Resolve),
        2 => (1..400u64).prop_map(Change::Advance),
        1 => Just(Change::Die),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => simple_change(),
        1 => (simple_change(), any::<bool>()).prop_map(|(inner, kept)| Change::While(Box::new(inner), kept)),
    ]
}

/// Returns the other units in a relation's scope, as the unit's agent sees them.
fn members(world: &World, endpoint: &str) -> Vec<String> {
    let members = world.relation(endpoint).into_iter().flat_map(|relation| relation.members.keys());
    members.filter(|unit| *unit != world.unit).map(|unit| unit.to_string()).collect()
}

/// Makes a change if it is possible now.
fn apply(world: &mut World, change: Change) {
    if !world.view.units.contains_key(&world.unit) {
        return;
    }
    match change {
        Change::Steps(count) => {
            for _ in 0..count {
                if world.step().is_some() {
                    break;
                }
            }
        }
        Change::While(inner, kept) => {
            if let Decision::RunHook(run) = world.decide() {
                world.begin(&run);
                // A reboot ends any running hook.
                let kept = kept && !matches!(*inner, Change::Reboot);
                // The unit's own steps come after the hook's end.
                if !matches!(*inner, Change::Steps(_) | Change::While(..) | Change::LeaderSettings) {
                    apply(world, *inner);
                }
                if kept && world.view.units.contains_key(&world.unit) {
                    world.end(&run, HookEnd::Handled { status_set: false });
                }
            }
        }
        Change::Relate(end) => {
            let (own, remote) = ENDS[end];
            let there = world.relation(own).is_some_and(|relation| relation.life != Life::Dead);
            if !there {
                world.relate(own, remote);
            }
        }
        Change::Join(end) => {
            let (own, remote) = ENDS[end];
            if world.is_open(own) && members(world, own).len() < MOST_MEMBERS {
                let unit = world.add_unit(remote);
                world.join(own, &unit.to_string());
            }
        }
        Change::Leave(end, nth, at_once) => {
            let own = ENDS[end].0;
            let Some(unit) = members(world, own).into_iter().nth(nth) else { return };
            if !at_once || world.is_open(own) {
                world.remove(&unit);
            }
            if at_once {
                world.run_to_rest(&unit);
            }
        }
        Change::Write(end, nth) => {
            let own = ENDS[end].0;
            let unit = members(world, own).into_iter().nth(nth);
            // The other model may have ended its side of a dying relation.
            if let Some(unit) = unit.filter(|_| own != "web" || world.is_open(own)) {
                world.write(own, &unit);
            }
        }
        Change::WriteApplication(end) => {
            let (own, remote) = ENDS[end];
            let leader = world.leader_of(remote).map(|leader| leader.to_string());
            let there = leader.is_some_and(|leader| members(world, own).contains(&leader));
            if there && (own != "web" || world.is_open(own)) {
                world.write(own, remote);
            }
        }
        Change::EndRelation(end) if world.is_open(ENDS[end].0) => world.remove_relation(ENDS[end].0),
        Change::Suspend(on) => {
            let alive = world.relation("web").is_some_and(|relation| relation.life == Life::Alive);
            if alive {
                world.suspend("o", on);
            }
        }
        Change::RemoveByForce(end) => {
            let own = ENDS[end].0;
            if world.relation(own).is_some_and(|relation| relation.life != Life::Dead) {
                world.remove_by_force(own);
            }
        }
        Change::Configure(settings) => world.configure(&settings.to_string()),
        Change::Charm(version, force) => world.want_charm(version, force),
        Change::Lead(own) => {
            let leader = match own {
                // A dying unit becomes no leader.
                true if world.me().life == Life::Alive => world.unit.clone(),
                _ => world.another(),
            };
            world.lead_by(&leader.to_string());
        }
        Change::LoseLeader => world.lead_by_nobody(),
        Change::LeaderSettings if world.leader_lives() => world.write_leader_settings(),
        Change::Reboot => world.reboot(),
        Change::Fail(hook) => {
            world.failing.insert(hook.to_owned());
        }
        Change::Fix => world.failing.clear(),
        Change::Resolve(retry) => {
            let failed = matches!(
                world.record().operation,
                Operation::Hook { step: HookStep::Failed(_), .. } | Operation::DeployFailed { .. }
            );
            // A second answer is refused until the unit has used the first.
            if failed && world.me().resolved.is_none() {
                world.resolved(if retry { ResolveMode::Retry } else { ResolveMode::NoRetry });
            }
        }
        Change::Advance(seconds) => world.advance(seconds),
        Change::Die if world.me().life == Life::Alive => world.die(),
        _ => {}
    }
}

/// Creates a new unit of a charm with peers, and the applications for its relations.
fn beginning() -> World {
    let mut world = World::peered();
    world.application_for("b");
    world.offer_from_abroad("o");
    world
}

/// The charm's knowledge of one relation, from the events alone.
#[derive(Default)]
struct Known {
    created: bool,
    members: Vec<UnitName>,
    owed: Option<UnitName>,
}

/// Checks the events of one unit's life against the rules that charms rely on.
fn check_order(events: &[Event], gone_skips: &[usize]) {
    let mut relations: BTreeMap<RelationId, Known> = BTreeMap::new();
    let (mut started, mut led) = (false, false);
    for (index, event) in events.iter().enumerate() {
        if index > 0 && events[index - 1] == Event::ConfigChanged && !started {
            assert_eq!(
                *event,
                Event::Start,
                "U-24: nothing comes between the first config-changed and start"
            );
        }
        started |= *event == Event::Start;
        led |= matches!(event, Event::LeaderElected | Event::LeaderSettingsChanged);
        assert!(led || *event != Event::ConfigChanged, "U-4: who leads is told before config-changed");
        if index > 0 {
            assert_ne!(events[index - 1], Event::Remove, "remove is the last");
        }
        if gone_skips.contains(&index) {
            // The event was skipped because its relation is gone (U-16), or because it is told in another form
            // (decision 0016).
            if let Some(context) = event.relation() {
                relations.entry(context.relation).or_default().owed = None;
            }
            continue;
        }
        let Some(context) = event.relation() else { continue };
        let known = relations.entry(context.relation).or_default();
        match (known.owed.take(), event) {
            (Some(owed), Event::RelationBatch { batch, .. }) => {
                let told = batch.changed.contains(&owed) || batch.departed.contains(&owed);
                assert!(told, "R-23: the batch after a joined tells of {owed}");
            }
            (Some(owed), event) => {
                let expected = Event::RelationChanged { relation: context.clone(), remote_unit: Some(owed) };
                assert_eq!(*event, expected, "R-23: changed follows joined");
                continue;
            }
            (None, _) => {}
        }
        assert_eq!(known.created, !matches!(event, Event::RelationCreated(_)), "R-28: {event}");
        match event {
            Event::RelationCreated(_) => known.created = true,
            Event::RelationJoined { remote_unit, .. } => {
                assert!(!known.members.contains(remote_unit), "joined twice: {remote_unit}");
                known.members.push(remote_unit.clone());
                known.owed = Some(remote_unit.clone());
            }
            Event::RelationChanged { remote_unit: Some(unit), .. } => {
                assert!(known.members.contains(unit), "changed without being a member: {unit}");
            }
            Event::RelationChanged { remote_unit: None, .. } => {}
            Event::RelationDeparted { remote_unit, .. } => {
                let before = known.members.len();
                known.members.retain(|member| member != remote_unit);
                assert_eq!(known.members.len() + 1, before, "departed without being a member: {remote_unit}");
            }
            Event::RelationBatch { batch, .. } => {
                assert!(!batch.is_empty() && batch.members().count() <= MAX_BATCH_MEMBERS);
                for joined in &batch.joined {
                    assert!(!known.members.contains(joined), "joined twice: {joined}");
                    known.members.push(joined.clone());
                }
                for changed in &batch.changed {
                    assert!(known.members.contains(changed), "changed without being a member: {changed}");
                }
                for departed in &batch.departed {
                    let before = known.members.len();
                    known.members.retain(|member| member != departed);
                    assert_eq!(
                        known.members.len() + 1,
                        before,
                        "departed without being a member: {departed}"
                    );
                }
            }
            _ => {
                assert!(known.members.is_empty(), "R-25: all departs precede broken");
                assert_ne!(context.endpoint.as_str(), "ring", "R-26: peers do not break");
                *known = Known::default();
            }
        }
    }
}

fn config() -> ProptestConfig {
    // Each case is a model with three agents.
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(100), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn r23_r25_u24_hold_in_every_life(changes in prop::collection::vec(change(), 0..80)) {
        let mut world = beginning();
        for change in changes {
            apply(&mut world, change);
        }
        // At the end no hook fails, a claim is answered, and the unit comes to rest.
        world.failing.clear();
        for _ in 0..3 {
            if world.view.units.contains_key(&world.unit) && world.leader().is_none() {
                let other = world.another();
                world.lead_by(&other.to_string());
            }
            world.advance(400);
            world.settle();
        }
        check_order(&world.committed, &world.passed_over);

        // The unit was told exactly the visible state.
        if let Some(unit) = world.view.units.get(&world.unit) {
            prop_assert_eq!(&unit.record.operation, &Operation::Continue);
            for (id, relation) in &world.view.relations {
                let told = unit.record.relations.get(id);
                let open = relation.life == Life::Alive && !relation.suspended;
                prop_assert_eq!(open, told.is_some_and(|told| told.created), "relation {}", id);
                let joined = relation.members.iter().filter(|(_, membership)| **membership == Membership::Joined);
                let seen: Vec<_> = joined.map(|(unit, _)| unit).filter(|unit| *unit != world.unit).collect();
                let known: Vec<_> = told.into_iter().flat_map(|told| told.members.keys()).collect();
                prop_assert!(!open || seen == known, "relation {}: {:?} and {:?}", id, seen, known);
            }
            let gone = |id: &&RelationId| !world.view.relations.contains_key(*id);
            prop_assert_eq!(unit.record.relations.keys().find(gone), None);
        } else {
            prop_assert!(matches!(world.decide(), Decision::Stop));
        }
    }
}
