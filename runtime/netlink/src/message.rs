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

/// The kind of answers: an error, or zero.
const ERROR: u16 = 2;

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

/// Sends orders to the kernel, and waits until so many are carried out. Without a protocol they are about routes, whose
/// protocol is the first one and has no number.
pub(crate) fn ask(protocol: Option<Protocol>, orders: &[u8], answers: usize) -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWERS_WITHIN))?;
    send(&socket, orders, SendFlags::empty())?;
    let mut left = answers;
    while left > 0 {
        left = left.saturating_sub(hear(&socket)?);
    }
    Ok(())
}

/// Returns the number of orders that were carried out, of the next answers.
fn hear(socket: &OwnedFd) -> io::Result<usize> {
    let mut buffer = vec![0; 8 << 10];
    let received = recv(socket, buffer.as_mut_slice(), RecvFlags::empty()).map_err(io::Error::from);
    let (length, _) = received.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "the kernel does not answer"),
        _ => error,
    })?;
    buffer.truncate(length);
    let mut rest = buffer.as_slice();
    let mut carried_out = 0;
    while let (Some(length), Some(kind)) = (rest.first_chunk().copied(), rest.get(4..6)) {
        if kind == ERROR.to_ne_bytes() {
            let code =
                rest.get(16..).and_then(|rest| rest.first_chunk().copied()).map_or(0, i32::from_ne_bytes);
            if code != 0 {
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            carried_out += 1;
        }
        let length = usize::try_from(u32::from_ne_bytes(length)).unwrap_or(usize::MAX).max(16);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(carried_out)
}
