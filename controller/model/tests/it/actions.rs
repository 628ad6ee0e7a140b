//! Actions: the costs of tasks, and their ends.

use periapt_host_api::{
    Refusal, TaskId,
    action::{
        ActionConcurrency, ActionReceiver, EnqueueOperation, EnqueuedOperation, TaskEnd, TaskOutcome,
        TaskResults, TaskStatus,
    },
    agent::RunnerCommand,
    charm::CharmFiles,
    command::{Answer, Command, CommandResult, Force},
    commit::{EarlyEffect, EarlyItem},
};
use periapt_model::RecordBody;
use serde_json::json;

use crate::world::{DB, World, unit};

const ACTIONS: &str = "backup: {params: {note: {type: string, pattern: \"^x*$\"}}}";

/// Returns a world with `db`, whose only unit can run the action backup.
fn world() -> World {
    let mut world = World::new();
    let files =
        CharmFiles { metadata: Some(DB.into()), actions: Some(ACTIONS.into()), ..CharmFiles::default() };
    let charm = world.upload_files(&files);
    world.deploy(charm, "db", 1);
    world.start("db/0");
    world
}

fn enqueue(world: &mut World, receivers: &[&str], note: &str) -> EnqueuedOperation {
    enqueue_in_turn(world, receivers, note, ActionConcurrency::default()).unwrap()
}

fn enqueue_in_turn(
    world: &mut World,
    receivers: &[&str],
    note: &str,
    turns: ActionConcurrency,
) -> Result<EnqueuedOperation, Refusal> {
    let request = EnqueueOperation {
        action: "backup".into(),
        receivers: receivers.iter().map(|name| name.parse::<ActionReceiver>().unwrap()).collect(),
        parameters: json!({"note": note}).as_object().cloned().unwrap(),
        turns,
    };
    match world.run(Command::EnqueueOperation(request))? {
        Answer::Operation(operation) => Ok(operation),
        other => panic!("{other:?}"),
    }
}

fn task_of(operation: &EnqueuedOperation) -> TaskId {
    match &operation.tasks[0].task {
        CommandResult::Ok((task, _)) => *task,
        CommandResult::Error(refusal) => panic!("{refusal}"),
    }
}

#[test]
fn parameters_are_checked_once_for_all_units_of_a_charm() {
    let mut world = world();
    let add = Command::AddUnits {
        application: "db".parse().unwrap(),
        count: 9,
        placement: vec![],
        attach_storage: vec![],
    };
    world.run(add).unwrap();
    world.settle();
    // Together they cost more than a tenth of what the request may cost.
    let names: Vec<String> = (0..10).map(|number| format!("db/{number}")).collect();
    let receivers: Vec<&str> = names.iter().map(String::as_str).collect();
    let operation = enqueue(&mut world, &receivers, &"x".repeat(8 << 10));
    assert!(operation.tasks.iter().all(|task| matches!(task.task, CommandResult::Ok(_))));
}

#[test]
fn tasks_of_a_unit_that_is_gone_end_however_large_they_are() {
    let mut world = world();
    let note = "x".repeat(60 << 10);
    let tasks: Vec<TaskId> = (0..40).map(|_| task_of(&enqueue(&mut world, &["db/0"], &note))).collect();
    let force = Some(Force { max_wait: 0 });
    world.run(Command::RemoveUnit { unit: unit("db/0"), force, storage: Default::default() }).unwrap();
    world.settle();
    assert!(!world.has_unit("db/0"));
    for task in tasks {
        assert_eq!(world.state().task(&task).unwrap().status, TaskStatus::Cancelled);
    }
}

/// Enqueues an operation on `db/0`, and returns its only task, running.
fn begun(world: &mut World) -> TaskId {
    let task = task_of(&enqueue(world, &["db/0"], ""));
    world.commit("db/0", |commit| commit.transitions.begin_task = Some(task)).unwrap();
    task
}

fn say(world: &mut World, task: TaskId, messages: u64, bytes: usize) {
    let first = world.item("db/0", EarlyEffect::TaskMessage { task, message: "x".repeat(bytes) });
    let items: Vec<_> =
        (0..messages).map(|number| EarlyItem { number: first.number + number, ..first.clone() }).collect();
    let incarnation = world.commit_of("db/0").incarnation;
    world.runner_call("a1", RunnerCommand::Early { unit: unit("db/0"), incarnation, items }).unwrap();
}

fn end(world: &mut World, task: TaskId) {
    let (message, results) = (String::new(), TaskResults::default());
    let end = TaskEnd { task, outcome: TaskOutcome::Completed, message, results };
    world.commit("db/0", |commit| commit.transitions.end_task = Some(end)).unwrap();
}

fn keep_a_mebibyte(world: &mut World) {
    let set = [("max-action-results-size".to_owned(), "1M".to_owned())].into();
    world.run(Command::SetModelConfig { set, reset: vec![] }).unwrap();
}

#[test]
fn what_an_action_said_counts_into_what_is_kept_of_it() {
    let mut world = world();
    keep_a_mebibyte(&mut world);
    let (first, second) = (begun(&mut world), begun(&mut world));
    for task in [first, second] {
        say(&mut world, task, 40, 16 << 10);
    }
    end(&mut world, first);
    world.settle();
    assert!(world.state().task(&first).is_some(), "half a mebibyte is kept");
    end(&mut world, second);
    world.settle();
    assert!(world.state().task(&first).is_none(), "with the second it is more than one, and the oldest goes");
    assert!(world.state().task(&second).is_some());
}

#[test]
fn tasks_that_were_cancelled_are_bounded_by_their_parameters() {
    let mut world = world();
    keep_a_mebibyte(&mut world);
    let tasks: Vec<TaskId> = (0..30)
        .map(|_| {
            let task = task_of(&enqueue(&mut world, &["db/0"], &"x".repeat(60 << 10)));
            world.run(Command::CancelTask { task }).unwrap();
            task
        })
        .collect();
    world.settle();
    let kept = tasks.iter().filter(|task| world.state().task(task).is_some()).count();
    assert!((10..18).contains(&kept), "{kept} of 60 KiB");
}

#[test]
fn messages_of_one_task_are_bounded_whatever_its_agent_sends() {
    let mut world = world();
    let task = begun(&mut world);
    say(&mut world, task, 1_200, 10);
    assert_eq!(world.state().task(&task).unwrap().messages, 1_000);
    let kept = world.records.iter().filter(|record| matches!(record.body, RecordBody::TaskMessage(_)));
    assert_eq!(kept.count(), 1_000);
    end(&mut world, task);
}

/// `docs/hook-model.md` 1.3: the charm decides on parallel runs, unless the operator does.
#[test]
fn beside_what_an_action_runs_is_for_the_operator_to_say() {
    let mut world = world();
    let mut group = |parallel: Option<bool>, execution_group: Option<&str>| {
        let turns = ActionConcurrency { parallel, execution_group: execution_group.map(str::to_owned) };
        let operation = enqueue_in_turn(&mut world, &["db/0"], "x", turns)?;
        Ok::<_, Refusal>(world.state().task(&task_of(&operation)).unwrap().group.clone())
    };
    assert_eq!(group(None, None).unwrap().as_deref(), Some(""));
    assert_eq!(group(Some(true), None).unwrap(), None);
    assert_eq!(group(Some(false), None).unwrap().as_deref(), Some(""));
    for parallel in [None, Some(true), Some(false)] {
        assert_eq!(group(parallel, Some("rolling")).unwrap().as_deref(), Some("rolling"));
    }
    for wrong in [String::new(), "g".repeat(200)] {
        let refusal = group(None, Some(&wrong)).unwrap_err();
        assert!(refusal.message.starts_with("the name of an execution group takes 1 to "), "{refusal}");
    }
}
