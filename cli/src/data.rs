//! The data of this user's client: `$PERIAPT_DATA`, by default `periapt` in the user's data directory.
//!
//! ```text
//! client.json             the controllers, each with its current model
//! client.lock             the lock on changes of these files
//! accounts.json           the logins: users and tokens of sessions
//! seen.json               the newest states that commands were shown by controllers of a log
//! controllers/NAME/       a controller that was bootstrapped here
//!   controller.log        the controller's log; a large one is moved to controller.log.1
//!   starting.json         the processes of a bootstrap in progress
//!   agent.log             the log of this machine's agent, bounded likewise
//!   controller/           the controller's store and blobs, its authority and its socket
//!   agent/                the agent's charms and compiled code
//! ```

mod accounts;
mod current_model;
mod file;
mod last_seen;
mod name;
pub(crate) mod starting;

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

pub(crate) use accounts::{Account, Accounts};
pub(crate) use current_model::CurrentModel;
pub(crate) use file::{ClientData, ControllerEntry, Credential, Local, LocalAgent, TlsFiles};
pub(crate) use last_seen::LastSeen;
pub(crate) use name::{ControllerName, ControllerNameError};

use crate::error::{Explain as _, Failure, Result};

/// The variable that names the client's data directory.
pub(crate) const DATA_VARIABLE: &str = "PERIAPT_DATA";

/// The client's data directory.
#[derive(Debug, Clone)]
pub(crate) struct DataDir(PathBuf);

impl DataDir {
    /// Returns the directory of the environment; always absolute, because processes that outlive this one use it.
    pub(crate) fn from_environment() -> Result<Self> {
        let path = locate(env::var_os(DATA_VARIABLE), env::var_os("XDG_DATA_HOME"), env::var_os("HOME"))
            .ok_or_else(|| {
                Failure::new("the client's data directory is unknown")
                    .with_hint(format!("set {DATA_VARIABLE} or HOME"))
            })?;
        std::path::absolute(&path).explain(|| format!("{}", path.display())).map(Self)
    }

    /// Returns the cache directory, for files that can be made again: `$PERIAPT_CACHE`, by default `periapt` in
    /// the user's cache directory.
    pub(crate) fn cache_from_environment() -> Result<PathBuf> {
        let path = periapt_pack::cache_directory(|name| env::var_os(name)).ok_or_else(|| {
            Failure::new("the cache directory is unknown").with_hint("set PERIAPT_CACHE or HOME")
        })?;
        std::path::absolute(&path).explain(|| format!("{}", path.display()))
    }

    /// Returns the path of the file with the controllers.
    pub(crate) fn client_file(&self) -> PathBuf {
        self.0.join("client.json")
    }

    /// Returns the path of the file with the logins.
    pub(crate) fn accounts_file(&self) -> PathBuf {
        self.0.join("accounts.json")
    }

    /// Returns the path of the file with the newest states that commands were shown.
    pub(crate) fn seen_file(&self) -> PathBuf {
        self.0.join("seen.json")
    }

    /// Returns the path of the lock on these files.
    pub(crate) fn lock_file(&self) -> PathBuf {
        self.0.join("client.lock")
    }

    /// Returns the directory of a controller that was bootstrapped here.
    pub(crate) fn controller(&self, name: &ControllerName) -> ControllerDir {
        ControllerDir(self.0.join("controllers").join(name.as_str()))
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

fn locate(data: Option<OsString>, xdg_data: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    set(data)
        .or_else(|| set(xdg_data).map(|path| path.join("periapt")))
        .or_else(|| set(home).map(|path| path.join(".local/share/periapt")))
}

/// Returns a variable's value. An empty variable counts as not set.
fn set(value: Option<OsString>) -> Option<PathBuf> {
    value.filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The directory of one controller that was bootstrapped here.
#[derive(Debug, Clone)]
pub(crate) struct ControllerDir(PathBuf);

impl ControllerDir {
    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the directory of the controller's own data.
    pub(crate) fn controller(&self) -> PathBuf {
        self.0.join("controller")
    }

    /// Returns the path of the controller's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.controller().join("control.socket")
    }

    /// Returns the path of the certificate of the controller's authority.
    pub(crate) fn authority(&self) -> PathBuf {
        self.controller().join("ca.pem")
    }

    /// Returns the directory of the local agent's data.
    pub(crate) fn agent(&self) -> PathBuf {
        self.0.join("agent")
    }

    /// Returns the path of the local agent's join token, which exists while the agent starts.
    pub(crate) fn agent_token(&self) -> PathBuf {
        self.0.join("agent.token")
    }

    /// Returns the path of the controller's log.
    pub(crate) fn controller_log(&self) -> PathBuf {
        self.0.join("controller.log")
    }

    /// Returns the path of the local agent's log.
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
