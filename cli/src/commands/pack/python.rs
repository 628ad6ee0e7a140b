//! A charm on the `ops` framework.

use std::{
    env,
    path::{self, Path},
};

use periapt_archive::COMPONENT;
use periapt_python::{PackedPython, Packer, PythonError, is_python_charm};

use crate::{
    context::Context,
    data::DataDir,
    error::{Explain as _, Failure, Result, with_source},
    output::{Progress, note},
};

/// The variable that names a directory with wheels of native code that was built for the sandbox (`tools/wheels`).
const WHEELS_VARIABLE: &str = "PERIAPT_WHEELS";

/// Whether a directory is to be packed from its Python sources: nobody names code, and none lies there.
pub(super) fn is_wanted(directory: &Path, wasm: Option<&Path>) -> bool {
    wasm.is_none() && !directory.join(COMPONENT).exists() && is_python_charm(directory)
}

/// Packs one, and says what will not work in it.
pub(super) fn pack(directory: &Path, context: &Context) -> Result<PackedPython> {
    let mut packer = Packer::new(&DataDir::cache_from_environment()?);
    if let Some(directory) = env::var_os(WHEELS_VARIABLE).filter(|directory| !directory.is_empty()) {
        packer = packer.with_wheels(
            path::absolute(&directory)
                .explain(|| format!("{WHEELS_VARIABLE}: {}", Path::new(&directory).display()))?,
        );
    }
    let progress = Progress::of_steps();
    let packed = packer.pack(directory, &mut |step| progress.step(step, context.quiet));
    progress.finish();
    let packed = packed.map_err(failure)?;
    for warning in &packed.warnings {
        note(format_args!("WARNING {warning}"));
    }
    Ok(packed)
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
