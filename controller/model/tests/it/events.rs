//! Custom events that charms schedule (decision 0017).

use std::collections::BTreeMap;

use periapt_host_api::{
    ErrorCode, EventId, Refusal,
    command::{Command, Force},
    pending::{Condition, MAX_CONDITIONS, MAX_DATA_BYTES, MAX_PENDING, PendingEvent},
};

use crate::world::{World, unit};

fn world() -> World {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    world
}

fn event() -> PendingEvent {
    PendingEvent {
        name: "look".into(),
        data: "null".into(),
        asked_at: Default::default(),
        after_ms: Some(60_000),
        conditions: Vec::new(),
    }
}

fn emit(world: &mut World, events: impl IntoIterator<Item = (u64, PendingEvent)>) -> Result<(), Refusal> {
    let emit: BTreeMap<_, _> = events.into_iter().map(|(id, event)| (EventId(id), event)).collect();
    world.commit("app/0", |commit| commit.effects.events.emit = emit).map(|_| ())
}

fn pending(world: &World) -> Vec<u64> {
    let view = world.view("a1");
    let events = view.events.get(&unit("app/0"));
    events.into_iter().flat_map(|events| events.events.keys().map(|id| id.0)).collect()
}

#[test]
fn what_is_asked_for_is_seen_by_the_units_own_runner_until_it_was_told_or_taken_back() {
    let mut world = world();
    world.agent("a2");
    emit(&mut world, [(0, event()), (1, event()), (3, event()), (4, event())]).unwrap();
    assert_eq!(pending(&world), [0, 1, 3, 4], "number 2 was taken back in its own hook");
    assert!(world.view("a2").events.is_empty());
    world.commit("app/0", |commit| commit.transitions.told_event = Some(EventId(1))).unwrap();
    world.commit("app/0", |commit| commit.effects.events.cancel = vec![EventId(0), EventId(9)]).unwrap();
    let cancel = |event| Command::CancelEvent { unit: unit("app/0"), event: EventId(event) };
    world.run(cancel(3)).unwrap();
    assert_eq!(world.run(cancel(3)).unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(pending(&world), [4]);
    world.commit("app/0", |commit| commit.transitions.told_event = Some(EventId(4))).unwrap();
    assert_eq!(pending(&world), Vec::<u64>::new());
    assert_eq!(world.view("a1").events[&unit("app/0")].next, EventId(5), "numbers are not used again");
}

#[test]
fn what_is_wrong_or_too_much_is_refused_whole() {
    let mut world = world();
    emit(&mut world, [(0, event())]).unwrap();
    let with = |change: &dyn Fn(&mut PendingEvent)| {
        let mut event = event();
        change(&mut event);
        event
    };
    for (event, message) in [
        (with(&|event| event.name = "install".into()), "the name of a hook"),
        (with(&|event| event.name = "A".into()), "no name of an event"),
        (with(&|event| event.data = "x".repeat(MAX_DATA_BYTES + 1)), "data takes 16385 bytes"),
        (with(&|event| event.after_ms = None), "needs a time or a condition"),
        (with(&|event| event.after_ms = Some(999)), "is put off by"),
        (
            with(&|event| event.conditions = vec![Condition::Leader { seen: None }; MAX_CONDITIONS + 1]),
            "has 9 conditions",
        ),
    ] {
        let refusal = emit(&mut world, [(1, self::event()), (2, event)]).unwrap_err();
        assert!(refusal.message.contains(message), "{refusal}");
        assert_eq!(refusal.code, ErrorCode::BadRequest, "{refusal}");
    }
    let refusal = emit(&mut world, [(0, event())]).unwrap_err();
    assert!(refusal.message.contains("next event has number 1"), "{refusal}");

    let many = (1..=MAX_PENDING as u64).map(|id| (id, event()));
    let refusal = emit(&mut world, many).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::QuotaExceeded, "{refusal}");
    let large = with(&|event| event.data = format!("\"{}\"", "x".repeat(16_000)));
    let refusal = emit(&mut world, (1..30).map(|id| (id, large.clone()))).unwrap_err();
    assert!(refusal.message.contains("at most 262144"), "{refusal}");
    assert_eq!(pending(&world), [0]);
}

#[test]
fn they_go_with_their_unit() {
    let mut world = world();
    emit(&mut world, [(0, event())]).unwrap();
    world
        .run(Command::RemoveUnit {
            unit: unit("app/0"),
            force: Some(Force { max_wait: 0 }),
            storage: Default::default(),
        })
        .unwrap();
    world.settle();
    assert!(world.state().unit(&unit("app/0")).is_none());
    assert_eq!(world.state().units_with_events().count(), 0);
}
