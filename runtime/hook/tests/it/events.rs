//! Later events: requested, cancelled, listed, refused.

use std::collections::BTreeMap;

use periapt_hook::{BagSelector, CallError, DueCondition, LaterEvent};
use periapt_host_api::{
    EventId,
    event::Event,
    pending::{Condition, MAX_DATA_BYTES, MAX_PENDING, PendingEvent, digest},
    relation::BagOwner,
    view::EventsView,
};

use crate::world::{DB, RING, World, changed, now, ready, unit};

fn event(name: &str) -> PendingEvent {
    PendingEvent {
        name: name.into(),
        data: "1".into(),
        asked_at: Default::default(),
        after_ms: Some(5_000),
        conditions: Vec::new(),
    }
}

/// Returns the world of a unit with pending events 3 and 4, of five that it requested.
fn waiting() -> World {
    let mut world = World::new();
    let events = BTreeMap::from([(EventId(3), event("three")), (EventId(4), event("four"))]);
    let view = EventsView { unit: unit("a/0"), next: EventId(5), events };
    world.inputs.view.events.insert(unit("a/0"), view);
    world
}

fn later(name: &str, when: Vec<DueCondition>) -> LaterEvent {
    LaterEvent { name: name.into(), data: None, after_ms: Some(60_000), when }
}

#[test]
fn what_is_asked_for_is_numbered_on_and_listed_and_can_be_taken_back() {
    let mut hook = waiting().start();
    hook.check(&[
        ("emit-later retry --after 10m", "5\n"),
        ("emit-later look --when-config title --data [1]", "6\n"),
        ("emit-cancel 3", ""),
        ("emit-cancel 5", ""),
        (
            "emit-list --format json",
            "{\"4\":{\"after-ms\":5000,\"data\":\"1\",\"name\":\"four\"},\
             \"6\":{\"data\":\"[1]\",\"name\":\"look\",\"when\":[{\"config\":\"title\"}]}}\n",
        ),
        ("emit-later last --when-leader", "7\n"),
    ]);
    hook.check_errors(&[("emit-cancel 3", 1, "the unit waits for no event 3")]);
    let listed: Vec<EventId> = hook.context.pending_events().into_iter().map(|(id, _)| id).collect();
    assert_eq!(listed, [EventId(4), EventId(6), EventId(7)]);
    let effects = hook.context.finish().effects;
    assert_eq!(effects.events.cancel, [EventId(3)]);
    assert_eq!(effects.events.emit.keys().copied().collect::<Vec<_>>(), [EventId(6), EventId(7)]);
    assert_eq!(effects.events.emit[&EventId(7)].conditions, [Condition::Leader { seen: Some(unit("a/1")) }]);
}

#[test]
fn a_condition_keeps_what_the_hook_sees() {
    let mut hook = World::new().event(changed("b/0")).start();
    hook.check(&[
        ("emit-later one --when-relation db:1:version", "0\n"),
        ("emit-later two --when-relation 1:host --of b/0", "1\n"),
        ("emit-later three --when-relation ring:2:password --of a", "2\n"),
    ]);
    let effects = hook.context.finish().effects;
    let condition = |id: u64| effects.events.emit[&EventId(id)].conditions[0].clone();
    let expected = |relation, owner, key: &str, seen: &str| Condition::Relation {
        relation,
        owner,
        key: key.into(),
        seen: digest(Some(&seen.to_owned())),
    };
    assert_eq!(condition(0), expected(DB, BagOwner::Application("b".parse().unwrap()), "version", "8"));
    assert_eq!(condition(1), expected(DB, BagOwner::Unit(unit("b/0")), "host", "10.0.0.4"));
    assert_eq!(condition(2), expected(RING, BagOwner::Application("a".parse().unwrap()), "password", "p"));
}

#[test]
fn what_may_not_be_read_is_not_waited_for() {
    let mut hook = World::new().start();
    hook.check_errors(&[
        ("emit-later x --when-relation 1:database --of a", 1, "permission denied"),
        ("emit-later x --when-relation 1:secret --of a/1", 1, "permission denied"),
        ("emit-later x --when-relation 1:key --of stranger", 1, "permission denied"),
        ("emit-later x --when-relation 9:key", 1, "relation not found"),
        (
            "emit-later x --when-relation 1:key --of a/0",
            2,
            "a unit knows what it writes itself: wait for a bag that others write",
        ),
        ("emit-later x --when-config nothing", 1, "unknown option \"nothing\""),
    ]);
    let mut hook = World::leader().start();
    let own = DueCondition::Relation {
        relation: DB,
        bag: BagSelector::Application("a".into()),
        key: "database".into(),
    };
    let refused = ready(hook.context.emit_later(now(), &later("x", vec![own])));
    assert!(matches!(refused, Err(CallError::InvalidArgument(_))), "{refused:?}");
    assert!(hook.context.finish().effects.is_empty());
}

#[test]
fn each_mistake_has_its_message() {
    let mut hook = World::new().start();
    let long = "x".repeat(MAX_DATA_BYTES - 1);
    hook.check_errors(&[
        ("emit-later", 2, "no event name specified"),
        ("emit-later x", 2, "say when: after a time, or when something changes"),
        (
            "emit-later x --after soon",
            2,
            "invalid value \"soon\" for option --after: write 90s, 10m or 1h30m",
        ),
        ("emit-later x --after 999ms", 2, "an event can be put off by one second or more"),
        ("emit-later x --after 9000h", 2, "an event can be put off by 8784 hours, a year, or less"),
        (
            "emit-later install --after 1m",
            2,
            "\"install\" is the name of a hook; give the event a name of the charm's own",
        ),
        (
            "emit-later x --after 1m --of b",
            2,
            "--of names whose settings --when-relation watches: give --when-relation too",
        ),
        (
            "emit-later x --when-relation db",
            2,
            "invalid value \"db\" for option --when-relation: write ID:KEY or NAME:ID:KEY",
        ),
        ("emit-later x --when-relation 1:", 2, "a key must take 1 to 256 bytes"),
        ("emit-cancel", 2, "no event number specified"),
        ("emit-cancel x", 2, "invalid event number \"x\""),
    ]);
    for (data, message) in [("{", "not JSON"), (&format!("\"{long}\""), "at most 16384")] {
        let later = LaterEvent { data: Some(data.to_owned()), ..later("x", Vec::new()) };
        let error = ready(hook.context.emit_later(now(), &later)).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    let deep = LaterEvent { data: Some("[".repeat(5_000)), ..later("x", Vec::new()) };
    assert!(ready(hook.context.emit_later(now(), &deep)).is_err(), "and nothing overflows");
    let many = later("x", vec![DueCondition::Leader; 9]);
    let error = ready(hook.context.emit_later(now(), &many)).unwrap_err();
    assert!(error.to_string().contains("9 conditions"), "{error}");
}

#[test]
fn a_unit_waits_for_so_many_and_no_more() {
    let mut hook = waiting().start();
    let later = later("x", Vec::new());
    for _ in 2..MAX_PENDING {
        ready(hook.context.emit_later(now(), &later)).unwrap();
    }
    let error = ready(hook.context.emit_later(now(), &later)).unwrap_err();
    assert_eq!(error, CallError::LimitExceeded("the unit waits for 64 events; no more are allowed".into()));
    hook.context.cancel_event(EventId(3)).unwrap();
    ready(hook.context.emit_later(now(), &later)).unwrap();
}

#[test]
fn asking_and_taking_back_without_end_is_bounded() {
    let mut hook = World::new().start();
    let large = LaterEvent { data: Some(format!("\"{}\"", "x".repeat(16_000))), ..later("x", Vec::new()) };
    let mut asked = 0;
    while let Ok(id) = ready(hook.context.emit_later(now(), &large)) {
        hook.context.cancel_event(id).unwrap();
        asked += 1;
        assert!(asked < 1_000);
    }
    assert!(asked > 50, "{asked}");
    assert!(hook.context.finish().effects.is_empty());
}

#[test]
fn the_event_that_is_told_is_not_waited_for_any_more_and_stands_in_the_environment() {
    let told = Event::Custom { id: EventId(3), name: "three".into(), data: "{\"n\": 1}".into() };
    let mut hook = waiting().event(told).start();
    let variables: BTreeMap<_, _> = hook.context.environment().into_iter().collect();
    assert_eq!(variables["JUJU_DISPATCH_PATH"], "hooks/three");
    assert_eq!(variables["PERIAPT_EVENT_ID"], "3");
    assert_eq!(variables["PERIAPT_EVENT_NAME"], "three");
    assert_eq!(variables["PERIAPT_EVENT_DATA"], "{\"n\": 1}");
    assert_eq!(hook.context.pending_events().len(), 1);
    hook.check_errors(&[("emit-cancel 3", 1, "the unit waits for no event 3")]);
}
