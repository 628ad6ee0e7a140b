//! Hook tools that an operator runs in a hook context of a unit (`hook-model.md` C-9). Each run is a task of an action
//! that all units have, [`ACTION`]; there is no shell in a sandbox, so a command is one tool and its arguments.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{RelationId, UnitName, action::Parameters, charm::ActionMeta, excerpt};

/// The action of such tasks. No charm can declare one of this name (M-10).
pub const ACTION: &str = "juju-exec";

/// Tools that are told or answer secrets' content: parameters and results of tasks are kept as they are.
const CONFIDENTIAL: [&str; 3] = ["secret-add", "secret-get", "secret-set"];

/// What a shell would read as something else than a word.
const OPERATORS: [&str; 12] = ["|", "||", "&", "&&", ";", ";;", "<", ">", ">>", "<<", "2>", "&>"];

/// One run of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExecRequest {
    /// The tool and its arguments.
    pub command: Vec<String>,
    /// The relation that it is about where it names none; none: no relation's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<RelationId>,
    /// The unit at the other end that it is about where it names none; none: the only one there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_unit: Option<UnitName>,
}

/// Why something cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// Nothing is to be run.
    #[error("no commands specified")]
    Empty,
    /// It would take a shell.
    #[error(
        "there is no shell in a sandbox, and {0:?} is a shell's: one hook tool with its arguments can be run"
    )]
    Shell(String),
    /// A quote is not closed.
    #[error("a quote is not closed in {0:?}")]
    Quote(String),
    /// What the tool is told or answers would be kept in the clear.
    #[error("{0} is not run from outside: secret content would be kept with the task")]
    Confidential(String),
    /// A remote unit without a relation that it is in.
    #[error("remote unit: {0}, provided without a relation")]
    NoRelation(UnitName),
    /// Parameters that a client of another version sent, perhaps.
    #[error("parameters of {ACTION} not valid: {0}")]
    Parameters(String),
}

impl ExecRequest {
    /// Reads a command line: one text in which quotes keep blanks together, or words that a shell has read already.
    ///
    /// # Errors
    /// [`ExecError`]
    pub fn new(
        command: &[String],
        relation: Option<RelationId>,
        remote_unit: Option<UnitName>,
    ) -> Result<Self, ExecError> {
        let command = match command {
            [line] => words(line)?,
            words => words.to_vec(),
        };
        let request = Self { command, relation, remote_unit };
        request.check()?;
        Ok(request)
    }

    /// Reads a task's parameters.
    ///
    /// # Errors
    /// [`ExecError`]
    pub fn of_parameters(parameters: &Parameters) -> Result<Self, ExecError> {
        let request: Self = serde_json::from_value(Value::Object(parameters.clone()))
            .map_err(|error| ExecError::Parameters(excerpt::of_message(&error.to_string())))?;
        request.check()?;
        Ok(request)
    }

    /// What such a task has as its parameters.
    pub fn into_parameters(self) -> Parameters {
        match serde_json::to_value(self) {
            Ok(Value::Object(parameters)) => parameters,
            // It is a map of texts and numbers.
            _ => Parameters::new(),
        }
    }

    /// The tool's name.
    pub fn tool(&self) -> &str {
        self.command.first().map(String::as_str).unwrap_or_default()
    }

    fn check(&self) -> Result<(), ExecError> {
        let tool = self.tool();
        if tool.is_empty() {
            return Err(ExecError::Empty);
        }
        let operator = |word: &&String| OPERATORS.contains(&word.as_str());
        if let Some(word) = self
            .command
            .iter()
            .find(operator)
            .or(self.command.first().filter(|first| first.contains(['|', ';', '<', '>', '$', '`', '(', '='])))
        {
            return Err(ExecError::Shell(word.clone()));
        }
        if CONFIDENTIAL.contains(&tool) {
            return Err(ExecError::Confidential(tool.to_owned()));
        }
        match (&self.relation, &self.remote_unit) {
            (None, Some(unit)) => Err(ExecError::NoRelation(unit.clone())),
            _ => Ok(()),
        }
    }
}

/// What the action of such tasks is: it waits for no other action, as Juju's does.
pub fn meta() -> ActionMeta {
    ActionMeta {
        description: "Runs a hook tool.".to_owned(),
        parallel: true,
        execution_group: None,
        params: json!({"type": "object"}),
    }
}

/// Splits a line at blanks as a shell does, and refuses what only a shell could do.
fn words(line: &str) -> Result<Vec<String>, ExecError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let shell = |text: String| Err(ExecError::Shell(text));
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some('"') | None, '$' | '`') => return shell(character.to_string()),
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '\n' | '\\' | '*' | '?') => {
                return shell(character.to_string());
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    match quote {
        Some(_) => Err(ExecError::Quote(line.chars().take(64).collect())),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &[&str]) -> Result<Vec<String>, String> {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let request = ExecRequest::new(&command, None, None).map_err(|error| error.to_string())?;
        let parameters = request.clone().into_parameters();
        assert_eq!(ExecRequest::of_parameters(&parameters), Ok(request.clone()), "it is read back");
        Ok(request.command)
    }

    #[test]
    fn a_command_is_one_text_or_words() {
        for (command, expected) in [
            (vec!["relation-get -r db:1 - mysql/0"], vec!["relation-get", "-r", "db:1", "-", "mysql/0"]),
            (vec!["status-set active 'all; well' \"\""], vec!["status-set", "active", "all; well", ""]),
            (vec!["status-set", "active", "a > b; c"], vec!["status-set", "active", "a > b; c"]),
            (vec!["leader-get"], vec!["leader-get"]),
        ] {
            assert_eq!(check(&command).unwrap(), expected, "{command:?}");
        }
    }

    #[test]
    fn what_takes_a_shell_is_refused_by_name() {
        let shell = |what: &str| {
            format!(
                "there is no shell in a sandbox, and {what:?} is a shell's: one hook tool with its arguments can be run"
            )
        };
        for (command, error) in [
            (vec!["status-set active; leader-get"], shell(";")),
            (vec!["leader-get | wc"], shell("|")),
            (vec!["leader-get && reboot"], shell("&")),
            (vec!["leader-get > /tmp/x"], shell(">")),
            (vec!["echo $HOME"], shell("$")),
            (vec!["echo \"`id`\""], shell("`")),
            (vec!["leader-get", "|", "wc"], shell("|")),
            (vec!["leader-get", "&&", "reboot"], shell("&&")),
            (vec!["A=b", "leader-get"], shell("A=b")),
            (vec!["status-set 'active"], "a quote is not closed in \"status-set 'active\"".to_owned()),
            (vec![], "no commands specified".to_owned()),
            (vec![" "], "no commands specified".to_owned()),
            (
                vec!["secret-get", "x"],
                "secret-get is not run from outside: secret content would be kept with the task".to_owned(),
            ),
        ] {
            assert_eq!(check(&command).unwrap_err(), error, "{command:?}");
        }
    }

    #[test]
    fn a_remote_unit_is_one_of_a_relation() {
        let (command, unit) = (["relation-get".to_owned()], Some("b/0".parse().unwrap()));
        let error = ExecRequest::new(&command, None, unit.clone()).unwrap_err();
        assert_eq!(error.to_string(), "remote unit: b/0, provided without a relation");
        assert!(ExecRequest::new(&command, Some(RelationId(1)), unit).is_ok());
        let odd = Parameters::from_iter([("script".to_owned(), json!("ls"))]);
        assert!(matches!(ExecRequest::of_parameters(&odd), Err(ExecError::Parameters(_))));
    }
}
