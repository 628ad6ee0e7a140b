//! Clients of the simulated controllers. Each sends what it sends to any of them, and repeats it at the others.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use periapt_client::{Client, ClientError, Identity, Options, RequestOutcome, Seen};
use periapt_host_api::{
    ErrorCode, ModelName,
    api::ModelSelector,
    command::{Command, ControllerCommand},
};

use super::{Mutation, chance::Chance, witness::Event, world::World};

/// The names of the clients' hosts.
pub(super) const CALLERS: [&str; 4] = ["client-1", "client-2", "client-3", "client-4"];

/// The models whose setting is a register: each write has a value of its own.
pub(super) const REGISTERS: [&str; 5] = ["r1", "r2", "r3", "r4", "r5"];

/// The setting. It has no effect.
const SETTING: &str = "apt-mirror";

/// The names that clients compete for: a model is added once.
const CONTESTED: usize = 8;

/// The operations of one client. The checkers look for an order of all, so each key has few of them.
const OPERATIONS: usize = 22;

/// The attempts of a client whose requests have no id, until it learns something.
const ATTEMPTS: usize = 8;

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operation {
    /// Adds a model of this name.
    Add(String),
    /// Writes a register.
    Write(&'static str, String),
    /// Reads a register.
    Read(&'static str),
    /// Reads the names of all models.
    List,
}

/// The outcome of an operation, as its client was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was carried out.
    Done,
    /// It was refused: there is a model of this name.
    Exists,
    /// It has no effect, and its client learnt nothing.
    Nothing,
    /// Its effect is not known.
    Unknown,
    Value(String),
    Names(BTreeSet<String>),
}

/// An operation that has ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) client: usize,
    /// The moments of call and answer. Moments of all clients are ordered as they happened.
    pub(super) called: usize,
    pub(super) returned: usize,
    pub(super) operation: Operation,
    pub(super) outcome: Outcome,
}

/// All that clients did, in the order in which it ended.
#[derive(Default)]
pub(super) struct History {
    moments: AtomicUsize,
    ended: Mutex<Vec<Ended>>,
}

impl History {
    fn moment(&self) -> usize {
        self.moments.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn take(&self) -> Vec<Ended> {
        std::mem::take(&mut self.ended.lock())
    }
}

/// One client.
pub(super) struct Session {
    pub(super) number: usize,
    pub(super) world: Arc<World>,
    pub(super) history: Arc<History>,
    pub(super) chance: Chance,
    pub(super) mutation: Mutation,
    pub(super) seen: Seen,
}

impl Session {
    /// Carries out some operations, with pauses.
    pub(super) async fn run(mut self) {
        for count in 0..OPERATIONS {
            let pause = if self.chance.one_in(3) { 0..5 } else { 100..3_500 };
            tokio::time::sleep(self.chance.millis(pause)).await;
            let register = REGISTERS[self.chance.below(REGISTERS.len())];
            let operation = match self.chance.below(10) {
                0 | 1 => Operation::Add(format!("m{}", self.chance.below(CONTESTED))),
                2 => Operation::Add(format!("own-{}-{count}", self.number)),
                3..6 => Operation::Write(register, format!("{}-{count}", self.number)),
                6 => Operation::List,
                _ => Operation::Read(register),
            };
            self.ends(operation).await;
        }
    }

    /// Carries out an operation, and adds it to the history.
    pub(super) async fn ends(&mut self, operation: Operation) -> Outcome {
        let first = self.chance.order(self.world.hosts.len());
        let called = self.history.moment();
        let client = self.client(&first);
        let mut result = carried_out(&client, &operation).await;
        if self.mutation == Mutation::NoRequestId {
            for _ in 1..ATTEMPTS {
                if !matches!(result, Outcome::Unknown) {
                    break;
                }
                let order = self.chance.order(self.world.hosts.len());
                result = carried_out(&self.client(&order), &operation).await;
            }
        }
        let (number, returned) = (self.number, self.history.moment());
        if let Some(position) = self.seen.position() {
            self.world.witness.note(Event::Shown { to: number, position: position.revision });
        }
        self.world.note(format_args!("client {number} at {}: {operation:?} {result:?}", first[0]));
        let ended = Ended { client: number, called, returned, operation, outcome: result.clone() };
        self.history.ended.lock().push(ended);
        result
    }

    /// Returns a client that tries the controllers in this order.
    fn client(&self, order: &[usize]) -> Client {
        let addresses: Vec<SocketAddr> = order.iter().map(|index| self.world.hosts[*index].address).collect();
        let caller = CALLERS[self.number % CALLERS.len()];
        let seen = match self.mutation {
            // What it has seen is not told, and no controller waits for it.
            Mutation::NoWait => Seen::default(),
            _ => self.seen.clone(),
        };
        let mut options = Options::in_memory(self.world.network.caller(caller), &addresses, Identity::Local)
            .with_seen(seen)
            .with_retry_timeout(Duration::from_secs(5))
            .with_busy_retry_timeout(Duration::from_secs(5));
        if self.mutation != Mutation::NoRequestId {
            options = options.with_unanswered_retry_timeout(Duration::from_secs(20));
        }
        options.answer_within = Duration::from_secs(8);
        Client::new(options).unwrap()
    }
}

async fn carried_out(client: &Client, operation: &Operation) -> Outcome {
    let of = |name: &str| -> ModelSelector { name.parse().unwrap() };
    let result = match operation {
        Operation::Add(name) => {
            let add = ControllerCommand::add_model(ModelName::new(name).unwrap());
            client.controller_command(add).await.map(|_| Outcome::Done)
        }
        Operation::Write(register, value) => {
            let set = [(SETTING.to_owned(), value.clone())].into();
            let write = Command::SetModelConfig { set, reset: Vec::new() };
            client.command(&of(register), write).await.map(|_| Outcome::Done)
        }
        Operation::Read(register) => client.model_config(&of(register)).await.map(|config| {
            let value = config.0.get(SETTING).and_then(|setting| setting.value.as_str());
            Outcome::Value(value.unwrap_or_default().to_owned())
        }),
        Operation::List => client
            .models()
            .await
            .map(|models| Outcome::Names(models.into_iter().map(|model| model.name.to_string()).collect())),
    };
    result.unwrap_or_else(|error| outcome(operation, &error))
}

/// Tells what a client may conclude from an error.
fn outcome(operation: &Operation, error: &ClientError) -> Outcome {
    let reads = matches!(operation, Operation::Read(_) | Operation::List);
    match error {
        ClientError::Refused(refusal) => match refusal.code {
            ErrorCode::AlreadyExists => Outcome::Exists,
            ErrorCode::OutcomeUnknown => Outcome::Unknown,
            code if code.is_temporary() => Outcome::Nothing,
            _ => panic!("{operation:?}: {error}"),
        },
        ClientError::Unreachable { outcome: RequestOutcome::Unknown, .. } if !reads => Outcome::Unknown,
        ClientError::Unreachable { .. } | ClientError::NoneReached(_) => Outcome::Nothing,
        _ => panic!("{operation:?}: {error}"),
    }
}
