//! The client's logins, `accounts.json`: for each controller the user and the token of the session. Only its owner may
//! read the file.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
};

use jiff::Timestamp;
use periapt_host_api::{UserName, token::Token};
use serde::{Deserialize, Serialize};

use super::{ControllerName, DataDir, file::lock};
use crate::error::{Explain as _, Failure, Result};

/// The version of the file's form. A later one is refused rather than misread.
const VERSION: u32 = 1;

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct AccountFile {
    version: u32,
    /// The logins, by this client's names for controllers.
    controllers: BTreeMap<ControllerName, Account>,
}

/// A login to a controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Account {
    /// The user.
    pub(crate) user: UserName,
    /// The token of the session.
    pub(crate) token: Token,
    /// The end of the session.
    pub(crate) expires_at: Timestamp,
}

/// The client's logins.
#[derive(Debug)]
pub(crate) struct Accounts;

impl Accounts {
    /// Returns the login to a controller, if there is one.
    pub(crate) fn of(directory: &DataDir, controller: &ControllerName) -> Result<Option<Account>> {
        Ok(read(directory)?.controllers.remove(controller))
    }

    /// Returns the number of controllers with a login.
    pub(crate) fn count(directory: &DataDir) -> Result<usize> {
        Ok(read(directory)?.controllers.len())
    }

    /// Keeps a login to a controller, in place of an earlier one.
    pub(crate) fn keep(directory: &DataDir, controller: &ControllerName, account: Account) -> Result<()> {
        change(directory, |known| drop(known.insert(controller.clone(), account)))
    }

    /// Forgets the login to a controller, if there is one.
    pub(crate) fn forget(directory: &DataDir, controller: &ControllerName) -> Result<()> {
        change(directory, |known| drop(known.remove(controller)))
    }
}

fn read(directory: &DataDir) -> Result<AccountFile> {
    let path = directory.accounts_file();
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(AccountFile { version: VERSION, controllers: BTreeMap::new() });
        }
        Err(error) => return Err(Failure::new(format!("cannot read {}: {error}", path.display()))),
    };
    let mode = fs::metadata(&path).map_or(0, |there| there.mode());
    if mode & 0o077 != 0 {
        return Err(Failure::new(format!("{} holds tokens, and others may read it", path.display()))
            .with_hint(format!(
                "`chmod 600 {}`, and log in again if others are on this host",
                path.display()
            )));
    }
    let file: AccountFile = serde_json::from_str(&text).map_err(|error| {
        // The error's text may hold a part of a token.
        Failure::new(format!("{} cannot be understood, at line {}", path.display(), error.line()))
    })?;
    match file.version {
        VERSION => Ok(file),
        other => Err(Failure::new(format!(
            "{} was written in form {other}; this version reads form {VERSION}",
            path.display()
        ))),
    }
}

fn change(directory: &DataDir, change: impl FnOnce(&mut BTreeMap<ControllerName, Account>)) -> Result<()> {
    let lock = lock(directory)?;
    let mut file = read(directory)?;
    change(&mut file.controllers);
    let path = directory.accounts_file();
    let partial = path.with_extension("json.new");
    let mut text = serde_json::to_string_pretty(&file).explain(|| format!("{}", path.display()))?;
    text.push('\n');
    let write = || -> std::io::Result<()> {
        let _ = fs::remove_file(&partial);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, &path)
    };
    let written = write().explain(|| format!("cannot write {}", path.display()));
    drop(lock);
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use periapt_host_api::token::TokenKind;

    use super::*;

    #[test]
    fn logins_are_kept_for_their_owner_alone_and_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDir::at(directory.path());
        let name: ControllerName = "shop".parse().unwrap();
        assert_eq!(Accounts::of(&data, &name).unwrap(), None);
        let account = Account {
            user: "jane".parse().unwrap(),
            token: Token::new(TokenKind::Session, [7; 32]),
            expires_at: Timestamp::UNIX_EPOCH,
        };
        Accounts::keep(&data, &name, account.clone()).unwrap();
        assert_eq!(Accounts::of(&data, &name).unwrap(), Some(account));
        let path = data.accounts_file();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let text = Accounts::of(&data, &name).unwrap_err().to_string();
        assert!(text.contains("others may read it") && text.contains("chmod 600"), "{text}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        Accounts::forget(&data, &name).unwrap();
        assert_eq!(Accounts::count(&data).unwrap(), 0);
    }
}
