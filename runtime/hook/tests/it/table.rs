//! The table of hook tools: `tests/tools`, one file for each tool. Each case is one call of the tool with its output as
//! a process, and beside it the equivalent typed call. [testing.md](../../../../docs/testing.md) explains how to add
//! one.

use std::{collections::BTreeMap, fs, path::Path};

use periapt_host_api::{secret::SecretId, yaml};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The directory of the files.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/hook/tests/tools");

/// One file of the table.
pub(crate) struct Tool {
    /// The tool's name; `unsupported` stands for all unsupported tools.
    pub(crate) name: String,
    pub(crate) cases: Vec<Case>,
}

/// One call of a tool.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Case {
    /// The behaviour that the case shows, with the row of the conformance list in front if there is one.
    pub(crate) case: String,
    /// The changes to the plain world; see `scene.rs`.
    #[serde(default)]
    pub(crate) given: Vec<String>,
    /// The hook; update-status by default.
    #[serde(default)]
    pub(crate) hook: Option<String>,
    /// The hook's own files.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Tools that succeed before the call, in the same hook.
    #[serde(default)]
    pub(crate) before: Vec<String>,
    /// The command line.
    pub(crate) run: String,
    #[serde(default)]
    pub(crate) stdin: Option<String>,
    #[serde(default)]
    pub(crate) code: u8,
    #[serde(default)]
    pub(crate) stdout: String,
    /// The text on standard error after `ERROR `.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// Other text on standard error.
    #[serde(default)]
    pub(crate) stderr: String,
    /// All effects to commit, those of `before` included. Empty ones are left out.
    #[serde(default)]
    pub(crate) effects: Value,
    /// The early effects.
    #[serde(default)]
    pub(crate) early: Vec<Value>,
    /// The action's outcome: `values` and `failed`.
    #[serde(default)]
    pub(crate) action: Value,
    /// Files that the tool wrote.
    #[serde(default)]
    pub(crate) wrote: BTreeMap<String, String>,
    /// The equivalent typed call: the function as the journal names it, and its arguments.
    #[serde(default)]
    pub(crate) typed: Option<BTreeMap<String, Value>>,
    /// The answer of the typed call, as the journal writes it; `Ok: null` by default.
    #[serde(default, deserialize_with = "present")]
    pub(crate) answer: Option<Value>,
    /// The kind of error of the typed call, whose text is the tool's own.
    #[serde(default)]
    pub(crate) refused: Option<String>,
}

impl Case {
    /// Returns the expected standard error.
    pub(crate) fn stderr(&self) -> String {
        match &self.error {
            Some(error) => format!("ERROR {error}\n"),
            None => self.stderr.clone(),
        }
    }
}

/// Reads a present value, which may be null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads all files, sorted by name.
pub(crate) fn tools() -> Vec<Tool> {
    let mut files: Vec<_> = fs::read_dir(TOOLS).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|path| tool(path)).collect()
}

fn tool(path: &Path) -> Tool {
    let mut text = fs::read_to_string(path).unwrap();
    for (name, id) in SECRETS {
        text = text.replace(&format!("${name}"), &secret(id).to_string());
    }
    text = text.replace("$drawn", &drawn());
    let cases = yaml::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Tool { name: path.file_stem().unwrap().to_string_lossy().into_owned(), cases }
}

/// The numbers of the secrets that the cases name: `$own` is the unit's, `$app` its application's, `$theirs` one of `b`
/// that the unit tracks at revision 1 of 2, `$revoked` one that the unit may no longer read, `$unknown` one that does
/// not exist. `$drawn` is the first that a hook makes.
pub(crate) const SECRETS: [(&str, u8); 5] =
    [("own", 1), ("theirs", 2), ("revoked", 3), ("app", 4), ("unknown", 9)];

/// Returns the id of the first secret that a hook makes.
pub(crate) fn drawn() -> String {
    SecretId::drawn(&[9; 32], 0).to_string()
}

/// Returns the id of a secret by its number.
pub(crate) fn secret(number: u8) -> SecretId {
    SecretId::from_bytes([number; 12])
}

/// Splits a line at blanks. Quotes of either kind keep blanks together and may be empty. The probe charm splits its
/// lines alike.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    assert!(quote.is_none(), "a quote is not closed: {line}");
    words.extend(word);
    words
}
