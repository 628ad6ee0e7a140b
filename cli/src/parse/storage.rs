//! Storage directives as a command line says them.

use periapt_host_api::{
    StorageName,
    storage::{StorageDirective, StorageDirectives},
};

use crate::error::{Failure, Result};

/// `NAME=DIRECTIVE`.
pub(crate) fn directive(text: &str) -> std::result::Result<(StorageName, StorageDirective), String> {
    let (name, directive) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is no storage directive: write NAME=DIRECTIVE"))?;
    let name = StorageName::new(name).map_err(|error| error.to_string())?;
    let directive =
        directive.parse().map_err(|error: periapt_host_api::storage::DirectiveError| error.to_string())?;
    Ok((name, directive))
}

/// `NAME`, or `NAME=DIRECTIVE`.
pub(crate) fn directive_or_name(text: &str) -> std::result::Result<(StorageName, StorageDirective), String> {
    match text.contains('=') {
        true => directive(text),
        false => {
            let name = StorageName::new(text).map_err(|error| error.to_string())?;
            Ok((name, StorageDirective::default()))
        }
    }
}

/// All directives, each storage once.
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
