//! The single connection to a controller, opened on demand, and replaced by one to the next controller when it breaks.

use std::{sync::Arc, time::Duration};

use hyper::client::conn::http2;
use tokio::{sync::Mutex, time::Instant};

use crate::{
    Attempt, Backoff, ClientError, Options, Result,
    connect::{Body, Pace, connect},
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
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    peers: Peers,
    open: Option<Open>,
    /// The number of connections so far.
    generation: u64,
    /// The last round over all addresses that failed.
    failed: Option<FailedRound>,
}

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
        let state = Mutex::new(State { peers, open: None, generation: 0, failed: None });
        Ok(Self { shared: Arc::new(Shared { options, state }) })
    }

    /// Returns the client's options.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Returns the URLs that the client knows, in the order of its attempts: first the one that answered last.
    pub async fn urls(&self) -> Vec<String> {
        let state = self.shared.state.lock().await;
        state.peers.order().iter().map(|dialler| dialler.peer().to_string()).collect()
    }

    /// Takes over the URLs that a controller names for all controllers of its store, beside those that the client was
    /// given. Only what came from a trusted controller may be passed on here. URLs that are not `https://` are ignored.
    ///
    /// A connection that was opened while no other address was known notices a silent controller late. If there are
    /// alternatives now, requests from now on use a new one.
    pub async fn learn<T: AsRef<str>>(&self, urls: impl IntoIterator<Item = T>) -> Learned {
        let mut state = self.shared.state.lock().await;
        let knew = state.peers.order().len();
        state.peers.learn(urls);
        match knew == 1 && state.peers.order().len() > 1 {
            true => {
                state.open = None;
                Learned::FirstAlternatives
            }
            false => Learned::NothingNew,
        }
    }

    /// Opens a new connection for requests from now on, such as after the client's certificate was replaced. Requests
    /// in progress stay on the old one.
    pub async fn reconnect(&self) {
        self.shared.state.lock().await.open = None;
    }

    /// Lets go of a connection, unless a newer one is open. Its address is tried last.
    pub(crate) async fn leave(&self, generation: u64) {
        drop(self.shared.state.lock().await.usable(Some(generation)));
    }

    /// Returns the open connection, or a new one if none is open or the open one is `broken`: to the first address that
    /// answers, beginning behind that of the broken one. Pauses after all addresses have failed, and retries for as long
    /// as the options allow; concurrent callers share the attempts and their failures.
    pub(crate) async fn request_sender(&self, broken: Option<u64>) -> Result<RequestSender> {
        let began = Instant::now();
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut pace = Pace::Quick;
        loop {
            let asked = Instant::now();
            let mut state = self.shared.state.lock().await;
            if let Some(open) = state.usable(broken) {
                return Ok(open);
            }
            // Callers that waited together for a whole round do not make one each.
            let failed = match state.failed.clone().filter(|failed| failed.began >= asked) {
                Some(failed) => failed,
                None => match state.connect(pace).await {
                    Ok(open) => return Ok(open),
                    Err(failed) => state.failed.insert(failed).clone(),
                },
            };
            drop(state);
            // A slow line needs more time than a first round takes for several addresses.
            if failed.is_slow && pace == Pace::Quick {
                pace = Pace::Slow;
                continue;
            }
            let wait = backoff.failed();
            let in_time = began.elapsed() + wait <= self.shared.options.retry_timeout;
            if !in_time || !failed.is_temporary {
                return Err(failed.error);
            }
            tracing::debug!(error = %failed.error, "trying again");
            tokio::time::sleep(wait).await;
        }
    }

    /// Returns the error for content that no controller could have sent or read.
    pub(crate) fn protocol(&self, reason: impl Into<String>) -> ClientError {
        let url = self.shared.options.addresses.as_ref().map(ToString::to_string).unwrap_or_default();
        ClientError::Protocol { url, reason: reason.into() }
    }
}

impl State {
    /// Returns the open connection. Lets go of it if it is broken, and its address is then tried last.
    fn usable(&mut self, broken: Option<u64>) -> Option<RequestSender> {
        let alternatives = self.peers.order().len().saturating_sub(1);
        match &self.open {
            Some(open) if !open.sender.is_closed() && broken != Some(open.generation) => {
                Some(RequestSender {
                    sender: open.sender.clone(),
                    generation: open.generation,
                    peer: open.peer.clone(),
                    alternatives,
                })
            }
            _ => {
                if let Some(open) = self.open.take() {
                    self.peers.broke(&open.peer);
                }
                None
            }
        }
    }

    /// Connects to the first address that answers, or returns the failures of all.
    async fn connect(&mut self, pace: Pace) -> std::result::Result<RequestSender, FailedRound> {
        let began = Instant::now();
        let alternatives = self.peers.order().len().saturating_sub(1);
        let mut failures = Vec::new();
        for (index, dialler) in self.peers.order().iter().enumerate() {
            let peer = dialler.peer().clone();
            let sender = match connect(dialler, alternatives, pace).await {
                Ok(sender) => sender,
                Err(reason) => {
                    failures.push((peer, reason));
                    continue;
                }
            };
            self.generation = self.generation.wrapping_add(1);
            self.peers.answered(index);
            let generation = self.generation;
            self.open = Some(Open { sender: sender.clone(), generation, peer: peer.clone() });
            return Ok(RequestSender { sender, generation, peer, alternatives });
        }
        let is_slow = failures.iter().any(|(_, reason)| reason.is_early());
        let is_temporary = failures.iter().any(|(_, reason)| reason.is_temporary());
        let error =
            Attempt::all_failed(failures.into_iter().map(|(peer, reason)| reason.of(&peer)).collect());
        Err(FailedRound { began, error, is_temporary, is_slow })
    }
}
