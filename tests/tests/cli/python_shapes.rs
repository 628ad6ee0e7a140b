//! The shapes of published charms in Python, each with the expected result of packing it (`tests/corpus/python`).

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use periapt_host_api::{Digest, yaml};
use periapt_tests::{Done, Installation};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use zip::{ZipWriter, write::SimpleFileOptions};

/// The files of a shape that does not replace them.
const DEFAULTS: [(&str, &str); 2] = [
    ("charmcraft.yaml", "name: shape\nsummary: s\ndescription: d\n"),
    ("src/charm.py", "import ops\n\nops.main(ops.CharmBase)\n"),
];

/// A charm with its surroundings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    /// A description for readers.
    #[expect(dead_code, reason = "each shape says what it stands for")]
    about: String,
    /// The charm's directory, if it is not the shape's.
    #[serde(default)]
    charm: String,
    files: BTreeMap<String, String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    tries: Vec<Try>,
}

/// One packing of the charm.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Try {
    #[serde(default)]
    arguments: Vec<String>,
    /// All dependencies that the archive gets.
    packages: Option<Vec<String>>,
    /// Part of the expected error.
    refused: Option<String>,
    /// The number of causes in the error, if the test checks it.
    errors: Option<usize>,
    /// All expected warnings.
    #[serde(default)]
    warnings: Vec<String>,
}

/// A release in the package index.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    name: String,
    version: String,
    #[serde(default)]
    needs: Vec<String>,
    /// The release's modules, if their names differ from its own.
    #[serde(default)]
    modules: Vec<String>,
    /// The name of a native module.
    native: Option<String>,
    /// The tags of the release's wheels.
    tags: Option<Vec<String>>,
    /// The files of its archive of sources, if it has one.
    #[serde(default)]
    archive: BTreeMap<String, String>,
    /// The Python versions that the release requires.
    python: Option<String>,
    /// The sources of some modules.
    #[serde(default)]
    source: BTreeMap<String, String>,
    /// True if the native code was built for the sandbox.
    #[serde(default)]
    built: bool,
}

/// The tag of wheels that `tools/wheels` builds.
const SANDBOX: &str = "cp314-cp314-wasi_wasm32";

/// The families of shapes: the words before the first dash that several shapes share. Each family is a test of its
/// own, so that they run in parallel.
const FAMILIES: [&str; 7] =
    ["certificates", "library", "poetry", "pydantic", "requirements", "sources", "uv"];

#[test]
fn charms_with_a_lock_of_uv_come_to_what_is_written_of_them() -> anyhow::Result<()> {
    pack(|family| family == Some("uv"))
}

#[test]
fn charms_with_a_lock_of_poetry_come_to_what_is_written_of_them() -> anyhow::Result<()> {
    pack(|family| family == Some("poetry"))
}

#[test]
fn charms_with_files_of_requirements_come_to_what_is_written_of_them() -> anyhow::Result<()> {
    pack(|family| family == Some("requirements"))
}

#[test]
fn charms_with_libraries_and_with_pydantic_come_to_what_is_written_of_them() -> anyhow::Result<()> {
    pack(|family| matches!(family, Some("library" | "pydantic")))
}

#[test]
fn charms_with_certificates_and_with_sources_alone_come_to_what_is_written_of_them() -> anyhow::Result<()> {
    pack(|family| matches!(family, Some("certificates" | "sources")))
}

#[test]
fn charms_of_other_shapes_come_to_what_is_written_of_them() -> anyhow::Result<()> {
    pack(|family| family.is_none())
}

/// Packs the shapes of some families, with all their tries.
fn pack(families: impl Fn(Option<&str>) -> bool) -> anyhow::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/python");
    let periapt = Installation::empty()?;
    let releases = read::<Vec<Release>>(&corpus.join("index.yaml"))?;
    let index = Index::write(&periapt.path().join("index"), &releases)?;
    // Nothing here may depend on this machine's builds.
    let cache = periapt.path().join("cache");
    write_built(&cache.join("wheels"), &releases)?;

    let mut shapes = BTreeMap::new();
    for entry in fs::read_dir(&corpus)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let family = name.split('-').next().filter(|family| FAMILIES.contains(family));
        if name != "index" && families(family) {
            shapes.insert(name, path);
        }
    }
    ensure!(shapes.len() >= 4, "{} shapes", shapes.len());
    let mut wrong = Vec::new();
    for (name, path) in shapes {
        let shape: Shape = read(&path)?;
        let root = periapt.path().join(&name);
        shape.write(&root, &index).with_context(|| name.clone())?;
        for expected in &shape.tries {
            let mut command = periapt.command(["pack", "--check", "--format=json"]);
            command.arg(root.join(&shape.charm)).args(&expected.arguments);
            command
                .env("PERIAPT_CACHE", &cache)
                .env("PIP_NO_INDEX", "1")
                .env("PIP_FIND_LINKS", &index.directory)
                .env("PIP_CONFIG_FILE", "/dev/null");
            let done = Installation::finished(command)?;
            wrong.extend(
                expected
                    .said_of(&done)
                    .err()
                    .map(|error| format!("{name} {:?}: {error:#}", expected.arguments)),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

impl Try {
    /// Checks the result against the expectations.
    fn said_of(&self, done: &Done) -> anyhow::Result<()> {
        let warnings: Vec<_> = done.stderr.lines().filter_map(|line| line.strip_prefix("WARNING ")).collect();
        ensure!(warnings == self.warnings, "warnings: {warnings:#?}\n{done:?}");
        if let Some(packages) = &self.packages {
            ensure!(done.code == Some(0), "not packed: {}", done.stderr);
            let told: Value = serde_json::from_str(&done.stdout)?;
            ensure!(told.get("packages") == Some(&json!(packages)), "packages: {told}");
            ensure!(told.get("warnings") == Some(&json!(self.warnings)), "warnings: {told}");
        }
        if let Some(refused) = &self.refused {
            let said = done.one_error()?;
            ensure!(said.contains(refused), "refused otherwise: {said}");
            let hint = said.lines().find(|line| line.starts_with("hint: ")).unwrap_or_default();
            ensure!(!said.contains("Traceback") && !hint.contains("PIP_INDEX_URL"), "misleading: {said}");
            let causes = said.lines().filter(|line| line.starts_with("  ")).count();
            ensure!(self.errors.is_none_or(|errors| errors == causes), "{causes} causes: {said}");
        }
        ensure!(self.packages.is_some() != self.refused.is_some(), "one of the two is expected");
        Ok(())
    }
}

impl Shape {
    /// Writes the shape below a directory, with the wheels' digests filled into its locks.
    fn write(&self, root: &Path, index: &Index) -> anyhow::Result<()> {
        let charm = root.join(&self.charm);
        for (name, text) in DEFAULTS {
            put(&charm.join(name), text)?;
        }
        for (name, text) in &self.files {
            put(&root.join(name), &index.filled(text)?)?;
        }
        for (name, target) in &self.links {
            let link = root.join(name);
            fs::create_dir_all(link.parent().context("a directory")?)?;
            symlink(target, link)?;
        }
        Ok(())
    }
}

/// A directory of wheels and archives for pip, with their digests.
struct Index {
    directory: PathBuf,
    /// The names and digests of files, by `NAME VERSION`.
    files: HashMap<String, Vec<(String, String)>>,
}

impl Index {
    fn write(directory: &Path, releases: &[Release]) -> anyhow::Result<Self> {
        fs::create_dir_all(directory)?;
        let mut by_release = HashMap::new();
        for release in releases {
            let (name, version) = (release.name.replace('-', "_"), &release.version);
            let tags = release.tags.clone().unwrap_or_else(|| vec!["py3-none-any".to_owned()]);
            let mut made = Vec::new();
            if !release.archive.is_empty() {
                let file = format!("{name}-{version}.zip");
                let bytes = zipped(
                    release
                        .archive
                        .iter()
                        .map(|(path, text)| (format!("{name}-{version}/{path}"), text.clone())),
                )?;
                fs::write(directory.join(&file), &bytes)?;
                made.push((file, Digest::of(&bytes).to_string()));
            }
            for tag in tags {
                let file = format!("{name}-{version}-{tag}.whl");
                let bytes = release.wheel(&name, &tag)?;
                fs::write(directory.join(&file), &bytes)?;
                made.push((file, Digest::of(&bytes).to_string()));
            }
            by_release.insert(format!("{} {version}", release.name), made);
        }
        Ok(Self { directory: directory.to_owned(), files: by_release })
    }

    /// Fills in a text: `{hashes NAME VERSION}` in pip's form, `{wheels NAME VERSION}` in uv's, `{sdist NAME
    /// VERSION}` for a release without wheels, and `{files NAME VERSION}` in poetry's.
    fn filled(&self, text: &str) -> anyhow::Result<String> {
        let mut filled = text.to_owned();
        for (name, files) in &self.files {
            let listed = |key: &str, prefix: &str| {
                let tables = files.iter().map(|(file, digest)| {
                    format!("{{ {key} = \"{prefix}{file}\", hash = \"sha256:{digest}\" }}")
                });
                format!("[{}]", tables.collect::<Vec<_>>().join(", "))
            };
            let hashes: Vec<_> = files.iter().map(|(_, digest)| format!("--hash=sha256:{digest}")).collect();
            filled = filled.replace(&format!("{{hashes {name}}}"), &hashes.join(" "));
            filled =
                filled.replace(&format!("{{wheels {name}}}"), &listed("url", "https://files.example.org/"));
            filled = filled.replace(&format!("{{files {name}}}"), &listed("file", ""));
            if let [(file, digest)] = files.as_slice() {
                let sdist =
                    format!("{{ url = \"https://files.example.org/{file}\", hash = \"sha256:{digest}\" }}");
                filled = filled.replace(&format!("{{sdist {name}}}"), &sdist);
            }
        }
        for open in ["{hashes ", "{wheels ", "{sdist ", "{files "] {
            ensure!(!filled.contains(open), "a release that the index does not have: {filled}");
        }
        Ok(filled)
    }
}

/// Writes the wheels that were built for the sandbox, in the layout of `tools/wheels`.
fn write_built(directory: &Path, releases: &[Release]) -> anyhow::Result<()> {
    fs::create_dir_all(directory)?;
    let mut digests = String::new();
    for release in releases.iter().filter(|release| release.built) {
        let name = release.name.replace('-', "_");
        let (file, bytes) =
            (format!("{name}-{}-{SANDBOX}.whl", release.version), release.wheel(&name, SANDBOX)?);
        digests.push_str(&format!("{}  {file}\n", Digest::of(&bytes)));
        fs::write(directory.join(file), bytes)?;
    }
    Ok(fs::write(directory.join("SHA256SUMS"), digests)?)
}

impl Release {
    fn wheel(&self, name: &str, tag: &str) -> anyhow::Result<Vec<u8>> {
        let info = format!("{name}-{}.dist-info", self.version);
        let mut metadata = format!("Metadata-Version: 2.1\nName: {}\nVersion: {}\n", self.name, self.version);
        metadata.extend(self.python.iter().map(|python| format!("Requires-Python: {python}\n")));
        metadata.extend(self.needs.iter().map(|needed| format!("Requires-Dist: {needed}\n")));
        let extras =
            self.needs.iter().filter_map(|needed| needed.split_once("extra == '")?.1.split('\'').next());
        metadata.extend(extras.map(|extra| format!("Provides-Extra: {extra}\n")));
        let mut files = BTreeMap::from([
            (format!("{info}/METADATA"), metadata),
            (
                format!("{info}/WHEEL"),
                format!("Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: {tag}\n"),
            ),
            (format!("{info}/RECORD"), String::new()),
        ]);
        let modules = if self.modules.is_empty() { vec![name.to_owned()] } else { self.modules.clone() };
        for module in modules.iter().chain(self.source.keys()) {
            let source = self.source.get(module).cloned().unwrap_or_default();
            files.insert(format!("{}/__init__.py", module.replace('.', "/")), source);
        }
        if let Some(native) = &self.native {
            let suffix = if tag == SANDBOX { "cpython-314-wasm32-wasi.so" } else { "so" };
            files.insert(format!("{}.{suffix}", native.replace('.', "/")), String::new());
        }
        zipped(files)
    }
}

/// Returns an archive of files, by their paths.
fn zipped(files: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<Vec<u8>> {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, text) in files {
        zip.start_file(path, SimpleFileOptions::default().last_modified_time(zip::DateTime::default()))?;
        zip.write_all(text.as_bytes())?;
    }
    Ok(zip.finish()?.into_inner())
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    yaml::parse(&text).with_context(|| path.display().to_string())
}

fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::create_dir_all(path.parent().context("a directory")?)?;
    Ok(fs::write(path, text)?)
}
