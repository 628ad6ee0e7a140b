//! The single connection to a controller, opened on demand, and replaced by one to the next controller when it breaks.

use std::{sync::Arc, time::Duration};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared, WeakShared},
};
use hyper::client::conn::http2;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    Attempt, Backoff, ClientError, Options, Result,
    connect::{Body, ConnectError, Pace, connect},
    peer::Peer,
    peers::Peers,
};

/// The first pause between attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// A client of the API of the controllers of one store. Cloning is cheap, and all clones share one connection.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    /// Nobody waits with the lock: a caller whose future is kept and not polled, such as the opening of a stream beside
    /// other work, must not keep others from the controller.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    peers: Peers,
    open: Option<Open>,
    /// The number of connections so far.
    generation: u64,
    /// The number of times that open connections were given up for new ones of another kind. A round that began before
    /// the last of them begins again.
    renewals: u64,
    /// The round over all addresses that some callers wait for. Each of them can carry it on.
    round: Option<WeakShared<BoxFuture<'static, RoundResult>>>,
}

/// The connection of a round over all addresses, or the failures of all.
type RoundResult = std::result::Result<RequestSender, FailedRound>;

/// A round over all addresses that failed.
#[derive(Debug, Clone)]
struct FailedRound {
    began: Instant,
    error: ClientError,
    is_temporary: bool,
    /// True if an address did not answer in the shorter time.
    is_slow: bool,
}

#[derive(Debug)]
struct Open {
    sender: http2::SendRequest<Body>,
    generation: u64,
    peer: Peer,
}

/// The news in a list of controllers' URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// The client knew one address, and knows others now. Streams that are open should be opened again: the connection
    /// of theirs notices a silent controller late.
    FirstAlternatives,
    /// The client knows as well as before where else to go.
    NothingNew,
}

/// A sender of one request, and its connection.
#[derive(Debug, Clone)]
pub(crate) struct RequestSender {
    pub(crate) sender: http2::SendRequest<Body>,
    pub(crate) generation: u64,
    pub(crate) peer: Peer,
    /// The number of other addresses that the client knows.
    pub(crate) alternatives: usize,
}

impl Client {
    /// Creates a client without connecting. Fails only for URLs that no controllers can have, or without an authority
    /// to trust.
    pub fn new(options: Options) -> Result<Self> {
        let addresses = options.addresses.clone()?;
        let peers = Peers::new(&options, addresses)?;
        let state = State { peers, open: None, generation: 0, renewals: 0, round: None };
        Ok(Self { inner: Arc::new(Inner { options, state: Mutex::new(state) }) })
    }

    /// Returns the client's options.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Returns the URLs that the client knows, in the order of its attempts: first the one that answered last.
    pub fn urls(&self) -> Vec<String> {
        let state = self.inner.state.lock();
        state.peers.order().iter().map(|dialler| dialler.peer().to_string()).collect()
    }

    /// Takes over the URLs that a controller names for all controllers of its store, beside those that the client was
    /// given. Only what came from a trusted controller may be passed on here. URLs that are not `https://` are ignored.
    ///
    /// A connection that was opened while no other address was known notices a silent controller late. If there are
    /// alternatives now, requests from now on use a new one.
    pub fn learn<T: AsRef<str>>(&self, urls: impl IntoIterator<Item = T>) -> Learned {
        let mut state = self.inner.state.lock();
        let knew = state.peers.order().len();
        state.peers.learn(urls);
        match knew == 1 && state.peers.order().len() > 1 {
            true => {
                state.renew();
                Learned::FirstAlternatives
            }
            false => Learned::NothingNew,
        }
    }

    /// Opens a new connection for requests from now on, such as after the client's certificate was replaced. Requests
    /// in progress stay on the old one.
    pub fn reconnect(&self) {
        self.inner.state.lock().renew();
    }

    /// Lets go of a connection, unless a newer one is open. Its address is tried last.
    pub(crate) fn leave(&self, generation: u64) {
        drop(self.inner.state.lock().usable(Some(generation)));
    }

    /// Returns the open connection, or a new one if none is open or the open one is `broken`: to the first address that
    /// answers, beginning behind that of the broken one. Pauses after all addresses have failed, and retries for as long
    /// as the options allow; concurrent callers share the attempts and their failures.
    pub(crate) async fn request_sender(&self, broken: Option<u64>) -> Result<RequestSender> {
        let began = Instant::now();
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let (mut pace, mut asked) = (Pace::Quick, began);
        loop {
            let round = {
                let mut state = self.inner.state.lock();
                if let Some(open) = state.usable(broken) {
                    return Ok(open);
                }
                state.round(pace, &self.inner)
            };
            let failed = match round.await {
                Ok(open) => return Ok(open),
                // An address that failed before the caller came may answer by now.
                Err(failed) if failed.began < asked => continue,
                Err(failed) => failed,
            };
            // A slow line needs more time than a first round takes for several addresses.
            if failed.is_slow {
                (pace, asked) = (Pace::Slow, Instant::now());
                continue;
            }
            let wait = backoff.failed();
            let in_time = began.elapsed() + wait <= self.inner.options.retry_timeout;
            if !in_time || !failed.is_temporary {
                return Err(failed.error);
            }
            tracing::debug!(error = %failed.error, "trying again");
            tokio::time::sleep(wait).await;
            asked = Instant::now();
        }
    }

    /// Returns the error for content that no controller could have sent or read.
    pub(crate) fn protocol(&self, reason: impl Into<String>) -> ClientError {
        let url = self.inner.options.addresses.as_ref().map(ToString::to_string).unwrap_or_default();
        ClientError::Protocol { url, reason: reason.into() }
    }
}

impl Inner {
    /// Connects to the first address that answers, or returns the failures of all.
    async fn connect(&self, pace: Pace) -> RoundResult {
        loop {
            let began = Instant::now();
            let (order, renewals) = {
                let state = self.state.lock();
                (state.peers.order().to_vec(), state.renewals)
            };
            let mut failures = Vec::new();
            let mut opened = None;
            for dialler in &order {
                match connect(dialler, order.len().saturating_sub(1), pace).await {
                    Ok(sender) => {
                        opened = Some((sender, dialler.peer().clone()));
                        break;
                    }
                    Err(reason) => failures.push((dialler.peer().clone(), reason)),
                }
            }
            let mut state = self.state.lock();
            if state.renewals == renewals {
                state.round = None;
                return match opened {
                    Some((sender, peer)) => Ok(state.opened(sender, peer)),
                    None => Err(FailedRound::of(failures, began)),
                };
            }
        }
    }
}

impl FailedRound {
    fn of(failures: Vec<(Peer, ConnectError)>, began: Instant) -> Self {
        let is_slow = failures.iter().any(|(_, reason)| reason.is_early());
        let is_temporary = failures.iter().any(|(_, reason)| reason.is_temporary());
        let error =
            Attempt::all_failed(failures.into_iter().map(|(peer, reason)| reason.of(&peer)).collect());
        Self { began, error, is_temporary, is_slow }
    }
}

impl State {
    /// Returns the open connection. Lets go of it if it is broken, and its address is then tried last.
    fn usable(&mut self, broken: Option<u64>) -> Option<RequestSender> {
        match &self.open {
            Some(open) if !open.sender.is_closed() && broken != Some(open.generation) => {
                Some(open.request_sender(&self.peers))
            }
            _ => {
                if let Some(open) = self.open.take() {
                    self.peers.broke(&open.peer);
                }
                None
            }
        }
    }

    /// Returns the round that is in progress, or begins one. It ends early if all callers go away.
    fn round(&mut self, pace: Pace, client: &Arc<Inner>) -> Shared<BoxFuture<'static, RoundResult>> {
        if let Some(round) = self.round.as_ref().and_then(WeakShared::upgrade) {
            return round;
        }
        let client = Arc::clone(client);
        let round = async move { client.connect(pace).await }.boxed().shared();
        self.round = round.downgrade();
        round
    }

    /// Takes a new connection.
    fn opened(&mut self, sender: http2::SendRequest<Body>, peer: Peer) -> RequestSender {
        self.generation = self.generation.wrapping_add(1);
        self.peers.answered(&peer);
        let open = Open { sender, generation: self.generation, peer };
        let sender = open.request_sender(&self.peers);
        self.open = Some(open);
        sender
    }

    /// Gives up the open connection, and one that is being opened.
    fn renew(&mut self) {
        self.open = None;
        self.renewals = self.renewals.wrapping_add(1);
    }
}

impl Open {
    fn request_sender(&self, peers: &Peers) -> RequestSender {
        RequestSender {
            sender: self.sender.clone(),
            generation: self.generation,
            peer: self.peer.clone(),
            alternatives: peers.order().len().saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin, task::Poll};

    use periapt_transport::{Line, MemoryNetwork};
    use tokio::time::timeout;

    use super::*;
    use crate::Identity;

    const ADDRESS: &str = "127.0.0.1:1";

    /// Polls a future once, which must not be ready.
    async fn begin(future: &mut (impl Future + Unpin)) {
        poll_fn(|context| {
            assert!(future.poll_unpin(context).is_pending());
            Poll::Ready(())
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_are_not_polled_keep_no_other_from_a_connection() {
        let network = MemoryNetwork::default();
        let address = ADDRESS.parse().unwrap();
        let _listener = network.caller("controller").listen(address);
        let options = Options::in_memory(network.caller("agent"), &[address], Identity::Local);
        let client = Client::new(options).unwrap();

        network.set("agent", address, Line::Silent);
        let (mut first, mut second) = (pin!(client.request_sender(None)), pin!(client.request_sender(None)));
        begin(&mut first).await;
        begin(&mut second).await;
        network.set("agent", address, Line::Up);
        let third = timeout(Duration::from_secs(60), client.request_sender(None));
        let third = third.await.expect("it waits for a caller that is not polled").unwrap();
        assert_eq!(first.await.unwrap().generation, third.generation, "they share one connection");
        assert_eq!(second.await.unwrap().generation, third.generation);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_opened_while_it_is_given_up_is_opened_again() {
        let network = MemoryNetwork::default();
        let address = ADDRESS.parse().unwrap();
        let listener = network.caller("controller").listen(address);
        let options = Options::in_memory(network.caller("agent"), &[address], Identity::Local);
        let client = Client::new(options).unwrap();

        network.set("agent", address, Line::Slow(Duration::from_secs(1)));
        let mut opened = pin!(client.request_sender(None));
        begin(&mut opened).await;
        client.reconnect();
        opened.await.unwrap();
        let accepted = async {
            listener.accept().await.unwrap();
            listener.accept().await.unwrap();
        };
        timeout(Duration::from_secs(60), accepted).await.expect("the first one was given up");
    }
}
