//! Storage directives on a command line.

use periapt_host_api::{
    StorageName,
    storage::{StorageDirective, StorageDirectives},
};

use super::ParseError;
use crate::error::{Failure, Result};

/// Parses `NAME=DIRECTIVE`.
pub(crate) fn directive(text: &str) -> Result<(StorageName, StorageDirective), ParseError> {
    let wrong = || ParseError::Form(format!("invalid storage directive {text:?}: write NAME=DIRECTIVE"));
    let (name, directive) = text.split_once('=').ok_or_else(wrong)?;
    Ok((StorageName::new(name)?, directive.parse()?))
}

/// Parses `NAME` or `NAME=DIRECTIVE`.
pub(crate) fn directive_or_name(text: &str) -> Result<(StorageName, StorageDirective), ParseError> {
    match text.contains('=') {
        true => directive(text),
        false => Ok((StorageName::new(text)?, StorageDirective::default())),
    }
}

/// Collects directives, each storage once.
pub(crate) fn directives(given: Vec<(StorageName, StorageDirective)>) -> Result<StorageDirectives> {
    let mut directives = StorageDirectives::new();
    for (name, directive) in given {
        if directives.contains_key(&name) {
            return Err(Failure::new(format!("storage \"{name}\" is given twice")));
        }
        directives.insert(name, directive);
    }
    Ok(directives)
}
