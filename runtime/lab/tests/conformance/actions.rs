//! N, and the rules on actions in other sections: `docs/hook-model.md` 1.13, 5.10, C-8.

use std::time::Duration;

use periapt_host_api::{
    TaskId,
    action::{ActionConcurrency, EnqueueOperation, Parameters, TaskMessage, TaskResults, TaskStatus},
    command::{Answer, Command, CommandResult, Deploy, Placement, ResolveMode},
    event::Event,
    record::{HookStep, Operation},
    status::AgentStatus,
};
use periapt_lab::{Action, Lab};
use periapt_model::{RecordBody, entity::Task};
use serde_json::{Value, json};

use crate::bench::{REMOTE, START_UP, charm, does, fails, lab, runs, started};

const ACTING: &str = "
name: acting
requires:
  db: {interface: sql}
actions:
  backup:
    params:
      level: {type: integer, default: 3, maximum: 9}
      target: {type: object, properties: {dir: {type: string, default: /srv}}}
    additionalProperties: false
  ping: {}
";

/// Enqueues an action on one unit. Returns its task, or the reason of the refusal.
fn ask(lab: &mut Lab, unit: &str, action: &str, parameters: Value) -> Result<TaskId, String> {
    ask_in_turn(lab, unit, action, parameters, ActionConcurrency::default())
}

/// Enqueues an action on one unit, with the actions that may run beside it.
fn ask_in_turn(
    lab: &mut Lab,
    unit: &str,
    action: &str,
    parameters: Value,
    turns: ActionConcurrency,
) -> Result<TaskId, String> {
    let request = EnqueueOperation {
        action: action.to_owned(),
        receivers: vec![unit.parse().unwrap()],
        parameters: parameters.as_object().cloned().unwrap(),
        turns,
    };
    match lab.command(&Command::EnqueueOperation(request)).unwrap() {
        Answer::Operation(mut enqueued) => match enqueued.tasks.remove(0).task {
            CommandResult::Ok((id, _)) => Ok(id),
            CommandResult::Error(refusal) => Err(refusal.message),
        },
        other => panic!("{other:?}"),
    }
}

fn ping(lab: &mut Lab) -> TaskId {
    ask(lab, "a/0", "ping", json!({})).unwrap()
}

fn task(lab: &Lab, id: TaskId) -> Task {
    Task::clone(lab.state().unwrap().task(&id).unwrap())
}

fn results(lab: &Lab, id: TaskId) -> TaskResults {
    let name = Task::records(id);
    let mut found = lab.records_of(&name).filter_map(|record| match record {
        RecordBody::TaskResults(results) => Some(TaskResults::clone(results)),
        _ => None,
    });
    let last = found.next().unwrap();
    assert!(found.next().is_none(), "an action ends once");
    last
}

fn messages(lab: &Lab, id: TaskId) -> Vec<String> {
    let name = Task::records(id);
    let messages = lab.records_of(&name).filter_map(|record| match record {
        RecordBody::TaskMessage(TaskMessage { message, .. }) => Some(message.clone()),
        _ => None,
    });
    messages.collect()
}

fn check_ended(lab: &Lab, id: TaskId, status: TaskStatus, message: &str) {
    let task = task(lab, id);
    assert_eq!((task.status, task.message.as_str()), (status, message));
    assert!(task.completed.is_some());
    let unit = lab.unit("a/0").unwrap();
    assert_eq!(unit.record.action, None);
    assert_ne!(unit.agent_status.status, AgentStatus::Error, "an action puts no unit in error (U-44)");
}

#[test]
fn n01_actions_that_were_queued_before_start_run_in_order_after_it() {
    let mut lab = lab();
    lab.deploy("a", &charm(ACTING), 1).unwrap();
    let ids = ["ping", "backup", "ping"].map(|action| ask(&mut lab, "a/0", action, json!({})).unwrap());
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), [&START_UP[..], &["ping", "backup", "ping"]].concat());
    for id in ids {
        check_ended(&lab, id, TaskStatus::Completed, "");
        assert_eq!(results(&lab, id), TaskResults::default());
    }
    let (first, last) = (task(&lab, ids[0]), task(&lab, ids[2]));
    assert!(first.enqueued <= first.started.unwrap() && first.completed <= last.started);
}

/// A charm with every event that a unit can have at once.
const BUSY: &str = "
name: busy
requires:
  db: {interface: sql}
storage:
  data: {type: filesystem, multiple: {range: 0-1}, location: /srv/data}
config:
  options:
    colour: {type: string, default: red}
actions:
  ping: {}
";

#[test]
fn u21_secrets_and_actions_come_first_and_storage_before_settings_and_relations() {
    let mut lab = lab();
    lab.deploy("a", &charm(BUSY), 1).unwrap();
    lab.deploy("b", &charm(REMOTE), 1).unwrap();
    lab.script("a/0", "install", does("secret-add --rotate hourly password=one")).unwrap();
    lab.run_until_idle().unwrap();
    let before = runs(&lab, "a/0").len();
    lab.hold("a/0").unwrap();
    lab.integrate("a:db", "b:db").unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    let storage = [("data".parse().unwrap(), "1".parse().unwrap())].into();
    lab.command(&Command::AddStorage { unit: "a/0".parse().unwrap(), storage }).unwrap();
    ping(&mut lab);
    lab.advance(Duration::from_secs(3_700)).unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(
        runs(&lab, "a/0")[before..],
        [
            "db-relation-created",
            "secret-rotate",
            "ping",
            "data-storage-attached",
            "config-changed",
            "db-relation-joined b/0",
            "db-relation-changed b/0",
        ]
    );
}

#[test]
fn n03_an_action_without_handler_failed_and_the_unit_did_not() {
    let mut lab = started(ACTING, 1);
    lab.script("a/0", "ping", vec![Action::Unhandled]).unwrap();
    let id = ping(&mut lab);
    lab.run_until_idle().unwrap();
    check_ended(&lab, id, TaskStatus::Failed, "action not implemented on unit \"a/0\"");
    assert_eq!(results(&lab, id).return_code, 1);
}

#[test]
fn n04_parameters_against_the_schema_are_refused_when_they_are_given() {
    let mut lab = started(ACTING, 1);
    for (parameters, reason) in [
        (json!({"level": "x"}), "validation failed: (root).level : must be of type integer, given \"x\""),
        (json!({"level": 10}), "validation failed: (root).level : must be 9 at most, given 10"),
        (json!({"more": 1}), "validation failed: (root) : additional property \"more\" is not allowed"),
    ] {
        assert_eq!(ask(&mut lab, "a/0", "backup", parameters).unwrap_err(), reason);
    }
    let unknown = ask(&mut lab, "a/0", "explode", json!({})).unwrap_err();
    assert_eq!(unknown, "action \"explode\" not defined on unit \"a/0\"");
    assert_eq!(ask(&mut lab, "a/7", "ping", json!({})).unwrap_err(), "unit \"a/7\" not found");
    assert_eq!(lab.state().unwrap().tasks().count(), 0);
}

/// M-12.
#[test]
fn the_handler_sees_what_was_given_and_the_defaults_of_the_rest() {
    let mut lab = started(ACTING, 1);
    let reads = Action::run(|hook| {
        let read =
            ["action-get level", "action-get target.dir", "action-get absent"].map(|line| hook.tool(line));
        let [level, dir, absent] = read.map(Result::unwrap);
        assert_eq!((level.as_str(), dir.as_str(), absent.as_str()), ("5\n", "/srv\n", ""));
        hook.tool("action-set seen.level=5 seen.dir=/srv done=yes").map(drop)
    });
    lab.script("a/0", "backup", vec![reads]).unwrap();
    let id = ask(&mut lab, "a/0", "backup", json!({"level": 5})).unwrap();
    lab.run_until_idle().unwrap();
    check_ended(&lab, id, TaskStatus::Completed, "");
    assert_eq!(
        Value::Object(results(&lab, id).values),
        json!({"done": "yes", "seen": {"dir": "/srv", "level": "5"}})
    );
    assert_eq!(Value::Object(task(&lab, id).parameters), json!({"level": 5, "target": {"dir": "/srv"}}));
}

#[test]
fn n06_a_running_action_that_is_cancelled_is_stopped_and_nothing_of_it_happens() {
    let mut lab = started(ACTING, 1);
    lab.script("a/0", "ping", does("open-port 80")).unwrap();
    let id = ping(&mut lab);
    while task(&lab, id).status != TaskStatus::Running {
        assert!(lab.micro_step("a/0").unwrap(), "the action never begins");
    }
    let answer = lab.command(&Command::CancelTask { task: id }).unwrap();
    assert_eq!(answer, Answer::Task { id, status: TaskStatus::Aborting });
    lab.run_until_idle().unwrap();
    check_ended(&lab, id, TaskStatus::Aborted, "action cancelled");
    assert!(lab.unit("a/0").unwrap().ports.is_empty());
}

#[test]
fn a_pending_action_that_is_cancelled_never_runs() {
    let mut lab = started(ACTING, 1);
    lab.hold("a/0").unwrap();
    let (first, second) = (ping(&mut lab), ask(&mut lab, "a/0", "backup", json!({})).unwrap());
    let answer = lab.command(&Command::CancelTask { task: first }).unwrap();
    assert_eq!(answer, Answer::Task { id: first, status: TaskStatus::Cancelled });
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0")[START_UP.len()..], ["backup"]);
    check_ended(&lab, first, TaskStatus::Cancelled, "cancelled by an operator");
    check_ended(&lab, second, TaskStatus::Completed, "");
    let again = lab.command(&Command::CancelTask { task: first }).unwrap_err().to_string();
    assert!(again.contains("is cancelled already"), "{again}");
}

/// Returns a model with `a/0` related to `b/0`.
fn related() -> Lab {
    let mut lab = started(ACTING, 1);
    lab.deploy("b", &charm(REMOTE), 1).unwrap();
    lab.integrate("a:db", "b:db").unwrap();
    lab.run_until_idle().unwrap();
    lab
}

/// Counts the relation-changed hooks of `b/0`.
fn changes_heard(lab: &Lab) -> usize {
    runs(lab, "b/0").iter().filter(|hook| hook.starts_with("db-relation-changed")).count()
}

#[test]
fn i07_an_action_that_says_that_it_failed_and_returns_ok_is_committed() {
    let mut lab = related();
    let heard = changes_heard(&lab);
    lab.script(
        "a/0",
        "ping",
        vec![
            Action::tool("relation-set -r 0 key=value"),
            Action::tool("action-set part=1"),
            Action::Tool(["action-fail", "first"].map(str::to_owned).into()),
            Action::Tool(["action-fail", "no disk"].map(str::to_owned).into()),
        ],
    )
    .unwrap();
    let id = ping(&mut lab);
    lab.run_until_idle().unwrap();
    check_ended(&lab, id, TaskStatus::Failed, "no disk");
    assert_eq!((results(&lab, id).return_code, changes_heard(&lab)), (0, heard + 1));
    assert_eq!(Value::Object(results(&lab, id).values), json!({"part": "1"}));
}

/// C-8.
#[test]
fn an_action_that_fails_commits_nothing_but_its_results() {
    let mut lab = related();
    let heard = changes_heard(&lab);
    let script = vec![
        Action::tool("relation-set -r 0 key=value"),
        Action::tool("action-set part=1"),
        Action::fail("out of luck"),
    ];
    lab.script("a/0", "ping", script).unwrap();
    let id = ping(&mut lab);
    lab.run_until_idle().unwrap();
    check_ended(&lab, id, TaskStatus::Failed, "out of luck");
    assert_eq!((results(&lab, id).return_code, changes_heard(&lab)), (1, heard));
    assert_eq!(Value::Object(results(&lab, id).values), json!({"part": "1"}));
}

/// Returns a model with `a/0` and `c/0` of one charm on one machine, both at rest.
fn on_one_machine() -> Lab {
    let mut lab = started(ACTING, 1);
    let machine = lab.unit("a/0").unwrap().machine.unwrap();
    lab.command(&Command::Deploy(Deploy {
        application: Some("c".parse().unwrap()),
        placement: vec![Placement::Machine(machine)],
        ..Deploy::of(charm(ACTING).digest(), 1)
    }))
    .unwrap();
    lab.run_until_idle().unwrap();
    lab
}

#[test]
fn actions_of_one_group_on_one_machine_run_one_after_the_other() {
    let mut lab = on_one_machine();
    let first = ping(&mut lab);
    let second = ask(&mut lab, "c/0", "ping", json!({})).unwrap();
    let beside = ActionConcurrency { parallel: Some(true), ..ActionConcurrency::default() };
    assert!(lab.start_hook("a/0").unwrap());
    assert!(!lab.start_hook("c/0").unwrap(), "it waits for its turn");
    assert_eq!(task(&lab, second).status, TaskStatus::Pending);
    assert!(lab.step("a/0").unwrap());
    check_ended(&lab, first, TaskStatus::Completed, "");
    // Its turn lasts until its unit's view has the task's end.
    lab.micro_step("a/0").unwrap();
    assert!(lab.start_hook("c/0").unwrap());
    let other = ask_in_turn(&mut lab, "a/0", "ping", json!({}), beside).unwrap();
    assert!(lab.start_hook("a/0").unwrap(), "one without a group runs beside all");
    lab.run_until_idle().unwrap();
    check_ended(&lab, second, TaskStatus::Completed, "");
    check_ended(&lab, other, TaskStatus::Completed, "");
}

#[test]
fn an_action_that_waits_for_its_turn_and_is_cancelled_leaves_the_queue() {
    let mut lab = on_one_machine();
    let first = ping(&mut lab);
    let second = ask(&mut lab, "c/0", "ping", json!({})).unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    assert!(!lab.start_hook("c/0").unwrap());
    lab.command(&Command::CancelTask { task: second }).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(task(&lab, second).status, TaskStatus::Cancelled);
    check_ended(&lab, first, TaskStatus::Completed, "");
    let third = ping(&mut lab);
    lab.run_until_idle().unwrap();
    check_ended(&lab, third, TaskStatus::Completed, "");
}

#[test]
fn i08_an_action_whose_commit_is_refused_failed_and_the_unit_did_not() {
    let mut lab = on_one_machine();
    // Both units of the machine request the same port at the same time, so neither can know of the
    // other.
    lab.script("c/0", "ping", does("open-port 80")).unwrap();
    lab.script("a/0", "ping", vec![Action::tool("open-port 80"), Action::tool("action-set part=1")]).unwrap();
    // No group: in one, the second action would wait for the first.
    let beside = || ActionConcurrency { parallel: Some(true), ..ActionConcurrency::default() };
    let id = ask_in_turn(&mut lab, "a/0", "ping", json!({}), beside()).unwrap();
    ask_in_turn(&mut lab, "c/0", "ping", json!({}), beside()).unwrap();
    for unit in ["a/0", "c/0"] {
        assert!(lab.start_hook(unit).unwrap());
    }
    assert!(lab.step("c/0").unwrap());
    lab.run_until_idle().unwrap();
    check_ended(&lab, id, TaskStatus::Failed, "committing requested changes failed");
    let left = results(&lab, id);
    assert!(left.return_code == 1 && left.stderr.contains("port range conflicts"), "{left:?}");
    assert_eq!(Value::Object(left.values), json!({"part": "1"}));
    assert!(lab.unit("a/0").unwrap().ports.is_empty());
    assert_eq!(lab.unit("c/0").unwrap().ports.len(), 1);
}

#[test]
fn q06_pending_actions_of_a_unit_that_is_removed_are_cancelled() {
    let mut lab = started(ACTING, 1);
    lab.hold("a/0").unwrap();
    let ids: Vec<TaskId> = (0..150).map(|_| ping(&mut lab)).collect();
    let force = Some(periapt_host_api::command::Force { max_wait: 0 });
    lab.command(&Command::RemoveUnit { unit: "a/0".parse().unwrap(), force, storage: Default::default() })
        .unwrap();
    lab.run_until_idle().unwrap();
    assert!(lab.unit("a/0").is_err());
    for id in ids {
        let task = task(&lab, id);
        assert_eq!((task.status, task.message.as_str()), (TaskStatus::Cancelled, "unit removed"));
    }
}

/// U-22.
#[test]
fn an_action_runs_while_a_hook_is_in_error_and_leaves_the_error() {
    let mut lab = started(ACTING, 1);
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    lab.script("a/0", "config-changed", fails()).unwrap();
    lab.command(&Command::SetTrust { application: "a".parse().unwrap(), trust: true }).unwrap();
    lab.run_until_idle().unwrap();
    let id = ping(&mut lab);
    lab.run_until_idle().unwrap();
    assert_eq!(task(&lab, id).status, TaskStatus::Completed);
    let unit = lab.unit("a/0").unwrap();
    let failed = |operation: &Operation| {
        matches!(operation, Operation::Hook { event: Event::ConfigChanged, step: HookStep::Failed(_) })
    };
    assert!(failed(&unit.record.operation));
    assert_eq!(unit.agent_status.status, AgentStatus::Error);
    lab.unscript("a/0", "config-changed").unwrap();
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0").last().unwrap(), "config-changed");
}

#[test]
fn an_action_whose_agent_dies_is_never_run_twice() {
    let mut lab = started(ACTING, 1);
    let (first, second) = (ping(&mut lab), ask(&mut lab, "a/0", "backup", json!({})).unwrap());
    while task(&lab, first).status != TaskStatus::Running {
        assert!(lab.micro_step("a/0").unwrap());
    }
    // The action has run and is not committed.
    for _ in 0..2 {
        assert!(lab.micro_step("a/0").unwrap());
    }
    lab.crash_runner("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0")[START_UP.len()..], ["ping", "backup"]);
    check_ended(&lab, first, TaskStatus::Failed, "action terminated");
    check_ended(&lab, second, TaskStatus::Completed, "");
}

#[test]
fn n07_and_messages_a_reboot_is_refused_in_an_action_and_messages_are_records() {
    let mut lab = started(ACTING, 1);
    let script = Action::run(|hook| {
        let error = hook.tool("juju-reboot").unwrap_err();
        assert!(error.contains("juju-reboot is not supported when running an action."), "{error}");
        hook.tool("action-log half way")?;
        hook.tool("action-log all the way").map(drop)
    });
    lab.script("a/0", "ping", vec![script]).unwrap();
    let id = ping(&mut lab);
    lab.run_until_idle().unwrap();
    check_ended(&lab, id, TaskStatus::Completed, "");
    assert_eq!(messages(&lab, id), ["half way", "all the way"]);
    assert_eq!(task(&lab, id).messages, 2);
}

#[test]
fn ended_tasks_are_forgotten_when_they_are_old_with_their_operations() {
    let mut lab = started(ACTING, 1);
    lab.configure_model(&[("max-action-results-age", "1h")]).unwrap();
    let id = ping(&mut lab);
    lab.run_until_idle().unwrap();
    lab.advance(std::time::Duration::from_secs(3_500)).unwrap();
    assert_eq!(lab.state().unwrap().operations().count(), 1);
    lab.advance(std::time::Duration::from_secs(200)).unwrap();
    assert!(lab.state().unwrap().task(&id).is_none());
    assert_eq!(lab.state().unwrap().operations().count(), 0);
}

#[test]
fn results_beyond_the_models_bound_push_the_oldest_out() {
    let mut lab = started(ACTING, 1);
    lab.configure_model(&[("max-action-results-size", "1M")]).unwrap();
    let large = Action::run(|hook| {
        let set = format!("x={}", "y".repeat(200_000));
        match hook.run_tool(&["action-set".to_owned(), set], None).exit_code {
            0 => Ok(()),
            _ => Err("refused".to_owned()),
        }
    });
    lab.script("a/0", "ping", vec![large]).unwrap();
    let ids: Vec<TaskId> = (0..8).map(|_| ping(&mut lab)).collect();
    lab.run_until_idle().unwrap();
    let kept: Vec<bool> = ids.iter().map(|id| lab.state().unwrap().task(id).is_some()).collect();
    assert_eq!(kept, [false, false, false, true, true, true, true, true]);
}

#[test]
fn the_leader_is_found_when_the_action_is_asked_for() {
    let mut lab = started(ACTING, 2);
    let leader = lab.state().unwrap().application(&"a".parse().unwrap()).unwrap().leader.clone().unwrap();
    let id = ask(&mut lab, "a/leader", "ping", json!({})).unwrap();
    assert_eq!(task(&lab, id).unit, leader.unit);
    assert_eq!(task(&lab, id).parameters, Parameters::new());
    assert!(ask(&mut lab, "z/leader", "ping", json!({})).unwrap_err().contains("not found"));
}
