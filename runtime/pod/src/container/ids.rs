//! The users and groups of a container, and those that they are on the host.

use std::{
    ffi::OsStr,
    fs,
    io::{self, Read as _},
    os::{
        fd::{AsRawFd as _, RawFd},
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::{process::Pid, thread::no_new_privs};

use super::{error::ContainerError, gap::Gap};

/// The ids of a container: those of services, of users, nobody's, and those above 65,535 that some images have their
/// daemons run as (584,792 of Ubuntu's).
const COUNT: u32 = 1 << 20;

/// The first id that is given to a container: above those of users and of their ranges in `/etc/subuid`.
const LOWEST: u32 = 0x1000_0000;

/// The ranges that there are: the last ends below 2^31, which some programs take for a negative number.
const RANGES: u32 = 0x6f0;

/// The directories of programs if the environment names none, as that of an agent's pods.
const DIRECTORIES: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The most bytes of `/etc/subuid` that are read.
const MAX_FILE: u64 = 1 << 20;

/// The users of a container, as the host knows them.
#[derive(Debug)]
pub(super) enum Ids {
    /// A range of its own. Its lock is released with the last process that has it.
    Range {
        /// The first id.
        first: u32,
        /// The name that no other guard can take.
        lock: Option<UnixListener>,
    },
    /// The guard's user as root, and a range that `/etc/subuid` and `/etc/subgid` give.
    Subordinate {
        /// The range of users.
        users: (u32, u32),
        /// The range of groups.
        groups: (u32, u32),
        /// The programs newuidmap and newgidmap.
        programs: [PathBuf; 2],
    },
    /// The guard's user as root, and nobody else.
    One,
}

impl Ids {
    /// Chooses the ids that this process may give, and says what is missing.
    pub(super) fn choose(first: Option<u32>) -> Result<(Self, Option<Gap>), ContainerError> {
        let user = rustix::process::geteuid();
        if user.is_root() {
            if let Some(first) = first {
                let fits = first >= COUNT && first.checked_add(COUNT).is_some();
                return match fits {
                    true => Ok((Self::Range { first, lock: None }, None)),
                    false => Err(ContainerError::Ids(format!(
                        "{first} is no first id: it must be at least {COUNT}, and as many must follow"
                    ))),
                };
            }
            return Ok((free_range()?, None));
        }
        if first.is_some() {
            return Err(ContainerError::Ids(
                "only root chooses the first id of a container: other users have those of /etc/subuid"
                    .to_owned(),
            ));
        }
        let names = names_of(user.as_raw());
        let ranges = (range(Path::new("/etc/subuid"), &names), range(Path::new("/etc/subgid"), &names));
        let directories = std::env::var_os("PATH").unwrap_or_else(|| DIRECTORIES.into());
        let programs = program(&directories, "newuidmap").zip(program(&directories, "newgidmap"));
        let (missing, remedy) = match (ranges, programs) {
            ((Some(_), Some(_)), Some(_)) if no_new_privs().unwrap_or_default() => (
                "newuidmap gets no rights from a process with no_new_privs",
                "start the agent without no_new_privs: with systemd, NoNewPrivileges=no",
            ),
            ((Some(users), Some(groups)), Some((of_users, of_groups))) => {
                return Ok((Self::Subordinate { users, groups, programs: [of_users, of_groups] }, None));
            }
            ((Some(_), Some(_)), None) => {
                ("the programs newuidmap and newgidmap are missing", "install the package uidmap")
            }
            _ => (
                "/etc/subuid and /etc/subgid give this user no range",
                "add a range by usermod --add-subuids FIRST-LAST --add-subgids FIRST-LAST USER, or run the agent as root",
            ),
        };
        let reason = format!("the container has root alone, who is this user: {missing}");
        Ok((Self::One, Some(Gap::new("users", reason, remedy))))
    }

    /// Returns true if the container has more users than root.
    pub(super) fn has_users(&self) -> bool {
        !matches!(self, Self::One)
    }

    /// Returns true if the owners of the image's files must be shifted into the range.
    pub(super) fn shifts_owners(&self) -> bool {
        matches!(self, Self::Range { .. })
    }

    /// Returns the descriptor of the range's lock, for a process that keeps the range.
    pub(super) fn lock(&self) -> Option<RawFd> {
        match self {
            Self::Range { lock, .. } => lock.as_ref().map(|lock| lock.as_raw_fd()),
            Self::Subordinate { .. } | Self::One => None,
        }
    }

    /// Gives the ids to the namespace of a process.
    pub(super) fn give(&self, to: Pid) -> Result<(), ContainerError> {
        let pid = to.as_raw_nonzero();
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let write = |file: &str, text: String| {
            let path = format!("/proc/{pid}/{file}");
            fs::write(&path, text).map_err(|error| ContainerError::Ids(format!("{path}: {error}")))
        };
        match self {
            Self::Range { first, .. } => {
                let range = format!("0 {first} {COUNT}");
                // Root of a user namespace, as in some containers, has those ids alone that were given to it.
                write("uid_map", range.clone()).and_then(|()| write("gid_map", range)).map_err(|error| {
                    ContainerError::Ids(format!(
                        "{error}; root needs {COUNT} ids of /proc/self/uid_map from {first} on: run the agent as root of \
                         the host, or as another user"
                    ))
                })
            }
            Self::One => {
                write("setgroups", "deny".to_owned())?;
                write("uid_map", format!("0 {user} 1"))?;
                write("gid_map", format!("0 {group} 1"))
            }
            Self::Subordinate { users, groups, programs } => {
                for (program, (own, (first, count))) in programs.iter().zip([(user, users), (group, groups)])
                {
                    let shown = program.display();
                    let numbers = [pid.get(), 0].map(|number| number.to_string());
                    let rest = [own, 1, 1, *first, *count].map(|number| number.to_string());
                    let done = Command::new(program).args(numbers).args(rest).stdin(Stdio::null()).output();
                    let done =
                        done.map_err(|error| ContainerError::Ids(format!("cannot run {shown}: {error}")))?;
                    if !done.status.success() {
                        let reason = String::from_utf8_lossy(&done.stderr).trim().to_owned();
                        return Err(ContainerError::Ids(format!("{shown} failed: {reason}")));
                    }
                }
                Ok(())
            }
        }
    }
}

/// Takes a range that no other guard of this host has. Its lock is a name of an abstract socket, which goes with the
/// guard.
fn free_range() -> Result<Ids, ContainerError> {
    let begin = std::process::id() % RANGES;
    for index in (begin..RANGES).chain(0..begin) {
        let name = SocketAddr::from_abstract_name(format!("periapt/container-ids/{index}"));
        match name.and_then(|name| UnixListener::bind_addr(&name)) {
            Ok(lock) => return Ok(Ids::Range { first: LOWEST + index * COUNT, lock: Some(lock) }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(ContainerError::Ids(format!("cannot take a range of ids: {error}"))),
        }
    }
    Err(ContainerError::Ids("all ranges of ids are taken".to_owned()))
}

/// Returns the names by which `/etc/subuid` may call a user.
fn names_of(user: u32) -> Vec<String> {
    let number = user.to_string();
    let passwd = read(Path::new("/etc/passwd"));
    let name = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    name.into_iter().chain([number]).collect()
}

/// Returns the first range of a user.
fn range(file: &Path, names: &[String]) -> Option<(u32, u32)> {
    read(file).lines().find_map(|line| {
        let mut fields = line.split(':');
        let owner = fields.next()?;
        names.iter().find(|name| *name == owner)?;
        let (first, count): (u32, u32) =
            (fields.next()?.trim().parse().ok()?, fields.next()?.trim().parse().ok()?);
        (count > 0 && first.checked_add(count).is_some()).then_some((first, count.min(COUNT - 1)))
    })
}

fn read(path: &Path) -> String {
    let mut text = Vec::new();
    if let Ok(file) = fs::File::open(path) {
        let _ = file.take(MAX_FILE).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the path of a program in one of the directories, which stand between colons.
fn program(directories: &OsStr, name: &str) -> Option<PathBuf> {
    let mut paths = std::env::split_paths(directories).map(|directory| directory.join(name));
    paths.find(|path| path.is_absolute() && path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_belongs_to_a_name_or_a_number_and_has_a_size() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "other:1:2\nbroken\njane:x:1\njane:100000:65536\n1001:200000:10\n").unwrap();
        let found = |names: &[&str]| {
            range(file.path(), &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(found(&["jane", "1000"]), Some((100_000, 65_536)));
        assert_eq!(found(&["jim", "1001"]), Some((200_000, 10)));
        assert_eq!(found(&["nobody", "7"]), None);
    }

    #[test]
    fn a_program_is_a_file_in_an_absolute_directory() {
        assert_eq!(program(OsStr::new(DIRECTORIES), "no such program"), None);
        let found = program(OsStr::new("/nonexistent::/proc/self"), "exe");
        assert_eq!(found, Some(PathBuf::from("/proc/self/exe")));
        // A test runs in the directory of its crate.
        assert_eq!(program(OsStr::new(":."), "Cargo.toml"), None);
    }

    #[test]
    fn two_guards_have_different_ranges() {
        let firsts: Vec<_> = [free_range().unwrap(), free_range().unwrap()]
            .iter()
            .map(|ids| match ids {
                Ids::Range { first, .. } => *first,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(firsts[0].abs_diff(firsts[1]) >= COUNT, "{firsts:?}");
    }
}
