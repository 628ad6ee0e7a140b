//! The users of containers, for an agent's process outside of them that works on files of theirs.

use std::{fs::File, io, os::fd::AsFd as _};

use rustix::{
    process::{Pid, Signal, WaitOptions, geteuid, kill_process, waitpid},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use super::{calls, error::ContainerError, ids::Ids};

/// Makes this process the root of a namespace of users with the ids that it may give to containers, so that it has rights
/// over the files of their users. Outside of the namespace it has no more rights than before.
///
/// Nothing changes for root, who has these rights, and for a user without a range in `/etc/subuid` and `/etc/subgid`, whose
/// containers have no other users. The process must have no other threads, and must not have given up new privileges.
///
/// # Errors
/// The namespace cannot be made, or the ids cannot be given. Nothing has changed then.
pub fn enter_users_of_containers() -> Result<(), ContainerError> {
    if geteuid().is_root() {
        return Ok(());
    }
    let (ids, _) = Ids::choose(None)?;
    if !ids.has_users() {
        return Ok(());
    }
    let (waits, go) = io::pipe().map_err(ContainerError::system("make a pipe"))?;
    // A process that has entered a namespace cannot leave it, so the ids are given to a copy first.
    let copy = calls::fork_with_users((&waits, &go)).map_err(ContainerError::UserNamespace)?;
    let entered = ids.give(copy).and_then(|()| enter(copy));
    let _ = kill_process(copy, Signal::KILL);
    let _ = waitpid(Some(copy), WaitOptions::empty());
    entered
}

/// Enters the namespace of users of a process.
fn enter(process: Pid) -> Result<(), ContainerError> {
    let users = File::open(format!("/proc/{}/ns/user", process.as_raw_nonzero()));
    let entered =
        users.and_then(|users| Ok(move_into_link_name_space(users.as_fd(), Some(LinkNameSpaceType::User))?));
    entered.map_err(ContainerError::system("enter the namespace of users"))
}
