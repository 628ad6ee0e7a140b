//! Commits: those that are accepted, once, and those that are refused (`docs/design/commit.md`).

use periapt_host_api::{
    ErrorCode, Incarnation, LeaderTerm, RelationId,
    agent::{RunnerAnswer, RunnerCommand},
    command::{Caller, Command},
    commit::{EarlyEffect, PortRequest, UnitCommit},
    logs::LogLevel,
    relation::{BagKey, BagOwner},
    status::{AgentStatus, WorkloadStatus},
};
use periapt_model::{Input, RecordBody, StatusRecord};

use crate::world::{World, agent_status, on_machine};

fn related() -> (World, RelationId) {
    let mut world = World::new();
    world.deploy_app("app", 2);
    world.deploy_db("db", 1);
    let id = world.integrate("app", "db").unwrap();
    for name in ["app/0", "app/1", "db/0"] {
        world.start(name);
        world.enter(name, id).unwrap();
    }
    (world, id)
}

fn write(commit: &mut UnitCommit, id: RelationId, key: &str, value: &str) {
    commit.effects.bags.entry(id).or_default().unit.insert(key.into(), value.into());
}

fn send(
    world: &mut World,
    agent: &str,
    commit: &UnitCommit,
) -> Result<RunnerAnswer, periapt_host_api::Refusal> {
    world.runner_call(agent, RunnerCommand::Commit(Box::new(commit.clone())))
}

#[test]
fn the_same_commit_again_is_answered_and_not_done_again() {
    let (mut world, id) = related();
    let mut commit = world.commit_of("app/0");
    write(&mut commit, id, "k", "1");
    send(&mut world, "a1", &commit).unwrap();
    let (stored, version) = (world.stored.clone(), world.bag(id, "app/0").unwrap().version);
    assert_eq!(send(&mut world, "a1", &commit).unwrap(), RunnerAnswer::Done);
    // A runner that took over from the sender gets the same answer.
    world.attach("a1");
    assert_eq!(send(&mut world, "a1", &commit).unwrap(), RunnerAnswer::Done);
    assert_eq!(world.bag(id, "app/0").unwrap().version, version);
    assert_eq!(world.stored.len(), stored.len());
}

#[test]
fn what_does_not_follow_the_last_commit_is_stale() {
    let (mut world, id) = related();
    let mut commit = world.commit_of("app/0");
    write(&mut commit, id, "k", "1");
    send(&mut world, "a1", &commit).unwrap();
    let mut other = commit.clone();
    write(&mut other, id, "k", "2");
    assert_eq!(send(&mut world, "a1", &other).unwrap_err().code, ErrorCode::Stale);
    let mut ahead = world.commit_of("app/0");
    (ahead.seq, ahead.record.seq) = (ahead.seq + 1, ahead.record.seq + 1);
    assert_eq!(send(&mut world, "a1", &ahead).unwrap_err().code, ErrorCode::Stale);
    let before = world.commit_of("app/0");
    world.attach("a1");
    assert_eq!(send(&mut world, "a1", &before).unwrap_err().code, ErrorCode::Stale, "of an older runner");
    let mut skips = world.commit_of("app/0");
    skips.record.seq += 1;
    assert_eq!(send(&mut world, "a1", &skips).unwrap_err().code, ErrorCode::BadRequest);
}

#[test]
fn a_runner_commits_for_the_units_of_its_agent_alone() {
    let (mut world, _) = related();
    world.agent("a2");
    let commit = world.commit_of("app/0");
    let refusal = send(&mut world, "a2", &commit).unwrap_err();
    assert_eq!((refusal.code, refusal.message.as_str()), (ErrorCode::PermissionDenied, "permission denied"));
    let mut unknown = commit.clone();
    unknown.unit = "app/77".parse().unwrap();
    assert_eq!(send(&mut world, "a1", &unknown).unwrap_err(), refusal, "A-3: no more is told");
}

#[test]
fn callers_ask_only_what_is_theirs() {
    let (mut world, _) = related();
    let model = world.model;
    let attach = Input::Runner(model, RunnerCommand::Attach);
    let expose = Input::Model(
        model,
        Command::Expose { application: "app".parse().unwrap(), endpoints: Default::default() },
    );
    let agent = Caller::Agent("a1".parse().unwrap());
    let elsewhere = Caller::Runner { agent: "a1".parse().unwrap(), model: world.add_model("other") };
    let user = world.user();
    for (caller, input) in [
        (&agent, &attach),
        (&elsewhere, &attach),
        (&user, &attach),
        (&agent, &expose),
        (&elsewhere, &expose),
        (&Caller::Worker, &expose),
    ] {
        assert_eq!(world.ask(caller, input).unwrap_err().code, ErrorCode::PermissionDenied, "{caller:?}");
    }
}

#[test]
fn an_empty_value_deletes_and_an_equal_one_makes_no_version() {
    //
    let (mut world, id) = related();
    world.commit("app/0", |commit| write(commit, id, "k", "1")).unwrap();
    let version = world.bag(id, "app/0").unwrap().version;
    world.commit("app/0", |commit| write(commit, id, "k", "1")).unwrap();
    world.commit("app/0", |commit| write(commit, id, "absent", "")).unwrap();
    assert_eq!(world.bag(id, "app/0").unwrap().version, version);
    world.commit("app/0", |commit| write(commit, id, "k", "")).unwrap();
    let bag = world.bag(id, "app/0").unwrap();
    assert_eq!((bag.settings.get("k"), bag.version), (None, version + 1));
}

#[test]
fn a_refused_commit_leaves_nothing() {
    // C-1
    let (mut world, id) = related();
    let before = world.stored.clone();
    let refused = world.commit("app/0", |commit| {
        write(commit, id, "k", "1");
        commit.effects.leader_settings.insert("k".into(), "1".into());
    });
    assert_eq!(refused.unwrap_err().code, ErrorCode::NotLeader);
    assert_eq!(world.stored, before);
}

#[test]
fn g16_only_the_leader_writes_its_applications_bag() {
    // D-4
    let (mut world, id) = related();
    let RunnerAnswer::Granted { term, .. } = world.claim("app/0", 60).unwrap() else { unreachable!() };
    let set = |term: Option<LeaderTerm>| {
        move |commit: &mut UnitCommit| {
            commit.leader_term = term;
            commit.effects.bags.entry(id).or_default().application.insert("k".into(), "1".into());
        }
    };
    for (unit, term) in [("app/1", Some(term)), ("app/0", None), ("app/0", Some(LeaderTerm(term.0 + 1)))] {
        let refusal = world.commit(unit, set(term)).unwrap_err();
        assert_eq!(
            (refusal.code, refusal.message.as_str()),
            (ErrorCode::NotLeader, "cannot write relation settings")
        );
    }
    assert!(world.bag(id, "app").is_none());
    world.commit("app/0", set(Some(term))).unwrap();
    assert_eq!(world.bag(id, "app").unwrap().version, 1);
}

#[test]
fn leader_settings_have_a_version_of_their_own() {
    let (mut world, _) = related();
    let RunnerAnswer::Granted { term, .. } = world.claim("app/0", 60).unwrap() else { unreachable!() };
    let set = |value: &'static str| {
        move |commit: &mut UnitCommit| {
            commit.leader_term = Some(term);
            commit.effects.leader_settings.insert("k".into(), value.into());
        }
    };
    world.commit("app/0", set("1")).unwrap();
    world.commit("app/0", set("1")).unwrap();
    assert_eq!(world.application("app").leader_settings_version, 1);
    world.commit("app/0", set("")).unwrap();
    assert!(world.application("app").leader_settings.is_empty());
}

#[test]
fn bags_are_written_in_scope_alone_and_bounded() {
    let (mut world, id) = related();
    world.leave("app/1", id).unwrap();
    let denied = world.commit("app/1", |commit| write(commit, id, "k", "1")).unwrap_err();
    assert_eq!(denied.code, ErrorCode::PermissionDenied);
    let refused = |world: &mut World, key: &str, length: usize| {
        let value = "x".repeat(length);
        let refusal = world.commit("app/0", |commit| write(commit, id, key, &value)).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::QuotaExceeded);
        refusal.message
    };
    let large = refused(&mut world, "k", (256 << 10) + 1);
    assert_eq!(large, "the value of \"k\" takes 262145 bytes, at most 262144 are allowed");
    // One value may fill the room that the addresses leave in the bag.
    let owner = BagOwner::Unit("app/0".parse().unwrap());
    let present = world.state().bag(&BagKey { relation: id, owner }).unwrap().settings.clone();
    let taken: usize = present.iter().map(|(key, value)| key.len() + value.len()).sum();
    let most = (256 << 10) - taken - 1;
    let whole = refused(&mut world, "k", most + 1);
    assert_eq!(whole, "the settings would take 262145 bytes, at most 262144 are allowed");
    world.commit("app/0", |commit| write(commit, id, "k", &"x".repeat(most))).unwrap();
    assert!(refused(&mut world, "l", 1).starts_with("the settings would take 262146 bytes"));
}

fn port(range: &str, endpoint: Option<&str>) -> PortRequest {
    PortRequest { range: range.parse().unwrap(), endpoint: endpoint.map(|name| name.parse().unwrap()) }
}

#[test]
fn ports_conflict_between_the_units_of_a_machine() {
    // 5.5, J03, J04
    let (mut world, _) = related();
    let add = Command::AddUnits {
        application: "db".parse().unwrap(),
        count: 1,
        placement: on_machine(0),
        attach_storage: vec![],
    };
    world.run(add).unwrap();
    world.settle();
    assert_eq!(world.unit("db/1").machine, world.unit("app/0").machine);
    let open = |request: PortRequest| {
        move |commit: &mut UnitCommit| {
            commit.effects.ports.open.insert(request);
        }
    };
    let close = |request: PortRequest| {
        move |commit: &mut UnitCommit| {
            commit.effects.ports.close.insert(request);
        }
    };
    world.commit("app/0", open(port("100-200", Some("web")))).unwrap();
    world.commit("app/0", open(port("100-200", Some("db")))).unwrap();
    assert_eq!(world.unit("app/0").ports[0].endpoints.len(), 2);
    let text = |world: &mut World, unit: &str, edit: Box<dyn FnOnce(&mut UnitCommit)>| {
        world.commit(unit, edit).unwrap_err().message
    };
    assert_eq!(
        text(&mut world, "app/0", Box::new(open(port("50-100", None)))),
        "cannot open 50-100/tcp (unit \"app/0\"): port range conflicts with 100-200/tcp (unit \"app/0\")"
    );
    assert_eq!(
        text(&mut world, "db/1", Box::new(open(port("100-200", None)))),
        "cannot open 100-200/tcp (unit \"db/1\"): port range conflicts with 100-200/tcp (unit \"app/0\")"
    );
    assert_eq!(
        text(&mut world, "app/0", Box::new(close(port("150", None)))),
        "cannot close 150/tcp (unit \"app/0\"): port range conflicts with 100-200/tcp (unit \"app/0\")"
    );
    assert!(text(&mut world, "db/1", Box::new(close(port("100-200", None)))).starts_with("cannot close"));
    world.commit("db/1", open(port("100-200/udp", None))).unwrap();
    world.commit("app/0", close(port("100-200", Some("web")))).unwrap();
    world.commit("app/0", close(port("100-200", None))).unwrap();
    assert!(world.unit("app/0").ports.is_empty());
    world.commit("db/1", open(port("100-200", None))).unwrap();
}

#[test]
fn early_items_are_taken_once_in_the_order_of_their_numbers() {
    let (mut world, _) = related();
    let status =
        |message: &str| EarlyEffect::UnitStatus { status: WorkloadStatus::Active, message: message.into() };
    let first = world.item("app/0", status("one"));
    let mut second = world.item("app/0", status("two"));
    second.number += 1;
    let incarnation = world.commit_of("app/0").incarnation;
    let early = |items: Vec<_>| RunnerCommand::Early { unit: "app/0".parse().unwrap(), incarnation, items };
    world.runner_call("a1", early(vec![first.clone(), second.clone()])).unwrap();
    world.runner_call("a1", early(vec![first, second.clone()])).unwrap();
    assert_eq!(world.unit("app/0").workload_status.message, "two");
    assert_eq!(world.unit("app/0").early_number, second.number);
    world.attach("a1");
    let stale = world.runner_call("a1", early(vec![second])).unwrap_err();
    assert_eq!(stale.code, ErrorCode::Stale);
}

#[test]
fn the_same_status_again_keeps_its_time_and_makes_no_history() {
    // ST-3
    let (mut world, _) = related();
    let active = EarlyEffect::UnitStatus { status: WorkloadStatus::Active, message: "up".into() };
    let history = |world: &World| {
        let workload = |record: &&periapt_model::RecordAppend| {
            matches!(&record.body, RecordBody::Status(StatusRecord::Workload(_)))
        };
        world.records.iter().filter(|record| record.entity == "app/0").filter(workload).count()
    };
    let item = world.item("app/0", active.clone());
    world.commit("app/0", |commit| commit.early.push(item)).unwrap();
    let (since, before) = (world.unit("app/0").workload_status.since, history(&world));
    world.advance(5);
    let item = world.item("app/0", active);
    world.commit("app/0", |commit| commit.early.push(item)).unwrap();
    assert_eq!(world.unit("app/0").workload_status.since, since);
    assert_eq!(history(&world), before);
}

#[test]
fn agent_statuses_that_are_only_derived_are_not_taken() {
    // ST-5
    let (mut world, _) = related();
    for status in [AgentStatus::Lost, AgentStatus::Allocating] {
        let item = world.item("app/0", agent_status(status, ""));
        world.commit("app/0", |commit| commit.early.push(item)).unwrap();
        assert_eq!(world.unit("app/0").agent_status.status, AgentStatus::Idle);
    }
}

#[test]
fn an_application_status_of_a_lost_leadership_is_dropped_with_a_line_in_the_log() {
    let (mut world, _) = related();
    let RunnerAnswer::Granted { term, .. } = world.claim("app/0", 60).unwrap() else { unreachable!() };
    let status = |term| EarlyEffect::ApplicationStatus {
        status: WorkloadStatus::Active,
        message: "all well".into(),
        term,
    };
    let item = world.item("app/0", status(LeaderTerm(term.0 + 1)));
    world.commit("app/0", |commit| commit.early.push(item)).unwrap();
    assert_eq!(world.application("app").status, None);
    let warned = world.records.iter().any(|record| {
        matches!(&record.body, RecordBody::Log(line) if line.level == LogLevel::Warning && line.entity == "unit-app-0")
    });
    assert!(warned);
    let item = world.item("app/0", status(term));
    world.commit("app/0", |commit| commit.early.push(item)).unwrap();
    assert_eq!(world.application("app").status.as_ref().unwrap().message, "all well");
}

#[test]
fn a_container_that_does_not_run_is_told_in_its_units_log_by_its_own_runner_alone() {
    let (mut world, _) = related();
    let incarnation = world.attach("a1");
    let report = |incarnation| RunnerCommand::Container {
        unit: "app/0".parse().unwrap(),
        container: "web".parse().unwrap(),
        incarnation,
        reason: "no image is attached".into(),
    };
    let before = world.records.len();
    assert_eq!(world.runner_call("a2", report(incarnation)).unwrap_err().code, ErrorCode::PermissionDenied);
    let former = Incarnation(incarnation.0 - 1);
    assert_eq!(world.runner_call("a1", report(former)).unwrap_err().code, ErrorCode::Stale);
    assert_eq!(world.records.len(), before);
    world.runner_call("a1", report(incarnation)).unwrap();
    let told = world.records.last().map(|record| match &record.body {
        RecordBody::Log(line) => (line.entity.clone(), line.level, line.message.clone()),
        other => panic!("{other:?}"),
    });
    let message = "container web does not run: no image is attached".to_owned();
    assert_eq!(told, Some(("unit-app-0".to_owned(), LogLevel::Warning, message)));
}

#[test]
fn texts_that_cannot_be_refused_are_cut_between_letters() {
    let (mut world, _) = related();
    let message = "ä".repeat(100_000);
    let item = world.item("app/0", EarlyEffect::UnitStatus { status: WorkloadStatus::Active, message });
    world.commit("app/0", |commit| commit.early.push(item)).unwrap();
    let kept = &world.unit("app/0").workload_status.message;
    assert!(kept.len() <= 4096 && kept.chars().all(|letter| letter == 'ä'));
}
