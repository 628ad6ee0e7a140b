//! The encoding of messages: a length of four bytes, then JSON, with descriptors beside some messages.

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

use super::descriptors::{self, Descriptors, Receiver};

/// A message over a socket.
pub(crate) trait Message {
    /// The treatment of descriptors that come with such messages.
    const DESCRIPTORS: Descriptors = Descriptors::Dropped;

    /// Returns the descriptors to send with the message: at most [`descriptors::MOST`].
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Takes the descriptors that came with the message.
    fn attach(&mut self, _next: &mut dyn FnMut() -> Option<OwnedFd>) {}
}

/// An error that makes a link unusable.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The socket failed, or the other side's message was too large.
    #[error("the socket to the other process failed")]
    Socket(#[from] std::io::Error),
    /// The other side sent an invalid message.
    #[error("the other process sent an invalid message")]
    Malformed(#[source] serde_json::Error),
    /// A message cannot be encoded as JSON.
    #[error("a message could not be written")]
    Unwritable(#[source] serde_json::Error),
    /// A message is too large. Nothing of it was written, and the link is still usable.
    #[error("a message takes {bytes} bytes, at most {limit} are allowed")]
    TooLarge {
        /// The size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

/// The receiving end of messages of type `M`.
#[derive(Debug)]
pub(crate) struct Incoming<M> {
    frames: FramedRead<Receiver, LengthDelimitedCodec>,
    messages: PhantomData<fn() -> M>,
}

/// The sending end of messages of type `M`.
#[derive(Debug)]
pub(crate) struct Outgoing<M> {
    frames: FramedWrite<OwnedWriteHalf, LengthDelimitedCodec>,
    messages: PhantomData<fn(M)>,
}

/// Splits a socket into both directions, each with its own limit of bytes per message.
pub(crate) fn split<I: Message, O>(
    socket: UnixStream,
    incoming_limit: usize,
    outgoing_limit: usize,
) -> (Incoming<I>, Outgoing<O>) {
    let codec = |limit| LengthDelimitedCodec::builder().max_frame_length(limit).new_codec();
    let (read, write) = socket.into_split();
    (
        Incoming {
            frames: FramedRead::new(Receiver::new(read, I::DESCRIPTORS), codec(incoming_limit)),
            messages: PhantomData,
        },
        Outgoing { frames: FramedWrite::new(write, codec(outgoing_limit)), messages: PhantomData },
    )
}

impl<M: DeserializeOwned + Message> Incoming<M> {
    /// Waits for the next message and its size in bytes; none at the end. Cancellation loses no message.
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
    /// Writes one message, and waits until the socket has taken it.
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
    /// Writes one message with descriptors beside its first byte, so that they arrive no later than the
    /// message.
    async fn send_beside(&mut self, bytes: &[u8], beside: &[BorrowedFd<'_>]) -> Result<(), LinkError> {
        // All earlier messages are flushed.
        let length = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
        let frame = [&length.to_be_bytes(), bytes].concat();
        let socket = self.frames.get_mut();
        let sent = descriptors::send(socket, &frame, beside).await?;
        Ok(socket.write_all(frame.get(sent..).unwrap_or_default()).await?)
    }
}

/// A message for tests.
#[cfg(test)]
impl Message for &str {}

#[cfg(test)]
impl<I> Incoming<I> {
    /// Returns the socket, for a test that sends other bytes.
    pub(crate) fn reunite<O>(self, other: Outgoing<O>) -> UnixStream {
        self.frames.into_inner().into_inner().reunite(other.frames.into_inner()).unwrap()
    }
}
