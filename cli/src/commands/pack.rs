//! `pack`: an archive from a charm's directory.

use std::{fs, path::PathBuf};

use clap::Args;
use periapt_archive::COMPONENT;

use crate::{
    context::Context,
    error::{Explain as _, Failure, Result, with_source},
};

/// Make a charm's archive
///
/// Takes the charm's directory and its code: a component, or a WASI preview 1 module that is made into one. What
/// could not run is refused, with the reason. The same input gives the same bytes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  periapt pack charms/mysql --wasm target/guests/mysql.wasm -o mysql.charm"
)]
pub(crate) struct Pack {
    /// The charm's directory, with charmcraft.yaml
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// The charm's code, if it is not charm.wasm in the directory
    #[arg(long, value_name = "FILE")]
    wasm: Option<PathBuf>,
    /// The archive, if it is not to be NAME.charm here
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Pack {
    pub(crate) fn run(self, context: &Context) -> Result<()> {
        let wasm = self.wasm.unwrap_or_else(|| self.directory.join(COMPONENT));
        if !wasm.exists() {
            return Err(Failure::new(format!("{} does not exist", wasm.display()))
                .with_hint("build the charm for WebAssembly, and name what was built with --wasm"));
        }
        let packed = periapt_archive::pack(&self.directory, &wasm).map_err(with_source)?;
        let name = &packed.inspected.meta.name;
        let output = self.output.unwrap_or_else(|| PathBuf::from(format!("{name}.charm")));
        write_whole(&output, &packed.bytes)?;
        context.say(format_args!(
            "Packed {} ({} bytes, digest {})",
            output.display(),
            packed.bytes.len(),
            packed.inspected.digest.short()
        ));
        Ok(())
    }
}

/// An archive that is half written is never found under its name.
fn write_whole(path: &std::path::Path, bytes: &[u8]) -> Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".part");
    let partial = PathBuf::from(partial);
    let written = fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // It may never have been made; what is wrong is said below.
        let _ = fs::remove_file(&partial);
    }
    written.explain(|| format!("cannot write {}", path.display()))
}
