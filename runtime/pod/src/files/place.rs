//! Paths, permissions and owners.

use std::path::{Path, PathBuf};

use periapt_pebble::Account;
use serde::Deserialize;

use super::error::FileError;
use crate::driver::accounts::Accounts;

/// The most bytes of a path: the kernel takes no longer one.
const MAX_PATH: usize = 4_095;

/// A path of a client, and its place on the host.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) shown: String,
    pub(crate) path: PathBuf,
}

impl Place {
    /// Returns the place of an absolute path. Below a root that is not the system's own, `..` never leads above the root.
    pub(crate) fn of(root: &Path, path: &str) -> Result<Self, FileError> {
        let Some(below) = path.strip_prefix('/') else {
            return Err(FileError::other(format!("paths must be absolute, got {path:?}")));
        };
        if path.len() > MAX_PATH || path.contains('\0') {
            return Err(FileError::other(format!(
                "paths must be at most {MAX_PATH} bytes without a null byte"
            )));
        }
        let path = path.to_owned();
        match root.parent() {
            // The system resolves the path, with the links in it.
            None => Ok(Self { shown: path.clone(), path: root.join(below.trim_start_matches('/')) }),
            Some(_) => Ok(Self { path: root.join(resolved(&path)), shown: path }),
        }
    }
}

/// Resolves `.` and `..` by the words of a path alone. The root of a workload has no links, which only a client could make.
fn resolved(path: &str) -> PathBuf {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.into_iter().collect()
}

/// The owner of a new file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Ownership {
    pub(crate) user_id: Option<u32>,
    pub(crate) user: Option<String>,
    pub(crate) group_id: Option<u32>,
    pub(crate) group: Option<String>,
}

impl Ownership {
    /// Returns the numbers of the owner: `own` if nobody is named, and none for the pod's own user.
    pub(crate) fn resolve(
        &self,
        root: &Path,
        own: Option<(u32, u32)>,
    ) -> Result<Option<(u32, u32)>, FileError> {
        let named = |name: &Option<String>| name.clone().filter(|it| !it.is_empty());
        let account = Account {
            user: named(&self.user),
            user_id: self.user_id,
            group: named(&self.group),
            group_id: self.group_id,
        };
        if account.is_own() {
            return Ok(own);
        }
        let resolved = Accounts::read(root).resolve(&account).map_err(FileError::other)?;
        Ok(resolved.map(|it| (it.user_id, it.group_id)))
    }
}

/// Reads permissions, three digits of eight.
pub(crate) fn permissions(text: &str, default: u32) -> Result<u32, FileError> {
    if text.is_empty() {
        return Ok(default);
    }
    let is_octal = text.len() == 3 && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    let mode = u32::from_str_radix(text, 8).ok().filter(|_| is_octal);
    mode.ok_or_else(|| FileError::other(format!("mode must be a 3-digit octal string, got {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_a_root_of_its_own() {
        for (path, below) in [
            ("/", "/root"),
            ("//a/./b/", "/root/a/b"),
            ("/../../etc/passwd", "/root/etc/passwd"),
            ("/a/../../../b", "/root/b"),
            ("/a/..b/...", "/root/a/..b/..."),
        ] {
            assert_eq!(Place::of(Path::new("/root"), path).unwrap().path, Path::new(below), "{path}");
        }
        assert_eq!(Place::of(Path::new("/"), "/a/../b").unwrap().path, Path::new("/a/../b"));
        Place::of(Path::new("/root"), "a").unwrap_err();
    }
}
