//! Streams of values, one JSON text per line.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, stream};
use http_body::Body;
use http_body_util::BodyExt as _;
use periapt_host_api::api::MAX_LINE_BYTES;
use serde::de::DeserializeOwned;

use crate::{RequestOutcome, Result, error::chain, peer::Peer};

/// A stream of values. It ends when the controller ends it, or after one error. It may be polled after its end.
pub type NdJson<T> = Pin<Box<dyn Stream<Item = Result<T>> + Send>>;

/// The error that ends a stream of lines early.
enum LineError {
    Broken(String),
    Unreadable(String),
}

/// Decodes the values of a peer's body.
pub(crate) fn decode<B, T>(body: B, peer: Peer) -> NdJson<T>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::error::Error + Send,
    T: DeserializeOwned + Send + 'static,
{
    let lines = Some(Lines { body, buffer: BytesMut::new(), searched: 0, limit: MAX_LINE_BYTES });
    let values = stream::unfold((lines, peer), |(lines, peer)| async move {
        let mut lines = lines?;
        let value = match lines.next().await {
            Ok(None) => return None,
            Ok(Some(line)) => {
                serde_json::from_slice(&line).map_err(|error| LineError::Unreadable(error.to_string()))
            }
            Err(error) => Err(error),
        };
        match value {
            Ok(value) => Some((Ok(value), (Some(lines), peer))),
            Err(LineError::Broken(reason)) => {
                Some((Err(peer.unreachable(reason, RequestOutcome::NothingHappened)), (None, peer)))
            }
            Err(LineError::Unreadable(reason)) => Some((Err(peer.protocol(reason)), (None, peer))),
        }
    });
    // A caller may ask an ended stream again.
    Box::pin(values.fuse())
}

/// Splits a body into lines.
struct Lines<B> {
    body: B,
    buffer: BytesMut,
    /// The number of leading bytes of the buffer that hold no line break.
    searched: usize,
    limit: usize,
}

impl<B> Lines<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error,
{
    /// Returns the next line that is not empty, without its line break; none at the end.
    async fn next(&mut self) -> std::result::Result<Option<Bytes>, LineError> {
        loop {
            let unseen = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(at) = unseen.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + at + 1).freeze();
                self.searched = 0;
                let line = line.slice(..line.len() - 1);
                if line.is_empty() {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > self.limit {
                return Err(LineError::Unreadable(format!("a line is longer than {} bytes", self.limit)));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(LineError::Broken(chain(&error))),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(LineError::Broken("the stream ended within a line".into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    async fn lines_of(pieces: &[&'static str], limit: usize) -> Vec<std::result::Result<String, String>> {
        let frames: Vec<_> = pieces
            .iter()
            .map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from_static(piece.as_bytes()))))
            .collect();
        let body = StreamBody::new(stream::iter(frames));
        let mut lines = Lines { body, buffer: BytesMut::new(), searched: 0, limit };
        let mut read = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => read.push(Ok(String::from_utf8_lossy(&line).into_owned())),
                Ok(None) => return read,
                Err(LineError::Broken(reason) | LineError::Unreadable(reason)) => {
                    read.push(Err(reason));
                    return read;
                }
            }
        }
    }

    #[tokio::test]
    async fn lines_do_not_depend_on_how_they_arrive() {
        let whole = lines_of(&["{\"a\":1}\n\n{\"b\":2}\n"], 64).await;
        assert_eq!(whole, [Ok("{\"a\":1}".into()), Ok("{\"b\":2}".into())]);
        assert_eq!(lines_of(&["{\"a\"", ":1}", "\n", "\n{\"b\":2}\n"], 64).await, whole);
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_an_error() {
        assert_eq!(
            lines_of(&["1\n2"], 64).await,
            [Ok("1".into()), Err("the stream ended within a line".into())]
        );
        assert_eq!(lines_of(&["123", "456"], 4).await, [Err("a line is longer than 4 bytes".into())]);
    }
}
