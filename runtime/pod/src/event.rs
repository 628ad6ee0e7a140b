//! Events for the core.

use futures_util::stream::{SplitSink, SplitStream};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use periapt_pebble::{PodAnswer, PodCaller, PodInput, PodRefusal, PodRequest, RequestId};
use tokio::sync::oneshot;
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

/// A websocket of a client.
pub(crate) type Websocket = WebSocketStream<TokioIo<Upgraded>>;

/// The halves of a websocket.
pub(crate) type Halves = (SplitSink<Websocket, Message>, SplitStream<Websocket>);

/// An event for the core.
#[derive(Debug)]
pub(crate) enum Event {
    /// An input as it is.
    Input(PodInput),
    /// A request, with the place for its answer.
    Ask { id: RequestId, caller: PodCaller, request: PodRequest, reply: oneshot::Sender<Reply> },
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) result: Result<PodAnswer, PodRefusal>,
    /// The place for a websocket that was granted.
    pub(crate) socket: Option<oneshot::Sender<Websocket>>,
}
