//! Start and end of a run: inputs, variables, effects, recorded calls.

use std::collections::BTreeMap;

use periapt_hook::{CharmStatus, ContextError, HookContext};
use periapt_host_api::{commit::EarlyEffect, event::Event, journal::RecordedCalls, status::WorkloadStatus};

use crate::world::{CONTEXT_ID, DB, World, at, changed, db, departed, now, ready, unit};

fn environment(event: Event) -> BTreeMap<String, String> {
    let variables = World::new().event(event).start().context.environment();
    let count = variables.len();
    let variables: BTreeMap<_, _> = variables.into_iter().collect();
    assert_eq!(variables.len(), count, "a variable is set twice");
    variables
}

#[test]
fn a_hook_sees_its_own_variables() {
    let variables = environment(departed("b/1"));
    for (name, value) in [
        ("JUJU_CHARM_DIR", "/charm"),
        ("JUJU_HOOK_NAME", "db-relation-departed"),
        ("JUJU_DISPATCH_PATH", "hooks/db-relation-departed"),
        ("JUJU_UNIT_NAME", "a/0"),
        ("JUJU_PRINCIPAL_UNIT", ""),
        ("JUJU_MODEL_NAME", "m"),
        ("JUJU_MODEL_UUID", "11111111-2222-4333-8444-555555555555"),
        ("JUJU_MACHINE_ID", "4"),
        ("JUJU_AVAILABILITY_ZONE", "z1"),
        ("JUJU_API_ADDRESSES", "10.0.0.1:17070 10.0.0.2:17070"),
        ("JUJU_VERSION", periapt_host_api::JUJU_VERSION),
        ("JUJU_CHARM_NO_PROXY", ""),
        ("JUJU_RELATION", "db"),
        ("JUJU_RELATION_ID", "db:1"),
        ("JUJU_REMOTE_APP", "b"),
        ("JUJU_REMOTE_UNIT", "b/1"),
        ("JUJU_DEPARTING_UNIT", "b/1"),
        ("LANG", "C.UTF-8"),
    ] {
        assert_eq!(variables.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(variables["JUJU_CONTEXT_ID"], format!("a/0-db-relation-departed-{CONTEXT_ID}"));
}

#[test]
fn variables_of_other_kinds_of_hooks_are_absent() {
    let variables = environment(Event::Install);
    assert!(!variables.keys().any(|name| name.starts_with("JUJU_RE") || name == "JUJU_DEPARTING_UNIT"));
    let variables = environment(Event::RelationBroken(db()));
    assert_eq!(variables["JUJU_REMOTE_UNIT"], "");
    assert!(!variables.contains_key("JUJU_DEPARTING_UNIT"));
}

#[test]
fn a_snapshot_that_lacks_the_unit_starts_nothing() {
    let missing = |change: fn(&mut World)| {
        let mut world = World::new();
        change(&mut world);
        match HookContext::new(world.inputs) {
            Err(ContextError::Missing { what, .. }) => what,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(missing(|world| world.inputs.unit = unit("a/9")), "the entry");
    assert_eq!(missing(|world| world.inputs.view.applications = Default::default()), "the application");
    assert_eq!(missing(|world| world.inputs.view.charms = Default::default()), "the charm");
    assert_eq!(missing(|world| world.inputs.view.machines = Default::default()), "the machine");
    assert_eq!(missing(|world| world.inputs.view.model = None), "the model");
}

#[test]
fn the_context_id_is_32_hex_digits() {
    for wrong in ["", "0123", "0123456789ABCDEF0123456789ABCDEF", "0123456789abcdef0123456789abcde/"] {
        let mut world = World::new();
        world.inputs.context_id = wrong.to_owned();
        assert_eq!(HookContext::new(world.inputs).unwrap_err(), ContextError::ContextId, "{wrong}");
    }
}

#[test]
fn identity_is_the_units_own() {
    let mut world = World::new();
    world.own_unit().principal = Some(unit("p/1"));
    let mut hook = world.start();
    let context = &mut hook.context;
    assert_eq!((context.unit().to_string().as_str(), context.attempt()), ("a/0", 1));
    assert_eq!(context.principal_unit(), Some(unit("p/1")));
    assert_eq!((context.model_name().as_str(), context.machine_id().as_str()), ("m", "4"));
    assert_eq!(context.model_uuid(), "11111111-2222-4333-8444-555555555555");
    assert_eq!(context.availability_zone(), "z1");
    assert_eq!(context.version(), env!("CARGO_PKG_VERSION"));
    assert_eq!(context.relation_endpoint(DB).unwrap().as_str(), "db");
}

#[test]
fn a_hook_that_asks_for_nothing_gathers_nothing() {
    let mut hook = World::new().event(changed("b/0")).start();
    hook.check(&[("relation-get host", "10.0.0.4\n")]);
    let gathered = hook.finish();
    assert!(gathered.effects.is_empty() && gathered.early.is_empty());
    assert_eq!((gathered.leader_term, gathered.status_set, gathered.log_bytes), (None, false, 0));
}

#[test]
fn both_doors_record_into_one_journal() {
    let mut hook = World::new().event(changed("b/0")).start();
    hook.context.config_get("title");
    hook.tool("config-get title");
    ready(hook.context.is_leader(now())).unwrap();
    hook.tool_with("relation-set --file -", Some("a: 1"));
    hook.context.config_get("title");
    let RecordedCalls { calls, answers, secrets: _, omitted, unrecorded } = hook.finish().calls;
    let shown: Vec<_> = calls
        .iter()
        .map(|call| format!("{} {} -> {}", call.function, call.arguments, answers[call.answer as usize]))
        .collect();
    assert_eq!(
        shown,
        [
            r#"config.get ["title"] -> {"text":"hello"}"#,
            r#"hook-tools.run ["config-get",["title"],null] -> {"exit-code":0,"stdout":"hello\n","stderr":""}"#,
            r#"leadership.is-leader null -> {"Ok":false}"#,
            r#"hook-tools.run ["relation-set",["--file","-"],"a: 1"] -> {"exit-code":0,"stdout":"","stderr":""}"#,
            r#"config.get ["title"] -> {"text":"hello"}"#,
        ]
    );
    assert_eq!((answers.len(), omitted, unrecorded.is_empty()), (4, 0, true));
}

#[test]
fn the_journal_is_bounded() {
    let mut hook = World::new().start();
    for index in 0..10_000 {
        hook.context.config_get(&format!("option-{index}"));
    }
    let calls = hook.finish().calls;
    assert_eq!(calls.calls.len() as u64 + calls.omitted, 10_000);
    assert!(calls.omitted > 0 && serde_json::to_vec(&calls).unwrap().len() <= 256 << 10);
}

#[test]
fn a_status_leaves_the_hook_at_once_with_its_time() {
    let mut hook = World::new().start();
    assert_eq!(hook.context.status_set(at(5), CharmStatus::Blocked, "no database"), Ok(()));
    let effect =
        EarlyEffect::UnitStatus { status: WorkloadStatus::Blocked, message: "no database".to_owned() };
    assert_eq!(hook.context.drain_early(), [(at(5).at, effect)]);
    assert_eq!(hook.context.drain_early(), []);
    assert!(hook.finish().status_set);
}
