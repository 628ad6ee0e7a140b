//! Users and groups, as the files below a root name them.

use std::{fs::OpenOptions, io::Read as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use periapt_pebble::Account;

/// The most bytes of a file such as `/etc/passwd` that are read: thousands of users.
const MAX_FILE: u64 = 1 << 20;

/// The users and groups of a root.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: Vec<User>,
    groups: Vec<(String, u32)>,
}

#[derive(Debug)]
struct User {
    name: String,
    user_id: u32,
    group_id: u32,
    home: String,
}

/// An account with numbers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) user_id: u32,
    pub(crate) group_id: u32,
    pub(crate) home: String,
    pub(crate) name: String,
}

impl Accounts {
    /// Reads the accounts. Files that are missing name nobody; lines that are no accounts are skipped.
    pub(crate) fn read(root: &Path) -> Self {
        let passwd = text_of(&root.join("etc/passwd"));
        let group = text_of(&root.join("etc/group"));
        Self {
            users: passwd.lines().filter_map(user).collect(),
            groups: group.lines().filter_map(self::group).collect(),
        }
    }

    /// Returns the numbers of an account; none if it names nothing.
    pub(crate) fn resolve(&self, account: &Account) -> Result<Option<Resolved>, String> {
        let Account { user, user_id, group, group_id } = account;
        let by_name = match user {
            Some(name) => {
                let found = self.users.iter().find(|it| it.name == *name);
                Some(found.ok_or_else(|| format!("unknown user {name:?}"))?)
            }
            None => user_id.and_then(|id| self.users.iter().find(|it| it.user_id == id)),
        };
        let known = by_name.map(|it| it.user_id);
        if let (Some(id), Some(known), Some(name)) = (user_id, known, user)
            && *id != known
        {
            return Err(format!("user {name:?} has the UID {known}, not {id}"));
        }
        let named_group = match group {
            Some(name) => {
                let found = self.groups.iter().find(|(known, _)| known == name);
                Some(found.ok_or_else(|| format!("unknown group {name:?}"))?.1)
            }
            None => None,
        };
        if let (Some(id), Some(known), Some(name)) = (group_id, named_group, group)
            && *id != known
        {
            return Err(format!("group {name:?} has the GID {known}, not {id}"));
        }
        let group_id = named_group.or(*group_id);
        let Some(user_id) = known.or(*user_id) else {
            return match group_id {
                Some(_) => Err("must specify user, not just group".to_owned()),
                None => Ok(None),
            };
        };
        let group_id = group_id.or(by_name.map(|it| it.group_id));
        let group_id = group_id.ok_or_else(|| format!("UID {user_id} is unknown: specify a group, too"))?;
        let home = by_name.map_or_else(|| "/".to_owned(), |it| it.home.clone());
        let name = by_name.map_or_else(|| user_id.to_string(), |it| it.name.clone());
        Ok(Some(Resolved { user_id, group_id, home, name }))
    }

    /// Returns the name of a user.
    pub(crate) fn user_name(&self, id: u32) -> Option<&str> {
        self.users.iter().find(|it| it.user_id == id).map(|it| it.name.as_str())
    }

    /// Returns the name of a group.
    pub(crate) fn group_name(&self, id: u32) -> Option<&str> {
        self.groups.iter().find(|(_, known)| *known == id).map(|(name, _)| name.as_str())
    }

    /// Returns the home directory of a user.
    pub(crate) fn home(&self, id: u32) -> Option<&str> {
        self.users.iter().find(|it| it.user_id == id).map(|it| it.home.as_str())
    }
}

/// Returns the text of a regular file, as far as it is read. Nothing else is waited for.
pub(crate) fn text_of(path: &Path) -> String {
    let mut text = Vec::new();
    if let Ok(file) = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
        && file.metadata().is_ok_and(|found| found.is_file())
    {
        let _ = file.take(MAX_FILE).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn user(line: &str) -> Option<User> {
    let mut fields = line.split(':');
    let (name, _password, user_id, group_id) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let home = fields.nth(1).filter(|home| home.starts_with('/')).unwrap_or("/");
    Some(User {
        name: name.to_owned(),
        user_id: user_id.parse().ok()?,
        group_id: group_id.parse().ok()?,
        home: home.to_owned(),
    })
}

fn group(line: &str) -> Option<(String, u32)> {
    let mut fields = line.split(':');
    let (name, _password, id) = (fields.next()?, fields.next()?, fields.next()?);
    Some((name.to_owned(), id.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> Accounts {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::fs::write(
            root.path().join("etc/passwd"),
            "root:x:0:0:root:/root:/bin/sh\nbroken\nweb:x:33:34::/var/www:/bin/false\n",
        )
        .unwrap();
        std::fs::write(root.path().join("etc/group"), "root:x:0:\nwww:x:34:web\nother:x:50:\n").unwrap();
        Accounts::read(root.path())
    }

    #[test]
    fn names_and_numbers_must_agree() {
        let accounts = accounts();
        let resolve = |user: Option<&str>, user_id, group: Option<&str>, group_id| {
            let (user, group) = (user.map(str::to_owned), group.map(str::to_owned));
            let found = accounts.resolve(&Account { user, user_id, group, group_id });
            found.map(|found| found.map(|it| (it.user_id, it.group_id)))
        };
        assert_eq!(resolve(None, None, None, None), Ok(None));
        assert_eq!(resolve(Some("web"), None, None, None), Ok(Some((33, 34))));
        assert_eq!(resolve(Some("web"), Some(33), Some("other"), None), Ok(Some((33, 50))));
        assert_eq!(resolve(None, Some(99), None, Some(7)), Ok(Some((99, 7))));
        for (found, part) in [
            (resolve(Some("nobody-here"), None, None, None), "unknown user"),
            (resolve(Some("web"), Some(1), None, None), "not 1"),
            (resolve(Some("web"), None, Some("none"), None), "unknown group"),
            (resolve(Some("web"), None, Some("www"), Some(1)), "not 1"),
            (resolve(None, None, Some("www"), None), "not just group"),
            (resolve(None, Some(99), None, None), "UID 99 is unknown"),
        ] {
            assert!(found.clone().is_err_and(|message| message.contains(part)), "{found:?}");
        }
    }
}
