//! `KEY=VALUE` arguments (`docs/hook-model.md` 5.1).

use std::collections::BTreeMap;

use crate::CallError;

/// Parses arguments of the form `KEY=VALUE`. It skips empty arguments and keeps empty values.
pub(super) fn parse(arguments: &[&str]) -> Result<BTreeMap<String, String>, CallError> {
    let mut settings = BTreeMap::new();
    for argument in arguments.iter().filter(|argument| !argument.is_empty()) {
        let (key, value) = argument
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()))
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| CallError::invalid(format!("expected \"key=value\", got {argument:?}")))?;
        if settings.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(CallError::invalid(format!("key {key:?} specified more than once")));
        }
    }
    Ok(settings)
}
