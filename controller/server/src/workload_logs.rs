//! The output of workloads, handed from agents to operators who wait for it (decision 93). Nothing of it is kept: this is
//! memory of this controller, for as long as an operator reads.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use periapt_host_api::{
    AgentName, ErrorCode, Refusal, RequestId, excerpt,
    workload_log::{WorkloadLogOrder, WorkloadLogPart},
};
use serde::Deserialize;
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use crate::clock::RandomSource;

/// The most orders of all agents.
const ORDERS: usize = 256;

/// The most orders of one agent: each takes a stream of it.
const ORDERS_OF_AGENT: usize = 16;

/// The parts of one order that wait for the operator, each of at most 64 KiB.
const PARTS: usize = 4;

/// The time in which an agent answers an order.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

/// The time in which an operator takes a part. One that takes nothing for so long is not served further.
const TAKEN_WITHIN: Duration = Duration::from_secs(20);

/// The end of the head of an answer, and the most bytes before it.
const HEAD_END: &[u8] = b"\r\n\r\n";
const MAX_HEAD: usize = 8 << 10;

/// The most bytes of a refusal: one sentence as JSON.
const MAX_REFUSAL: usize = 8 << 10;

/// The refusal of a pod.
#[derive(Deserialize)]
struct PodRefused {
    result: PodMessage,
}

#[derive(Deserialize)]
struct PodMessage {
    message: String,
}

/// The open orders. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct WorkloadLogs {
    shared: Arc<Shared>,
    random: Arc<dyn RandomSource>,
}

#[derive(Debug, Default)]
struct Shared {
    orders: Mutex<BTreeMap<RequestId, Relay>>,
    /// Changes with the orders.
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct Relay {
    agent: AgentName,
    order: WorkloadLogOrder,
    parts: mpsc::Sender<(WorkloadLogPart, Bytes)>,
}

/// The operator's end of an order. Dropping it ends the order.
pub(crate) struct WorkloadLog {
    id: RequestId,
    logs: WorkloadLogs,
    parts: mpsc::Receiver<(WorkloadLogPart, Bytes)>,
}

impl WorkloadLogs {
    /// Creates a list without orders.
    pub(crate) fn new(random: Arc<dyn RandomSource>) -> Self {
        Self { shared: Arc::default(), random }
    }

    /// Opens an order to an agent.
    ///
    /// # Errors
    /// Too many are open.
    pub(crate) fn open(&self, agent: AgentName, order: WorkloadLogOrder) -> Result<WorkloadLog, Refusal> {
        let (sender, parts) = mpsc::channel(PARTS);
        let id = RequestId::from_random_bytes(self.random.seed());
        let mut orders = self.shared.orders.lock();
        let of_agent = orders.values().filter(|relay| relay.agent == agent).count();
        if orders.len() >= ORDERS || of_agent >= ORDERS_OF_AGENT {
            let text =
                format!("the logs of too many workloads are read, at most {ORDERS_OF_AGENT} of one agent");
            return Err(Refusal::new(ErrorCode::TooManyRequests, text));
        }
        orders.insert(id, Relay { agent, order, parts: sender });
        drop(orders);
        self.shared.changed.send_replace(());
        Ok(WorkloadLog { id, logs: self.clone(), parts })
    }

    /// Returns the open orders to an agent.
    pub(crate) fn of(&self, agent: &AgentName) -> BTreeMap<RequestId, WorkloadLogOrder> {
        let orders = self.shared.orders.lock();
        let of_agent = orders.iter().filter(|(_, relay)| relay.agent == *agent);
        of_agent.map(|(id, relay)| (*id, relay.order.clone())).collect()
    }

    /// Returns the changes of all orders.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changed.subscribe()
    }

    /// Hands a part over, once the operator has room for it.
    ///
    /// # Errors
    /// The agent has no such order, or the operator takes nothing.
    pub(crate) async fn pass(
        &self,
        agent: &AgentName,
        id: RequestId,
        part: (WorkloadLogPart, Bytes),
    ) -> Result<(), Refusal> {
        let gone = || Refusal::not_found(format!("order {id} not found: nobody waits for it"));
        let parts = {
            let orders = self.shared.orders.lock();
            orders.get(&id).filter(|relay| relay.agent == *agent).map(|relay| relay.parts.clone())
        };
        let sent = timeout(TAKEN_WITHIN, parts.ok_or_else(gone)?.send(part)).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(gone()),
        }
    }
}

impl WorkloadLog {
    /// Waits for the head of the pod's answer, and returns the content that came with it.
    ///
    /// # Errors
    /// The agent does not answer, says why there is no answer, or the pod refuses.
    pub(crate) async fn begun(&mut self, agent: &AgentName) -> Result<Bytes, Refusal> {
        let mut answer = BytesMut::new();
        let head = loop {
            if let Some(end) = answer.windows(HEAD_END.len()).position(|window| window == HEAD_END) {
                break answer.split_to(end + HEAD_END.len());
            }
            if answer.len() > MAX_HEAD {
                return Err(Refusal::new(ErrorCode::Internal, "a pod's answer has no end of its head"));
            }
            match self.first(agent).await? {
                Some(bytes) => answer.extend_from_slice(&bytes),
                None => return Err(Refusal::new(ErrorCode::TryAgain, "the pod has ended")),
            }
        };
        if head.as_ref().split(|byte| *byte == b' ').nth(1) == Some(b"200".as_slice()) {
            return Ok(answer.freeze());
        }
        let status = head.as_ref().split(|byte| *byte == b'\r').next().unwrap_or_default();
        let status = String::from_utf8_lossy(status).into_owned();
        let message = self.reason(agent, answer).await.unwrap_or(status);
        let message = excerpt::of_message(&message);
        Err(Refusal::bad_request(format!("the container's Pebble refuses: {message}")))
    }

    /// Reads a pod's refusal, of which `content` is the beginning, to its end, and returns its reason; none if it has none
    /// that can be read.
    async fn reason(&mut self, agent: &AgentName, mut content: BytesMut) -> Option<String> {
        let rest = async {
            while content.len() <= MAX_REFUSAL {
                match self.first(agent).await {
                    Ok(Some(bytes)) => content.extend_from_slice(&bytes),
                    // What came until then may have the reason.
                    Ok(None) | Err(_) => break,
                }
            }
        };
        let _ = timeout(ANSWERED_WITHIN, rest).await;
        let refused: PodRefused = serde_json::from_slice(&content).ok()?;
        Some(refused.result.message)
    }

    async fn first(&mut self, agent: &AgentName) -> Result<Option<Bytes>, Refusal> {
        match timeout(ANSWERED_WITHIN, self.parts.recv()).await {
            Ok(Some((WorkloadLogPart::Data, bytes))) => Ok(Some(bytes)),
            Ok(Some((WorkloadLogPart::Failed, reason))) => {
                Err(Refusal::not_found(String::from_utf8_lossy(&reason).into_owned()))
            }
            Ok(Some((WorkloadLogPart::End, _)) | None) => Ok(None),
            Err(_) => {
                let text = format!("agent {agent} does not answer: its program may be an earlier one");
                Err(Refusal::new(ErrorCode::TryAgain, text))
            }
        }
    }

    /// Waits for the next bytes; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        match self.parts.recv().await {
            Some((WorkloadLogPart::Data, bytes)) => Some(bytes),
            Some((WorkloadLogPart::End | WorkloadLogPart::Failed, _)) | None => None,
        }
    }
}

impl Drop for WorkloadLog {
    fn drop(&mut self) {
        self.logs.shared.orders.lock().remove(&self.id);
        self.logs.shared.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{ModelUuid, workload_log::WorkloadLogQuery};
    use uuid::Uuid;

    use super::*;
    use crate::clock::SystemRandomSource;

    fn logs() -> WorkloadLogs {
        WorkloadLogs::new(Arc::new(SystemRandomSource))
    }

    fn order() -> WorkloadLogOrder {
        let (container, services) = ("web".parse().unwrap(), Vec::new());
        let query = WorkloadLogQuery { container, services, tail: None, follow: true };
        WorkloadLogOrder { model: ModelUuid(Uuid::nil()), unit: "app/0".parse().unwrap(), query }
    }

    fn agent(name: &str) -> AgentName {
        name.parse().unwrap()
    }

    fn data(text: &'static str) -> (WorkloadLogPart, Bytes) {
        (WorkloadLogPart::Data, Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn parts_reach_the_operator_who_ordered_them_until_either_side_ends() {
        let (logs, one, two) = (logs(), agent("a1"), agent("a2"));
        let mut log = logs.open(one.clone(), order()).unwrap();
        let id = log.id;
        assert_eq!(logs.of(&one), [(id, order())].into());
        assert!(logs.of(&two).is_empty());
        assert_eq!(logs.pass(&two, id, data("x")).await.unwrap_err().code, ErrorCode::NotFound);
        for text in ["HTTP/1.0 200 OK\r\nx: y\r\n\r", "\none", "two"] {
            logs.pass(&one, id, data(text)).await.unwrap();
        }
        logs.pass(&one, id, (WorkloadLogPart::End, Bytes::new())).await.unwrap();
        assert_eq!(log.begun(&one).await.unwrap(), "one");
        assert_eq!((log.next().await.unwrap(), log.next().await), (Bytes::from_static(b"two"), None));
        drop(log);
        assert_eq!(logs.pass(&one, id, data("x")).await.unwrap_err().code, ErrorCode::NotFound);
        assert!(logs.of(&one).is_empty());
    }

    #[tokio::test]
    async fn a_pod_that_does_not_answer_in_order_is_one_error() {
        let (logs, one) = (logs(), agent("a1"));
        let answered = async |parts: Vec<(WorkloadLogPart, Bytes)>| {
            let mut log = logs.open(one.clone(), order()).unwrap();
            for part in parts {
                logs.pass(&one, log.id, part).await.unwrap();
            }
            log.begun(&one).await.unwrap_err().to_string()
        };
        let failed = (WorkloadLogPart::Failed, Bytes::from_static(b"nobody listens"));
        assert!(answered(vec![failed]).await.contains("nobody listens"));
        let end = || (WorkloadLogPart::End, Bytes::new());
        let (head, body) =
            ("HTTP/1.0 400 Bad Request\r\n\r\n", "{\"result\":{\"message\":\"n must be a number\"}}");
        let (one, two) = body.split_at(20);
        for parts in [vec![head, body], vec![head, one, two]] {
            let parts = parts.into_iter().map(data).chain([end()]).collect();
            assert!(answered(parts).await.contains("n must be a number"));
        }
        assert!(answered(vec![data(head), data(one), end()]).await.ends_with("HTTP/1.0 400 Bad Request"));
        let flood = (WorkloadLogPart::Data, Bytes::from(vec![b'x'; MAX_REFUSAL + 1]));
        assert!(answered(vec![data(head), flood]).await.ends_with("HTTP/1.0 400 Bad Request"));
        let endless = (WorkloadLogPart::Data, Bytes::from(vec![b'x'; MAX_HEAD + 1]));
        assert!(answered(vec![endless]).await.contains("no end"));
        let cut = vec![data("HTTP/1.0 2"), end()];
        assert!(answered(cut).await.contains("has ended"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_does_not_answer_and_an_operator_that_takes_nothing_end_the_order() {
        let (logs, one) = (logs(), agent("a1"));
        let mut log = logs.open(one.clone(), order()).unwrap();
        assert_eq!(log.begun(&one).await.unwrap_err().code, ErrorCode::TryAgain);
        for _ in 0..PARTS {
            logs.pass(&one, log.id, data("x")).await.unwrap();
        }
        assert_eq!(logs.pass(&one, log.id, data("x")).await.unwrap_err().code, ErrorCode::NotFound);
    }

    #[tokio::test]
    async fn one_agent_has_few_orders() {
        let logs = logs();
        let held: Vec<_> = (0..ORDERS_OF_AGENT).map(|_| logs.open(agent("a1"), order()).unwrap()).collect();
        let refused = logs.open(agent("a1"), order()).map(|_| ()).unwrap_err();
        assert_eq!(refused.code, ErrorCode::TooManyRequests);
        drop(logs.open(agent("a2"), order()).unwrap());
        drop(held);
        drop(logs.open(agent("a1"), order()).unwrap());
    }
}
