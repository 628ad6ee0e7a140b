//! Charms in JavaScript and TypeScript: one bundle, and a component with its own engine.
//!
//! esbuild removes types and bundles the charm, the SDK and their imports into one file. `componentize-qjs` runs that
//! file to its end in QuickJS, and snapshots the state as a component. Both are npm packages of pinned versions.

use std::{fs, path::Path};

use crate::{
    BuildEnvironment, Built, CharmBuildError, Language,
    command::Tool,
    embedded::{self, CONTRACT, File, JAVASCRIPT_SDK},
};

const PURPOSE: &str = "to pack charms in JavaScript";

const NODE: Tool = Tool {
    program: "node",
    purpose: PURPOSE,
    hint: "install Node.js 18 or newer, with npm: https://nodejs.org, or `apt install nodejs npm`",
};

const NPM: Tool = Tool {
    program: "npm",
    purpose: "to fetch the tools that pack charms in JavaScript, the first time",
    hint: "install it beside Node.js: `apt install npm`",
};

/// The oldest Node.js that both packages support.
const OLDEST_NODE: (u32, &str) = (18, "18");

/// The packages, each with its version and the hash of its content.
const PACKAGES: &str = include_str!("../javascript/package.json");
const LOCK: &str = include_str!("../javascript/package-lock.json");

/// The script that runs the packages.
const BUILD: &str = include_str!("../javascript/build.mjs");

/// The world of a charm in JavaScript: the whole contract, files, and random numbers.
const WORLD: [File; 4] = [
    ("world.wit", include_bytes!("../javascript/world.wit")),
    ("deps/charm.wit", CONTRACT.as_bytes()),
    ("deps/filesystem.wit", include_bytes!("../javascript/filesystem.wit")),
    ("deps/random.wit", include_bytes!("../javascript/random.wit")),
];

pub(crate) fn build(directory: &Path, environment: &BuildEnvironment) -> Result<Built, CharmBuildError> {
    check_node()?;
    let tools = environment.tools("javascript", &[PACKAGES, LOCK], |place| fetch(place, environment))?;
    environment.report("building the charm in JavaScript");
    let scratch = tempfile::tempdir().map_err(CharmBuildError::files(std::env::temp_dir()))?;
    let scratch = scratch.path();
    embedded::write(&scratch.join("sdk"), JAVASCRIPT_SDK)?;
    embedded::write(&scratch.join("wit"), &WORLD)?;
    let script = scratch.join("build.mjs");
    fs::write(&script, BUILD).map_err(CharmBuildError::files(&script))?;
    let directory = fs::canonicalize(directory).map_err(CharmBuildError::files(directory))?;
    let entry = Language::JavaScript.mark_in(&directory).unwrap_or_default();
    let mut command = NODE.command();
    command.arg(&script).arg(&tools).arg(scratch).arg(&directory).arg(entry);
    NODE.run(&mut command, format!("building {}", directory.join(entry).display()))?;
    let component = scratch.join("charm.wasm");
    let wasm = fs::read(&component).map_err(CharmBuildError::files(&component))?;
    Ok(Built { wasm, ..Built::default() })
}

/// Fetches the packages, without running their scripts.
fn fetch(place: &Path, environment: &BuildEnvironment) -> Result<(), CharmBuildError> {
    environment.report("fetching the tools that pack charms in JavaScript (componentize-qjs, esbuild), once");
    embedded::write(place, &[("package.json", PACKAGES.as_bytes()), ("package-lock.json", LOCK.as_bytes())])?;
    let mut command = NPM.command();
    command.current_dir(place).args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--loglevel=error",
    ]);
    NPM.run(&mut command, "fetching componentize-qjs and esbuild with npm").map(drop)
}

fn check_node() -> Result<(), CharmBuildError> {
    let found = NODE.run(NODE.command().arg("--version"), "asking node for its version")?.stdout;
    let major: Option<u32> =
        found.trim().trim_start_matches('v').split('.').next().and_then(|text| text.parse().ok());
    match major {
        Some(major) if major < OLDEST_NODE.0 => Err(CharmBuildError::OldTool {
            program: NODE.program.to_owned(),
            purpose: PURPOSE,
            wanted: OLDEST_NODE.1,
            found: found.trim().to_owned(),
        }),
        // An unknown version scheme passes; such a program reports its own errors.
        _ => Ok(()),
    }
}
