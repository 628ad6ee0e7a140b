//! Charms on the `ops` framework.

use std::{
    env,
    path::{self, Path},
};

use periapt_archive::{COMPONENT, Packed};
use periapt_python::{CheckFinding, CheckedCharm, DependencyOptions, Packer, PythonError, is_python_charm};

use crate::{
    context::Context,
    data::DataDir,
    error::{Explain as _, Failure, Result, with_source},
    output::{Progress, note},
};

/// The variable that names a directory of wheels with native code built for the sandbox (`tools/wheels`).
const WHEELS_VARIABLE: &str = "PERIAPT_WHEELS";

/// Returns true if a directory is to be packed from its Python sources: there is neither `--wasm` nor a component.
pub(super) fn is_wanted(directory: &Path, wasm: Option<&Path>) -> bool {
    wasm.is_none() && !directory.join(COMPONENT).exists() && is_python_charm(directory)
}

/// Packs a charm, prints the findings about code that will not work, and returns both. On a failure it prints findings
/// that may explain it.
pub(super) fn pack(
    directory: &Path,
    choices: &DependencyOptions,
    context: &Context,
) -> Result<(Packed, Vec<CheckFinding>)> {
    let packer = packer()?;
    let progress = Progress::of_steps();
    let mut warnings = Vec::new();
    let packed =
        packer.pack(directory, choices, &mut warnings, &mut |step| progress.step(step, context.verbosity));
    progress.finish();
    for warning in &warnings {
        note(format_args!("WARNING {warning}"));
    }
    Ok((packed.map_err(failure)?, warnings))
}

/// Checks that a charm can be packed, and builds nothing. Returns it with the findings.
pub(super) fn check(
    directory: &Path,
    choices: &DependencyOptions,
    context: &Context,
) -> Result<(CheckedCharm, Vec<CheckFinding>)> {
    let progress = Progress::of_steps();
    let mut warnings = Vec::new();
    let checked = packer()?
        .check(directory, choices, &mut warnings, &mut |step| progress.step(step, context.verbosity));
    progress.finish();
    for warning in &warnings {
        note(format_args!("WARNING {warning}"));
    }
    Ok((checked.map_err(failure)?, warnings))
}

/// Creates a packer with its tools in the user's cache, and with the user's own wheels.
fn packer() -> Result<Packer> {
    let packer = Packer::new(&DataDir::cache_from_environment()?);
    let Some(directory) = env::var_os(WHEELS_VARIABLE).filter(|directory| !directory.is_empty()) else {
        return Ok(packer);
    };
    let absolute = path::absolute(&directory);
    Ok(packer
        .with_wheels(absolute.explain(|| format!("{WHEELS_VARIABLE}: {}", Path::new(&directory).display()))?))
}

fn failure(error: PythonError) -> Failure {
    if let PythonError::Import(failed) = &error {
        // Shown by --debug.
        failed.trace.lines().for_each(|line| tracing::debug!("{line}"));
    }
    let hint = match &error {
        PythonError::Unreachable(_) | PythonError::Tool { .. } => {
            "packages come from where pip is told to look: PIP_INDEX_URL, PIP_CERT and pip.conf count"
        }
        PythonError::CannotRun(_) => "docs/python.md says what works in the sandbox and what does not",
        PythonError::Import(failed) if failed.trace.is_empty() => {
            "docs/python.md says what works in the sandbox and what does not"
        }
        PythonError::Import(_) => {
            "--debug shows Python's trace; docs/python.md says what works in the sandbox and what does not"
        }
        _ => return with_source(error),
    };
    with_source(error).with_hint(hint)
}
