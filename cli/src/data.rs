//! What this user's client keeps: `$PERIAPT_DATA`, by default `periapt` in the user's data directory.
//!
//! ```text
//! client.json             the controllers that it knows, and which model of each is the current one
//! client.lock             held while that file is changed
//! controllers/NAME/       one that was bootstrapped here
//!   controller.log        what the controller process logs; once it is large it is put aside as controller.log.1
//!   starting.json         while it is being bootstrapped: by which processes
//!   agent.log             what this machine's agent logs, in the same way
//!   controller/           the controller's store and blobs
//!   agent/                the agent's charms and compiled code
//! ```

mod file;
mod name;
pub(crate) mod starting;

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

pub(crate) use file::{ClientData, ControllerEntry, Credential, Local, LocalAgent};
pub(crate) use name::{ControllerName, ControllerNameError};

use crate::error::{Explain as _, Failure, Result};

/// The variable that says where the client's data lies.
pub(crate) const DATA_VARIABLE: &str = "PERIAPT_DATA";

/// The directory.
#[derive(Debug, Clone)]
pub(crate) struct DataDir(PathBuf);

impl DataDir {
    /// Where the environment says; always absolute, because processes that outlive this one use it.
    pub(crate) fn from_environment() -> Result<Self> {
        let path = locate(env::var_os(DATA_VARIABLE), env::var_os("XDG_DATA_HOME"), env::var_os("HOME"))
            .ok_or_else(|| {
                Failure::new("nobody says where the client's data lies")
                    .with_hint(format!("set {DATA_VARIABLE} or HOME"))
            })?;
        std::path::absolute(&path).explain(|| format!("{}", path.display())).map(Self)
    }

    /// Where what can be made again is kept: `$PERIAPT_CACHE`, by default `periapt` in the user's cache directory.
    pub(crate) fn cache_from_environment() -> Result<PathBuf> {
        let path = periapt_pack::cache_directory(|name| env::var_os(name)).ok_or_else(|| {
            Failure::new("nobody says where a cache may lie").with_hint("set PERIAPT_CACHE or HOME")
        })?;
        std::path::absolute(&path).explain(|| format!("{}", path.display()))
    }

    /// The file with the controllers.
    pub(crate) fn client_file(&self) -> PathBuf {
        self.0.join("client.json")
    }

    /// The lock on it.
    pub(crate) fn lock_file(&self) -> PathBuf {
        self.0.join("client.lock")
    }

    /// Where a controller that was bootstrapped here lies.
    pub(crate) fn controller(&self, name: &ControllerName) -> ControllerDir {
        ControllerDir(self.0.join("controllers").join(name.as_str()))
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

fn locate(data: Option<OsString>, xdg_data: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    set(data)
        .or_else(|| set(xdg_data).map(|path| path.join("periapt")))
        .or_else(|| set(home).map(|path| path.join(".local/share/periapt")))
}

/// An empty variable counts as one that is not set.
fn set(value: Option<OsString>) -> Option<PathBuf> {
    value.filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The directory of one controller that was bootstrapped here.
#[derive(Debug, Clone)]
pub(crate) struct ControllerDir(PathBuf);

impl ControllerDir {
    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The controller's own data.
    pub(crate) fn controller(&self) -> PathBuf {
        self.0.join("controller")
    }

    /// The local agent's data.
    pub(crate) fn agent(&self) -> PathBuf {
        self.0.join("agent")
    }

    /// What the controller logs.
    pub(crate) fn controller_log(&self) -> PathBuf {
        self.0.join("controller.log")
    }

    /// What the local agent logs.
    pub(crate) fn agent_log(&self) -> PathBuf {
        self.0.join("agent.log")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_variable_comes_first_then_the_users_data_directory() {
        let some = |text: &str| Some(OsString::from(text));
        assert_eq!(locate(some("/d"), some("/x"), some("/h")), Some("/d".into()));
        assert_eq!(locate(None, some("/x"), some("/h")), Some("/x/periapt".into()));
        assert_eq!(locate(some(""), some(""), some("/h")), Some("/h/.local/share/periapt".into()));
        assert_eq!(locate(None, None, None), None);
    }
}
