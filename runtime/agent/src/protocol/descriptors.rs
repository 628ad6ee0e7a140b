//! Descriptors beside the bytes of a socket.

use std::{
    collections::VecDeque,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::{
    io::{AsyncRead, Interest, ReadBuf},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// The most descriptors of one write: those of a compiled component and its modules. A read gets no more, as the
/// kernel never joins the descriptors of two writes.
pub(super) const MOST: usize = 1 + periapt_sandbox::MOST_MODULES;

/// The treatment of descriptors that a peer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Descriptors {
    /// They are handed on.
    Taken,
    /// The kernel drops them, so that a runner cannot exhaust its keeper's descriptors.
    Dropped,
}

/// The receiving end of bytes and descriptors.
#[derive(Debug)]
pub(super) struct Receiver {
    socket: OwnedReadHalf,
    /// The received descriptors; none if they are dropped.
    received: Option<VecDeque<OwnedFd>>,
}

impl Receiver {
    /// Creates the receiving end.
    pub(super) fn new(socket: OwnedReadHalf, descriptors: Descriptors) -> Self {
        let received = match descriptors {
            Descriptors::Taken => Some(VecDeque::new()),
            Descriptors::Dropped => None,
        };
        Self { socket, received }
    }

    /// Takes the oldest received descriptor.
    pub(super) fn next_descriptor(&mut self) -> Option<OwnedFd> {
        self.received.as_mut()?.pop_front()
    }

    #[cfg(test)]
    pub(super) fn into_inner(self) -> OwnedReadHalf {
        self.socket
    }
}

impl AsyncRead for Receiver {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let this = &mut *self;
            let socket: &UnixStream = this.socket.as_ref();
            ready!(socket.poll_read_ready(context))?;
            let received = this.received.as_mut();
            let read = || receive(socket, buffer.initialize_unfilled(), received);
            match socket.try_io(Interest::READABLE, read) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

fn receive(
    socket: &UnixStream,
    bytes: &mut [u8],
    received: Option<&mut VecDeque<OwnedFd>>,
) -> io::Result<usize> {
    let Some(received) = received else {
        let mut nothing = RecvAncillaryBuffer::new(&mut []);
        let bytes = &mut [IoSliceMut::new(bytes)];
        return Ok(recvmsg(socket, bytes, &mut nothing, RecvFlags::CMSG_CLOEXEC)?.bytes);
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let read = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    if read.flags.contains(ReturnFlags::CTRUNC) {
        // Later descriptors would be taken for the missing ones.
        return Err(io::Error::other("descriptors were lost: this process has as many as it may"));
    }
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            received.extend(descriptors);
        }
    }
    Ok(read.bytes)
}

/// Writes at least the first byte of some bytes, with descriptors beside it. Returns the number of bytes written.
pub(super) async fn send(
    socket: &OwnedWriteHalf,
    bytes: &[u8],
    beside: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let socket: &UnixStream = socket.as_ref();
    socket
        .async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if !ancillary.push(SendAncillaryMessage::ScmRights(beside)) {
                return Err(io::Error::other("there is no room for the descriptors"));
            }
            Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?)
        })
        .await
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Read as _, Seek as _, SeekFrom, Write as _},
        os::fd::AsFd as _,
    };

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn file(content: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        file
    }

    fn content(descriptor: OwnedFd) -> String {
        let (mut file, mut text) = (File::from(descriptor), String::new());
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[tokio::test]
    async fn descriptors_come_in_order_and_with_the_bytes_that_they_were_sent_with() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_, mut outgoing) = ours.into_split();
        let mut incoming = Receiver::new(theirs.into_split().0, Descriptors::Taken);
        for word in ["one", "two", "three"] {
            outgoing.write_all(b"..").await.unwrap();
            let sent = send(&outgoing, word.as_bytes(), &[file(word).as_fd()]).await.unwrap();
            outgoing.write_all(&word.as_bytes()[sent..]).await.unwrap();
        }
        drop(outgoing);
        let mut text = String::new();
        incoming.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "..one..two..three");
        let words: Vec<_> = std::iter::from_fn(|| incoming.next_descriptor()).map(content).collect();
        assert_eq!(words, ["one", "two", "three"]);
    }

    #[tokio::test]
    async fn as_many_as_may_be_come_with_one_write() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_, outgoing) = ours.into_split();
        let mut incoming = Receiver::new(theirs.into_split().0, Descriptors::Taken);
        let files: Vec<File> = (0..MOST).map(|number| file(&number.to_string())).collect();
        let all: Vec<BorrowedFd<'_>> = files.iter().map(|file| file.as_fd()).collect();
        assert_eq!(send(&outgoing, b"x", &all).await.unwrap(), 1);
        let more = [all.as_slice(), &all].concat();
        send(&outgoing, b"x", &more).await.unwrap_err();
        drop(outgoing);
        let mut text = String::new();
        incoming.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "x");
        let came: Vec<_> = std::iter::from_fn(|| incoming.next_descriptor()).map(content).collect();
        assert_eq!(came, (0..MOST).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_receiver_that_drops_descriptors_is_given_none() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_, outgoing) = ours.into_split();
        let mut incoming = Receiver::new(theirs.into_split().0, Descriptors::Dropped);
        let (read, write) = std::io::pipe().unwrap();
        send(&outgoing, b"x", &[write.as_fd()]).await.unwrap();
        drop((write, outgoing));
        let mut bytes = Vec::new();
        incoming.read_to_end(&mut bytes).await.unwrap();
        assert_eq!((bytes.as_slice(), incoming.next_descriptor().is_none()), (&b"x"[..], true));
        // The pipe has no writer: the kernel has closed the descriptor that it dropped.
        let mut rest = Vec::new();
        { read }.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty());
    }
}
