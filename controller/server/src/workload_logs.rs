//! The output of workloads, as an operator reads it from the unit's agent (decision 93).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use periapt_host_api::{
    AgentName, ErrorCode, Refusal, excerpt,
    workload_log::{WorkloadLogOrder, WorkloadLogPart},
};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    bounds::PatientStream,
    workload_orders::{OpenOrder, WorkloadOrders},
};

/// The time in which an agent answers an order.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

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

/// The operator's end of an order. Dropping it ends the order.
pub(crate) struct WorkloadLog {
    order: OpenOrder,
    /// True once the agent has taken the order.
    is_taken: bool,
    /// True once the pod has ended its answer.
    is_whole: bool,
}

impl WorkloadLog {
    /// Orders a log from an agent.
    ///
    /// # Errors
    /// Too many are open.
    pub(crate) fn open(
        orders: &WorkloadOrders,
        agent: AgentName,
        order: WorkloadLogOrder,
    ) -> Result<Self, Refusal> {
        let order = orders.open_log(agent, order)?;
        Ok(Self { order, is_taken: false, is_whole: false })
    }

    /// Waits for the head of the pod's answer, and returns the content that came with it.
    ///
    /// # Errors
    /// The agent does not answer, says why there is no answer, or the pod refuses.
    pub(crate) async fn begun(&mut self, agent: &AgentName) -> Result<Bytes, Refusal> {
        let (mut answer, until) = (BytesMut::new(), Instant::now() + ANSWERED_WITHIN);
        let head = loop {
            if let Some(end) = answer.windows(HEAD_END.len()).position(|window| window == HEAD_END) {
                break answer.split_to(end + HEAD_END.len());
            }
            if answer.len() > MAX_HEAD {
                return Err(Refusal::new(ErrorCode::Internal, "a pod's answer has no end of its head"));
            }
            match self.first(agent, until).await? {
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
        let until = Instant::now() + ANSWERED_WITHIN;
        while content.len() <= MAX_REFUSAL {
            match self.first(agent, until).await {
                Ok(Some(bytes)) => content.extend_from_slice(&bytes),
                // What came until then may have the reason.
                Ok(None) | Err(_) => break,
            }
        }
        let refused: PodRefused = serde_json::from_slice(&content).ok()?;
        Some(refused.result.message)
    }

    async fn first(&mut self, agent: &AgentName, until: Instant) -> Result<Option<Bytes>, Refusal> {
        match timeout_at(until, self.order.parts.recv()).await {
            Ok(Some((WorkloadLogPart::Begun | WorkloadLogPart::Data, bytes))) => {
                self.is_taken = true;
                Ok(Some(bytes))
            }
            Ok(Some((WorkloadLogPart::Failed, reason))) => {
                Err(Refusal::not_found(String::from_utf8_lossy(&reason).into_owned()))
            }
            Ok(Some((WorkloadLogPart::End, _)) | None) => Ok(None),
            Err(_) => {
                let text = match self.is_taken {
                    true => format!("the pod does not answer agent {agent}"),
                    false => format!("agent {agent} does not answer: its program may be an earlier one"),
                };
                Err(Refusal::new(ErrorCode::TryAgain, text))
            }
        }
    }

    /// Ends the order when its stream must end, also while its reader takes nothing: when the caller loses the right to it,
    /// when all streams end by `stop`, and once this controller does not know any more who may read (`lost`). The parts
    /// before are the reader's. Returns the life of the stream, and the task, which ends when it is dropped.
    pub(crate) fn watched(
        &self,
        orders: &WorkloadOrders,
        (stop, lost): (CancellationToken, BoxFuture<'static, ()>),
    ) -> (PatientStream, AbortOnDropHandle<()>) {
        let (stream, orders, id) = (PatientStream::default(), orders.clone(), self.order.id());
        let PatientStream { revoked, over } = stream.clone();
        let watch = async move {
            tokio::select! {
                () = revoked.cancelled() => {}
                () = stop.cancelled() => {}
                () = lost => {}
            }
            orders.end(id);
            over.cancel();
        };
        (stream, AbortOnDropHandle::new(tokio::spawn(watch)))
    }

    /// Waits for the next bytes; none at the end (`is_whole`). An operator may wait with the next call for as long as the stream lasts:
    /// the agent hands no more over meanwhile.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        match self.order.parts.recv().await {
            Some((WorkloadLogPart::Begun | WorkloadLogPart::Data, bytes)) => Some(bytes),
            Some((WorkloadLogPart::End, _)) => {
                self.is_whole = true;
                None
            }
            Some((WorkloadLogPart::Failed, _)) | None => None,
        }
    }

    /// Returns true once the pod has ended its answer: all bytes of it were handed over.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;
    use periapt_host_api::{
        ModelUuid,
        workload_log::{PartAnswer, WorkloadLogQuery},
    };
    use tokio::time::sleep;
    use uuid::Uuid;

    use super::*;
    use crate::clock::SystemRandomSource;

    /// The parts that wait for an operator.
    const PARTS: usize = 4;

    /// The pause of a reader.
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn orders() -> WorkloadOrders {
        WorkloadOrders::new(Arc::new(SystemRandomSource))
    }

    fn open(orders: &WorkloadOrders, agent: &AgentName) -> WorkloadLog {
        WorkloadLog::open(orders, agent.clone(), order()).unwrap()
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
        let (orders, one, two) = (orders(), agent("a1"), agent("a2"));
        let mut log = open(&orders, &one);
        let id = log.order.id();
        assert_eq!(orders.logs_of(&one), [(id, order())].into());
        assert!(orders.logs_of(&two).is_empty());
        assert_eq!(orders.pass(&two, id, data("x")).await.unwrap_err().code, ErrorCode::NotFound);
        for text in ["HTTP/1.0 200 OK\r\nx: y\r\n\r", "\none", "two"] {
            orders.pass(&one, id, data(text)).await.unwrap();
        }
        orders.pass(&one, id, (WorkloadLogPart::End, Bytes::new())).await.unwrap();
        assert_eq!(log.begun(&one).await.unwrap(), "one");
        assert_eq!((log.next().await.unwrap(), log.next().await), (Bytes::from_static(b"two"), None));
        assert!(log.is_whole());
        drop(log);
        assert_eq!(orders.pass(&one, id, data("x")).await.unwrap_err().code, ErrorCode::NotFound);
        assert!(orders.logs_of(&one).is_empty());
    }

    #[tokio::test]
    async fn a_log_ends_once_its_agent_is_started_again_and_begins_it_anew() {
        let (orders, one) = (orders(), agent("a1"));
        let mut log = open(&orders, &one);
        let (id, begun) = (log.order.id(), || (WorkloadLogPart::Begun, Bytes::new()));
        for part in [begun(), data("HTTP/1.0 200 OK\r\n\r\n"), data("one")] {
            orders.pass(&one, id, part).await.unwrap();
        }
        assert_eq!(log.begun(&one).await.unwrap(), "");
        assert_eq!(orders.pass(&one, id, begun()).await.unwrap_err().code, ErrorCode::AlreadyExists);
        assert!(orders.logs_of(&one).is_empty());
        assert_eq!((log.next().await.unwrap(), log.next().await), (Bytes::from_static(b"one"), None));
        assert!(!log.is_whole());
    }

    #[tokio::test]
    async fn an_agent_that_is_started_again_before_the_pod_answers_is_the_error() {
        // The program of before takes an order by its first bytes.
        for first in [(WorkloadLogPart::Begun, Bytes::new()), data("HTTP/1.0 2")] {
            let (orders, one) = (orders(), agent("a1"));
            let mut log = open(&orders, &one);
            orders.pass(&one, log.order.id(), first).await.unwrap();
            let again = orders.pass(&one, log.order.id(), (WorkloadLogPart::Begun, Bytes::new())).await;
            assert_eq!(again.unwrap_err().code, ErrorCode::AlreadyExists);
            assert!(log.begun(&one).await.unwrap_err().to_string().contains("started again"));
        }
    }

    #[tokio::test]
    async fn a_pod_that_does_not_answer_in_order_is_one_error() {
        let (orders, one) = (orders(), agent("a1"));
        let answered = async |parts: Vec<(WorkloadLogPart, Bytes)>| {
            let mut log = open(&orders, &one);
            for part in parts {
                orders.pass(&one, log.order.id(), part).await.unwrap();
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
    async fn an_agent_that_does_not_answer_is_one_error() {
        let (orders, one) = (orders(), agent("a1"));
        let silent = open(&orders, &one).begun(&one).await.unwrap_err();
        assert!(silent.code == ErrorCode::TryAgain && silent.to_string().contains("does not answer"));
        let mut log = open(&orders, &one);
        orders.pass(&one, log.order.id(), (WorkloadLogPart::Begun, Bytes::new())).await.unwrap();
        assert!(log.begun(&one).await.unwrap_err().to_string().contains("the pod does not answer"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_of_a_log_that_pauses_gets_every_part_later() {
        const LINES: usize = 100;
        let (orders, one) = (orders(), agent("a1"));
        let mut log = open(&orders, &one);
        let (of_agent, id) = (orders.clone(), log.order.id());
        let (count, counted) = tokio::sync::watch::channel(0_usize);
        let hands = tokio::spawn(async move {
            let lines = (0..LINES).map(|line| (WorkloadLogPart::Data, Bytes::from(line.to_string())));
            for part in lines.chain([(WorkloadLogPart::End, Bytes::new())]) {
                while of_agent.pass(&agent("a1"), id, part.clone()).await.unwrap() == PartAnswer::NoRoom {}
                count.send_modify(|count| *count += 1);
            }
        });
        for line in 0..LINES {
            if line % 50 == 0 {
                sleep(DAY).await;
                assert_eq!(*counted.borrow(), line + PARTS, "no more is taken than there is room for");
                assert_eq!(orders.logs_of(&one).len(), 1, "it holds its place");
            }
            assert_eq!(log.next().await.unwrap(), line.to_string());
        }
        assert_eq!(log.next().await, None);
        hands.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_keeps_no_order_that_must_end() {
        type Ends = fn(&PatientStream, &CancellationToken, &CancellationToken);
        let ends: [Ends; 3] =
            [|stream, _, _| stream.revoked.cancel(), |_, stop, _| stop.cancel(), |_, _, lost| lost.cancel()];
        for end in ends {
            let (orders, one) = (orders(), agent("a1"));
            let mut log = open(&orders, &one);
            let (stop, lost) = (CancellationToken::new(), CancellationToken::new());
            let is_lost = lost.clone().cancelled_owned().boxed();
            let (stream, _watch) = log.watched(&orders, (stop.clone(), is_lost));
            for _ in 0..PARTS {
                orders.pass(&one, log.order.id(), data("x")).await.unwrap();
            }
            sleep(DAY).await;
            assert!(!stream.over.is_cancelled() && orders.logs_of(&one).len() == 1);
            end(&stream, &stop, &lost);
            stream.over.cancelled().await;
            assert!(orders.logs_of(&one).is_empty());
            let refused = orders.pass(&one, log.order.id(), data("x")).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::NotFound);
            // The parts before are the reader's.
            for _ in 0..PARTS {
                assert_eq!(log.next().await.unwrap(), "x");
            }
            assert_eq!(log.next().await, None);
        }
    }
}
