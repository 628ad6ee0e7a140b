//! `pack`: an archive from a charm's directory.

mod python;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use periapt_host_api::charm::CharmMeta;
use periapt_python::{DependencyOptions, Repositories};
use serde::Serialize;

use super::source;
use crate::{
    commands::Verb,
    context::Context,
    error::{Explain as _, Failure, Result, with_source},
    output::{Sink, note, to_json, write_whole},
};

/// Make a charm's archive
///
/// Takes a charm's directory, and its code: the file of `--wasm`, else charm.wasm in the directory, else the result of
/// building its sources. A WASI preview 1 module is converted to a component. Code that could not run is refused, with
/// the reason. The same component gives the same bytes.
///
/// A charm with src/charm.js or src/charm.ts is built by esbuild and componentize-qjs, which this machine's Node.js runs; one with
/// src/charm.py, on the ops framework, with its libraries in lib and what requirements.txt or pyproject.toml ask for, by
/// componentize-py, which takes python3 with pip; one with src/charm.c by this machine's clang or Zig; one with Cargo.toml by its
/// cargo; one with go.mod by its Go. The tools of a language that are not this machine's own are fetched once, into $PERIAPT_CACHE (by default ~/.cache/periapt).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt pack ./my-charm
  periapt pack charms/mysql --wasm target/guests/mysql.wasm -o mysql.charm
  periapt pack ./my-charm --upgrade pydantic
  periapt pack --format json")]
pub(crate) struct Pack {
    /// The charm's directory, with charmcraft.yaml
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// The charm's code, if it is neither charm.wasm in the directory nor to be built
    #[arg(long, value_name = "FILE")]
    wasm: Option<PathBuf>,
    /// The archive, if it is not to be NAME.charm here
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Upgrade a package of a charm in Python to the newest version that its requirements allow, instead of the locked
    /// one. An upper bound narrows that (`'NAME<2'`); a lower bound replaces the charm's own range (`'NAME>=2'`). May
    /// be repeated. Dependencies of the package follow as far as needed, all others stay
    #[arg(long, value_name = "NAME")]
    upgrade: Vec<String>,
    /// Fetch the sources of a charm in Python from the repositories that it names, by git; nothing of them is built
    #[arg(long)]
    allow_git: bool,
    /// Only check that a charm in Python can be packed: choose its dependencies and check its sources, and build
    /// nothing
    #[arg(long, conflicts_with = "output")]
    check: bool,
    /// Also print a report on standard output
    #[arg(long, value_enum)]
    format: Option<Format>,
}

/// The formats of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// JSON, on one line: `charms` as charmcraft names them, and what they are
    Json,
}

/// The report on a packed charm, for programs.
#[derive(Debug, Serialize)]
struct Done {
    /// The archive's path, in a list, as charmcraft prints it.
    charms: [String; 1],
    name: String,
    digest: String,
    bytes: usize,
    warnings: Vec<String>,
}

/// The report on a checked charm, for programs.
#[derive(Debug, Serialize)]
struct Checked {
    /// The dependencies, as NAME==VERSION.
    packages: Vec<String>,
    warnings: Vec<String>,
}

impl Verb for Pack {
    async fn run(self, context: &Context) -> Result<()> {
        if self.check && python::is_wanted(&self.directory, self.wasm.as_deref()) {
            return self.check(context);
        }
        let (packed, warnings) = match python::is_wanted(&self.directory, self.wasm.as_deref()) {
            true => python::pack(&self.directory, &self.choices(), context)?,
            false => {
                self.require_no_choices()?;
                let code = source::of(&self.directory, self.wasm.as_deref(), context)?;
                let files = code.built.files;
                let packed = periapt_archive::pack_with(&self.directory, &code.name, &code.built.wasm, files);
                (packed.map_err(with_source)?, Vec::new())
            }
        };
        let mut warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        warnings.extend(warn_of_assumes(&packed.inspected.meta));
        let name = &packed.inspected.meta.name;
        let output = self.output.unwrap_or_else(|| PathBuf::from(format!("{name}.charm")));
        write_whole(&output, &packed.bytes).explain(|| format!("cannot write {}", output.display()))?;
        context.say(format_args!(
            "Packed {} ({} bytes, digest {})",
            output.display(),
            packed.bytes.len(),
            packed.inspected.digest.short()
        ));
        let Some(Format::Json) = self.format else { return Ok(()) };
        let done = Done {
            charms: [output.display().to_string()],
            name: name.to_string(),
            digest: packed.inspected.digest.to_string(),
            bytes: packed.bytes.len(),
            warnings,
        };
        Sink::new(None, context.color)?.write(&to_json(&done)?)
    }
}

impl Pack {
    /// Checks a charm in Python, and prints the packages that it would get.
    fn check(&self, context: &Context) -> Result<()> {
        let (checked, warnings) = python::check(&self.directory, &self.choices(), context)?;
        let mut warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        warnings.extend(warn_of_assumes(&checked.meta));
        let packages = checked.packages;
        context.say(format_args!(
            "{} can be packed, with {} packages",
            self.directory.display(),
            packages.len()
        ));
        let Some(Format::Json) = self.format else { return Ok(()) };
        Sink::new(None, context.color)?.write(&to_json(&Checked { packages, warnings })?)
    }

    fn choices(&self) -> DependencyOptions {
        let repositories = match self.allow_git {
            true => Repositories::Fetched,
            false => Repositories::Refused,
        };
        DependencyOptions { upgrades: self.upgrade.clone(), repositories }
    }

    /// Refuses options that do not apply to a charm in another language, or to code that is built already.
    fn require_no_choices(&self) -> Result<()> {
        let given = [
            ("--upgrade", !self.upgrade.is_empty()),
            ("--allow-git", self.allow_git),
            ("--check", self.check),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::misused(format!(
                "{option} is for a charm with src/charm.py, and {} is packed otherwise",
                self.directory.display()
            ))),
            None => Ok(()),
        }
    }
}

/// Warns of what a charm assumes and models here lack. Returns the warning.
fn warn_of_assumes(meta: &CharmMeta) -> Option<String> {
    let unmet = meta.assumes.check().err()?;
    let warning = format!(
        "the charm assumes features that are not supported: {}; deploy and refresh refuse it without --force",
        unmet.features().join(", ")
    );
    note(format_args!("WARNING {warning}"));
    Some(warning)
}
