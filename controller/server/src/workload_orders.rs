//! The orders of operators to workloads, and the parts that agents hand over for them (decisions 93 and 111): the output of
//! services, and dialogues with commands. Nothing of it is kept: this is memory of this controller, for as long as an
//! operator waits.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use periapt_host_api::{
    AgentName, ErrorCode, ModelUuid, Refusal, RequestId, UserName,
    exec_session::ExecSessionOrder,
    workload_log::{MAX_PART_BYTES, PartAnswer, WorkloadLogOrder, WorkloadLogPart},
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout},
};

use crate::clock::RandomSource;

/// The most orders for logs, and of them to one agent: each takes a stream of it.
const LOGS: usize = 256;
const LOGS_OF_AGENT: usize = 16;

/// The most sessions: all, of one user, of one model, and with one agent. Each is a process in a container with four
/// streams of its pod, and up to six parts in memory here.
const SESSIONS: usize = 128;
const SESSIONS_OF_USER: usize = 32;
const SESSIONS_OF_MODEL: usize = 32;
const SESSIONS_OF_AGENT: usize = 16;

/// The parts of one order that wait for the operator, each of at most 64 KiB.
const PARTS: usize = 4;

/// The pieces of a session's input that wait for the agent, each of at most 64 KiB.
const PIECES: usize = 2;

/// The time for which a part waits for room. Then the agent offers it again: the operator may take nothing for as long as
/// the connection lives, and each request of the agent is short.
const ROOM_WITHIN: Duration = Duration::from_secs(10);

/// The time in which an agent that asks for input is answered, with nothing if there is none.
const INPUT_WITHIN: Duration = Duration::from_secs(10);

/// The open orders. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct WorkloadOrders {
    shared: Arc<Shared>,
    random: Arc<dyn RandomSource>,
}

#[derive(Debug, Default)]
struct Shared {
    orders: Mutex<BTreeMap<RequestId, Relay>>,
    /// Changes with the orders.
    changed: watch::Sender<()>,
}

/// The two ways between an operator and the agent.
#[derive(Debug)]
struct Relay {
    agent: AgentName,
    ordered: Ordered,
    parts: mpsc::Sender<Part>,
}

#[derive(Debug)]
enum Ordered {
    /// With true once an agent has taken the order: the output would begin anew among what its reader has.
    Log(WorkloadLogOrder, AtomicBool),
    Session(Box<ExecSessionOrder>, Arc<SessionInput>),
}

/// The input of a session on its way to the agent.
#[derive(Debug)]
struct SessionInput {
    user: UserName,
    pieces: tokio::sync::Mutex<mpsc::Receiver<Bytes>>,
    /// True once an agent has taken the order: no other one begins the command again.
    is_taken: AtomicBool,
    /// True once the session's end was handed over: the agent has nothing more to say.
    is_finished: AtomicBool,
    /// The time at which the agent was heard of last.
    heard: Mutex<Instant>,
}

/// A part of an agent.
pub(crate) type Part = (WorkloadLogPart, Bytes);

/// The operator's end of an order. Dropping it ends the order.
pub(crate) struct OpenOrder {
    id: RequestId,
    orders: WorkloadOrders,
    /// The parts that the agent hands over, in order.
    pub(crate) parts: mpsc::Receiver<Part>,
}

impl WorkloadOrders {
    /// Creates a list without orders.
    pub(crate) fn new(random: Arc<dyn RandomSource>) -> Self {
        Self { shared: Arc::default(), random }
    }

    /// Opens an order for a log to an agent.
    ///
    /// # Errors
    /// Too many are open.
    pub(crate) fn open_log(&self, agent: AgentName, order: WorkloadLogOrder) -> Result<OpenOrder, Refusal> {
        let is_log = |relay: &&Relay| matches!(relay.ordered, Ordered::Log(..));
        self.open(agent, Ordered::Log(order, AtomicBool::new(false)), |orders, agent| {
            let logs = || orders.values().filter(is_log);
            if logs().count() >= LOGS || logs().filter(|relay| relay.agent == *agent).count() >= LOGS_OF_AGENT
            {
                let text =
                    format!("the logs of too many workloads are read, at most {LOGS_OF_AGENT} of one agent");
                return Err(Refusal::new(ErrorCode::TooManyRequests, text));
            }
            Ok(())
        })
    }

    /// Opens an order for a session of a user with an agent, and returns the sender of its input. The order waits in the
    /// agent's assignments until it is taken.
    ///
    /// # Errors
    /// Too many are open.
    pub(crate) fn open_session(
        &self,
        agent: AgentName,
        user: UserName,
        order: ExecSessionOrder,
    ) -> Result<(OpenOrder, mpsc::Sender<Bytes>), Refusal> {
        let (sender, pieces) = mpsc::channel(PIECES);
        let (model, of) = (order.model, user.clone());
        let input = SessionInput {
            user,
            pieces: tokio::sync::Mutex::new(pieces),
            is_taken: AtomicBool::new(false),
            is_finished: AtomicBool::new(false),
            heard: Mutex::new(Instant::now()),
        };
        let ordered = Ordered::Session(Box::new(order), Arc::new(input));
        let opened =
            self.open(agent, ordered, |orders, agent| check_sessions(orders, (agent, &model, &of)))?;
        Ok((opened, sender))
    }

    fn open(
        &self,
        agent: AgentName,
        ordered: Ordered,
        check: impl FnOnce(&BTreeMap<RequestId, Relay>, &AgentName) -> Result<(), Refusal>,
    ) -> Result<OpenOrder, Refusal> {
        let (sender, parts) = mpsc::channel(PARTS);
        let id = RequestId::from_random_bytes(self.random.seed());
        let mut orders = self.shared.orders.lock();
        check(&orders, &agent)?;
        orders.insert(id, Relay { agent, ordered, parts: sender });
        drop(orders);
        self.shared.changed.send_replace(());
        Ok(OpenOrder { id, orders: self.clone(), parts })
    }

    /// Returns the open orders for logs to an agent.
    pub(crate) fn logs_of(&self, agent: &AgentName) -> BTreeMap<RequestId, WorkloadLogOrder> {
        self.of(agent, |ordered| match ordered {
            Ordered::Log(order, _) => Some(order.clone()),
            Ordered::Session(..) => None,
        })
    }

    /// Returns the open sessions with an agent.
    pub(crate) fn sessions_of(&self, agent: &AgentName) -> BTreeMap<RequestId, ExecSessionOrder> {
        self.of(agent, |ordered| match ordered {
            Ordered::Session(order, _) => Some(ExecSessionOrder::clone(order)),
            Ordered::Log(..) => None,
        })
    }

    fn of<T>(&self, agent: &AgentName, order: impl Fn(&Ordered) -> Option<T>) -> BTreeMap<RequestId, T> {
        let orders = self.shared.orders.lock();
        let of_agent = orders.iter().filter(|(_, relay)| relay.agent == *agent);
        of_agent.filter_map(|(id, relay)| Some((*id, order(&relay.ordered)?))).collect()
    }

    /// Returns the changes of all orders.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changed.subscribe()
    }

    /// Hands a part over, once the operator has room for it. A part for which there is no room in time is not taken.
    ///
    /// # Errors
    /// The agent has no such order, or begins it a second time: it was started again. A log ends by that.
    pub(crate) async fn pass(
        &self,
        agent: &AgentName,
        id: RequestId,
        part: Part,
    ) -> Result<PartAnswer, Refusal> {
        let (parts, session) = {
            let orders = self.shared.orders.lock();
            let relay = orders.get(&id).filter(|relay| relay.agent == *agent).ok_or_else(|| gone(id))?;
            let session = match &relay.ordered {
                Ordered::Session(_, input) => Some(Arc::clone(input)),
                Ordered::Log(_, is_taken) => {
                    // Programs of before take an order by their first bytes.
                    if is_taken.swap(true, Ordering::Relaxed) && part.0 == WorkloadLogPart::Begun {
                        // Without room for the reason, the stream ends without one.
                        let _ = relay.parts.try_send(started_again());
                        drop(orders);
                        self.end(id);
                        let text =
                            format!("log {id} was begun before: what its reader has is not sent again");
                        return Err(Refusal::new(ErrorCode::AlreadyExists, text));
                    }
                    None
                }
            };
            (relay.parts.clone(), session)
        };
        if let Some(session) = session {
            return session.pass(id, &parts, part).await;
        }
        match timeout(ROOM_WITHIN, parts.send(part)).await {
            Ok(Ok(())) => Ok(PartAnswer::Taken),
            Ok(Err(_)) => Err(gone(id)),
            Err(_) => Ok(PartAnswer::NoRoom),
        }
    }

    /// Returns the time since the agent of a session was heard of; none once it has handed over the session's end, and for
    /// an id of no open session.
    pub(crate) fn silence(&self, id: RequestId) -> Option<Duration> {
        let orders = self.shared.orders.lock();
        match &orders.get(&id)?.ordered {
            Ordered::Session(_, input) if !input.is_finished.load(Ordering::Relaxed) => {
                Some(input.heard.lock().elapsed())
            }
            Ordered::Session(..) | Ordered::Log(..) => None,
        }
    }

    /// Ends an order, which its agent finds gone. The parts that were handed over stay for the operator.
    pub(crate) fn end(&self, id: RequestId) {
        self.shared.orders.lock().remove(&id);
        self.shared.changed.send_replace(());
    }

    /// Takes the next bytes of a session's input, at most 64 KiB. Waits a while for the first; none if there are none yet.
    ///
    /// # Errors
    /// The agent has no such session, or its operator has left.
    pub(crate) async fn input(&self, agent: &AgentName, id: RequestId) -> Result<Bytes, Refusal> {
        let input = {
            let orders = self.shared.orders.lock();
            let relay = orders.get(&id).filter(|relay| relay.agent == *agent).ok_or_else(|| gone(id))?;
            match &relay.ordered {
                Ordered::Session(_, input) => {
                    *input.heard.lock() = Instant::now();
                    Arc::clone(input)
                }
                Ordered::Log(..) => return Err(gone(id)),
            }
        };
        // The agent asks again once it is answered.
        let mut pieces = input
            .pieces
            .try_lock()
            .map_err(|_| Refusal::bad_request(format!("the input of session {id} is being taken")))?;
        match timeout(INPUT_WITHIN, pieces.recv()).await {
            Ok(Some(first)) => Ok(with_more(first, &mut pieces)),
            Ok(None) => Err(gone(id)),
            Err(_) => Ok(Bytes::new()),
        }
    }
}

impl SessionInput {
    /// Hands a part of the session over, if there is room for it in time.
    async fn pass(
        &self,
        id: RequestId,
        parts: &mpsc::Sender<Part>,
        part: Part,
    ) -> Result<PartAnswer, Refusal> {
        *self.heard.lock() = Instant::now();
        if parts.is_closed() || self.is_finished.load(Ordering::Relaxed) {
            return Err(gone(id));
        }
        // A sign of life needs no room.
        if part.0 == WorkloadLogPart::Data && part.1.is_empty() {
            return Ok(PartAnswer::Taken);
        }
        if part.0 == WorkloadLogPart::Begun && self.is_taken.swap(true, Ordering::Relaxed) {
            // The agent that has begun it is gone. Without room for the reason, the watch misses the agent in a minute.
            if parts.try_send(started_again()).is_ok() {
                self.is_finished.store(true, Ordering::Relaxed);
            }
            let text = format!("session {id} was begun before: its command is not run again");
            return Err(Refusal::new(ErrorCode::AlreadyExists, text));
        }
        let room = match timeout(ROOM_WITHIN, parts.reserve()).await {
            Ok(Ok(room)) => room,
            Ok(Err(_)) => return Err(gone(id)),
            Err(_) => return Ok(PartAnswer::NoRoom),
        };
        let is_last = matches!(part.0, WorkloadLogPart::End | WorkloadLogPart::Failed);
        room.send(part);
        if is_last {
            self.is_finished.store(true, Ordering::Relaxed);
        }
        Ok(PartAnswer::Taken)
    }
}

/// Adds the pieces that are there, as far as they fit into one part.
fn with_more(first: Bytes, pieces: &mut mpsc::Receiver<Bytes>) -> Bytes {
    let mut all = BytesMut::from(&*first);
    // A piece that was taken cannot be put back: the next one is taken only if any piece would fit.
    while all.len() <= MAX_PART_BYTES - MAX_PIECE_BYTES {
        match pieces.try_recv() {
            Ok(piece) => all.extend_from_slice(&piece),
            Err(_) => break,
        }
    }
    all.freeze()
}

/// Returns the last part of an order that an agent took before it was started again.
fn started_again() -> Part {
    (WorkloadLogPart::Failed, Bytes::from_static(b"the agent was started again"))
}

/// The most bytes of one piece of a session's input.
pub(crate) const MAX_PIECE_BYTES: usize = 32 << 10;

fn gone(id: RequestId) -> Refusal {
    Refusal::not_found(format!("order {id} not found: nobody waits for it"))
}

/// Refuses one session too many; the message names the bound.
fn check_sessions(
    orders: &BTreeMap<RequestId, Relay>,
    (agent, model, user): (&AgentName, &ModelUuid, &UserName),
) -> Result<(), Refusal> {
    let (mut all, mut of_agent, mut of_model, mut of_user) = (0, 0, 0, 0);
    for relay in orders.values() {
        let Ordered::Session(order, input) = &relay.ordered else { continue };
        all += 1;
        of_agent += usize::from(relay.agent == *agent);
        of_model += usize::from(order.model == *model);
        of_user += usize::from(input.user == *user);
    }
    let full = [
        (of_user, SESSIONS_OF_USER, format!("of user {user}")),
        (of_agent, SESSIONS_OF_AGENT, format!("with agent {agent}")),
        (of_model, SESSIONS_OF_MODEL, format!("in model {model}")),
        (all, SESSIONS, "with this controller".to_owned()),
    ];
    match full.into_iter().find(|(open, most, _)| open >= most) {
        None => Ok(()),
        Some((_, most, of)) => {
            let text = format!("{most} sessions {of} are open, which is the most; end one first");
            Err(Refusal::new(ErrorCode::TooManyRequests, text))
        }
    }
}

impl Drop for OpenOrder {
    fn drop(&mut self) {
        self.orders.end(self.id);
    }
}

impl OpenOrder {
    /// Returns the order's id.
    pub(crate) fn id(&self) -> RequestId {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{exec_session::ExecSessionRequest, workload_log::WorkloadLogQuery};
    use uuid::Uuid;

    use super::*;
    use crate::clock::SystemRandomSource;

    fn orders() -> WorkloadOrders {
        WorkloadOrders::new(Arc::new(SystemRandomSource))
    }

    fn agent(name: &str) -> AgentName {
        name.parse().unwrap()
    }

    fn user(name: &str) -> UserName {
        name.parse().unwrap()
    }

    fn log() -> WorkloadLogOrder {
        let (container, services) = ("web".parse().unwrap(), Vec::new());
        let query = WorkloadLogQuery { container, services, tail: None, follow: true };
        WorkloadLogOrder { model: ModelUuid(Uuid::nil()), unit: "app/0".parse().unwrap(), query }
    }

    fn session(model: u128) -> ExecSessionOrder {
        let command = vec!["sh".to_owned()];
        let request = ExecSessionRequest { container: "web".parse().unwrap(), command, terminal: None };
        ExecSessionOrder { model: ModelUuid(Uuid::from_u128(model)), unit: "app/0".parse().unwrap(), request }
    }

    fn part(part: WorkloadLogPart) -> Part {
        (part, Bytes::new())
    }

    #[tokio::test]
    async fn one_agent_has_few_logs_and_sessions_have_bounds_of_their_own() {
        let orders = orders();
        let held: Vec<_> = (0..LOGS_OF_AGENT).map(|_| orders.open_log(agent("a1"), log()).unwrap()).collect();
        let refused = orders.open_log(agent("a1"), log()).map(|_| ()).unwrap_err();
        assert_eq!(refused.code, ErrorCode::TooManyRequests);
        drop(orders.open_log(agent("a2"), log()).unwrap());
        drop(orders.open_session(agent("a1"), user("jane"), session(1)).unwrap());
        drop(held);
        drop(orders.open_log(agent("a1"), log()).unwrap());
        assert!(orders.shared.orders.lock().is_empty());
    }

    #[tokio::test]
    async fn sessions_are_bounded_by_agent_model_user_and_in_all() {
        let refused = |orders: &WorkloadOrders, name: &str, of: &str, model| {
            let opened = orders.open_session(agent(name), user(of), session(model));
            opened.map(|_| ()).unwrap_err().message
        };
        let open =
            |orders: &WorkloadOrders, number: usize, (agents, users, models): (usize, usize, usize)| {
                let (at, of) = (format!("a{}", number % agents), format!("u{}", number % users));
                orders.open_session(agent(&at), user(&of), session((number % models) as u128)).unwrap()
            };
        let (many, one) = (1_000, 1);
        for (most, spread, part) in [
            (SESSIONS_OF_AGENT, (one, many, many), "with agent a0"),
            (SESSIONS_OF_USER, (many, one, many), "of user u0"),
            (SESSIONS_OF_MODEL, (many, many, one), "in model"),
            (SESSIONS, (many, many, many), "with this controller"),
        ] {
            let orders = orders();
            let mut held: Vec<_> = (0..most).map(|number| open(&orders, number, spread)).collect();
            let text = refused(&orders, "a0", "u0", 0);
            assert!(text.contains(part) && text.starts_with(&most.to_string()), "{text}");
            drop(held.pop());
            held.push(open(&orders, most - 1, spread));
            drop(held);
            assert!(orders.shared.orders.lock().is_empty());
        }
    }

    #[tokio::test]
    async fn a_session_is_begun_once_and_its_input_goes_to_its_agent_alone() {
        let (orders, one, two) = (orders(), agent("a1"), agent("a2"));
        let (mut opened, input) = orders.open_session(one.clone(), user("jane"), session(1)).unwrap();
        let id = opened.id();
        assert_eq!(orders.sessions_of(&one), [(id, session(1))].into());
        assert!(orders.sessions_of(&two).is_empty() && orders.logs_of(&one).is_empty());
        orders.pass(&one, id, part(WorkloadLogPart::Begun)).await.unwrap();
        let again = orders.pass(&one, id, part(WorkloadLogPart::Begun)).await.unwrap_err();
        assert_eq!(again.code, ErrorCode::AlreadyExists);
        assert_eq!(opened.parts.recv().await, Some(part(WorkloadLogPart::Begun)));
        let (told, reason) = opened.parts.recv().await.unwrap();
        assert_eq!((told, &reason[..]), (WorkloadLogPart::Failed, &b"the agent was started again"[..]));
        for text in ["a", "b"] {
            input.send(Bytes::from_static(text.as_bytes())).await.unwrap();
        }
        assert_eq!(orders.input(&two, id).await.unwrap_err().code, ErrorCode::NotFound);
        assert_eq!(orders.input(&one, id).await.unwrap(), "ab");
        drop(input);
        assert_eq!(orders.input(&one, id).await.unwrap_err().code, ErrorCode::NotFound);
        drop(opened);
        assert_eq!(
            orders.pass(&one, id, part(WorkloadLogPart::Data)).await.unwrap_err().code,
            ErrorCode::NotFound
        );
        assert!(orders.sessions_of(&one).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_is_answered_while_an_operator_says_nothing_and_one_piece_waits_for_no_other() {
        let (orders, one) = (orders(), agent("a1"));
        let (opened, input) = orders.open_session(one.clone(), user("jane"), session(1)).unwrap();
        assert!(orders.input(&one, opened.id()).await.unwrap().is_empty());
        for _ in 0..PIECES {
            input.send(Bytes::from(vec![0; MAX_PIECE_BYTES])).await.unwrap();
        }
        assert_eq!(orders.input(&one, opened.id()).await.unwrap().len(), MAX_PART_BYTES);
        let _log = orders.open_log(one.clone(), log()).unwrap();
        let id = *orders.logs_of(&one).keys().next().unwrap();
        assert_eq!(orders.input(&one, id).await.unwrap_err().code, ErrorCode::NotFound, "a log has no input");
    }
}
