//! Scripts that operators run in a hook context of a unit: `docs/hook-model.md` C-9, U-22, rule 12.

use std::time::Duration;

use periapt_host_api::{
    TaskId, UnitName,
    action::{ActionConcurrency, ActionReceiver, EnqueueOperation, TaskResults, TaskStatus},
    command::{Answer, Command, CommandResult},
    exec::{self, ExecCommand, ExecRequest},
    status::{AgentStatus, WorkloadStatus},
};
use periapt_lab::Lab;
use periapt_model::{RecordBody, entity::Task};

use crate::bench::{LOCAL, Related, bag_of, fails, started, workload};

/// Enqueues a script on one unit. Returns its task, or the reason of the refusal.
fn ask(lab: &mut Lab, unit: &str, request: ExecRequest) -> Result<TaskId, String> {
    let receivers: Vec<ActionReceiver> = vec![unit.parse().unwrap()];
    let request = EnqueueOperation {
        action: exec::ACTION.to_owned(),
        receivers,
        parameters: request.into_parameters(),
        turns: ActionConcurrency::default(),
    };
    match lab.command(&Command::EnqueueOperation(request)).unwrap() {
        Answer::Operation(mut enqueued) => match enqueued.tasks.remove(0).task {
            CommandResult::Ok((id, _)) => Ok(id),
            CommandResult::Error(refusal) => Err(refusal.message),
        },
        other => panic!("{other:?}"),
    }
}

fn request(line: &str) -> ExecRequest {
    ExecRequest::new(&[line.to_owned()], None, None).unwrap()
}

/// Runs a script on `a/0` to its end.
fn run(lab: &mut Lab, request: ExecRequest) -> (Task, TaskResults) {
    let id = ask(lab, "a/0", request).unwrap();
    lab.run_until_idle().unwrap();
    ended(lab, id)
}

fn ended(lab: &Lab, id: TaskId) -> (Task, TaskResults) {
    let task = Task::clone(lab.state().unwrap().task(&id).unwrap());
    let name = Task::records(id);
    let mut results = lab.records_of(&name).filter_map(|record| match record {
        RecordBody::TaskResults(results) => Some(TaskResults::clone(results)),
        _ => None,
    });
    (task, results.next().unwrap())
}

#[test]
fn a_tool_reads_and_writes_as_in_a_hook_of_the_unit() {
    let mut lab = started(LOCAL, 1);
    let (task, results) = run(&mut lab, request("config-get colour"));
    assert_eq!(
        (task.status, results.return_code, results.stdout.as_str()),
        (TaskStatus::Completed, 0, "red\n")
    );
    let (_, results) = run(&mut lab, request("leader-set key=value"));
    assert_eq!(results.return_code, 0, "{}", results.stderr);
    let (_, results) = run(&mut lab, request("leader-get key"));
    assert_eq!(results.stdout, "value\n");
    run(&mut lab, request("status-set active 'by hand'"));
    assert_eq!(workload(&lab, "a/0"), (WorkloadStatus::Active, "by hand".to_owned()));
}

#[test]
fn a_code_that_is_not_0_is_a_result() {
    let mut lab = started(LOCAL, 1);
    let (task, results) = run(&mut lab, request("relation-get -r db:7 - b/0"));
    assert_eq!((task.status, task.message.as_str(), results.return_code), (TaskStatus::Completed, "", 2));
    assert_eq!(results.stderr, "ERROR invalid value \"db:7\" for option -r: relation not found\n");
    let (task, results) = run(&mut lab, request("apt install emacs"));
    assert_eq!((task.status, results.return_code), (TaskStatus::Completed, 127));
    assert!(results.stderr.starts_with("apt: command not found: a sandbox has no programs"), "{results:?}");
    // Effects before the failure are committed all the same.
    let (_, results) = run(&mut lab, request("status-set active 'half done'; exit 3"));
    assert_eq!(results.return_code, 3);
    assert_eq!(workload(&lab, "a/0"), (WorkloadStatus::Active, "half done".to_owned()));
    let (_, agent) = lab.statuses("a/0").unwrap();
    assert_eq!(agent.status, AgentStatus::Idle);
}

#[test]
fn a_script_is_one_run_of_its_hook_tools() {
    let mut lab = started(LOCAL, 1);
    let script = "leader-set colour=$(config-get colour) && echo set; sleep 60; leader-get | grep -c red";
    let began = lab.now();
    let (task, results) = run(&mut lab, request(script));
    assert_eq!((task.status, results.return_code), (TaskStatus::Completed, 0), "{results:?}");
    assert_eq!(results.stdout, "set\n1\n");
    assert!(lab.now() >= began + Duration::from_secs(60));
}

#[test]
fn a_script_without_an_end_is_stopped_and_leaves_nothing() {
    let mut lab = started(LOCAL, 1);
    let (task, results) =
        run(&mut lab, request("leader-set colour=none; echo begun; while true; do :; done"));
    assert_eq!((task.status, results.stdout.as_str()), (TaskStatus::Failed, "begun\n"));
    assert!(task.message.contains("the script used up its work"), "{}", task.message);
    let (_, results) = run(&mut lab, request("leader-get colour"));
    assert_eq!(results.stdout, "");
    let (_, agent) = lab.statuses("a/0").unwrap();
    assert_eq!(agent.status, AgentStatus::Idle);
}

#[test]
fn a_task_of_an_older_client_is_taken_as_it_stands() {
    let mut lab = started(LOCAL, 1);
    let words = ["status-set", "active", "it's $5; <b>"].map(str::to_owned).to_vec();
    let (_, results) = run(&mut lab, ExecRequest { command: ExecCommand::Words(words), ..request(":") });
    assert_eq!(results.return_code, 0, "{}", results.stderr);
    assert_eq!(workload(&lab, "a/0").1, "it's $5; <b>");
}

#[test]
fn a_unit_in_error_runs_tools_and_stays_in_error() {
    let mut lab = started(LOCAL, 1);
    lab.script("a/0", "config-changed", fails()).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(workload(&lab, "a/0").0, WorkloadStatus::Error);
    let id = ask(&mut lab, "a/0", request("config-get colour")).unwrap();
    lab.run_until_idle().unwrap();
    let (task, results) = ended(&lab, id);
    assert_eq!((task.status, results.stdout.as_str()), (TaskStatus::Completed, "blue\n"));
    assert_eq!(workload(&lab, "a/0").0, WorkloadStatus::Error);
}

#[test]
fn a_tool_may_be_about_a_relation_and_one_unit_in_it() {
    let mut bench = Related::joined(2);
    let relation = bench.relation;
    bench.lab.manual_unit("b/1").unwrap().write(relation, &[("host", "10.0.0.5")]).unwrap();
    bench.run();
    let about = |line: &str, unit: Option<&str>| ExecRequest {
        relation: Some(relation),
        remote_unit: unit.map(|unit| unit.parse::<UnitName>().unwrap()),
        ..request(line)
    };
    let (_, results) = run(&mut bench.lab, about("relation-get host", Some("b/1")));
    assert_eq!(results.stdout, "10.0.0.5\n", "{}", results.stderr);
    let script = "echo $JUJU_RELATION_ID $JUJU_REMOTE_APP $JUJU_REMOTE_UNIT";
    let (_, results) = run(&mut bench.lab, about(script, Some("b/1")));
    assert!(results.stdout.ends_with(&format!(":{relation} b b/1\n")), "{}", results.stdout);
    run(&mut bench.lab, about("relation-set key=value", Some("b/0")));
    assert_eq!(bag_of(&bench.lab, relation, "a/0")["key"], "value");
    for (unit, error) in [
        (None, "unable to determine remote-unit, please disambiguate: [b/0 b/1]"),
        (Some("b/7"), "no remote unit found: b/7"),
    ] {
        let (task, _) = run(&mut bench.lab, about("relation-get", unit));
        assert_eq!((task.status, task.message.as_str()), (TaskStatus::Failed, error));
    }
    let nowhere = ExecRequest { relation: Some(periapt_host_api::RelationId(77)), ..request("relation-get") };
    let (task, _) = run(&mut bench.lab, nowhere);
    assert_eq!(task.message, "unable to find relation id: 77");
}

#[test]
fn what_is_no_tool_with_arguments_is_refused_when_it_is_asked_for() {
    let mut lab = started(LOCAL, 1);
    let refused = "secret-get is not run from outside: secret content would be stored with the task";
    for (command, error) in [
        (ExecCommand::Words(vec!["secret-get".to_owned(), "x".to_owned()]), refused),
        (ExecCommand::Script("echo $(secret-get x)".to_owned()), refused),
        (ExecCommand::Words(Vec::new()), "no commands specified"),
        (ExecCommand::Script(" ".to_owned()), "no commands specified"),
    ] {
        let wrong = ExecRequest { command, relation: None, remote_unit: None, container: None, stdin: None };
        assert_eq!(ask(&mut lab, "a/0", wrong), Err(error.to_owned()));
    }
}
