//! The packer: from a charm's directory to its archive.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use periapt_archive::{Contents, Packed};
use periapt_host_api::charm::CharmMeta;

use crate::{
    CheckFinding, DependencyOptions, PythonError, Severity,
    component::{Stage, TEMPORARY},
    component_cache::{self, ComponentCache},
    dependency_options::repository_of,
    metadata,
    parts::Parts,
    python::Python,
    shim,
    tools::{COMPONENTIZE, Tools},
    vendor::Packing,
};

/// The program that Juju's agent would run. Releases of `ops` up to 2.20 look for it.
const DISPATCH: &[u8] = include_bytes!("../../../sdk/python/dispatch");

/// The suffix of native extension modules for the sandbox's interpreter.
const NATIVE: &str = ".cpython-314-wasm32-wasi.so";

/// Returns true if a directory holds a charm on the `ops` framework.
pub fn is_python_charm(directory: &Path) -> bool {
    directory.join("src/charm.py").is_file()
}

/// A step of packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Fetching `componentize-py`, once per machine.
    Tools,
    /// Fetching the charm's dependencies.
    Dependencies,
    /// Checking the sources.
    Sources,
    /// Building the component.
    Component,
    /// Compressing the archive.
    Archive,
}

/// The step's name, for people.
impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tools => write!(f, "fetching {COMPONENTIZE}, once"),
            Self::Dependencies => f.write_str("fetching the charm's dependencies"),
            Self::Sources => f.write_str("checking the sources"),
            Self::Component => f.write_str("building the component"),
            Self::Archive => f.write_str("compressing the archive"),
        }
    }
}

/// A charm that can be packed.
#[derive(Debug, Clone)]
pub struct CheckedCharm {
    /// The charm's packages, as NAME==VERSION.
    pub packages: Vec<String>,
    /// The charm's metadata, without the grants of its component.
    pub meta: CharmMeta,
}

/// A packer of Python charms.
#[derive(Debug, Clone)]
pub struct Packer {
    tools: Tools,
    components: ComponentCache,
    /// Directories with wheels of native code for the sandbox. The first directory with a matching wheel counts.
    wheels: Vec<PathBuf>,
}

impl Packer {
    /// Creates a packer with its tools and its wheels of native code below a cache directory.
    pub fn new(cache: &Path) -> Self {
        Self {
            tools: Tools::new(cache),
            components: ComponentCache::new(cache),
            wheels: vec![cache.join("wheels")],
        }
    }

    /// Adds a directory of wheels, which comes before the others.
    #[must_use]
    pub fn with_wheels(mut self, directory: PathBuf) -> Self {
        self.wheels.insert(0, directory);
        self
    }

    /// Packs a charm's directory. `at` gets each step when it begins. `told` gets warnings, also when packing fails.
    ///
    /// # Errors
    /// [`PythonError`]. Errors in the sources come before anything is built.
    pub fn pack(
        &self,
        directory: &Path,
        choices: &DependencyOptions,
        told: &mut Vec<CheckFinding>,
        at: &mut dyn FnMut(Step),
    ) -> Result<Packed, PythonError> {
        let PackInputs { python, stage, contents, .. } = gather(&self.wheels, directory, choices, told, at)?;
        let below = |name: &str| stage.path().join(name);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| PythonError::Io { path, source }
        };
        let digest = component_cache::digest_of(stage.path()).map_err(failed(stage.path()))?;
        let component = match self.components.of(digest) {
            Some(component) => component,
            None => {
                let component = below("charm.wasm");
                self.build(&python, stage.path(), &component, at)?;
                // Without the cached component, the next run would build a different one.
                self.components.add(digest, &component).map_err(failed(&component))?;
                component
            }
        };
        at(Step::Archive);
        Ok(contents.pack(&component)?)
    }

    /// Runs all steps before the build.
    ///
    /// # Errors
    /// [`PythonError`]
    pub fn check(
        &self,
        directory: &Path,
        choices: &DependencyOptions,
        told: &mut Vec<CheckFinding>,
        at: &mut dyn FnMut(Step),
    ) -> Result<CheckedCharm, PythonError> {
        let PackInputs { packages, meta, .. } = gather(&self.wheels, directory, choices, told, at)?;
        Ok(CheckedCharm { packages, meta })
    }

    fn build(
        &self,
        python: &Python,
        stage: &Path,
        component: &Path,
        at: &mut dyn FnMut(Step),
    ) -> Result<(), PythonError> {
        let tool = match self.tools.present() {
            Some(tool) => tool,
            None => {
                at(Step::Tools);
                self.tools.fetch(python)?
            }
        };
        at(Step::Component);
        Stage { directory: stage }.build(python, &tool, component)
    }
}

/// The inputs of a component, and the archive's other contents.
struct PackInputs {
    python: Python,
    /// The directory with the charm, the package `periapt_ops` and the contract.
    stage: tempfile::TempDir,
    contents: Contents,
    packages: Vec<String>,
    meta: CharmMeta,
}

/// Gathers the inputs of a component, and checks that the charm can be imported.
fn gather(
    wheels: &[PathBuf],
    directory: &Path,
    choices: &DependencyOptions,
    told: &mut Vec<CheckFinding>,
    at: &mut dyn FnMut(Step),
) -> Result<PackInputs, PythonError> {
    let directory = &fs::canonicalize(directory)
        .map_err(|source| PythonError::Io { path: directory.to_owned(), source })?;
    let repository = repository_of(directory);
    let mut contents = Contents::of_charm_in(&repository, directory)?;
    let charmcraft = contents.get("charmcraft.yaml").map(|text| String::from_utf8_lossy(text).into_owned());
    let parts = Parts::of(charmcraft.as_deref().unwrap_or_default())?;
    let (errors, warnings) = split([parts.findings.clone(), parts.missing(directory)].concat());
    told.extend(warnings);
    told.extend(metadata::workloads(&contents)?);
    if !errors.is_empty() {
        return Err(PythonError::CannotRun(errors));
    }
    let meta = contents.meta()?;
    parts.add_files(directory, &mut contents)?;
    metadata::split(&mut contents)?;
    contents.insert("dispatch", DISPATCH.to_vec());
    for part in ["src", "lib"] {
        contents.add_part(directory, part)?;
    }

    let python = Python::find()?;
    python.require_pip()?;
    let stage = tempfile::Builder::new().prefix("periapt-pack-").tempdir();
    let stage = stage.map_err(|source| PythonError::Io { path: std::env::temp_dir(), source })?;
    let below = |name: &str| stage.path().join(name);
    let (charm, package, packing) = (below("charm"), below("shim"), below("packing"));
    let temporary = below(TEMPORARY);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| PythonError::Io { path, source }
    };
    shim::write_package(&package).map_err(failed(&package))?;
    shim::write_packing(&packing).map_err(failed(&packing))?;
    shim::write_wit(&below("wit")).map_err(failed(stage.path()))?;
    write_all(&contents, &charm)?;
    fs::create_dir(&temporary).map_err(failed(&temporary))?;

    let packing = Packing { python: &python, packages: [&packing, &package], wheels, temporary: &temporary };
    at(Step::Dependencies);
    let venv = charm.join("venv");
    let vendored = packing.vendor(directory, &repository, &parts.required, choices, &venv, told)?;
    contents.add(&venv, "venv")?;
    // These modules become part of the component; hooks do not read them as files.
    contents.retain(|path| !(path.starts_with("venv/") && path.ends_with(NATIVE)));

    at(Step::Sources);
    let native = below("native.json");
    fs::write(&native, vendored.native.to_string()).map_err(failed(&native))?;
    let (errors, warnings) = split(packing.check(&charm, &native, directory)?);
    if !errors.is_empty() {
        // Warnings concern code that runs only after a successful import.
        return Err(PythonError::CannotRun(errors));
    }
    told.extend(warnings);
    // A component is cached by the files of its stage, and these would differ each time.
    fs::remove_dir_all(&temporary).map_err(failed(&temporary))?;

    Ok(PackInputs { python, stage, contents, packages: vendored.packages, meta })
}

/// Splits findings into errors and warnings.
fn split(findings: Vec<CheckFinding>) -> (Vec<CheckFinding>, Vec<CheckFinding>) {
    findings.into_iter().partition(|finding| finding.severity == Severity::Error)
}

fn write_all(contents: &Contents, directory: &Path) -> Result<(), PythonError> {
    for (path, content) in contents.iter() {
        let path: PathBuf = directory.join(path);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, content)).map_err(|source| PythonError::Io { path, source })?;
    }
    Ok(())
}
