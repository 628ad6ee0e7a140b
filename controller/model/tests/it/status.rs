//! The output of `status` (`docs/hook-model.md` 7.5).

use jiff::SignedDuration;
use periapt_host_api::{
    AgentName, Digest, ErrorCode, JUJU_VERSION,
    agent::{MAX_CONTAINER_PROBLEM, MAX_FIREWALL_PROBLEM, Register},
    command::{Caller, Command},
    commit::EarlyEffect,
    event::Event,
    program::{FailedProgram, RunningProgram},
    status::{AgentStatus, WorkloadStatus},
};
use periapt_model::{
    Input, RecordBody, StatusRecord, WorkSchedule, WorkerCommand, due_work, machine_history,
};

use crate::world::{World, agent_status};

fn say(world: &mut World, unit: &str, status: WorkloadStatus, message: &str) {
    let item = world.item(unit, EarlyEffect::UnitStatus { status, message: message.into() });
    world.commit(unit, |commit| commit.early.push(item)).unwrap();
}

fn words(status: &periapt_host_api::status::StatusText) -> (&str, &str) {
    (&status.current, &status.message)
}

#[test]
fn q01_the_worst_unit_speaks_for_an_application_whose_leader_said_nothing() {
    // ST-2
    let mut world = World::new();
    world.deploy_app("app", 3);
    for (unit, status, message) in [
        ("app/0", WorkloadStatus::Active, "up"),
        ("app/1", WorkloadStatus::Blocked, "no database"),
        ("app/2", WorkloadStatus::Waiting, "soon"),
    ] {
        world.start(unit);
        say(&mut world, unit, status, message);
    }
    let status = world.status();
    assert_eq!(words(&status.applications["app"].application_status), ("blocked", "no database"));
}

#[test]
fn q03_a_hook_error_is_shown_on_the_workload() {
    // ST-1
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    say(&mut world, "app/0", WorkloadStatus::Active, "up");
    world.fail("app/0", Event::ConfigChanged);
    let status = world.status();
    let unit = &status.applications["app"].units["app/0"];
    assert_eq!(words(&unit.workload_status), ("error", "hook failed: \"config-changed\""));
    assert_eq!(words(&unit.juju_status), ("idle", ""));
    assert_eq!(status.applications["app"].application_status.current, "error");
}

#[test]
fn a_unit_whose_agent_is_away_is_lost_after_a_while() {
    // ST-1
    let mut world = World::new();
    world.deploy_app("app", 4);
    for unit in ["app/0", "app/1"] {
        world.start(unit);
    }
    say(&mut world, "app/0", WorkloadStatus::Active, "up");
    world.fail("app/1", Event::Start);
    let installing = world.item("app/2", agent_status(AgentStatus::Executing, "running install hook"));
    world.commit("app/2", |commit| commit.early.push(installing)).unwrap();
    world.work(WorkerCommand::AgentDisconnected("a1".parse().unwrap()));
    let (_, wake) = due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default());
    assert_eq!(wake, Some(world.now + std::time::Duration::from_secs(30)), "status changes then");
    world.advance(29);
    assert_eq!(
        world.status().applications["app"].units["app/0"].juju_status.current,
        "executing".replace("executing", "idle")
    );
    world.advance(1);
    let status = world.status();
    let units = &status.applications["app"].units;
    let not_communicating = "agent is not communicating with the server";
    assert_eq!(words(&units["app/0"].juju_status), ("lost", not_communicating));
    assert_eq!(
        words(&units["app/0"].workload_status),
        ("unknown", "agent lost, see 'periapt show-status-log app/0'")
    );
    assert_eq!(units["app/1"].workload_status.current, "error", "an error stays");
    assert_eq!(units["app/2"].juju_status.current, "executing", "in its install hook");
    assert_eq!(units["app/3"].juju_status.current, "allocating");
    assert_eq!(words(&status.machines["0"].juju_status), ("down", not_communicating));
}

#[test]
fn a_machine_shows_the_program_of_its_agent_and_the_one_that_failed() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    let status = world.status();
    assert_eq!(status.machines["0"].program, None, "the agent keeps its own");
    let (agent, digest) = ("a1".parse().unwrap(), Digest::of(b"bad"));
    let mut register = world.root.agent(&agent).unwrap().host.clone();
    for failed in [None, Some(FailedProgram { digest, number: 3, reason: "it ended".to_owned() })] {
        let message = failed.as_ref().map(|_| format!("program {} failed: it ended", digest.short()));
        let (version, digest) = ("0.2.0".to_owned(), Digest::of(b"good"));
        register.program = Some(RunningProgram { version, digest, trial: false, failed });
        world.register(&agent, register.clone());
        let status = world.status();
        let machine = &status.machines["0"];
        assert_eq!(machine.program, register.program);
        assert_eq!(words(&machine.juju_status), ("started", message.as_deref().unwrap_or_default()));
        let shown = [&machine.juju_status, &status.applications["app"].units["app/0"].juju_status];
        assert!(
            shown.iter().all(|shown| shown.version == JUJU_VERSION),
            "Juju's version is not the program's"
        );
    }
    world.work(WorkerCommand::AgentDisconnected(agent));
    world.advance(30);
    let not_communicating = "agent is not communicating with the server";
    assert_eq!(words(&world.status().machines["0"].juju_status), ("down", not_communicating));
}

#[test]
fn a_machine_shows_why_the_firewall_of_its_host_has_old_rules_until_it_has_the_new_ones() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    let agent: AgentName = "a1".parse().unwrap();
    let message = |world: &World| {
        let status = world.status();
        let (current, message) = words(&status.machines["0"].juju_status);
        assert_eq!(current, "started");
        message.to_owned()
    };
    let host = world.root.agent(&agent).unwrap().host.clone();
    let problem = "the kernel refused the rules; see the agent's log";
    let troubled = Register { firewall_problem: Some(problem.to_owned()), ..host.clone() };
    world.register(&agent, troubled.clone());
    assert_eq!(message(&world), problem);
    let stored = world.root.revision();
    world.register(&agent, troubled.clone());
    assert_eq!(world.root.revision(), stored, "the same problem is stored once");

    let digest = Digest::of(b"bad");
    let failed = Some(FailedProgram { digest, number: 3, reason: "it ended".to_owned() });
    let (version, running) = ("0.2.0".to_owned(), Digest::of(b"good"));
    let program = Some(RunningProgram { version, digest: running, trial: false, failed });
    world.register(&agent, Register { program, ..troubled });
    assert_eq!(message(&world), format!("{problem}; program {} failed: it ended", digest.short()));
    world.register(&agent, host);
    assert_eq!(message(&world), "");
}

#[test]
fn a_machine_shows_what_its_host_lacks_for_containers() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    let agent: AgentName = "a1".parse().unwrap();
    let host = world.root.agent(&agent).unwrap().host.clone();
    let problem = "containers run without users (add a range)";
    let lacking = Register { container_problem: Some(problem.to_owned()), ..host.clone() };
    world.register(&agent, lacking.clone());
    assert_eq!(words(&world.status().machines["0"].juju_status), ("started", problem));
    let both = Register { firewall_problem: Some("it has old rules".to_owned()), ..lacking };
    world.register(&agent, both);
    let expected = format!("it has old rules; {problem}");
    assert_eq!(words(&world.status().machines["0"].juju_status), ("started", expected.as_str()));
    let mut told = |problem: String| {
        let register = Register { container_problem: Some(problem), ..host.clone() };
        world.ask(&Caller::Agent(agent.clone()), &Input::Register(agent.clone(), register)).map(|_| ())
    };
    let long = "x".repeat(MAX_CONTAINER_PROBLEM + 1);
    for bad in ["", "two\nlines", long.as_str()] {
        assert_eq!(told(bad.to_owned()).unwrap_err().code, ErrorCode::BadRequest, "{bad:?}");
    }
    told("x".repeat(MAX_CONTAINER_PROBLEM)).unwrap();
}

#[test]
fn the_problem_of_a_firewall_is_one_line_of_bounded_length() {
    let mut world = World::new();
    let agent: AgentName = "a1".parse().unwrap();
    let host = world.root.agent(&agent).unwrap().host.clone();
    let mut told = |problem: String| {
        let register = Register { firewall_problem: Some(problem), ..host.clone() };
        world.ask(&Caller::Agent(agent.clone()), &Input::Register(agent.clone(), register)).map(|_| ())
    };
    let long = "x".repeat(MAX_FIREWALL_PROBLEM + 1);
    for bad in ["", "two\nlines", "\u{1b}[31mred", "\u{9b}31mred", long.as_str()] {
        assert_eq!(told(bad.to_owned()).unwrap_err().code, ErrorCode::BadRequest, "{bad:?}");
    }
    told("x".repeat(MAX_FIREWALL_PROBLEM)).unwrap();
}

#[test]
fn a_clock_that_is_set_makes_no_agent_gone_and_none_alive() {
    let mut world = World::new();
    world.deploy_app("app", 2);
    world.start("app/0");
    let day = SignedDuration::from_hours(24);
    let agent_of =
        |world: &World| world.status().applications["app"].units["app/0"].juju_status.current.clone();
    world.work(WorkerCommand::AgentDisconnected("a1".parse().unwrap()));
    world.advance(29);
    for by in [day, -day, -day] {
        world.now += by;
        assert_eq!(agent_of(&world), "idle", "{by}");
        let (_, wake) = due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default());
        assert_eq!(wake, Some(world.now + SignedDuration::from_secs(1)), "{by}");
    }
    world.advance(1);
    for by in [-day, day, day] {
        world.now += by;
        assert_eq!(agent_of(&world), "lost", "{by}");
    }
    // No unit is placed on the agent that is gone, whatever the clock says.
    let add = Command::AddUnits {
        application: "app".parse().unwrap(),
        count: 1,
        placement: vec![],
        attach_storage: vec![],
    };
    world.run(add).unwrap();
    world.settle();
    let waits = &world.state().unit(&"app/2".parse().unwrap()).unwrap().agent_status;
    assert_eq!(waits.message, "waiting for an agent: none is connected");
}

#[test]
fn after_a_start_of_the_controller_agents_have_time_to_come_back() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    let stored = world.stored.clone();
    world.root = periapt_model::Root::from_entities(stored, world.root.revision())
        .unwrap()
        .restart(world.now, world.lease_now_ms);
    assert_eq!(world.status().applications["app"].units["app/0"].juju_status.current, "idle");
    world.advance(30);
    assert_eq!(world.status().applications["app"].units["app/0"].juju_status.current, "lost");
}

#[test]
fn subordinates_stand_under_their_principals() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.deploy_logging("logging");
    let id = world.integrate("app", "logging").unwrap();
    world.start("app/0");
    world.enter("app/0", id).unwrap();
    let status = world.status();
    let app = &status.applications["app"].units["app/0"];
    assert!(app.subordinates.contains_key("logging/0"));
    assert!(app.subordinates["logging/0"].machine.is_empty());
    let logging = &status.applications["logging"];
    assert!(logging.units.is_empty());
    assert_eq!(logging.subordinate_to, ["app"]);
    assert_eq!(logging.relations["sink"][0].related_application, "app");
    let kinds: Vec<_> = status.relations.iter().map(|relation| relation.kind.as_str()).collect();
    assert_eq!(kinds, ["peer", "subordinate"]);
}

#[test]
fn a_principal_shows_its_relations_over_juju_info() {
    let mut world = World::new();
    world.deploy_db("db", 1);
    world.deploy_logging("logging");
    world.integrate("db", "logging").unwrap();
    let status = world.status();
    let [related] = status.applications["db"].relations["juju-info"].as_slice() else {
        panic!("{:?}", status.applications["db"].relations)
    };
    assert_eq!(
        (related.related_application.as_str(), related.interface.as_str(), related.scope.as_str()),
        ("logging", "juju-info", "container")
    );
    let [relation] = status.relations.as_slice() else { panic!("{:?}", status.relations) };
    assert_eq!((relation.provider.as_str(), relation.requirer.as_str()), ("db:juju-info", "logging:info"));
}

/// ST-3: the same status again adds no history; the newest entry shows the time at which it was last set.
#[test]
fn the_same_status_again_moves_only_the_time_of_the_newest_line() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    world.claim("app/0", 60).unwrap();
    let term = world.application("app").leader.clone().unwrap().term;
    let say = |world: &mut World, message: &str| {
        for effect in [
            EarlyEffect::UnitStatus { status: WorkloadStatus::Active, message: message.into() },
            EarlyEffect::ApplicationStatus { status: WorkloadStatus::Active, message: message.into(), term },
        ] {
            let item = world.item("app/0", effect);
            world.commit("app/0", |commit| commit.early.push(item)).unwrap();
        }
    };
    let lines = |world: &World| {
        let status = |record: &&periapt_model::RecordAppend| matches!(record.body, RecordBody::Status(_));
        world.records.iter().filter(status).count()
    };
    say(&mut world, "ready");
    let (first, count) = (world.now, lines(&world));
    world.advance(60);
    say(&mut world, "ready");
    assert_eq!(lines(&world), count);
    let unit = world.unit("app/0");
    assert_eq!((unit.workload_status.since, unit.refreshed.workload), (first, Some(world.now)));
    assert_eq!(world.application("app").status_refreshed, Some(world.now));
    say(&mut world, "still ready");
    assert_eq!(lines(&world), count + 2);
    let unit = world.unit("app/0");
    assert_eq!((unit.workload_status.since, unit.refreshed.workload), (world.now, None));
    assert_eq!(world.application("app").status_refreshed, None);
}

#[test]
fn a_units_history_begins_when_it_is_made() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    let first: Vec<_> = world.records.iter().filter(|record| record.entity == "app/0").take(2).collect();
    assert!(
        matches!(&first[0].body, RecordBody::Status(StatusRecord::Workload(info)) if info.message == "waiting for machine")
    );
    assert!(
        matches!(&first[1].body, RecordBody::Status(StatusRecord::Agent(info)) if info.status == AgentStatus::Allocating)
    );
}

#[test]
fn a_machines_history_is_that_of_its_agent() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    let words = |world: &World| -> Vec<String> {
        let machine = world.state().machines().next().unwrap();
        machine_history(&world.root, machine, world.lease_now_ms)
            .into_iter()
            .map(|entry| entry.status)
            .collect()
    };
    assert_eq!(words(&world), ["started"]);
    world.work(WorkerCommand::AgentDisconnected("a1".parse().unwrap()));
    world.advance(120);
    assert_eq!(words(&world), ["started", "down"]);
}
