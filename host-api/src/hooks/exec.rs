//! Scripts that operators run in a hook context of a unit (`docs/hook-model.md` C-9). Each run is a task of an action that
//! all units have, [`ACTION`]. The script is a text here; `periapt-shell` parses it.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};

use crate::{ContainerName, RelationId, UnitName, action::Parameters, charm::ActionMeta, excerpt};

/// The action of such tasks. No charm can declare one of this name (M-10).
pub const ACTION: &str = "juju-exec";

/// The most bytes of a command's standard input. It is one of the parameters of a task, in base64, beside the command:
/// [`MAX_PARAMETER_BYTES`](crate::action::MAX_PARAMETER_BYTES).
pub const MAX_STDIN_BYTES: usize = 40 << 10;

/// The parameter with the standard input.
const STDIN: &str = "stdin";

/// Hook tools that take or return secret content. Tasks keep their parameters and results in the clear.
const CONFIDENTIAL: [&str; 3] = ["secret-add", "secret-get", "secret-set"];

/// Returns true if `juju-exec` may not run a tool, because the tool takes or returns secret content.
pub fn is_confidential(tool: &str) -> bool {
    CONFIDENTIAL.contains(&tool)
}

/// Returns true if the parameters of a run name a container. Then it is a program there, or refused, and never a
/// script.
pub fn names_container(parameters: &Parameters) -> bool {
    parameters.get("container").is_some_and(|container| !container.is_null())
}

/// Removes the standard input from the parameters of a run that has ended: it may be secret, and nothing needs it any more.
pub fn forget_stdin(parameters: &mut Parameters) {
    parameters.remove(STDIN);
}

/// The standard input of a command in a container. Debug output has its size alone.
#[derive(Clone, PartialEq, Eq)]
pub struct ExecInput(Vec<u8>);

impl ExecInput {
    /// Takes the whole input.
    ///
    /// # Errors
    /// [`ExecError::LargeStdin`]
    pub fn new(bytes: Vec<u8>) -> Result<Self, ExecError> {
        match bytes.len() {
            0..=MAX_STDIN_BYTES => Ok(Self(bytes)),
            length => Err(ExecError::LargeStdin(length)),
        }
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl fmt::Debug for ExecInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExecInput({} bytes)", self.0.len())
    }
}

impl Serialize for ExecInput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for ExecInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(|_| de::Error::custom("standard input is not base64"))?;
        Self::new(bytes).map_err(de::Error::custom)
    }
}

/// The command of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecCommand {
    /// A script of hook tools.
    Script(String),
    /// One command and its arguments. Older clients, which know no scripts, send this form.
    Words(Vec<String>),
}

impl ExecCommand {
    /// Returns the command as a script.
    pub fn script(&self) -> String {
        match self {
            Self::Script(text) => text.clone(),
            Self::Words(words) => {
                let quoted: Vec<String> =
                    words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
                quoted.join(" ")
            }
        }
    }

    /// Reads a command line as Juju's client does: one word is a script. Several words are quoted so that a shell
    /// reads them as they are; operators that stand alone stay operators.
    fn of_line(words: &[String]) -> Self {
        match words {
            [script] => Self::Script(script.clone()),
            words => Self::Script(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
        }
    }
}

/// Returns a word, in double quotes if it has blanks or characters that are special within double quotes.
fn quoted(word: &str) -> String {
    let special = |character: char| matches!(character, '"' | '$' | '\\');
    if !word.is_empty() && !word.contains(|character: char| character.is_whitespace() || special(character)) {
        return word.to_owned();
    }
    let mut text = String::from('"');
    for character in word.chars() {
        if special(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
    text
}

impl Serialize for ExecCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Script(text) => serializer.serialize_str(text),
            Self::Words(words) => serializer.collect_seq(words),
        }
    }
}

impl<'de> Deserialize<'de> for ExecCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = ExecCommand;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a script, or a command and its arguments")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ExecCommand, E> {
                Ok(ExecCommand::Script(text.to_owned()))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut words: A) -> Result<ExecCommand, A::Error> {
                let mut command = Vec::new();
                while let Some(word) = words.next_element()? {
                    command.push(word);
                }
                Ok(ExecCommand::Words(command))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// One run of one script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExecRequest {
    /// The script.
    pub command: ExecCommand,
    /// The relation of hook tools that name none. `None` means no relation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<RelationId>,
    /// The remote unit of hook tools that name none. `None` means the relation's only remote unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_unit: Option<UnitName>,
    /// The container in which the command runs as a program with its arguments. `None` means a script of hook tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerName>,
    /// The standard input of a command in a container. `None` means an empty one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<ExecInput>,
}

/// The reason that a command cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The command is empty.
    #[error("no commands specified")]
    Empty,
    /// The task would keep the tool's arguments or output in the clear.
    #[error("{0} is not run from outside: secret content would be stored with the task")]
    Confidential(String),
    /// A relation is given for a command in a container, which has no hook tools.
    #[error("a command in a container has no relation")]
    RelationInContainer,
    /// A script is given a standard input, which commands in containers have.
    #[error("a script has no standard input: a command in a container has one")]
    StdinOfScript,
    /// The standard input has more bytes than a task keeps.
    #[error("standard input has {0} bytes, at most {MAX_STDIN_BYTES} are allowed")]
    LargeStdin(usize),
    /// A remote unit is given, and no relation.
    #[error("remote unit: {0}, provided without a relation")]
    NoRelation(UnitName),
    /// The task's parameters are malformed, for example because they come from a client of another version.
    #[error("parameters of {ACTION} not valid: {0}")]
    Parameters(String),
}

impl ExecRequest {
    /// Creates a request from a command line: one text that is a script, or words that a shell has split.
    ///
    /// # Errors
    /// [`ExecError`]
    pub fn new(
        command: &[String],
        relation: Option<RelationId>,
        remote_unit: Option<UnitName>,
    ) -> Result<Self, ExecError> {
        let command = ExecCommand::of_line(command);
        let request = Self { command, relation, remote_unit, container: None, stdin: None };
        request.check()?;
        Ok(request)
    }

    /// Creates a request for a program in a container, with its arguments.
    ///
    /// # Errors
    /// [`ExecError`]
    pub fn in_container(command: &[String], container: ContainerName) -> Result<Self, ExecError> {
        let command = ExecCommand::Words(command.to_vec());
        let container = Some(container);
        let request = Self { command, relation: None, remote_unit: None, container, stdin: None };
        request.check()?;
        Ok(request)
    }

    /// Reads the parameters of a task.
    ///
    /// # Errors
    /// [`ExecError`]
    pub fn of_parameters(parameters: &Parameters) -> Result<Self, ExecError> {
        let request: Self = serde_json::from_value(Value::Object(parameters.clone()))
            .map_err(|error| ExecError::Parameters(excerpt::of_message(&error.to_string())))?;
        request.check()?;
        Ok(request)
    }

    /// Returns the parameters of a task.
    pub fn into_parameters(self) -> Parameters {
        match serde_json::to_value(self) {
            Ok(Value::Object(parameters)) => parameters,
            // A struct always becomes an object.
            _ => Parameters::new(),
        }
    }

    fn check(&self) -> Result<(), ExecError> {
        let script = self.command.script();
        if script.trim().is_empty() {
            return Err(ExecError::Empty);
        }
        if self.container.is_some() {
            // The script's text quotes an empty word.
            return match (&self.command, &self.relation) {
                (ExecCommand::Words(words), None) if words.first().is_some_and(|word| !word.is_empty()) => {
                    Ok(())
                }
                (_, None) => Err(ExecError::Empty),
                (_, Some(_)) => Err(ExecError::RelationInContainer),
            };
        }
        if self.stdin.is_some() {
            return Err(ExecError::StdinOfScript);
        }
        if let Some(tool) = confidential(&script) {
            return Err(ExecError::Confidential(tool.to_owned()));
        }
        match (&self.relation, &self.remote_unit) {
            (None, Some(unit)) => Err(ExecError::NoRelation(unit.clone())),
            _ => Ok(()),
        }
    }
}

/// Finds the first tool in a script that `juju-exec` may not run, at any position: the task would keep its arguments.
/// A script can hide the name, and then the tool fails when it runs.
fn confidential(script: &str) -> Option<&str> {
    let in_name = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
    script.split(|character| !in_name(character)).find(|word| is_confidential(word))
}

/// Returns the definition of the action. It waits for no other action, as in Juju.
pub fn meta() -> ActionMeta {
    ActionMeta {
        description: "Runs a script of hook tools.".to_owned(),
        parallel: true,
        execution_group: None,
        params: json!({"type": "object"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &[&str]) -> Result<String, String> {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let request = ExecRequest::new(&command, None, None).map_err(|error| error.to_string())?;
        let parameters = request.clone().into_parameters();
        assert_eq!(ExecRequest::of_parameters(&parameters), Ok(request.clone()), "it is read back");
        Ok(request.command.script())
    }

    #[test]
    fn a_command_is_one_script_or_words_as_juju_quotes_them() {
        for (command, expected) in [
            (vec!["relation-get -r db:1 - mysql/0"], "relation-get -r db:1 - mysql/0"),
            (vec!["echo $HOME | wc"], "echo $HOME | wc"),
            (vec!["status-set", "active", "a > b; c"], "status-set active \"a > b; c\""),
            (vec!["echo", "$HOME", "a\"b", "c\\"], r#"echo "\$HOME" "a\"b" "c\\""#),
            // The shell interprets operators that stand alone, in Juju as well.
            (vec!["leader-get", "|", "wc"], "leader-get | wc"),
            (vec!["echo", ""], "echo \"\""),
            (vec!["leader-get"], "leader-get"),
        ] {
            assert_eq!(check(&command).unwrap(), expected, "{command:?}");
        }
    }

    #[test]
    fn what_names_a_container_is_a_program_there_or_refused_and_never_a_script() {
        for (parameters, is_script) in [
            (json!({"command": "leader-get"}), true),
            (json!({"command": ["leader-get"], "container": null}), true),
            (json!({"command": ["leader-get"], "container": "web"}), false),
            (json!({"command": "leader-get", "container": "web"}), false),
            (json!({"command": ["leader-get"], "container": ""}), false),
            (json!({"command": ["leader-get"], "container": ["web"]}), false),
        ] {
            let Value::Object(parameters) = parameters else { panic!("no parameters") };
            assert_eq!(names_container(&parameters), !is_script, "{parameters:?}");
            let runs_script =
                ExecRequest::of_parameters(&parameters).is_ok_and(|request| request.container.is_none());
            assert_eq!(runs_script, is_script, "{parameters:?}");
        }
    }

    #[test]
    fn words_of_older_clients_are_taken_as_they_stand() {
        let command = json!(["status-set", "active", "it's $5; <b>"]);
        let request =
            ExecRequest::of_parameters(&Parameters::from_iter([("command".to_owned(), command.clone())]));
        let request = request.unwrap();
        assert_eq!(request.command.script(), r"'status-set' 'active' 'it'\''s $5; <b>'");
        assert_eq!(request.into_parameters()["command"], command);
    }

    #[test]
    fn scripts_that_speak_of_secrets_content_are_refused_wherever_they_do() {
        for (command, error) in [
            (vec![], "no commands specified"),
            (vec![" \n"], "no commands specified"),
            (
                vec!["secret-get", "x"],
                "secret-get is not run from outside: secret content would be stored with the task",
            ),
            (
                vec!["true && x=$(secret-add password=hunter2)"],
                "secret-add is not run from outside: secret content would be stored with the task",
            ),
            (
                vec!["sh -c 'secret-set x password=hunter2'"],
                "secret-set is not run from outside: secret content would be stored with the task",
            ),
        ] {
            assert_eq!(check(&command).unwrap_err(), error, "{command:?}");
        }
        for command in ["secret-ids", "relation-get my-secret-get", "echo secret-getter"] {
            assert!(check(&[command]).is_ok(), "{command}");
        }
    }

    #[test]
    fn a_command_in_a_container_is_a_program_with_its_arguments() {
        let words = ["secret-get", "a b", "$HOME"].map(str::to_owned);
        let request = ExecRequest::in_container(&words, "web".parse().unwrap()).unwrap();
        assert_eq!(request.command, ExecCommand::Words(words.to_vec()));
        assert_eq!(ExecRequest::of_parameters(&request.clone().into_parameters()), Ok(request.clone()));
        for words in [vec![], vec![String::new()]] {
            let refused = ExecRequest::in_container(&words, "web".parse().unwrap());
            assert_eq!(refused, Err(ExecError::Empty), "{words:?}");
        }
        let parameters = ExecRequest { relation: Some(RelationId(1)), ..request }.into_parameters();
        assert_eq!(ExecRequest::of_parameters(&parameters), Err(ExecError::RelationInContainer));
    }

    #[test]
    fn the_input_of_a_command_in_a_container_has_any_bytes_and_a_bound() {
        let request = ExecRequest::in_container(&["cat".to_owned()], "web".parse().unwrap()).unwrap();
        let stdin = Some(ExecInput::new(b"a\0\xff\n".to_vec()).unwrap());
        let request = ExecRequest { stdin, ..request };
        let mut parameters = request.clone().into_parameters();
        assert_eq!(parameters["stdin"], "YQD/Cg==");
        assert_eq!(ExecRequest::of_parameters(&parameters), Ok(request.clone()));
        assert!(!format!("{request:?}").contains("YQD"), "{request:?}");
        let largest = ExecInput::new(vec![b'x'; MAX_STDIN_BYTES]).unwrap();
        let whole = ExecRequest { stdin: Some(largest), ..request.clone() }.into_parameters();
        let (bytes, most) = (crate::size::of_json(&whole), crate::action::MAX_PARAMETER_BYTES);
        assert!(bytes + (8 << 10) < most, "{bytes} leave no room for a command");
        assert_eq!(
            ExecInput::new(vec![0; MAX_STDIN_BYTES + 1]),
            Err(ExecError::LargeStdin(MAX_STDIN_BYTES + 1))
        );
        for wrong in [json!("?"), json!(7), json!(STANDARD.encode(vec![0_u8; MAX_STDIN_BYTES + 1]))] {
            parameters.insert("stdin".to_owned(), wrong);
            assert!(matches!(ExecRequest::of_parameters(&parameters), Err(ExecError::Parameters(_))));
        }
        forget_stdin(&mut parameters);
        assert_eq!(parameters, ExecRequest { stdin: None, ..request.clone() }.into_parameters());
        let script =
            ExecRequest { command: ExecCommand::Script("cat".to_owned()), container: None, ..request };
        assert_eq!(ExecRequest::of_parameters(&script.into_parameters()), Err(ExecError::StdinOfScript));
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
