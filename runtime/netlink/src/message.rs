//! Messages to the kernel, and its answers.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

/// The flags of a message: a request that is answered, and that makes something new, after what is there.
pub(crate) const REQUEST: u16 = 0x1;
pub(crate) const ANSWERED: u16 = 0x4;
pub(crate) const NEW: u16 = 0x400;
pub(crate) const LAST: u16 = 0x800;

/// The flags of a question that many messages answer.
pub(crate) const LISTED: u16 = 0x300;

/// The first of the kinds of messages about tables of packets.
pub(crate) const TABLES: u16 = 10 << 8;

/// The kinds of answers: an error or zero, and the end of a list.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// The most bytes that the kernel answers at once.
const ANSWER: usize = 64 << 10;

/// The most bytes of a list: a table with the most elements that its writers make has some hundred KiB.
const LIST: usize = 4 << 20;

/// The time for an answer. The kernel answers at once, or after it has waited for its own processors.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// Returns a message.
pub(crate) fn message(kind: u16, flags: u16, number: u32, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 16).unwrap_or(u32::MAX);
    [
        &length.to_ne_bytes()[..],
        &kind.to_ne_bytes()[..],
        &flags.to_ne_bytes()[..],
        &number.to_ne_bytes()[..],
        &0_u32.to_ne_bytes()[..],
        content,
    ]
    .concat()
}

/// Returns the header of a message about packets.
pub(crate) fn header(family: u8, resource: u16) -> Vec<u8> {
    [&[family, 0][..], &resource.to_be_bytes()[..]].concat()
}

/// Sends orders to the kernel, and waits until so many are carried out. Without a protocol they are about routes, whose
/// protocol is the first one and has no number.
pub(crate) fn ask(protocol: Option<Protocol>, orders: &[u8], answers: usize) -> io::Result<()> {
    let socket = sent(protocol, orders)?;
    let mut left = answers;
    while left > 0 {
        let received = receive(&socket)?;
        for (_, content) in messages(&received).filter(|(kind, _)| *kind == ERROR) {
            outcome(content)?;
            left = left.saturating_sub(1);
        }
    }
    Ok(())
}

/// Asks the kernel a question, and returns the contents of the messages of its answer.
pub(crate) fn question(protocol: Protocol, question: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let socket = sent(Some(protocol), question)?;
    let (mut answers, mut bytes) = (Vec::new(), 0);
    while bytes <= LIST {
        let received = receive(&socket)?;
        for (kind, content) in messages(&received) {
            if matches!(kind, ERROR | DONE) {
                return outcome(content).map(|()| answers);
            }
            answers.push(content.to_vec());
        }
        bytes += received.len();
    }
    Err(io::Error::new(io::ErrorKind::FileTooLarge, "the kernel's list has more than 4 MiB"))
}

/// Returns a socket to the kernel, on which something was sent.
fn sent(protocol: Option<Protocol>, message: &[u8]) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWERS_WITHIN))?;
    send(&socket, message, SendFlags::empty())?;
    Ok(socket)
}

/// Returns the next messages of the kernel.
fn receive(socket: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; ANSWER];
    let received = recv(socket, buffer.as_mut_slice(), RecvFlags::empty()).map_err(io::Error::from);
    let (length, _) = received.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "the kernel does not answer"),
        _ => error,
    })?;
    buffer.truncate(length);
    Ok(buffer)
}

/// Returns the kind and the content of each message.
fn messages(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*rest.first_chunk()?);
        let kind = u16::from_ne_bytes(*rest.get(4..)?.first_chunk()?);
        let length = usize::try_from(length).unwrap_or(rest.len()).clamp(16, rest.len().max(16));
        let content = rest.get(16..length).unwrap_or_default();
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

/// Returns the error that an answer has.
fn outcome(content: &[u8]) -> io::Result<()> {
    match content.first_chunk().copied().map_or(0, i32::from_ne_bytes) {
        0.. => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_and_one_that_is_cut_short_is_the_last() {
        let bytes = [message(7, 0, 1, b"abcde"), vec![0; 3], message(DONE, 0, 1, &[0; 4])].concat();
        let read: Vec<_> = messages(&bytes).collect();
        assert_eq!(read, [(7, b"abcde".as_slice()), (DONE, [0; 4].as_slice())]);
        for length in 0..bytes.len() {
            assert!(messages(&bytes[..length]).count() <= 2);
        }
        assert_eq!(messages(&[0; 15]).count(), 1, "it has no content, and is the last");
    }

    #[test]
    fn answers_are_errors_or_none() {
        assert!(outcome(&0_i32.to_ne_bytes()).is_ok() && outcome(&[]).is_ok());
        assert_eq!(outcome(&(-2_i32).to_ne_bytes()).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(outcome(&i32::MIN.to_ne_bytes()).is_err());
    }
}
