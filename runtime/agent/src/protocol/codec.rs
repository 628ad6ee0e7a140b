//! Messages on a stream: a length of four bytes, then JSON; descriptors may go beside one.

use std::{
    marker::PhantomData,
    os::fd::{BorrowedFd, OwnedFd},
};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    io::AsyncWriteExt as _,
    net::{UnixStream, unix::OwnedWriteHalf},
};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec};

use super::descriptors::{self, Receiver};

/// What goes over a socket.
pub(crate) trait Message {
    /// Whether descriptors are taken that come with such messages.
    const TAKES_DESCRIPTORS: bool = false;

    /// The descriptors that go with it: at most [`descriptors::MOST`].
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Takes the descriptors that came with it, if it is to have any.
    fn attach(&mut self, _next: &mut dyn FnMut() -> Option<OwnedFd>) {}
}

/// Why a link is of no more use.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The socket failed, or a message of the other side was larger than its bound.
    #[error("the socket to the other process failed")]
    Socket(#[from] std::io::Error),
    /// The other side sends what it must not.
    #[error("the other process sent a message that makes no sense")]
    Malformed(#[source] serde_json::Error),
    /// A message of ours has no JSON form.
    #[error("a message could not be written")]
    Unwritable(#[source] serde_json::Error),
    /// A message of ours is larger than its bound. Nothing of it was written, and the link goes on.
    #[error("a message takes {bytes} bytes, at most {limit} are allowed")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
}

/// The end that messages of type `M` come from.
#[derive(Debug)]
pub(crate) struct Incoming<M> {
    frames: FramedRead<Receiver, LengthDelimitedCodec>,
    messages: PhantomData<fn() -> M>,
}

/// The end that messages of type `M` go to.
#[derive(Debug)]
pub(crate) struct Outgoing<M> {
    frames: FramedWrite<OwnedWriteHalf, LengthDelimitedCodec>,
    messages: PhantomData<fn(M)>,
}

/// Both directions of a socket, each with its own bound on a message's bytes.
pub(crate) fn split<I: Message, O>(
    socket: UnixStream,
    incoming_limit: usize,
    outgoing_limit: usize,
) -> (Incoming<I>, Outgoing<O>) {
    let codec = |limit| LengthDelimitedCodec::builder().max_frame_length(limit).new_codec();
    let (read, write) = socket.into_split();
    (
        Incoming {
            frames: FramedRead::new(Receiver::new(read, I::TAKES_DESCRIPTORS), codec(incoming_limit)),
            messages: PhantomData,
        },
        Outgoing { frames: FramedWrite::new(write, codec(outgoing_limit)), messages: PhantomData },
    )
}

impl<M: DeserializeOwned + Message> Incoming<M> {
    /// The next message and its size in bytes; none at the end. Can be cancelled without losing one.
    pub(crate) async fn next(&mut self) -> Result<Option<(M, usize)>, LinkError> {
        match self.frames.next().await {
            None => Ok(None),
            Some(frame) => {
                let frame = frame?;
                let mut message: M = serde_json::from_slice(&frame).map_err(LinkError::Malformed)?;
                let receiver = self.frames.get_mut();
                message.attach(&mut || receiver.next_descriptor());
                Ok(Some((message, frame.len())))
            }
        }
    }
}

impl<M: Serialize + Message> Outgoing<M> {
    /// Writes one message, and waits until the socket took it.
    pub(crate) async fn send(&mut self, message: &M) -> Result<(), LinkError> {
        let bytes = serde_json::to_vec(message).map_err(LinkError::Unwritable)?;
        let limit = self.frames.encoder().max_frame_length();
        if bytes.len() > limit {
            return Err(LinkError::TooLarge { bytes: bytes.len(), limit });
        }
        let beside = message.descriptors();
        match beside.is_empty() {
            true => Ok(self.frames.send(Bytes::from(bytes)).await?),
            false => self.send_beside(&bytes, &beside).await,
        }
    }
}

impl<M> Outgoing<M> {
    /// Writes one message by hand, with descriptors beside its first byte: they are there when the message is.
    async fn send_beside(&mut self, bytes: &[u8], beside: &[BorrowedFd<'_>]) -> Result<(), LinkError> {
        // Each message before it was flushed.
        let length = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
        let frame = [&length.to_be_bytes(), bytes].concat();
        let socket = self.frames.get_mut();
        let sent = descriptors::send(socket, &frame, beside).await?;
        Ok(socket.write_all(frame.get(sent..).unwrap_or_default()).await?)
    }
}

/// What no process of ours says.
#[cfg(test)]
impl Message for &str {}

#[cfg(test)]
impl<I> Incoming<I> {
    /// The socket, for a test that speaks in other ways.
    pub(crate) fn reunite<O>(self, other: Outgoing<O>) -> UnixStream {
        self.frames.into_inner().into_inner().reunite(other.frames.into_inner()).unwrap()
    }
}
