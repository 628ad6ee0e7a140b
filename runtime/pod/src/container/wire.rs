//! Messages between the pod's process and the container's init, with descriptors.

use std::{
    collections::BTreeMap,
    io::{self, IoSlice, IoSliceMut, Read as _, Write as _},
    mem::MaybeUninit,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::gap::Gap;

/// The most bytes of a message: the kernel takes no longer arguments and environment of a program.
const MAX_MESSAGE: usize = 8 << 20;

/// The most descriptors of a message: the streams of a process.
const MAX_DESCRIPTORS: usize = 3;

/// A message to the init.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToInit {
    /// The root is the container's: the init confines itself.
    Enter,
    /// Starts a process, with three descriptors.
    Spawn(Box<NewProcess>),
    /// Sends a signal to a process and its group.
    Signal(u64, i32),
}

/// A process to start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NewProcess {
    pub(super) process: u64,
    pub(super) command: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) working_dir: String,
    pub(super) user: Option<String>,
    pub(super) user_id: Option<u32>,
    pub(super) group: Option<String>,
    pub(super) group_id: Option<u32>,
    pub(super) is_service: bool,
    pub(super) is_terminal: bool,
}

/// A message of the init.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromInit {
    /// `/proc` is mounted.
    Mounted,
    /// The init is confined but for these parts.
    Ready(Vec<Gap>),
    /// The init cannot go on.
    Failed(String),
    /// The process runs.
    Spawned(u64),
    /// The process could not be started.
    Refused(u64, String),
    /// The process has ended.
    Exited(u64, i32),
}

/// Sends a message.
pub(super) fn send<T: Serialize>(
    mut socket: &UnixStream,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_MESSAGE);
    let length = length.ok_or_else(|| io::Error::other("the command and its environment are too long"))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("there is no room for the descriptors"));
    }
    let head = length.to_le_bytes();
    let sent = sendmsg(socket, &[IoSlice::new(&head)], &mut beside, SendFlags::NOSIGNAL)?;
    socket.write_all(head.get(sent..).unwrap_or_default())?;
    socket.write_all(&body)
}

/// Receives a message with its descriptors; none at the end of the stream.
pub(super) fn receive<T: DeserializeOwned>(mut socket: &UnixStream) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut head = [0; 4];
    let mut descriptors = Vec::new();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let read = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut head)], &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            read => break read?.bytes,
        }
    };
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    if read == 0 {
        return Ok(None);
    }
    socket.read_exact(head.get_mut(read..).unwrap_or_default())?;
    let length = usize::try_from(u32::from_le_bytes(head)).unwrap_or(usize::MAX);
    if length > MAX_MESSAGE {
        return Err(io::Error::other("a message is too long"));
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body)?;
    Ok(Some((serde_json::from_slice(&body)?, descriptors)))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write as _, os::fd::AsFd as _};

    use super::*;

    #[test]
    fn messages_and_descriptors_arrive_in_order_and_together() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        send(&ours, &ToInit::Enter, &[]).unwrap();
        send(&ours, &ToInit::Signal(7, 15), &[writer.as_fd()]).unwrap();
        drop((ours, writer));
        let (first, none) = receive::<ToInit>(&theirs).unwrap().unwrap();
        assert!(matches!(first, ToInit::Enter) && none.is_empty());
        let (second, mut one) = receive::<ToInit>(&theirs).unwrap().unwrap();
        assert!(matches!(second, ToInit::Signal(7, 15)));
        File::from(one.pop().unwrap()).write_all(b"x").unwrap();
        assert!(one.is_empty() && receive::<ToInit>(&theirs).unwrap().is_none());
        assert_eq!(io::read_to_string(reader).unwrap(), "x");
    }

    #[test]
    fn a_message_that_is_too_long_is_refused_on_both_sides() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        send(&ours, &"x".repeat(MAX_MESSAGE), &[]).unwrap_err();
        ours.write_all(&u32::MAX.to_le_bytes()).unwrap();
        receive::<String>(&theirs).unwrap_err();
    }
}
