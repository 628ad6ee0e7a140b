//! The state that each subshell copies.

use std::collections::BTreeMap;

/// The first directory of scripts: the charm's, as in Juju.
const HOME: &str = "/charm";

/// Bytes of a variable or an argument beside its own.
const PLACE: usize = 64;

/// The default of `IFS`, the separators of words.
const BLANKS: &str = " \t\n";

/// Variables, arguments, directory and options.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    variables: BTreeMap<String, Variable>,
    /// `$0`, `$1` and so on.
    pub(crate) arguments: Vec<String>,
    /// An absolute path, without `.` and `..`.
    pub(crate) directory: String,
    /// `set -e`
    pub(crate) exit_on_failure: bool,
    /// `set -u`
    pub(crate) refuse_unset: bool,
    /// `set -o pipefail`
    pub(crate) pipe_fails: bool,
    /// `set -f`
    pub(crate) no_globs: bool,
    /// `set -x`
    pub(crate) trace: bool,
}

/// A shell variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) value: String,
    pub(crate) exported: bool,
}

impl Scope {
    pub(super) fn new(environment: &[(String, String)]) -> Self {
        let mut scope = Self {
            variables: BTreeMap::new(),
            arguments: vec!["sh".to_owned()],
            directory: HOME.to_owned(),
            exit_on_failure: false,
            refuse_unset: false,
            pipe_fails: false,
            no_globs: false,
            trace: false,
        };
        for (name, value) in environment.iter().chain(&[("PWD".to_owned(), HOME.to_owned())]) {
            scope.set(name, value.clone());
            scope.export(name);
        }
        scope
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|variable| variable.value.as_str())
    }

    pub(crate) fn set(&mut self, name: &str, value: String) {
        match self.variables.get_mut(name) {
            Some(variable) => variable.value = value,
            None => {
                self.variables.insert(name.to_owned(), Variable { value, exported: false });
            }
        }
    }

    pub(crate) fn export(&mut self, name: &str) {
        let unset = || Variable { value: String::new(), exported: true };
        self.variables.entry(name.to_owned()).or_insert_with(unset).exported = true;
    }

    pub(crate) fn unset(&mut self, name: &str) -> Option<Variable> {
        self.variables.remove(name)
    }

    /// Restores a variable to an earlier state.
    pub(super) fn restore(&mut self, name: &str, variable: Option<Variable>) {
        match variable {
            Some(variable) => self.variables.insert(name.to_owned(), variable),
            None => self.variables.remove(name),
        };
    }

    /// Iterates over the exported variables.
    pub(crate) fn exported(&self) -> impl Iterator<Item = (&str, &str)> {
        let exported = self.variables.iter().filter(|(_, variable)| variable.exported);
        exported.map(|(name, variable)| (name.as_str(), variable.value.as_str()))
    }

    /// Returns the value of an exported variable.
    pub(crate) fn exported_value(&self, name: &str) -> Option<&str> {
        self.variables.get(name).filter(|variable| variable.exported).map(|variable| variable.value.as_str())
    }

    /// Returns the separators of words: `IFS`, or blanks if it is not set.
    pub(crate) fn separators(&self) -> &str {
        self.get("IFS").unwrap_or(BLANKS)
    }

    /// Keeps the exported variables alone, for another script. `IFS` has its default again.
    pub(crate) fn keep_exported(&mut self) {
        self.variables.retain(|name, variable| variable.exported && name != "IFS");
    }

    /// Returns the bytes of a copy.
    pub(super) fn bytes(&self) -> usize {
        let variables =
            self.variables.iter().map(|(name, variable)| name.len() + variable.value.len() + PLACE);
        let arguments = self.arguments.iter().map(|argument| argument.len() + PLACE);
        variables.chain(arguments).fold(0, usize::saturating_add)
    }
}
