//! A dialogue of an operator with a command in a container (decision 111), over one request of HTTP/2.
//!
//! The request's content has one [`ExecSessionInput`] as JSON in each line, [`ExecSessionInput::Begin`] first; the answer's
//! has one [`ExecSessionOutput`] in each line. The controller reads the first line of the request, and passes the rest on to
//! the unit's agent, which asks the pod. The agent hands the lines of the output over in parts, as those of a log
//! ([`workload_log`](crate::workload_log)).

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{ContainerName, ModelUuid, Refusal, UnitName, action::MAX_PARAMETER_BYTES};

/// The most bytes of a stream in one line. With the growth of base64 and what is around it, a line fits into one
/// [part](crate::workload_log::MAX_PART_BYTES).
pub const MAX_CHUNK_BYTES: usize = 32 << 10;

/// The most bytes of one line of an input after the first.
pub const MAX_INPUT_LINE_BYTES: usize = 64 << 10;

/// The most bytes of the first line: the command with its escapes, and what is around it.
pub const MAX_BEGIN_LINE_BYTES: usize = 2 * MAX_PARAMETER_BYTES;

/// The longest name of a kind of terminal.
const MAX_TERM_BYTES: usize = 64;

/// Bytes of a stream, as base64 in JSON. Debug output has their number alone: they may be secret.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub struct ExecBytes(Vec<u8>);

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TerminalSize {
    /// The characters in a line.
    pub columns: u16,
    /// The lines.
    pub rows: u16,
}

/// A terminal for a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ExecTerminal {
    /// The size at the command's start.
    pub size: TerminalSize,
    /// The kind, for the command's variable `TERM`; none if the operator's terminal tells none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<String>,
}

/// A command that an operator wants to speak to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ExecSessionRequest {
    /// The container.
    pub container: ContainerName,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The terminal of the command; none: its streams are pipes, with standard error apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<ExecTerminal>,
}

/// An order to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ExecSessionOrder {
    /// The model.
    pub model: ModelUuid,
    /// The unit.
    pub unit: UnitName,
    /// The command.
    pub request: ExecSessionRequest,
}

/// A line from an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExecSessionInput {
    /// The command to begin: the first line, and no other.
    Begin(Box<ExecSessionRequest>),
    /// The next bytes of standard input.
    Stdin(ExecBytes),
    /// Standard input has ended.
    End,
    /// The terminal has another size.
    Resize(TerminalSize),
}

/// A line to an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExecSessionOutput {
    /// The command runs: the first line.
    Running,
    /// The next bytes of standard output, or of the terminal.
    Stdout(ExecBytes),
    /// The next bytes of standard error.
    Stderr(ExecBytes),
    /// The command has ended with this exit code: the last line.
    Exit(i32),
    /// The session has ended without an exit code, for this reason: the last line. The command is killed.
    Failed(String),
}

impl ExecBytes {
    /// Takes bytes of a stream.
    ///
    /// # Errors
    /// They are more than [`MAX_CHUNK_BYTES`].
    pub fn new(bytes: Vec<u8>) -> Result<Self, TooManyExecBytes> {
        match bytes.len() <= MAX_CHUNK_BYTES {
            true => Ok(Self(bytes)),
            false => Err(TooManyExecBytes),
        }
    }

    /// Splits bytes of a stream into lines' worth, in order.
    pub fn split(bytes: &[u8]) -> impl Iterator<Item = Self> {
        bytes.chunks(MAX_CHUNK_BYTES).map(|chunk| Self(chunk.to_vec()))
    }

    /// Returns the bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The error of bytes that are too many for one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line has more than {MAX_CHUNK_BYTES} bytes of a stream")]
pub struct TooManyExecBytes;

impl fmt::Debug for ExecBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExecBytes({} bytes)", self.0.len())
    }
}

impl Serialize for ExecBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for ExecBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(|_| de::Error::custom("bytes are not base64"))?;
        Self::new(bytes).map_err(de::Error::custom)
    }
}

impl ExecSessionRequest {
    /// Checks the bounds of a request.
    ///
    /// # Errors
    /// The command is empty or too long, or the kind of the terminal is no name.
    pub fn check(&self) -> Result<(), Refusal> {
        let bytes: usize = self.command.iter().map(String::len).sum();
        if self.command.first().is_none_or(String::is_empty) {
            return Err(Refusal::bad_request("no command specified"));
        }
        if bytes > MAX_PARAMETER_BYTES {
            let text = format!("the command has {bytes} bytes, at most {MAX_PARAMETER_BYTES} are allowed");
            return Err(Refusal::bad_request(text));
        }
        match self.terminal.as_ref().and_then(|terminal| terminal.term.as_deref()) {
            Some(term) if !is_term(term) => Err(Refusal::bad_request(format!(
                "the kind of a terminal has 1 to {MAX_TERM_BYTES} letters, digits and \"-+_.\""
            ))),
            _ => Ok(()),
        }
    }
}

/// Returns true for a text that may be the name of a kind of terminal.
#[must_use]
pub fn is_term(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-+_.".contains(&byte);
    (1..=MAX_TERM_BYTES).contains(&text.len()) && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workload_log::MAX_PART_BYTES;

    fn request(command: &[&str], term: Option<&str>) -> ExecSessionRequest {
        let size = TerminalSize { columns: 80, rows: 24 };
        ExecSessionRequest {
            container: "web".parse().unwrap(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            terminal: term.map(|term| ExecTerminal { size, term: Some(term.to_owned()) }),
        }
    }

    #[test]
    fn any_bytes_of_a_stream_are_lines_that_fit_into_parts() {
        let bytes = [0, 0xff, b'\n'].repeat(MAX_CHUNK_BYTES);
        let mut read = Vec::new();
        for chunk in ExecBytes::split(&bytes) {
            let line = serde_json::to_string(&ExecSessionOutput::Stdout(chunk)).unwrap();
            assert!(line.len() < MAX_PART_BYTES && line.len() < MAX_INPUT_LINE_BYTES && !line.contains('\n'));
            let ExecSessionOutput::Stdout(chunk) = serde_json::from_str(&line).unwrap() else {
                panic!("{line}")
            };
            read.extend(chunk.into_bytes());
        }
        assert!(read == bytes);
        let large = json!({ "stdin": STANDARD.encode(vec![0; MAX_CHUNK_BYTES + 1]) });
        assert!(serde_json::from_value::<ExecSessionInput>(large).is_err());
        let none = ExecBytes::new(b"secret".to_vec()).unwrap();
        assert_eq!(format!("{none:?}"), "ExecBytes(6 bytes)");
    }

    #[test]
    fn a_request_has_a_command_of_bounded_size_and_a_terminal_with_a_name() {
        request(&["sh", ""], Some("xterm-256color")).check().unwrap();
        let long = "x".repeat(MAX_PARAMETER_BYTES);
        let begin = ExecSessionInput::Begin(Box::new(request(&[long.as_str()], None)));
        assert!(serde_json::to_vec(&begin).unwrap().len() < MAX_BEGIN_LINE_BYTES);
        assert!(request(&[], None).check().is_err());
        assert!(request(&[""], None).check().is_err());
        assert!(request(&["sh", long.as_str()], None).check().is_err());
        for term in ["a\nb", "", "a=b"] {
            assert!(request(&["sh"], Some(term)).check().is_err(), "{term:?}");
        }
    }
}
