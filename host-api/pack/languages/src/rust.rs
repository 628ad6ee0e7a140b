//! Charms in Rust: a `cdylib` for `wasm32-wasip1`, by this machine's cargo.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    BuildEnvironment, Built, CharmBuildError,
    command::{Tool, run},
};

const TARGET: &str = "wasm32-wasip1";

const CARGO: Tool = Tool {
    program: "cargo",
    purpose: "to pack charms in Rust",
    hint: "install Rust: https://rustup.rs, then `rustup target add wasm32-wasip1`",
};

/// Debian's compiler, with the sources of its standard library and the linker. rustup's compiler cannot build these
/// sources: compiler and sources must be of one version, so both have fixed paths.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_STD: &str = "/usr/lib/rustlib/src/rust/library/std";
const WASI_LIBC: &str = "/usr/lib/wasm32-wasi";

pub(crate) fn build(directory: &Path, environment: &BuildEnvironment) -> Result<Built, CharmBuildError> {
    environment.report("building the charm in Rust");
    let mut command = match Toolchain::find()? {
        Toolchain::Target => CARGO.command(),
        Toolchain::Debian { linker } => debian(&linker, environment),
    };
    command.current_dir(directory).args(["build", "--release", "--target", TARGET]);
    command.args(["--message-format", "json-render-diagnostics"]);
    let what = format!("building {}", directory.join("Cargo.toml").display());
    let said = run(&mut command, || CARGO.missing(), &what)?;
    let Some(module) = module_of(&said.stdout, directory) else {
        let output = "it has no library for WebAssembly: Cargo.toml needs `[lib] crate-type = [\"cdylib\"]`";
        return Err(CharmBuildError::Failed { what, output: output.to_owned() });
    };
    let wasm = fs::read(&module).map_err(CharmBuildError::files(&module))?;
    Ok(Built { wasm, ..Built::default() })
}

/// A toolchain that has the standard library for the target, or can build it.
enum Toolchain {
    /// The compiler in PATH has the library, from rustup or from a distribution.
    Target,
    /// Debian's compiler builds the library.
    Debian { linker: PathBuf },
}

impl Toolchain {
    fn find() -> Result<Self, CharmBuildError> {
        let mut rustc = Command::new("rustc");
        rustc.args(["--print", "target-libdir", "--target", TARGET]);
        let library = rustc.output().ok().filter(|output| output.status.success());
        let library = library.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
        if library.is_some_and(|directory| has_std(&directory)) {
            return Ok(Self::Target);
        }
        let needed = [DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_STD, WASI_LIBC];
        let linker = newest_linker(Path::new("/usr/bin"));
        match linker.filter(|_| needed.iter().all(|path| Path::new(path).exists())) {
            Some(linker) => Ok(Self::Debian { linker }),
            None => Err(CharmBuildError::MissingTool {
                program: format!("a Rust compiler for {TARGET}"),
                purpose: CARGO.purpose,
                hint: "`rustup target add wasm32-wasip1`; or Debian's rustc-web, cargo-web, rust-web-src, lld-19 and wasi-libc",
            }),
        }
    }
}

fn has_std(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("libstd-"))
}

fn newest_linker(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let linkers = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let version = name.strip_prefix("wasm-ld")?.trim_start_matches('-').parse::<u32>().unwrap_or(0);
        Some((version, entry.path()))
    });
    linkers.max().map(|(_, path)| path)
}

/// Creates a call of Debian's cargo. The flags and the target directory are those of `tools/guest`, so that a machine
/// builds the standard library once.
fn debian(linker: &Path, environment: &BuildEnvironment) -> Command {
    let mut command = Command::new(DEBIAN_CARGO);
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    let flags =
        format!("-Clink-self-contained=no -Clink-arg={WASI_LIBC}/crt1-reactor.o -Lnative={WASI_LIBC}");
    command
        .env("CARGO_TARGET_DIR", environment.cache().join("guests/target"))
        .env("RUSTC", DEBIAN_RUSTC)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_WASM32_WASIP1_LINKER", linker)
        .env("CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS", flags)
        .arg("-Zbuild-std=std,panic_abort");
    command
}

/// Returns the module that cargo's messages report for the package in a directory.
fn module_of(messages: &str, directory: &Path) -> Option<PathBuf> {
    let manifest = fs::canonicalize(directory.join("Cargo.toml")).ok()?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let text = |message: &Value, key: &str| message.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut own = messages.filter(|message| {
        text(message, "reason").as_deref() == Some("compiler-artifact")
            && text(message, "manifest_path").is_some_and(|path| Path::new(&path) == manifest)
    });
    own.find_map(|message| {
        let files = message.get("filenames")?.as_array()?.iter().filter_map(Value::as_str);
        files.map(PathBuf::from).find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
    })
}
