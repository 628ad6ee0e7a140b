//! Lines of text over a socket between two processes, each with a descriptor beside it or without one.

use std::{
    collections::VecDeque,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most descriptors that are received at once; a sender sends one.
const MAX_AT_ONCE: usize = 4;

/// The most descriptors that wait for their lines.
const MAX_BESIDE: usize = 64;

/// Sends bytes with a descriptor beside them, as the call of the system does: at most some of the bytes, and the descriptor
/// with the first one.
///
/// # Errors
/// The system's error, such as that the socket has no room.
pub fn send_beside(socket: impl AsFd, bytes: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    if !beside.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("there is no room for the descriptor"));
    }
    Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL)?)
}

/// Receives one byte, and the descriptor that was sent beside it; none at the end of the socket.
///
/// # Errors
/// The system's error, or a byte without a descriptor.
pub fn receive_beside(socket: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let read = recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    if read.bytes == 0 {
        return Ok(None);
    }
    let descriptor = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let missing = || io::Error::other("a byte came without its descriptor");
    descriptor.map(Some).ok_or_else(missing)
}

/// The lines that a process receives, which it does not trust.
#[derive(Debug)]
pub struct DescriptorLines {
    longest: usize,
    received: Vec<u8>,
    beside: VecDeque<OwnedFd>,
}

impl DescriptorLines {
    /// Creates the reader of lines with at most `longest` bytes.
    #[must_use]
    pub fn new(longest: usize) -> Self {
        Self { longest, received: Vec::new(), beside: VecDeque::new() }
    }

    /// Receives a part of the lines. Returns the number of bytes, which is 0 at the end of the socket.
    ///
    /// # Errors
    /// The system's error, or more descriptors than a sender of lines has.
    pub fn receive(&mut self, socket: impl AsFd) -> io::Result<usize> {
        let mut bytes = [0; 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_AT_ONCE))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let read = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.beside.extend(descriptors);
            }
        }
        if self.beside.len() > MAX_BESIDE || read.flags.contains(ReturnFlags::CTRUNC) {
            return Err(io::Error::other("too many descriptors came"));
        }
        self.received.extend_from_slice(bytes.get(..read.bytes).unwrap_or_default());
        Ok(read.bytes)
    }

    /// Takes the next whole line, if it has come.
    ///
    /// # Errors
    /// A line with too many bytes.
    pub fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let end = self.received.iter().position(|byte| *byte == b'\n');
        if end.unwrap_or(self.received.len()) > self.longest {
            return Err(io::Error::other("a line has too many bytes"));
        }
        Ok(end.map(|end| self.received.drain(..=end).collect()))
    }

    /// Takes the next descriptor: that of the line that was taken last, if each line that has one was asked for it.
    pub fn descriptor(&mut self) -> Option<OwnedFd> {
        self.beside.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        os::unix::net::UnixStream,
    };

    use super::*;

    /// Receives all that was sent, and returns the lines that come first.
    fn receive(socket: &UnixStream, lines: &mut DescriptorLines) -> io::Result<Vec<String>> {
        while lines.receive(socket)? > 0 {}
        let mut all = Vec::new();
        while let Some(line) = lines.line()? {
            all.push(String::from_utf8(line).unwrap());
        }
        Ok(all)
    }

    #[test]
    fn each_line_comes_with_its_descriptor() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let (mut one, its_end) = UnixStream::pair().unwrap();
        let (mut other, other_end) = UnixStream::pair().unwrap();
        ours.write_all(b"nothing beside\n").unwrap();
        assert_eq!(send_beside(&ours, b"one\n", its_end.as_fd()).unwrap(), 4);
        assert_eq!(send_beside(&ours, b"ot", other_end.as_fd()).unwrap(), 2);
        ours.write_all(b"her\n").unwrap();
        drop((ours, its_end, other_end));
        let mut lines = DescriptorLines::new(100);
        assert_eq!(receive(&theirs, &mut lines).unwrap(), ["nothing beside\n", "one\n", "other\n"]);
        for (peer, text) in [(&mut one, b"1"), (&mut other, b"2")] {
            UnixStream::from(lines.descriptor().unwrap()).write_all(text).unwrap();
            let mut read = [0];
            peer.read_exact(&mut read).unwrap();
            assert_eq!(&read, text);
        }
        assert!(lines.descriptor().is_none());
    }

    #[test]
    fn each_byte_comes_with_its_descriptor_or_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut one, its_end) = UnixStream::pair().unwrap();
        let (mut other, other_end) = UnixStream::pair().unwrap();
        for end in [&its_end, &other_end] {
            assert_eq!(send_beside(&ours, b"c", end.as_fd()).unwrap(), 1);
        }
        (&ours).write_all(b"c").unwrap();
        drop((ours, its_end, other_end));
        for peer in [&mut one, &mut other] {
            let received = receive_beside(&theirs).unwrap().unwrap();
            UnixStream::from(received).write_all(b"1").unwrap();
            let mut read = [0];
            peer.read_exact(&mut read).unwrap();
        }
        receive_beside(&theirs).unwrap_err();
        assert!(receive_beside(&theirs).unwrap().is_none());
    }

    #[test]
    fn what_a_hostile_sender_can_make_grow_has_a_bound() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&[b'x'; 200]).unwrap();
        drop(ours);
        let mut lines = DescriptorLines::new(100);
        assert!(receive(&theirs, &mut lines).unwrap_err().to_string().contains("too many bytes"));

        let (ours, theirs) = UnixStream::pair().unwrap();
        for _ in 0..=MAX_BESIDE {
            send_beside(&ours, b"x", ours.as_fd()).unwrap();
        }
        drop(ours);
        let mut lines = DescriptorLines::new(100);
        let error = receive(&theirs, &mut lines).unwrap_err();
        assert!(error.to_string().contains("too many descriptors"), "{error}");
    }
}
