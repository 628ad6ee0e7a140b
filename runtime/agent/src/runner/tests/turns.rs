//! Who runs next when there is one place.

use std::time::Duration;

use periapt_host_api::{MachineId, TaskId, action::TaskStatus, view::TaskView};

use super::stage::{Did, Stage, Verdict, is_idle};

/// Long enough for all that a runner does without anything from outside.
const A_WHILE: Duration = Duration::from_secs(11);

fn started(did: &[Did], name: &str) -> usize {
    did.iter().filter(|did| matches!(did, Did::Started(unit, _) if unit.to_string() == name)).count()
}

/// Makes config-changed due for the unit on a machine.
async fn readdress(stage: &mut Stage, machine: u32) {
    let machine = stage.view.machines.get_mut(&MachineId(machine)).unwrap();
    machine.addresses_hash.push('+');
    stage.publish().await;
}

#[tokio::test(start_paused = true)]
async fn an_action_that_waits_keeps_its_place_whatever_changes() {
    const UNITS: [&str; 3] = ["app/0", "app/1", "app/2"];
    let mut stage = Stage::with_one_place(&UNITS).await;
    stage.until(|did| UNITS.iter().all(|unit| is_idle(did, unit))).await;
    // The one place is held by a hook of app/1.
    stage.serve_for(A_WHILE).await;
    let before = started(&stage.did, "app/1");
    stage.verdicts.push_back(Verdict::Hold);
    readdress(&mut stage, 1).await;
    stage.until(|did| started(did, "app/1") > before && matches!(did.last(), Some(Did::Committed(_)))).await;
    // An action comes, then a hook, then some news that concern neither.
    let task = TaskView {
        id: TaskId(1),
        unit: "app/0".parse().unwrap(),
        action: "any".to_owned(),
        parameters: Default::default(),
        group: None,
        status: TaskStatus::Pending,
    };
    stage.view.tasks.insert(task.id, task);
    stage.publish().await;
    stage.serve_for(A_WHILE).await;
    readdress(&mut stage, 2).await;
    stage.serve_for(A_WHILE).await;
    for number in 0..3 {
        stage.view.model.as_mut().unwrap().name = format!("test-{number}").parse().unwrap();
        stage.publish().await;
        stage.serve_for(A_WHILE).await;
    }
    let before = started(&stage.did, "app/2");
    stage.let_through().await;
    let begun = |did: &Did| matches!(did, Did::Committed(it) if it.transitions.begin_task.is_some());
    stage.until(|did| did.iter().any(begun) || started(did, "app/2") > before).await;
    assert_eq!(started(&stage.did, "app/2"), before, "who came later went first");
}
