//! A workspace's dependencies, as `cargo metadata` reports them.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId, Target};

/// Returns true for the name of a package of this repository.
fn is_ours(name: &str) -> bool {
    name == "periapt" || name.starts_with("periapt-")
}

/// The packages of one workspace and, if resolved, the edges between them and all their dependencies.
pub(crate) struct Graph {
    metadata: Metadata,
    /// The edges of normal dependencies, for the platform that runs this test.
    edges: BTreeMap<PackageId, Vec<PackageId>>,
}

impl Graph {
    /// Reads the workspace with its resolved graph. Features are united over the whole workspace on purpose: a crate
    /// can also call the parts of a shared dependency that another crate's features enable.
    pub(crate) fn resolved(manifest: &Path) -> anyhow::Result<Self> {
        let platform = host_platform()?;
        let metadata = MetadataCommand::new()
            .manifest_path(manifest)
            .other_options(["--offline", "--filter-platform", &platform].map(str::to_owned))
            .exec()
            .with_context(|| format!("cargo metadata of {}", manifest.display()))?;
        let mut edges: BTreeMap<PackageId, Vec<PackageId>> = BTreeMap::new();
        for node in &metadata.resolve.as_ref().context("cargo metadata resolved nothing")?.nodes {
            let to = edges.entry(node.id.clone()).or_default();
            for dependency in &node.deps {
                if dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal) {
                    to.push(dependency.pkg.clone());
                }
            }
        }
        Ok(Self { metadata, edges })
    }

    /// Reads the workspace as its manifests declare it, without resolving it.
    pub(crate) fn declared(manifest: &Path) -> anyhow::Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(manifest)
            .no_deps()
            .other_options(["--offline".to_owned()])
            .exec()
            .with_context(|| format!("cargo metadata of {}", manifest.display()))?;
        Ok(Self { metadata, edges: BTreeMap::new() })
    }

    fn packages(&self) -> impl Iterator<Item = &Package> {
        self.metadata.workspace_packages().into_iter()
    }

    /// Returns the names of the workspace's members.
    pub(crate) fn members(&self) -> impl Iterator<Item = &str> {
        self.packages().map(|package| package.name.as_str())
    }

    /// Returns the directory of a member.
    pub(crate) fn directory(&self, member: &str) -> anyhow::Result<PathBuf> {
        let package = self.packages().find(|package| package.name.as_str() == member);
        let manifest = &package.with_context(|| format!("no crate is called {member}"))?.manifest_path;
        Ok(manifest.parent().with_context(|| format!("{manifest} lies in no directory"))?.into())
    }

    /// Returns the root files of a member's library and binaries.
    pub(crate) fn crate_roots(&self, member: &str) -> anyhow::Result<Vec<PathBuf>> {
        let package = self.packages().find(|package| package.name.as_str() == member);
        let targets = &package.with_context(|| format!("no crate is called {member}"))?.targets;
        let is_code = |target: &&Target| target.is_lib() || target.is_bin() || target.is_proc_macro();
        Ok(targets.iter().filter(is_code).map(|target| target.src_path.clone().into()).collect())
    }

    /// Returns each member with each of its declared dependencies of any kind, by the dependency's package name.
    pub(crate) fn declared_dependencies(&self) -> impl Iterator<Item = (&str, &String)> {
        self.packages().flat_map(|package| {
            package.dependencies.iter().map(|dependency| (package.name.as_str(), &dependency.name))
        })
    }

    /// Returns the edges (from, to) between packages of this repository, without development dependencies.
    pub(crate) fn room_edges(&self) -> Vec<(String, String)> {
        let mut edges = Vec::new();
        for package in self.packages() {
            for dependency in &package.dependencies {
                if dependency.kind != DependencyKind::Development && is_ours(&dependency.name) {
                    edges.push((package.name.to_string(), dependency.name.clone()));
                }
            }
        }
        edges
    }

    /// Returns the shortest path of normal dependencies from a member to any version of `to`, as names; none if there
    /// is none. The path uses none of the edges `except`.
    pub(crate) fn path(
        &self,
        from: &str,
        to: &str,
        except: &[(&str, &str)],
    ) -> anyhow::Result<Option<Vec<String>>> {
        let Some(start) = self.packages().find(|package| package.name.as_str() == from) else {
            bail!("no crate is called {from}");
        };
        let mut came_from: BTreeMap<&PackageId, Option<&PackageId>> = BTreeMap::from([(&start.id, None)]);
        let mut open = VecDeque::from([&start.id]);
        while let Some(next) = open.pop_front() {
            if self.name(next)? == to {
                let mut path = Vec::new();
                let mut at = Some(next);
                while let Some(id) = at {
                    path.push(self.name(id)?.to_owned());
                    at = came_from.get(id).copied().flatten();
                }
                path.reverse();
                return Ok(Some(path));
            }
            for dependency in self.edges.get(next).into_iter().flatten() {
                let edge = (self.name(next)?, self.name(dependency)?);
                if !came_from.contains_key(dependency) && !except.contains(&edge) {
                    came_from.insert(dependency, Some(next));
                    open.push_back(dependency);
                }
            }
        }
        Ok(None)
    }

    fn name(&self, id: &PackageId) -> anyhow::Result<&str> {
        let package = self.metadata.packages.iter().find(|package| package.id == *id);
        Ok(package.with_context(|| format!("cargo metadata does not describe {id}"))?.name.as_str())
    }
}

/// Returns the platform that the compiler builds for.
fn host_platform() -> anyhow::Result<String> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&compiler).arg("-vV").output().context("rustc -vV")?;
    let text = String::from_utf8(output.stdout).context("rustc -vV")?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}
