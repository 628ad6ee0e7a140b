//! Calls of charms and their answers, through both interfaces.

use std::sync::{Arc, atomic::Ordering};

use periapt_host_api::{
    Digest, LeaderTerm, RelationId,
    commit::EarlyEffect,
    event::{Event, RelationBatch},
    status::WorkloadStatus,
};
use periapt_sandbox::{HandlerOutcome, HookErrorKind};

use crate::world::{Hook, RunResult, World, lease, peer, prepared, unit};

async fn probe(hook: Hook) -> RunResult {
    hook.run(&prepared("probe", "probe"), "probe").await
}

fn script(event: Event, script: &str) -> Hook {
    Hook::new(event).option("script", script)
}

#[tokio::test]
async fn every_event_reaches_the_charm_with_its_fields() {
    let relation = peer;
    let remote = || unit("u/1");
    for (event, line) in [
        (Event::Install, "event install"),
        (Event::Start, "event start"),
        (Event::Stop, "event stop"),
        (Event::Remove, "event remove"),
        (Event::ConfigChanged, "event config-changed"),
        (Event::UpgradeCharm, "event upgrade-charm"),
        (Event::UpdateStatus, "event update-status"),
        (Event::LeaderElected, "event leader-elected"),
        (Event::LeaderSettingsChanged, "event leader-settings-changed"),
        (Event::RelationCreated(relation()), "event peer-relation-created relation=peer:1 app=u"),
        (
            Event::RelationJoined { relation: relation(), remote_unit: remote() },
            "event peer-relation-joined relation=peer:1 app=u unit=u/1",
        ),
        (
            Event::RelationChanged { relation: relation(), remote_unit: Some(remote()) },
            "event peer-relation-changed relation=peer:1 app=u unit=u/1",
        ),
        (
            Event::RelationChanged { relation: relation(), remote_unit: None },
            "event peer-relation-changed relation=peer:1 app=u",
        ),
        (
            Event::RelationDeparted { relation: relation(), remote_unit: remote(), departing_unit: remote() },
            "event peer-relation-departed relation=peer:1 app=u unit=u/1 departing=u/1",
        ),
        (
            Event::RelationBatch {
                relation: relation(),
                batch: RelationBatch {
                    application_changed: true,
                    joined: [unit("u/2"), unit("u/3")].into(),
                    changed: [unit("u/1")].into(),
                    ..RelationBatch::default()
                },
            },
            "event peer-relation-batch relation=peer:1 app=u joined=u/2,u/3 changed=u/1 departed=",
        ),
        (Event::RelationBroken(relation()), "event peer-relation-broken relation=peer:1 app=u"),
    ] {
        let ran = probe(Hook::new(event)).await;
        assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
        let expected = format!("{line} attempt=1");
        assert!(ran.log().iter().any(|logged| logged.ends_with(&expected)), "{expected}: {:?}", ran.log());
    }
}

#[tokio::test]
async fn writes_are_gathered_and_statuses_leave_at_once() {
    let hook = script(
        Event::RelationChanged { relation: peer(), remote_unit: Some(unit("u/1")) },
        "*: set key=value\n*: status active ready\n*: open-port 80/tcp",
    );
    let ran = probe(hook).await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
    let effects = &ran.report.gathered.effects;
    assert_eq!(effects.bags[&RelationId(1)].unit["key"], "value");
    assert_eq!(effects.ports.open.iter().map(|port| port.range.to_string()).collect::<Vec<_>>(), ["80/tcp"]);
    assert!(ran.report.gathered.status_set);
    assert!(ran.early.iter().any(|(_, effect)| matches!(
        effect,
        EarlyEffect::UnitStatus { status: WorkloadStatus::Active, message } if message == "ready"
    )));
}

#[tokio::test]
async fn the_argv_door_gives_what_the_typed_door_gives() {
    let hook = script(
        Event::RelationChanged { relation: peer(), remote_unit: Some(unit("u/1")) },
        "*: tool relation-get --format=json - u/1\n*: tool relation-list\n*: tool no-such-tool\n\
         *: tool relation-set a=b",
    );
    let ran = probe(hook).await;
    let log = ran.log().join("\n");
    assert!(log.contains(r#"tool relation-get: 0 {"of":"u/1"}"#), "{log}");
    assert!(log.contains("tool relation-list: 0 u/1"), "{log}");
    assert!(log.contains("tool no-such-tool: 1"), "{log}");
    assert_eq!(ran.report.gathered.effects.bags[&RelationId(1)].unit["a"], "b");
}

#[tokio::test]
async fn what_is_stored_through_one_door_is_read_through_the_other() {
    let ran =
        probe(script(Event::Install, "*: store seen=1\n*: tool state-get seen\n*: tool state-set b=2")).await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
    assert!(ran.log().iter().any(|line| line.ends_with("tool state-get: 0 1 ")), "{:?}", ran.log());
    let state = &ran.report.gathered.effects.state;
    assert_eq!((state["seen"].as_deref(), state["b"].as_deref()), (Some("1"), Some("2")));
}

/// Returns a hook of a unit whose application has content for its resource `data`.
fn with_data(text: &str, content: &'static str, at_hand: bool) -> Hook {
    let mut hook = script(Event::Install, text);
    hook.data = Some(content);
    let resources = at_hand.then(|| (Digest::of(content.as_bytes()), content)).into_iter().collect();
    hook.world = Arc::new(World { resources, ..World::default() });
    hook
}

#[tokio::test]
async fn a_resource_is_a_file_that_both_doors_lead_to() {
    let steps = "*: read /resources/data/data.txt\n*: tool resource-get data\n\
                 *: read /resources/data/data.txt\n*: resource data\n*: tool resource-get image";
    let hook = with_data(steps, "a,b", true);
    let world = Arc::clone(&hook.world);
    let ran = probe(hook).await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled, "{:?}", ran.log());
    let log = ran.log();
    let told: Vec<_> = log.iter().skip(1).filter_map(|line| line.split_once("juju-log ")).collect();
    let told: Vec<_> = told.into_iter().map(|(_, text)| text).collect();
    let sha256 = Digest::of(b"a,b");
    assert_eq!(
        told[..4],
        [
            "read /resources/data/data.txt: entity not found",
            "tool resource-get: 0 /resources/data/data.txt ",
            "read /resources/data/data.txt: a,b",
            &format!("resource /resources/data/data.txt revision=5 size=3 sha256={sha256} read=3: a,b"),
        ]
    );
    assert!(told[4].starts_with("tool resource-get: 1 "), "{told:?}");
    assert_eq!(world.fetches.load(Ordering::Relaxed), 1, "what is at hand is not fetched again");
}

#[tokio::test]
async fn a_resource_that_cannot_be_fetched_or_written_is_told() {
    let ran = probe(with_data("*: tool resource-get data\n*: resource data", "a,b", false)).await;
    assert_eq!(ran.message(), "the controller is not reachable, try again");
    assert!(
        ran.log()
            .iter()
            .any(|line| line.contains("tool resource-get: 1  ERROR the controller is not reachable"))
    );
    let write = "*: tool resource-get data\n*: write /resources/data/data.txt=other";
    let ran = probe(with_data(write, "a,b", true)).await;
    assert!(ran.message().starts_with("writing /resources/data/data.txt: "), "{}", ran.message());
    let ran = probe(with_data("*: write /resources/new=x", "a,b", true)).await;
    assert!(ran.message().starts_with("writing /resources/new: "), "{}", ran.message());
}

#[tokio::test]
async fn the_goal_state_is_the_same_through_both_doors() {
    let ran = probe(script(Event::Install, "*: goal\n*: tool goal-state --format json")).await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
    let log = ran.log().join("\n");
    assert!(log.contains("goal units= db=") && log.contains(r#"{"relations":{"db":{"w":"#), "{log}");
}

#[tokio::test]
async fn a_failure_is_told_in_the_charms_own_words() {
    let ran = probe(script(Event::Install, "*: set key=value\n*: fail no database")).await;
    let HandlerOutcome::Failed(error) = &ran.report.outcome else { panic!("{:?}", ran.report.outcome) };
    assert_eq!((error.kind, error.message.as_str()), (HookErrorKind::Failed, "no database"));
}

#[tokio::test]
async fn a_panic_is_told_with_its_place_and_stands_in_the_log() {
    let ran = probe(script(Event::Install, "*: panic the disk is gone")).await;
    assert!(ran.message().starts_with("panicked: the disk is gone (at "), "{}", ran.message());
    assert!(ran.log().iter().any(|line| line.starts_with("WARNING unit.u/0.install")), "{:?}", ran.log());
}

#[tokio::test]
async fn streams_go_to_the_log_by_lines_in_order_with_the_charms_own() {
    let ran = probe(script(Event::Install, "*: emit one\n*: log two\n*: complain three")).await;
    let log = ran.log();
    let found: Vec<_> = log.iter().skip(1).map(String::as_str).collect();
    assert_eq!(
        found,
        ["DEBUG unit.u/0.install one", "INFO unit.u/0.juju-log two", "WARNING unit.u/0.install three"]
    );
}

#[tokio::test]
async fn a_lease_that_is_long_enough_needs_no_renewal() {
    let mut hook = script(Event::Install, "*: tool is-leader\n*: app-set key=value");
    hook.lease = lease(60);
    let ran = probe(hook).await;
    assert!(ran.log().iter().any(|line| line.ends_with("tool is-leader: 0 True ")), "{:?}", ran.log());
    assert_eq!(ran.renewals, 0);
    assert_eq!(ran.report.gathered.leader_term, Some(LeaderTerm(3)));
}

#[tokio::test]
async fn a_lease_that_is_too_short_is_renewed_while_the_hook_waits() {
    let mut hook = script(Event::Install, "*: app-set key=value");
    hook.lease = lease(29);
    hook.world = Arc::new(World { renewed: lease(60), ..World::default() });
    let ran = probe(hook).await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
    assert_eq!(ran.renewals, 1);
    assert_eq!(ran.report.gathered.effects.bags[&RelationId(1)].application["key"], "value");
}

#[tokio::test]
async fn a_unit_that_cannot_renew_is_no_leader() {
    let hook = script(Event::Install, "*: tool is-leader\n*: tool is-leader\n*: app-set key=value");
    let ran = probe(hook).await;
    assert_eq!(ran.log().iter().filter(|line| line.ends_with("tool is-leader: 0 False ")).count(), 2);
    assert_eq!(ran.renewals, 1, "False stays False in one hook");
    assert!(matches!(ran.report.outcome, HandlerOutcome::Failed(_)));
    assert!(ran.report.gathered.effects.bags.is_empty());
}

#[tokio::test]
async fn the_calls_are_recorded_for_the_journal() {
    let ran = probe(script(Event::Install, "*: tool config-get count")).await;
    let calls = &ran.report.gathered.calls.calls;
    assert!(calls.iter().any(|call| call.function == "config.get"), "{calls:?}");
    assert!(calls.iter().any(|call| call.function == "hook-tools.run"), "{calls:?}");
}
