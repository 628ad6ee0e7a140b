//! Commands that clients run in a pod.

use serde_json::json;

use super::*;

#[test]
fn a_command_runs_once_its_websockets_are_there() {
    let mut pod = Pod::new("");
    let (change, task) = begin(&mut pod, exec(None));
    connect(&mut pod, &task);
    let again = pod.ask(PodRequest::Websocket(task, WebsocketName::Stdio));
    assert_eq!(again.unwrap_err().status, 404);
    pod.seconds(1_000.0);
    pod.exit("do", 42);
    let shown = pod.change(&change);
    assert_eq!((&shown["status"], &shown["tasks"][0]["data"]), (&json!("Done"), &json!({ "exit-code": 42 })));
}

#[test]
fn a_command_whose_client_does_not_connect_ends() {
    let mut pod = Pod::new("");
    let (change, task) = begin(&mut pod, exec(None));
    pod.ask(PodRequest::Websocket(task.clone(), WebsocketName::Control)).unwrap();
    pod.seconds(6.0);
    assert!(pod.change(&change)["err"].as_str().unwrap().contains("websocket connections: stdio, stderr"));
    assert_eq!(pod.others, [PodOutput::Forget(TaskId::read(&task).unwrap())]);
    assert!(pod.ask(PodRequest::Websocket(task, WebsocketName::Stdio)).is_err());
}

#[test]
fn a_command_that_takes_too_long_is_killed_and_its_output_closed() {
    let mut pod = Pod::new("");
    let (change, task) = begin(&mut pod, exec(Some(3)));
    connect(&mut pod, &task);
    let process = pod.process("do");
    pod.seconds(3.1);
    assert_eq!(pod.signals, [(process, Signal::KILL)]);
    pod.seconds(10.1);
    assert_eq!(pod.others, [PodOutput::Abandon(process)]);
    pod.exit("do", 137);
    assert!(pod.change(&change)["err"].as_str().unwrap().contains("timed out after 3s"));
}
