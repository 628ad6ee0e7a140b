//! The options of charmcraft's plugins for Python.

use std::ffi::OsString;

use serde_json::Value;

use super::{PROGRAM, Reader, is_plain};
use crate::Severity;

/// Build tools, which are no dependencies of a charm.
const BUILDERS: [&str; 4] = ["pip", "setuptools", "wheel", "setuptools-scm"];

/// Supported options of plugins, and options without effect here, such as those about programs of packages.
const KNOWN: [&str; 16] = [
    "charm-entrypoint",
    "charm-requirements",
    "charm-python-packages",
    "charm-binary-python-packages",
    "charm-strict-dependencies",
    "python-requirements",
    "python-constraints",
    "python-packages",
    "python-keep-bins",
    "poetry-with",
    "poetry-without",
    "poetry-export-extra-args",
    "poetry-keep-bins",
    "uv-extras",
    "uv-groups",
    "uv-keep-bins",
];

/// The dependencies that parts declare.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Required {
    /// Files of requirements that replace requirements.txt; empty means the default.
    pub(super) files: Vec<String>,
    /// Files with version constraints.
    pub(super) constraints: Vec<String>,
    /// Additional packages.
    pub(super) packages: Vec<String>,
    /// The choice of groups and extras of pyproject.toml. `None` without a plugin that reads that file alone.
    pub(super) project: Option<Project>,
    /// The treatment of dependencies that charm libraries declare.
    pub(super) libraries: Libraries,
}

/// The groups and extras of pyproject.toml that are installed beside its dependencies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Project {
    pub(super) groups: Vec<String>,
    pub(super) extras: Vec<String>,
    /// Excluded groups.
    pub(super) without: Vec<String>,
    /// The only groups to install, if not empty; `main` means the dependencies outside of groups.
    pub(super) only: Vec<String>,
}

/// The treatment of `PYDEPS` in charm libraries.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Libraries {
    /// Ignored, like by charmcraft's plugins other than `charm`.
    Alone,
    /// Installed.
    #[default]
    WithTheirs,
}

impl Required {
    /// Returns the arguments for `periapt_packing vendor`. Option and value are one argument, because a value from
    /// charmcraft.yaml may look like an option.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let many = |option: &str, values: &[String]| -> Vec<OsString> {
            values.iter().map(|value| format!("--{option}={value}").into()).collect()
        };
        let mut arguments = many("file", &self.files);
        arguments.extend(many("constraints", &self.constraints));
        arguments.extend(many("package", &self.packages));
        if let Some(project) = &self.project {
            arguments.push("--project".into());
            arguments.extend(many("group", &project.groups));
            arguments.extend(many("extra", &project.extras));
            arguments.extend(many("without", &project.without));
            arguments.extend(many("only", &project.only));
        }
        if self.libraries == Libraries::WithTheirs {
            arguments.push("--libraries".into());
        }
        arguments
    }
}

impl Reader<'_> {
    pub(super) fn charm(&mut self) {
        self.files("charm-requirements");
        self.packages("charm-python-packages");
        self.packages("charm-binary-python-packages");
        let entrypoint = self.part.get("charm-entrypoint").and_then(Value::as_str);
        if let Some(other) = entrypoint.filter(|entrypoint| *entrypoint != PROGRAM) {
            let text = format!("{other} cannot be the charm's program, which is {PROGRAM}");
            self.find("charm-entrypoint", Severity::Error, &text);
        }
    }

    pub(super) fn python(&mut self) {
        self.files("python-requirements");
        let constraints = self.plain("python-constraints");
        self.parts.required.constraints.extend(constraints);
        self.packages("python-packages");
    }

    /// Reads a part of the plugins `poetry` and `uv`, which use pyproject.toml alone.
    pub(super) fn project(&mut self) {
        let groups = [self.strings("poetry-with"), self.strings("uv-groups")].concat();
        let without = self.strings("poetry-without");
        let extras = self.strings("uv-extras");
        let exported = self.exported();
        let project = self.parts.required.project.get_or_insert_default();
        project.groups.extend([groups, exported.groups].concat());
        project.extras.extend([extras, exported.extras].concat());
        project.without.extend([without, exported.without].concat());
        project.only.extend(exported.only);
    }

    /// Parses the arguments of `poetry export`.
    fn exported(&mut self) -> Project {
        const KEY: &str = "poetry-export-extra-args";
        let mut exported = Project::default();
        let mut words = self.strings(KEY).into_iter();
        while let Some(word) = words.next() {
            let (option, given) = match word.split_once('=') {
                Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            // These options only concern the format of requirements files.
            if option.starts_with("--without-") || option == "--with-credentials" {
                continue;
            }
            let names = match option.as_str() {
                "--with" => &mut exported.groups,
                "--without" => &mut exported.without,
                "--only" => &mut exported.only,
                "--extras" | "-E" => &mut exported.extras,
                _ => {
                    self.warn(KEY, &format!("{option} is not supported, and has no effect"));
                    continue;
                }
            };
            match given.or_else(|| words.next()) {
                Some(value) => {
                    let named = value.split([',', ' ']).filter(|name| !name.is_empty());
                    names.extend(named.map(str::to_owned));
                }
                None => self.find(KEY, Severity::Error, &format!("{option} names nothing")),
            }
        }
        exported
    }

    /// Warns about unsupported options of these plugins.
    pub(super) fn others(&mut self) {
        let of_plugins = |key: &&String| {
            let prefixes = ["charm-", "python-", "poetry-", "uv-"];
            prefixes.iter().any(|prefix| key.starts_with(prefix)) && !KNOWN.contains(&key.as_str())
        };
        let unknown: Vec<_> = self.part.keys().filter(of_plugins).cloned().collect();
        for key in unknown {
            self.warn(&key, "this option is not supported, and has no effect");
        }
    }

    fn files(&mut self, key: &str) {
        let files = self.plain(key);
        self.parts.required.files.extend(files);
    }

    /// Returns the files of the charm that a key lists, and reports paths that lead out.
    fn plain(&mut self, key: &str) -> Vec<String> {
        let (plain, others): (Vec<_>, Vec<_>) =
            self.strings(key).into_iter().partition(|file| is_plain(file));
        for file in others {
            self.find(key, Severity::Error, &format!("{file} is no file of the charm's"));
        }
        plain
    }

    fn packages(&mut self, key: &str) {
        let packages = self.strings(key).into_iter().filter(|package| {
            let name: String =
                package.chars().take_while(|c| c.is_alphanumeric() || "-_.".contains(*c)).collect();
            !BUILDERS.contains(&name.replace('_', "-").as_str())
        });
        self.parts.required.packages.extend(packages);
    }
}
