//! Properties that hold whatever happens in the model, in whatever order, with hooks that fail and runs that are
//! lost in between.

use std::collections::BTreeMap;

use periapt_host_api::{
    RelationId, UnitName,
    command::ResolveMode,
    event::{Event, MAX_BATCH_MEMBERS},
    record::{HookStep, Operation},
    status::Life,
};
use periapt_uniter::{Decision, HookEnd};
use proptest::prelude::*;

use crate::World;

/// Something that happens. Relations 0 (peers), 1 and 2 and three remote units of each are all there is, so that
/// changes meet.
#[derive(Debug, Clone)]
enum Change {
    /// The unit takes some steps.
    Steps(usize),
    /// A hook is decided, something happens while it runs, and its outcome is lost or committed.
    While(Box<Change>, bool),
    Relate(u32),
    Join(u32, u32),
    Leave(u32, u32),
    Write(u32, u32),
    WriteApplication(u32),
    EndRelation(u32),
    Suspend(u32, bool),
    RemoveByForce(u32),
    Configure(u8),
    Charm(u64, bool),
    Lead(bool),
    /// The leader's lease lapsed; the next claim is still to be answered.
    LoseLeader,
    LeaderSettings(u64),
    Reboot(u8),
    Fail(&'static str),
    Fix,
    Resolve(bool),
    Advance(i64),
    Die,
}

fn simple_change() -> impl Strategy<Value = Change> {
    let relation = 0..3u32;
    let unit = 1..4u32;
    let hook = prop::sample::select(vec![
        "install",
        "config-changed",
        "start",
        "upgrade-charm",
        "leader-elected",
        "e1-relation-created",
        "e1-relation-joined",
        "e1-relation-changed",
        "e1-relation-departed",
        "e1-relation-batch",
        "e1-relation-broken",
        "deploy",
    ]);
    prop_oneof![
        8 => (1..12usize).prop_map(Change::Steps),
        4 => relation.clone().prop_map(Change::Relate),
        6 => (relation.clone(), unit.clone()).prop_map(|(id, unit)| Change::Join(id, unit)),
        4 => (relation.clone(), unit.clone()).prop_map(|(id, unit)| Change::Leave(id, unit)),
        4 => (relation.clone(), unit).prop_map(|(id, unit)| Change::Write(id, unit)),
        2 => relation.clone().prop_map(Change::WriteApplication),
        1 => (1..3u32).prop_map(Change::EndRelation),
        2 => (1..3u32, any::<bool>()).prop_map(|(id, on)| Change::Suspend(id, on)),
        1 => relation.prop_map(Change::RemoveByForce),
        2 => (0..3u8).prop_map(Change::Configure),
        1 => (1..4u64, any::<bool>()).prop_map(|(version, force)| Change::Charm(version, force)),
        2 => any::<bool>().prop_map(Change::Lead),
        1 => Just(Change::LoseLeader),
        1 => (0..4u64).prop_map(Change::LeaderSettings),
        1 => (0..3u8).prop_map(Change::Reboot),
        2 => hook.prop_map(Change::Fail),
        2 => Just(Change::Fix),
        2 => any::<bool>().prop_map(Change::Resolve),
        2 => (1..400i64).prop_map(Change::Advance),
        1 => Just(Change::Die),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => simple_change(),
        1 => (simple_change(), any::<bool>()).prop_map(|(inner, kept)| Change::While(Box::new(inner), kept)),
    ]
}

fn remote(relation: u32, unit: u32) -> String {
    match relation {
        0 => format!("a/{unit}"),
        _ => format!("r{relation}x/{unit}"),
    }
}

/// Makes a change, if it is possible as things stand.
fn apply(world: &mut World, change: Change) {
    if !world.view.units.contains_key(&world.unit) {
        return;
    }
    let there = |world: &World, id: u32| {
        world.view.relations.get(&RelationId(id)).is_some_and(|relation| relation.life != Life::Dead)
    };
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
                if !matches!(*inner, Change::Steps(_)) {
                    apply(world, *inner);
                }
                if kept {
                    world.end(&run, HookEnd::Handled { status_set: false });
                }
            }
        }
        Change::Relate(id) if !there(world, id) && !world.removed.contains(&RelationId(id)) => {
            let remote = (id > 0).then(|| format!("r{id}x"));
            world.relate(id, &format!("e{id}"), remote.as_deref());
        }
        Change::Join(id, unit) if there(world, id) && world.relation(id).life == Life::Alive => {
            world.join(id, &remote(id, unit), 0);
        }
        Change::Leave(id, unit) if there(world, id) => world.leave(id, &remote(id, unit)),
        Change::Write(id, unit) if there(world, id) => {
            let version = world.view.bags.len() as u64 + u64::from(unit) + world.record().seq;
            world.write(id, &remote(id, unit), version);
        }
        Change::WriteApplication(id) if there(world, id) => {
            let version = world.record().seq;
            let application = remote(id, 1).split_once('/').unwrap().0.to_owned();
            world.write(id, &application, version);
        }
        Change::EndRelation(id) if there(world, id) => world.relation(id).life = Life::Dying,
        Change::Suspend(id, on) if there(world, id) => world.relation(id).suspended = on,
        // Peers are related for as long as their application is there (G14).
        Change::RemoveByForce(id) if there(world, id) && (id > 0 || world.me().life != Life::Alive) => {
            world.remove_by_force(id)
        }
        Change::Configure(settings) => world.configure(&settings.to_string()),
        Change::Charm(version, force) => world.want_charm(version, force),
        Change::Lead(own) => world.lead_by(if own { "a/0" } else { "a/1" }),
        Change::LoseLeader => world.lead_by_nobody(),
        Change::LeaderSettings(version) => world.application().leader_settings_version = version,
        Change::Reboot(boot) => world.put_machine(&format!("boot-{boot}"), "addresses-1"),
        Change::Fail(hook) => {
            world.failing.insert(hook.to_owned());
        }
        Change::Fix => world.failing.clear(),
        Change::Resolve(retry) => {
            let failed = matches!(
                world.record().operation,
                Operation::Hook { step: HookStep::Failed(_), .. } | Operation::DeployFailed { .. }
            );
            if failed {
                world.resolved(if retry { ResolveMode::Retry } else { ResolveMode::NoRetry });
            }
        }
        Change::Advance(seconds) => world.advance(seconds),
        Change::Die if world.me().life == Life::Alive => world.die(),
        _ => {}
    }
}

/// What the charm knows of one relation, kept from the events alone.
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
            // Passed over, for its relation is gone (U-16).
            // Or it is told in another form (decision 0016).
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
                assert_ne!(context.relation, RelationId(0), "R-26: peers do not break");
                *known = Known::default();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn r23_r25_u24_hold_in_every_life(changes in prop::collection::vec(change(), 0..80)) {
        let mut world = World::new();
        for change in changes {
            apply(&mut world, change);
        }
        // In the end all is mended, some claim is answered, and the unit comes to rest.
        world.failing.clear();
        if world.application().leader.is_none() {
            world.lead_by("a/1");
        }
        for _ in 0..3 {
            world.advance(400);
            world.settle();
        }
        check_order(&world.committed, &world.passed_over);

        // What the unit was told is what there is to see.
        if let Some(unit) = world.view.units.get(&world.unit) {
            prop_assert_eq!(&unit.record.operation, &Operation::Continue);
            for (id, relation) in &world.view.relations {
                let told = unit.record.relations.get(id);
                let open = relation.life == Life::Alive && !relation.suspended;
                prop_assert_eq!(open, told.is_some_and(|told| told.created), "relation {}", id);
                let seen: Vec<_> = relation.members.keys().filter(|unit| **unit != world.unit).collect();
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
