//! The state of the model: the log, two controllers, the clients' requests, and what has been seen so far.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use periapt_host_api::{Revision, StoreId};
use periapt_log::{LogHead, LogState, MemberProgress, Term, UnansweredCall};

/// The identity of the model's log.
pub(super) const LOG: StoreId = StoreId(uuid::Uuid::from_u128(1));

/// The number of controllers.
pub(super) const CONTROLLERS: usize = 2;

/// A change of the protocol that the search must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mutation {
    /// The protocol as it is.
    None,
    /// Answers of a batch that writes nothing leave at once.
    NoConfirmation,
    /// An append takes place in any term.
    NoTerm,
    /// An append takes place at the end of the log, wherever that is.
    NoPosition,
    /// Both.
    NoFence,
    /// The writer does not look for the answer to a request that was sent before.
    NoRequestId,
    /// Controllers report as durable what they have applied.
    TrimsApplied,
}

/// A request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// Writes, and is answered with what the writer kept for it.
    Write,
    /// Writes nothing, and is answered from the state.
    Read,
}

/// The bounds of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The number of terms.
    pub(super) terms: u64,
    /// The number of calls of the log that get no answer.
    pub(super) losses: u8,
    /// The number of crashes of machines.
    pub(super) crashes: u8,
    /// The number of times that a request is sent.
    pub(super) sends: u8,
}

/// The model.
pub(super) struct Writers {
    pub(super) mutation: Mutation,
    pub(super) requests: Vec<Request>,
    pub(super) bounds: Bounds,
    pub(super) trimming: Trimming,
}

/// The trimming of the log. Where there is some, stores are synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trimming {
    Never,
    /// Entries are trimmed that two disks have.
    Unneeded,
    /// The log is bounded as well: so many of the newest entries fit, and the others need no second disk.
    Bounded(u64),
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) log: LogState,
    /// The controller whose leadership has not run out.
    pub(super) holder: Option<usize>,
    pub(super) controllers: [Controller; CONTROLLERS],
    /// The last report of each controller that the other one has.
    pub(super) reports: [MemberProgress; CONTROLLERS],
    /// Appends that were sent, and may arrive at any time.
    pub(super) stray: BTreeSet<Append>,
    /// For each request, how often it was sent, and whether it was answered.
    pub(super) clients: Vec<Client>,
    pub(super) losses: u8,
    pub(super) crashes: u8,
    pub(super) seen: Seen,
}

/// An append.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Append {
    pub(super) term: Term,
    pub(super) position: Revision,
    pub(super) bytes: Bytes,
}

/// A client with one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Client {
    pub(super) sent: u8,
    pub(super) answered: bool,
}

/// A store: entities, and the end of the log that they are made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Store {
    pub(super) head: LogHead,
    pub(super) entities: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A controller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Controller {
    pub(super) store: Store,
    /// The part of the store that a crash of the machine leaves.
    pub(super) disk: Store,
    /// The requests that wait here.
    pub(super) queue: BTreeSet<usize>,
    pub(super) role: Role,
}

/// The role of a controller, as it believes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Following,
    /// It has a term, and reads the log to its end.
    CatchingUp(Term),
    Leading(Term, Task),
}

/// The present work of the writer of a leading controller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Task {
    Idle,
    /// Its batch waits for the log.
    Appending {
        append: Append,
        head: LogHead,
        answers: Answers,
        call: UnansweredCall,
    },
    /// The answers of a batch that writes nothing wait for the term.
    Confirming {
        answers: Answers,
        call: UnansweredCall,
    },
}

/// The answers of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Answers {
    /// The requests.
    pub(super) requests: BTreeSet<usize>,
    /// The end of the log when the batch was evaluated, which no controller knows.
    pub(super) end: Revision,
}

/// The history, as a witness of everything has seen it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    /// The end of the log, by folding it.
    pub(super) tail: LogHead,
    /// The number of entries that write the effect of each request.
    pub(super) written: Vec<u8>,
    /// True if the log was trimmed of what a controller had not applied.
    pub(super) was_cut_off: bool,
    /// The first law that was broken by a step.
    pub(super) breach: Option<&'static str>,
}

impl State {
    /// Returns the state before anything happened.
    pub(super) fn new(requests: usize) -> Self {
        let store = Store { head: LogHead::empty(LOG), entities: BTreeMap::new() };
        let controller = Controller {
            disk: store.clone(),
            store: store.clone(),
            queue: BTreeSet::new(),
            role: Role::Following,
        };
        Self {
            log: LogState::default(),
            holder: None,
            controllers: [controller.clone(), controller],
            reports: Default::default(),
            stray: BTreeSet::new(),
            clients: vec![Client::default(); requests],
            losses: 0,
            crashes: 0,
            seen: Seen { tail: store.head, written: vec![0; requests], was_cut_off: false, breach: None },
        }
    }
}

/// Returns the key under which the answer to a request is kept.
pub(super) fn key_of(request: usize) -> Vec<u8> {
    vec![b'r', u8::try_from(request).unwrap()]
}
