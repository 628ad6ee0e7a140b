//! Charms in C: one reactor module for WASI preview 1, by this machine's clang or by Zig's.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    BuildEnvironment, Built, CharmBuildError,
    command::{Tool, run},
    embedded::{self, C_SDK},
};

const PURPOSE: &str = "to pack charms in C";

const HINT: &str = "install clang with wasm-ld, wasi-libc and compiler-rt for wasm32 (Debian: `apt install clang-19 lld-19 \
                    wasi-libc libclang-rt-19-dev-wasm32`), or Zig's from PyPI (`pip install ziglang`); PERIAPT_CLANG names a clang";

const PYTHON: Tool = Tool { program: "python3", purpose: PURPOSE, hint: HINT };

/// The variable that names a clang.
const CLANG_VARIABLE: &str = "PERIAPT_CLANG";

/// The directory of a charm's own SDK, with which its tests ran.
const OWN_SDK: &str = "sdk";

pub(crate) fn build(directory: &Path, environment: &BuildEnvironment) -> Result<Built, CharmBuildError> {
    let scratch = tempfile::tempdir().map_err(CharmBuildError::files(std::env::temp_dir()))?;
    let scratch = scratch.path();
    let compiler = Compiler::find(environment, scratch)?;
    environment.report("building the charm in C");
    let directory = fs::canonicalize(directory).map_err(CharmBuildError::files(directory))?;
    let mut sources = Vec::new();
    sources_in(&directory, Path::new("src"), &mut sources)?;
    sources.sort();
    let module = scratch.join("charm.wasm");
    let mut command = compiler.command();
    command.current_dir(&directory).args(["-Os", "-s", "-std=c11", "-Wall", "-Wextra", "-Isrc"]);
    // A charm with bindings of its own needs no SDK, whose bindings would collide with them.
    let is_alone = sources.iter().any(|path| path.to_string_lossy().ends_with("_component_type.o"));
    if !is_alone {
        let sdk = sdk(&directory, scratch)?;
        for part in ["include", "bindings"] {
            command.arg("-I").arg(sdk.join(part));
        }
        for part in ["src", "bindings"] {
            sources_in(&sdk, Path::new(part), &mut sources)?;
        }
        // The SDK's path on this machine must not get into the module.
        command.arg(prefix_map(&sdk));
    }
    command.args(&sources).arg("-o").arg(&module);
    let what = format!("building {}", directory.join("src").display());
    let said = run(&mut command, || PYTHON.missing(), what).map_err(explain_missing_handlers)?;
    for line in said.stderr.lines() {
        environment.report(line);
    }
    let wasm = fs::read(&module).map_err(CharmBuildError::files(&module))?;
    Ok(Built { wasm, ..Built::default() })
}

/// Replaces the linker's message about a charm without handlers by one about charms.
fn explain_missing_handlers(error: CharmBuildError) -> CharmBuildError {
    match error {
        CharmBuildError::Failed { what, output } if output.contains("undefined symbol: periapt_handlers") => {
            let output = "no source defines `periapt_handlers`, the table of the charm's handlers that ends with {NULL, NULL}";
            CharmBuildError::Failed { what, output: output.to_owned() }
        }
        other => other,
    }
}

/// A compiler that can link for wasm32-wasi.
enum Compiler {
    Clang(OsString),
    /// The compiler of PyPI's package `ziglang`.
    Zig,
}

impl Compiler {
    /// Finds the compiler that the variable names, or else the newest clang, or else Zig's.
    fn find(environment: &BuildEnvironment, scratch: &Path) -> Result<Self, CharmBuildError> {
        if let Some(named) = environment.program(CLANG_VARIABLE) {
            return Ok(Self::Clang(named));
        }
        let probe = scratch.join("probe.c");
        fs::write(&probe, "int periapt_probe(void) { return 0; }\n")
            .map_err(CharmBuildError::files(&probe))?;
        let clangs = clangs(&environment.variable("PATH").unwrap_or_default());
        let known = clangs.into_iter().map(Self::Clang).chain([Self::Zig]);
        let mut fitting = known.filter(|compiler| compiler.can_link(&probe));
        fitting.next().ok_or_else(|| CharmBuildError::MissingTool {
            program: "a C compiler that builds for wasm32-wasi".to_owned(),
            purpose: PURPOSE,
            hint: HINT,
        })
    }

    fn command(&self) -> Command {
        match self {
            Self::Clang(clang) => {
                let mut command = Command::new(clang);
                command.args(["--target=wasm32-wasi", "-mexec-model=reactor"]);
                command
            }
            Self::Zig => {
                let mut command = PYTHON.command();
                command.args(["-m", "ziglang", "cc", "-target", "wasm32-wasi", "-mexec-model=reactor"]);
                command
            }
        }
    }

    /// Links an empty module, which needs the compiler, the linker, the libc and the compiler's runtime.
    fn can_link(&self, probe: &Path) -> bool {
        let output = self.command().arg(probe).arg("-o").arg(probe.with_extension("wasm")).output();
        output.is_ok_and(|output| output.status.success())
    }
}

/// Finds all programs `clang` and `clang-N` in a search path, the newest first. `clang` without a number is the last.
fn clangs(path: &OsStr) -> Vec<OsString> {
    let mut found = Vec::new();
    for directory in std::env::split_paths(path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("clang")) else { continue };
            let version = rest.strip_prefix('-').map_or(Some(0), |number| number.parse::<u32>().ok());
            if let Some(version) = version.filter(|_| rest.is_empty() || rest.starts_with('-')) {
                found.push((version, entry.path().into_os_string()));
            }
        }
    }
    found.sort_by(|one, other| other.cmp(one));
    found.dedup();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Returns the charm's own SDK, or else this program's.
fn sdk(directory: &Path, scratch: &Path) -> Result<PathBuf, CharmBuildError> {
    let own = directory.join(OWN_SDK);
    if own.join("include/periapt.h").exists() {
        return Ok(own);
    }
    let written = scratch.join("sdk");
    embedded::write(&written, C_SDK)?;
    Ok(written)
}

fn prefix_map(sdk: &Path) -> OsString {
    let mut argument = OsString::from("-ffile-prefix-map=");
    argument.push(sdk);
    argument.push("=sdk");
    argument
}

/// Finds all `*.c` and `*.o` files below a directory, with paths relative to `base`.
fn sources_in(base: &Path, name: &Path, into: &mut Vec<PathBuf>) -> Result<(), CharmBuildError> {
    let directory = base.join(name);
    let mut entries = Vec::new();
    for entry in fs::read_dir(&directory).map_err(CharmBuildError::files(&directory))? {
        entries.push(entry.map_err(CharmBuildError::files(&directory))?);
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) =
            (name.join(entry.file_name()), entry.file_type().map_err(CharmBuildError::files(&directory))?);
        if kind.is_dir() {
            sources_in(base, &path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "c" || extension == "o") {
            // The charm's own files keep the paths that their author knows.
            into.push(if base.join("charmcraft.yaml").exists() { path } else { base.join(path) });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_clang_comes_first_and_other_programs_do_not_count() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["clang", "clang-9", "clang-19", "clang-format-19", "clangd", "clang-cpp"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let names: Vec<_> = clangs(directory.path().as_os_str())
            .into_iter()
            .map(|path| Path::new(&path).file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["clang-19", "clang-9", "clang"]);
    }
}
