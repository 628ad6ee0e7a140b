//! The subject of an operation's entry: whom it concerns, and what it runs in a container.

use periapt_host_api::{
    ModelUuid, UnitName,
    action::EnqueueOperation,
    exec::{self, ExecCommand, ExecRequest},
    exec_session::ExecSessionRequest,
};

/// The most receivers that an entry names; all of them would make it as long as a commit allows.
const NAMED: usize = 8;

/// The most characters of an action's name. A refused one has any length.
const MOST_OF_ACTION: usize = 64;

/// The most characters of a command.
const MOST_OF_COMMAND: usize = 200;

/// Returns the subject of an operation. Parameters of actions and scripts may be secret and are left out. A command in
/// a container is shown: its task keeps it in the clear, and who runs what as root there is what the log is for.
pub(super) fn subject(model: &ModelUuid, request: &EnqueueOperation) -> String {
    let mut parts =
        vec![format!("model {model}"), format!("action {}", shown(&request.action, MOST_OF_ACTION))];
    let named: Vec<String> = request.receivers.iter().take(NAMED).map(ToString::to_string).collect();
    match request.receivers.len().saturating_sub(NAMED) {
        _ if named.is_empty() => {}
        0 => parts.push(format!("unit {}", named.join(" "))),
        others => parts.push(format!("unit {} and {others} more", named.join(" "))),
    }
    if request.action == exec::ACTION
        && exec::names_container(&request.parameters)
        && let Ok(ExecRequest { container: Some(container), command, .. }) =
            ExecRequest::of_parameters(&request.parameters)
    {
        parts.push(format!("container {}", container.as_str()));
        parts.push(format!("command {}", shown(&command.script(), MOST_OF_COMMAND)));
    }
    parts.join(", ")
}

/// Returns the subject of a dialogue with a command in a container. The dialogue itself is not in the audit log: it may be
/// secret, and has no bound.
pub fn session_subject(model: &ModelUuid, unit: &UnitName, request: &ExecSessionRequest) -> String {
    let command = ExecCommand::Words(request.command.clone()).script();
    let (container, command) = (request.container.as_str(), shown(&command, MOST_OF_COMMAND));
    let terminal = if request.terminal.is_some() { ", terminal" } else { "" };
    format!("model {model}, unit {unit}, container {container}{terminal}, command {command}")
}

/// Returns the beginning of a text, with its control characters escaped.
fn shown(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for character in text.chars().take(most) {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if text.chars().nth(most).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use periapt_host_api::action::ActionReceiver;
    use serde_json::json;

    use super::*;

    fn subject_of(action: &str, units: u32, parameters: serde_json::Value) -> String {
        let serde_json::Value::Object(parameters) = parameters else { panic!("no object") };
        let receivers =
            (0..units).map(|unit| ActionReceiver::Unit(format!("web/{unit}").parse().unwrap())).collect();
        let request =
            EnqueueOperation { action: action.into(), receivers, parameters, turns: Default::default() };
        subject(&ModelUuid(uuid::Uuid::nil()), &request).replace(&uuid::Uuid::nil().to_string(), "UUID")
    }

    #[test]
    fn a_command_in_a_container_is_shown_with_its_unit_and_container() {
        let words = json!({"container": "nginx", "command": ["sh", "-c", "echo a\u{1b}[2J\nb"]});
        assert_eq!(
            subject_of(exec::ACTION, 1, words),
            "model UUID, action juju-exec, unit web/0, container nginx, command 'sh' '-c' 'echo a\\u{1b}[2J\\nb'"
        );
        let long = json!({"container": "nginx", "command": ["x".repeat(100_000)]});
        let shown = subject_of(exec::ACTION, 90, long);
        assert!(shown.contains("web/7 and 82 more, container nginx") && shown.ends_with("xx..."), "{shown}");
        assert!(shown.len() < 400, "{shown}");
    }

    #[test]
    fn a_dialogue_is_shown_with_its_command_and_not_with_what_is_said() {
        let command = vec!["sh".to_owned(), "-c".to_owned(), "a\nb".to_owned()];
        let request = ExecSessionRequest { container: "nginx".parse().unwrap(), command, terminal: None };
        let shown = session_subject(&ModelUuid(uuid::Uuid::nil()), &"web/0".parse().unwrap(), &request);
        let expected = "unit web/0, container nginx, command 'sh' '-c' 'a\\nb'";
        assert_eq!(shown.split_once(", ").map(|(_, rest)| rest), Some(expected));
    }

    #[test]
    fn nothing_is_shown_of_scripts_actions_and_what_cannot_be_read() {
        for (action, parameters) in [
            (exec::ACTION, json!({"command": "leader-set password=hunter2"})),
            (exec::ACTION, json!({"command": ["leader-set", "password=hunter2"], "container": null})),
            (exec::ACTION, json!({"command": "hunter2", "container": "nginx"})),
            (exec::ACTION, json!({"command": ["hunter2"], "container": 7})),
            ("rotate", json!({"command": ["hunter2"], "container": "nginx"})),
        ] {
            let shown = subject_of(action, 1, parameters);
            assert_eq!(shown, format!("model UUID, action {action}, unit web/0"));
        }
    }
}
