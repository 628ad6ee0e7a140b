//! The `parts` of charmcraft.yaml: requirements, files for the archive, and findings about unsupported keys, with their
//! lines. No script of a part runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path},
};

use periapt_archive::Contents;
use periapt_host_api::{excerpt::shortened, yaml};
use serde_json::{Map, Value};

use crate::{CheckFinding, PythonError, Severity};

mod plugins;

use plugins::Libraries;
pub(crate) use plugins::Required;

/// The file that holds parts.
const FILE: &str = "charmcraft.yaml";

/// The only possible entry point of a charm.
const PROGRAM: &str = "src/charm.py";

/// The longest text that a part lists, in bytes: a requirement with a marker has some hundred.
const MOST_TEXT: usize = 1000;

/// The most bytes of the requirements in all parts. They become arguments of a process, of which Linux takes 2 MiB.
const MOST_REQUIRED: usize = 64 << 10;

/// Plugins that are supported, or that have nothing to do.
const DONE: [&str; 7] = ["charm", "python", "poetry", "uv", "dump", "nil", "bundle"];

/// The instructions of all parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The dependencies to install.
    pub(crate) required: Required,
    /// Files and directories of the charm for the archive, each with its path there.
    files: Vec<(String, String)>,
    /// The finding for each of these files if it is missing.
    missing: Vec<CheckFinding>,
    /// Findings about unsupported or invalid keys.
    pub(crate) findings: Vec<CheckFinding>,
}

impl Parts {
    /// Parses charmcraft.yaml. A file without parts gives no instructions.
    pub(crate) fn of(text: &str) -> Result<Self, PythonError> {
        let mut parts = Self::default();
        if text.trim().is_empty() {
            return Ok(parts);
        }
        let whole: BTreeMap<String, Value> = yaml::parse(text)?;
        parts.findings.extend(unexpanded(text, whole.get("extensions")));
        let mut plugins = BTreeSet::new();
        for (name, part) in whole.get("parts").and_then(Value::as_object).into_iter().flatten() {
            let empty = Map::new();
            let part = part.as_object().unwrap_or(&empty);
            let mut reader = Reader { text, name, part, parts: &mut parts };
            reader.read();
            plugins.insert(reader.plugin());
        }
        // Without an explicit part, charmcraft uses the plugin `charm`.
        let others = plugins.iter().any(|plugin| ["python", "poetry", "uv"].contains(&plugin.as_str()));
        if others && !plugins.contains("charm") {
            parts.required.libraries = Libraries::Alone;
        }
        let bytes: usize = parts.required.arguments().iter().map(|argument| argument.len()).sum();
        if bytes > MOST_REQUIRED {
            let message = format!(
                "the parts require {bytes} bytes of names, and at most {MOST_REQUIRED} are taken from here: \
                 write them to requirements.txt"
            );
            parts.required = Required::default();
            parts.findings.push(CheckFinding {
                file: FILE.to_owned(),
                line: 1,
                severity: Severity::Error,
                message,
            });
        }
        Ok(parts)
    }

    /// Returns findings about missing files: errors, or warnings if an unsupported build step would make the file.
    pub(crate) fn missing(&self, directory: &Path) -> Vec<CheckFinding> {
        let files = self.files.iter().zip(&self.missing);
        let missing = files.filter(|((from, _), _)| fs::symlink_metadata(directory.join(from)).is_err());
        missing.map(|(_, finding)| finding.clone()).collect()
    }

    /// Adds the existing files to an archive.
    pub(crate) fn add_files(&self, directory: &Path, contents: &mut Contents) -> Result<(), PythonError> {
        for (from, to) in &self.files {
            if fs::symlink_metadata(directory.join(from)).is_ok() {
                contents.add_named(directory, from, to)?;
            }
        }
        Ok(())
    }
}

/// The reader of one part.
struct Reader<'a> {
    text: &'a str,
    name: &'a str,
    part: &'a Map<String, Value>,
    parts: &'a mut Parts,
}

impl Reader<'_> {
    /// Returns the part's plugin, by default the part's name.
    fn plugin(&self) -> String {
        self.part.get("plugin").and_then(Value::as_str).unwrap_or(self.name).to_owned()
    }

    fn read(&mut self) {
        match self.plugin().as_str() {
            "charm" => self.charm(),
            "python" => self.python(),
            "poetry" | "uv" => self.project(),
            "dump" => return self.dump(),
            "nil" | "bundle" => {}
            "reactive" => self.find("plugin", Severity::Error, "reactive charms run programs of a machine's"),
            other => {
                self.warn("plugin", &format!("plugin {other} is not supported, and its output is missing"))
            }
        }
        self.others();
        for key in ["override-build", "override-prime", "override-pull", "override-stage"] {
            self.warn_of(key, "scripts of parts are not run here");
        }
        for key in ["stage-packages", "stage-snaps"] {
            self.warn_of(key, "a sandbox has no packages of an operating system");
        }
        self.warn_of("organize", "files stay where they are; the plugin dump can organize them");
        self.along(".");
    }

    /// Reads a part of the plugin `dump`: files of one of the charm's directories.
    fn dump(&mut self) {
        let source = self.part.get("source").and_then(Value::as_str).unwrap_or(".").to_owned();
        if self.part.contains_key("source-type") || source.contains("://") || !is_below(&source) {
            self.warn("source", "only directories of the charm's own can be dumped: nothing is fetched");
            return;
        }
        let organize = self.part.get("organize").and_then(Value::as_object).cloned().unwrap_or_default();
        for (from, to) in &organize {
            match to.as_str().filter(|to| is_plain(from) && is_plain(to)) {
                Some(to) => self.take("organize", below(&source, from), to.trim_end_matches('/').to_owned()),
                None => self.warn("organize", &format!("{from} is no plain path, and stays out")),
            }
        }
        let named = self.part.contains_key("prime") || self.part.contains_key("stage");
        match (named, source.trim_end_matches('/')) {
            (true, source) => self.along(source),
            (false, "." | "") if organize.is_empty() => self.warn(
                "source",
                "of the charm's whole directory src, lib, templates, files and assets go along: name others by `prime`",
            ),
            (false, source) if organize.is_empty() => self.take("source", source.to_owned(), String::new()),
            (false, _) => {}
        }
    }

    /// Adds the paths of `prime`, below one of the charm's directories.
    fn along(&mut self, source: &str) {
        for path in self.strings("prime") {
            match is_plain(&path) {
                true => {
                    let place = path.trim_end_matches('/').to_owned();
                    self.take("prime", below(source, &place), place);
                }
                false => {
                    self.warn("prime", &format!("{path} is no plain path: patterns are not supported here"))
                }
            }
        }
    }

    /// Adds a file or directory to the archive.
    fn take(&mut self, key: &str, from: String, to: String) {
        let message = format!("{from} is not in the charm's directory");
        let severity = if self.makes() { Severity::Warning } else { Severity::Error };
        let missing = self.finding(key, severity, &message);
        self.parts.files.push((from, to));
        self.parts.missing.push(missing);
    }

    /// Returns true if an unsupported build step may make files for this part. Each such step has a finding of its own.
    fn makes(&self) -> bool {
        let others =
            ["override-build", "override-prime", "override-pull", "override-stage", "stage-packages"];
        !DONE.contains(&self.plugin().as_str()) || others.iter().any(|key| self.part.contains_key(*key))
    }

    /// Returns the texts that a key lists, and reports those that cannot be arguments of a process.
    fn strings(&mut self, key: &str) -> Vec<String> {
        let listed = self.part.get(key).and_then(Value::as_array).into_iter().flatten();
        let (fitting, others): (Vec<_>, Vec<_>) = listed
            .filter_map(Value::as_str)
            .partition(|text| text.len() <= MOST_TEXT && !text.contains(char::is_control));
        for other in others {
            let message = format!(
                "{:?} is neither a name nor a path: at most {MOST_TEXT} characters of one line are expected",
                shortened(other)
            );
            self.find(key, Severity::Error, &message);
        }
        fitting.into_iter().map(str::to_owned).collect()
    }

    fn warn_of(&mut self, key: &str, message: &str) {
        if self.part.contains_key(key) {
            self.warn(key, message);
        }
    }

    fn warn(&mut self, key: &str, message: &str) {
        self.find(key, Severity::Warning, message);
    }

    fn find(&mut self, key: &str, severity: Severity, message: &str) {
        let finding = self.finding(key, severity, message);
        self.parts.findings.push(finding);
    }

    fn finding(&self, key: &str, severity: Severity, message: &str) -> CheckFinding {
        let message = format!("part {}, {key}: {message}", self.name);
        CheckFinding { file: FILE.to_owned(), line: line_of(self.text, self.name, key), severity, message }
    }
}

/// Returns an error if the charm uses extensions: charmcraft must expand them first.
fn unexpanded(text: &str, extensions: Option<&Value>) -> Option<CheckFinding> {
    let named: Vec<_> = extensions?.as_array()?.iter().filter_map(Value::as_str).collect();
    let line =
        (1..).zip(text.lines()).find(|(_, line)| line.starts_with("extensions")).map_or(1, |(line, _)| line);
    let message = format!(
        "extensions ({}) are charmcraft's to expand: put what `charmcraft expand-extensions` prints in the place of this file",
        named.join(", ")
    );
    (!named.is_empty()).then(|| CheckFinding {
        file: FILE.to_owned(),
        line,
        severity: Severity::Error,
        message,
    })
}

/// Returns true if a path stays within the charm's directory.
fn is_below(path: &str) -> bool {
    let inner = |it: Component<'_>| matches!(it, Component::Normal(_) | Component::CurDir);
    !path.is_empty() && Path::new(path).components().all(inner)
}

/// Returns true if a path stays within the charm's directory, and is neither a pattern nor an exclusion.
fn is_plain(path: &str) -> bool {
    is_below(path) && !path.starts_with('-') && !path.contains(['*', '?', '[', '(', '$'])
}

fn below(source: &str, path: &str) -> String {
    match source {
        "." | "" => path.to_owned(),
        source => format!("{source}/{path}"),
    }
}

/// Returns the line of a part's key, from 1, or else the line of the part.
fn line_of(text: &str, part: &str, key: &str) -> u32 {
    let is = |line: &str, name: &str| {
        let rest = line
            .trim_start()
            .strip_prefix(name)
            .or_else(|| line.trim_start().strip_prefix(&format!("{name:?}")));
        rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
    };
    let mut numbered =
        (1..).zip(text.lines()).skip_while(|(_, line)| !is(line, "parts") || line.starts_with(' '));
    let found = numbered.find(|(_, line)| is(line, part));
    let Some((at, first)) = found else { return 1 };
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = numbered.take_while(|(_, line)| line.trim().is_empty() || indent(line) > indent(first));
    own.into_iter().find(|(_, line)| is(line, key)).map_or(at, |(line, _)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(parts: &Parts) -> Vec<String> {
        parts.findings.iter().map(|finding| format!("{:?} {finding}", finding.severity)).collect()
    }

    #[test]
    fn a_charm_says_what_it_requires() {
        let text = "name: c\nparts:\n  charm:\n    plugin: charm\n    source: .\n    charm-requirements: [a.txt, b.txt]\n    \
                    charm-binary-python-packages: [setuptools, wheel==1, pydantic]\n    charm-entrypoint: src/charm.py\n    \
                    build-packages: [libffi-dev]\n    prime: [extra/data.json]\n";
        let parts = Parts::of(text).unwrap();
        let asked = |parts: &Parts| -> Vec<String> {
            parts.required.arguments().iter().map(|it| it.to_string_lossy().into_owned()).collect()
        };
        assert_eq!(asked(&parts), ["--file=a.txt", "--file=b.txt", "--package=pydantic", "--libraries"]);
        assert_eq!(parts.files, [("extra/data.json".to_owned(), "extra/data.json".to_owned())]);
        assert_eq!(found(&parts), [""; 0]);
        assert_eq!(Parts::of("name: c\n").unwrap(), Parts::default());
        assert_eq!(asked(&Parts::default()), ["--libraries"]);

        let text = "parts:\n  uv:\n    uv-groups: [tls]\n    uv-extras: [more]\n    uv-other: [x]\n  \
                    old: {plugin: python, python-constraints: [c.txt, ../c.txt], python-packages: [-rx]}\n";
        let parts = Parts::of(text).unwrap();
        assert_eq!(
            asked(&parts),
            ["--constraints=c.txt", "--package=-rx", "--project", "--group=tls", "--extra=more"]
        );
        assert_eq!(
            found(&parts),
            [
                "Error charmcraft.yaml:6: part old, python-constraints: ../c.txt is no file of the charm's",
                "Warning charmcraft.yaml:5: part uv, uv-other: this option is not supported, and has no effect",
            ]
        );
    }

    #[test]
    fn what_no_process_takes_as_an_argument_is_told_by_its_line() {
        let long = "a".repeat(MOST_TEXT + 1);
        let text = format!(
            "parts:\n  charm:\n    charm-requirements: [\"a\\0b\", ok.txt]\n    charm-python-packages: [{long}, \"a\\n-e.\"]\n"
        );
        let parts = Parts::of(&text).unwrap();
        assert_eq!(parts.required.files, ["ok.txt"]);
        let told = found(&parts);
        let place = |line: u32, key: &str| format!("Error charmcraft.yaml:{line}: part charm, {key}: \"a");
        assert_eq!(told.len(), 3, "{told:#?}");
        assert!(told[0].starts_with(&place(3, "charm-requirements")), "{}", told[0]);
        assert!(
            told[1].starts_with(&place(4, "charm-python-packages")) && told[1].len() < 300,
            "{}",
            told[1]
        );
        assert!(told[2].contains("at most 1000 characters of one line are expected"), "{}", told[2]);

        let many = vec!["a"; MOST_REQUIRED / 8].join(", ");
        let parts = Parts::of(&format!("parts:\n  charm:\n    charm-python-packages: [{many}]\n")).unwrap();
        assert_eq!(parts.required, Required::default());
        let told = found(&parts);
        assert!(
            matches!(told.as_slice(), [only] if only.ends_with("write them to requirements.txt")),
            "{told:?}"
        );
    }

    #[test]
    fn arguments_of_poetrys_export_choose_groups_and_extras() {
        let asked = |arguments: &str| {
            let text =
                format!("parts:\n  it:\n    plugin: poetry\n    poetry-export-extra-args: [{arguments}]\n");
            let parts = Parts::of(&text).unwrap();
            let words: Vec<_> = parts
                .required
                .arguments()
                .iter()
                .skip(1)
                .map(|it| it.to_string_lossy().into_owned())
                .collect();
            (words.join(" "), found(&parts))
        };
        for (arguments, expected) in [
            ("'--only', 'main,charm-libs'", "--only=main --only=charm-libs"),
            ("--only=main", "--only=main"),
            ("--with, 'a b', --without, c", "--group=a --group=b --without=c"),
            ("-E, tls, --extras=db", "--extra=tls --extra=db"),
            ("--without-hashes, --without-urls, --with-credentials", ""),
        ] {
            assert_eq!(asked(arguments), (expected.to_owned(), Vec::new()), "{arguments}");
        }
        let place = "charmcraft.yaml:4: part it, poetry-export-extra-args:";
        assert_eq!(asked("--only").1, [format!("Error {place} --only names nothing")]);
        assert_eq!(
            asked("--all-groups").1,
            [format!("Warning {place} --all-groups is not supported, and has no effect")]
        );
    }

    #[test]
    fn what_is_not_done_is_told_by_name_and_line() {
        let text = "parts:\n  charm:\n    charm-entrypoint: main.py\n    override-build: |\n      make\n    prime:\n      - '*.txt'\n\n  \
                    tool: {plugin: go}\n  old:\n    plugin: reactive\n  away:\n    plugin: dump\n    source: https://example.com/x\n";
        assert_eq!(
            found(&Parts::of(text).unwrap()),
            [
                "Warning charmcraft.yaml:14: part away, source: only directories of the charm's own can be dumped: nothing is fetched",
                "Error charmcraft.yaml:3: part charm, charm-entrypoint: main.py cannot be the charm's program, which is src/charm.py",
                "Warning charmcraft.yaml:4: part charm, override-build: scripts of parts are not run here",
                "Warning charmcraft.yaml:6: part charm, prime: *.txt is no plain path: patterns are not supported here",
                "Error charmcraft.yaml:11: part old, plugin: reactive charms run programs of a machine's",
                "Warning charmcraft.yaml:9: part tool, plugin: plugin go is not supported, and its output is missing",
            ]
        );
    }

    #[test]
    fn a_dump_brings_directories_and_files_of_the_charm_along() {
        let text = "parts:\n  one: {plugin: dump, source: extra/}\n  two: {plugin: dump, source: ., prime: [LICENSE]}\n  \
                    three:\n    plugin: dump\n    source: more\n    organize: {a.txt: b/a.txt}\n  out: {plugin: dump, source: ../x}\n";
        let parts = Parts::of(text).unwrap();
        let place = tempfile::tempdir().unwrap();
        let charm = fs::canonicalize(place.path()).unwrap();
        for (path, content) in
            [("extra/sub/x", "1"), ("extra/y", "2"), ("LICENSE", "3"), ("more/a.txt", "4"), ("rest", "5")]
        {
            fs::create_dir_all(charm.join(path).parent().unwrap()).unwrap();
            fs::write(charm.join(path), content).unwrap();
        }
        let mut contents = Contents::default();
        parts.add_files(&charm, &mut contents).unwrap();
        assert_eq!(
            contents.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            ["LICENSE", "b/a.txt", "sub/x", "y"]
        );
        assert_eq!(parts.findings.len(), 1, "{:?}", parts.findings);

        // A missing file of an unsupported plugin is a warning, any other an error.
        let text = "parts:\n  made: {plugin: go, prime: [usr/bin/tool, LICENSE]}\n  typo:\n    plugin: nil\n    prime: [LICENCE]\n";
        let parts = Parts::of(text).unwrap();
        let missing: Vec<_> =
            parts.missing(&charm).iter().map(|found| format!("{:?} {found}", found.severity)).collect();
        assert_eq!(
            missing,
            [
                "Warning charmcraft.yaml:2: part made, prime: usr/bin/tool is not in the charm's directory",
                "Error charmcraft.yaml:5: part typo, prime: LICENCE is not in the charm's directory",
            ]
        );
        let mut contents = Contents::default();
        parts.add_files(&charm, &mut contents).unwrap();
        assert_eq!(contents.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["LICENSE"]);

        // A link that leads out of the charm's directory.
        std::os::unix::fs::symlink("/etc", charm.join("etc")).unwrap();
        let parts = Parts::of("parts: {charm: {prime: [etc/hostname]}}\n").unwrap();
        let error = parts.add_files(&charm, &mut Contents::default()).unwrap_err().to_string();
        assert!(error.contains("etc is a link to /etc, and leads out of"), "{error}");
    }

    #[test]
    fn no_more_is_read_than_an_archive_takes_and_nothing_that_has_no_end() {
        let place = tempfile::tempdir().unwrap();
        let charm = fs::canonicalize(place.path()).unwrap();
        fs::create_dir_all(charm.join("many/sub")).unwrap();
        for file in ["a.bin", "many/b.bin", "many/sub/c.bin"] {
            // A sparse file takes no space on the disk.
            fs::File::create(charm.join(file)).unwrap().set_len(periapt_archive::MAX_UNPACKED + 1).unwrap();
        }
        std::os::unix::net::UnixListener::bind(charm.join("socket")).unwrap();
        for (part, expected) in [
            ("charm: {prime: [a.bin]}", "a.bin is too much"),
            ("all: {plugin: dump, source: many}", "is too much"),
            ("one: {plugin: dump, source: ., organize: {many/sub/c.bin: c.bin}}", "c.bin is too much"),
            ("charm: {prime: [socket]}", "socket"),
        ] {
            let parts = Parts::of(&format!("parts: {{{part}}}\n")).unwrap();
            let error = parts.add_files(&charm, &mut Contents::default()).unwrap_err().to_string();
            assert!(error.contains(expected), "{part}: {error}");
        }
    }
}
