//! Where a charm's code comes from: a file, or its sources.

use std::{
    env,
    path::{Path, PathBuf},
};

use periapt_archive::{COMPONENT, MAX_UNPACKED};
use periapt_pack::{BuildError, Built, Language, Workshop};

use crate::{
    context::Context,
    error::{Failure, Result},
    input,
    output::Progress,
};

/// A charm's code.
pub(crate) struct Code {
    /// What it is called where it is wrong: a file's path, or the directory of its sources.
    pub(crate) name: PathBuf,
    /// What it is, with what was made beside it.
    pub(crate) built: Built,
}

/// The code of the charm in a directory: the file that is named, else the component that lies there, else what its sources
/// are built to.
pub(crate) fn of(directory: &Path, wasm: Option<&Path>, context: &Context) -> Result<Code> {
    let component = directory.join(COMPONENT);
    if let Some(file) = wasm.or_else(|| component.exists().then_some(component.as_path())) {
        if !file.exists() {
            return Err(Failure::new(format!("{} does not exist", file.display()))
                .with_hint("build the charm for WebAssembly, and name what was built with --wasm"));
        }
        let wasm = match wasm {
            // Whatever somebody names.
            Some(file) => input::bytes(file, MAX_UNPACKED)?,
            None => input::regular_bytes(file, MAX_UNPACKED)?,
        };
        return Ok(Code { name: file.to_owned(), built: Built { wasm, ..Built::default() } });
    }
    let Some(language) = Language::of(directory).map_err(failed)? else {
        let marks: Vec<_> = Language::ALL.iter().flat_map(|language| language.marks()).copied().collect();
        return Err(Failure::new(format!("{} does not exist", component.display())).with_hint(format!(
            "build the charm for WebAssembly, and name what was built with --wasm; sources that are built here are {} and src/charm.py",
            marks.join(", ")
        )));
    };
    let progress = Progress::of_steps();
    let (shown, verbosity) = (progress.clone(), context.verbosity);
    let report = move |step: &str| shown.step(step, verbosity);
    let workshop = Workshop::new(|name| env::var_os(name), report).ok_or_else(|| {
        Failure::new("nobody says where tools can be kept").with_hint("set PERIAPT_CACHE or HOME")
    })?;
    let built = periapt_pack::build(directory, language, &workshop);
    progress.finish();
    Ok(Code { name: directory.to_owned(), built: built.map_err(failed)? })
}

/// Tells it with what to do about it.
pub(crate) fn failed(error: BuildError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
