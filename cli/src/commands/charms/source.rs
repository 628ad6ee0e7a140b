//! The source of a charm's code: a file, or its sources.

use std::{
    env,
    path::{Path, PathBuf},
};

use periapt_archive::{COMPONENT, MAX_UNPACKED};
use periapt_pack::{BuildEnvironment, Built, CharmBuildError, Language};

use crate::{
    context::Context,
    error::{Failure, Result},
    input,
    output::Progress,
};

/// A charm's code.
pub(crate) struct Code {
    /// The name in errors: a file's path, or the directory of the sources.
    pub(crate) name: PathBuf,
    /// The code, with the files built beside it.
    pub(crate) built: Built,
}

/// Returns the code of the charm in a directory: the named file, else the component in the directory, else the result
/// of building its sources.
pub(crate) fn of(directory: &Path, wasm: Option<&Path>, context: &Context) -> Result<Code> {
    let component = directory.join(COMPONENT);
    if let Some(file) = wasm.or_else(|| component.exists().then_some(component.as_path())) {
        if !file.exists() {
            return Err(Failure::new(format!("{} does not exist", file.display()))
                .with_hint("build the charm for WebAssembly, and pass the module with --wasm"));
        }
        let wasm = match wasm {
            // The operator's own choice may be any file.
            Some(file) => input::bytes(file, MAX_UNPACKED)?,
            None => input::regular_bytes(file, MAX_UNPACKED)?,
        };
        return Ok(Code { name: file.to_owned(), built: Built { wasm, ..Built::default() } });
    }
    let Some(language) = Language::of(directory).map_err(failed)? else {
        let marks: Vec<_> = Language::ALL.iter().flat_map(|language| language.marks()).copied().collect();
        return Err(Failure::new(format!("{} does not exist", component.display())).with_hint(format!(
            "build the charm for WebAssembly, and pass the module with --wasm; sources that are built here are {} and src/charm.py",
            marks.join(", ")
        )));
    };
    let progress = Progress::of_steps();
    let (shown, verbosity) = (progress.clone(), context.verbosity);
    let report = move |step: &str| shown.step(step, verbosity);
    let environment = BuildEnvironment::new(|name| env::var_os(name), report).ok_or_else(|| {
        Failure::new("the directory for tools is unknown").with_hint("set PERIAPT_CACHE or HOME")
    })?;
    let built = periapt_pack::build(directory, language, &environment);
    progress.finish();
    Ok(Code { name: directory.to_owned(), built: built.map_err(failed)? })
}

/// Converts a build's error, with a hint.
pub(crate) fn failed(error: CharmBuildError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
