//! A charm on the `ops` framework.

use std::{path::Path, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use periapt_archive::COMPONENT;
use periapt_python::{PackedPython, Packer, PythonError, is_python_charm};

use crate::{
    context::Context,
    data::DataDir,
    error::{Failure, Result, with_source},
    output::note,
};

/// Whether a directory is to be packed from its Python sources: nobody names code, and none lies there.
pub(super) fn is_wanted(directory: &Path, wasm: Option<&Path>) -> bool {
    wasm.is_none() && !directory.join(COMPONENT).exists() && is_python_charm(directory)
}

/// Packs one, and says what will not work in it.
pub(super) fn pack(directory: &Path, context: &Context) -> Result<PackedPython> {
    let packer = Packer::new(&DataDir::cache_from_environment()?);
    let bar = spinner();
    let packed = packer.pack(directory, &mut |step| match bar.is_hidden() {
        // No terminal: a line each, which a log keeps.
        true if !context.quiet => note(step),
        true => {}
        false => bar.set_message(step.to_string()),
    });
    bar.finish_and_clear();
    let packed = packed.map_err(failure)?;
    for warning in &packed.warnings {
        note(format_args!("WARNING {warning}"));
    }
    Ok(packed)
}

/// What is being done, as long as it is.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    match ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn failure(error: PythonError) -> Failure {
    let hint = match &error {
        PythonError::Dependencies(_) | PythonError::Tool { .. } => {
            "packages come from where pip is told to look: PIP_INDEX_URL, PIP_CERT and pip.conf count"
        }
        PythonError::CannotRun(_) | PythonError::Build(_) => {
            "docs/python.md says what works in the sandbox and what does not"
        }
        _ => return with_source(error),
    };
    with_source(error).with_hint(hint)
}
