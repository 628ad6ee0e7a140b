//! Actions, through both interfaces (`docs/hook-model.md` 5.10).

use periapt_hook::{CallError, ContextError, HookContext, OutputStream};
use periapt_host_api::{TaskId, action::TaskStatus, commit::EarlyEffect, event::Event, view::TaskView};
use serde_json::{Value, json};

use crate::world::{Hook, World, now, unit};

/// Returns a world in which `a/0` runs `backup` with these parameters.
fn action(parameters: Value) -> World {
    let mut world = World::new().event(Event::Action { name: "backup".to_owned(), task: TaskId(7) });
    let task = TaskView {
        id: TaskId(7),
        unit: unit("a/0"),
        action: "backup".to_owned(),
        parameters: parameters.as_object().cloned().unwrap(),
        group: None,
        status: TaskStatus::Running,
    };
    world.inputs.view.tasks.insert(TaskId(7), task);
    world
}

fn started() -> Hook {
    action(json!({"level": 3, "fast": true, "target": {"dir": "/srv", "tags": ["a", "b"]}})).start()
}

#[test]
fn messages_leave_at_once_and_are_bounded() {
    let mut hook = action(json!({})).limits(|limits| limits.task_messages = 2).start();
    hook.check(&[("action-log half way", "")]);
    hook.context.action_log(now(), "more").unwrap();
    let messages: Vec<_> = hook.context.drain_early().into_iter().map(|(_, effect)| effect).collect();
    let message = |text: &str| EarlyEffect::TaskMessage { task: TaskId(7), message: text.to_owned() };
    assert_eq!(messages, [message("half way"), message("more")]);
    hook.check_errors(&[("action-log again", 1, "an action may send at most 2 messages")]);
    let long = "x".repeat(20_000);
    assert!(matches!(hook.context.action_log(now(), &long), Err(CallError::LimitExceeded(_))));
}

#[test]
fn messages_are_paid_from_the_budget_of_the_log() {
    let mut hook = action(json!({})).limits(|limits| limits.log_bytes = 1_000).start();
    hook.context.action_log(now(), &"x".repeat(800)).unwrap();
    let refused = hook.context.action_log(now(), &"x".repeat(800)).unwrap_err();
    assert_eq!(refused, CallError::LimitExceeded("the action's log is full at 1000 bytes".into()));
    hook.context.action_log(now(), "short").unwrap();
}

#[test]
fn results_and_output_are_bounded() {
    let mut hook =
        action(json!({})).limits(|limits| (limits.result_bytes, limits.output_bytes) = (40, 8)).start();
    hook.check(&[("action-set a=1", "")]);
    let long = format!("action-set b={}", "x".repeat(40));
    let error = "the action's results would take 56 bytes; at most 40 are allowed";
    hook.check_errors(&[(&long, 1, error)]);
    for text in ["12345", "6789\n", "more"] {
        hook.context.capture_output(OutputStream::Stdout, text.as_bytes());
    }
    hook.context.capture_output(OutputStream::Stderr, b"oh\n");
    let left = hook.finish().action.unwrap();
    assert_eq!(Value::Object(left.values), json!({"a": "1"}));
    assert_eq!((left.stdout.as_str(), left.stderr.as_str()), ("12345678\n(cut after 8 bytes)\n", "oh\n"));
}

#[test]
fn a_key_that_leads_too_deep_is_refused() {
    let mut hook = started();
    let deep = vec!["a"; 100].join(".");
    let output = hook.tool(&format!("action-set {deep}=x"));
    assert!(output.exit_code == 2 && output.stderr.contains("more than 32 deep"), "{}", output.stderr);
}

#[test]
fn outside_an_action_nothing_of_it_works() {
    let mut hook = World::new().start();
    for line in ["action-get", "action-get a", "action-set a=b", "action-log x", "action-fail"] {
        hook.check_errors(&[(line, 1, "not running an action")]);
    }
    assert!(matches!(hook.context.action_params(), Err(CallError::WrongContext(_))));
    assert!(matches!(hook.context.action_fail(None), Err(CallError::WrongContext(_))));
    hook.context.capture_output(OutputStream::Stdout, b"x");
    assert_eq!(hook.finish().action, None);
}

#[test]
fn the_variables_name_the_action_and_no_hook() {
    let variables = started().context.environment();
    let of = |name: &str| {
        let mut found = variables.iter().filter(|(variable, _)| variable == name);
        found.next().map(|(_, value)| value.clone())
    };
    for (name, value) in [
        ("JUJU_HOOK_NAME", ""),
        ("JUJU_DISPATCH_PATH", "actions/backup"),
        ("JUJU_ACTION_NAME", "backup"),
        ("JUJU_ACTION_UUID", "7"),
        ("JUJU_ACTION_TAG", "action-7"),
    ] {
        assert_eq!(of(name).as_deref(), Some(value), "{name}");
    }
    let hook = World::new().start();
    assert!(hook.context.environment().iter().all(|(name, _)| !name.starts_with("JUJU_ACTION")));
}

#[test]
fn an_action_needs_its_task_in_the_snapshot() {
    let world = World::new().event(Event::Action { name: "backup".to_owned(), task: TaskId(7) });
    let error = HookContext::new(world.inputs).unwrap_err();
    assert_eq!(error, ContextError::Missing { unit: unit("a/0"), what: "the task" });
}
