//! Actions: what their tasks take, and what becomes of them.

use periapt_host_api::{
    TaskId,
    action::{ActionReceiver, EnqueueOperation, EnqueuedOperation, TaskStatus},
    charm::CharmFiles,
    command::{Answer, Command, CommandResult, Force},
};
use serde_json::json;

use crate::world::{DB, World, unit};

const ACTIONS: &str = "backup: {params: {note: {type: string, pattern: \"^x*$\"}}}";

/// `db`, whose one unit can make a backup.
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
    let request = EnqueueOperation {
        action: "backup".into(),
        receivers: receivers.iter().map(|name| name.parse::<ActionReceiver>().unwrap()).collect(),
        parameters: json!({"note": note}).as_object().cloned().unwrap(),
    };
    match world.run(Command::EnqueueOperation(request)).unwrap() {
        Answer::Operation(operation) => operation,
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
    let add = Command::AddUnits { application: "db".parse().unwrap(), count: 9, placement: vec![] };
    world.run(add).unwrap();
    world.settle();
    // More than a tenth of what the request may cost.
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
