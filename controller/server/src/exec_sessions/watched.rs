//! The watch over a session whose command runs. It does not depend on the operator's reader: one that takes nothing keeps
//! neither a session nor its input open that must end.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use periapt_host_api::{AgentName, RequestId};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, interval_at},
};
use tokio_util::sync::CancellationToken;

use crate::{bounds::PatientStream, presence::Presence, workload_orders::WorkloadOrders};

/// The time after which a session ends in which neither side has said anything: as in Kubernetes. It also bounds the pause
/// of an operator who takes and types nothing.
pub(super) const IDLE: Duration = Duration::from_secs(4 * 60 * 60);

/// The time after which an agent has lost a session of which it says nothing: it asks for input, offers output, or tells
/// that the command lives, every ten seconds.
const LOST: Duration = Duration::from_secs(60);

/// The pause between looks whether the agent is still there.
const LOOKS: Duration = Duration::from_secs(5);

/// The end of a session, as the audit log and the operator are told it. Cloning is cheap.
#[derive(Clone)]
pub(super) struct SessionEnd(Arc<Mutex<Ending>>);

struct Ending {
    /// Takes the end in words, once.
    teller: Option<oneshot::Sender<String>>,
    /// The reason for the operator, until it is told.
    reason: Option<String>,
}

impl SessionEnd {
    /// Creates an end that is yet to come. `teller` takes it in words.
    pub(super) fn new(teller: oneshot::Sender<String>) -> Self {
        Self(Arc::new(Mutex::new(Ending { teller: Some(teller), reason: None })))
    }

    /// Tells the audit log the end, unless it was told one.
    pub(super) fn note(&self, end: &str) {
        let teller = self.0.lock().teller.take();
        if let Some(teller) = teller {
            // The entry is written without an end if the controller stops.
            let _ = teller.send(end.to_owned());
        }
    }

    /// Ends the session for a reason, or without one if nobody is to be told.
    fn set(&self, reason: Option<String>) {
        match reason {
            Some(reason) => {
                self.note(&reason);
                self.0.lock().reason = Some(reason);
            }
            None => self.0.lock().teller = None,
        }
    }

    /// Takes the reason that the operator is not told yet.
    pub(super) fn take_reason(&self) -> Option<String> {
        self.0.lock().reason.take()
    }
}

/// The watch over one session.
pub(super) struct SessionWatch {
    pub(super) id: RequestId,
    pub(super) orders: WorkloadOrders,
    pub(super) agent: AgentName,
    pub(super) presence: Presence,
    /// The token that ends all streams.
    pub(super) stop: CancellationToken,
    /// Ready once this controller does not know any more who may speak.
    pub(super) lost: BoxFuture<'static, ()>,
    /// Told when either side says something.
    pub(super) spoken: Arc<Notify>,
    /// Cancelled once the operator has left.
    pub(super) left: CancellationToken,
    /// The life of the answer.
    pub(super) stream: PatientStream,
    pub(super) end: SessionEnd,
}

impl SessionWatch {
    /// Ends the session when it must end. Its agent finds the order gone then, and the parts before are the operator's.
    pub(super) async fn run(mut self) {
        let reason = self.reason().await;
        self.end.set(reason);
        self.orders.end(self.id);
        self.stream.over.cancel();
    }

    /// Waits for the end, and returns its reason; none if no operator is to be told.
    async fn reason(&mut self) -> Option<String> {
        let mut spoken = Instant::now();
        let mut looks = interval_at(spoken + LOOKS, LOOKS);
        loop {
            tokio::select! {
                () = self.spoken.notified() => spoken = Instant::now(),
                () = self.left.cancelled() => return None,
                () = self.stream.revoked.cancelled() => return None,
                () = &mut self.lost => return None,
                () = self.stop.cancelled() => {
                    return Some("the controller stops, and the command is killed".to_owned());
                }
                _ = looks.tick() => {
                    if let Some(reason) = self.look(spoken) {
                        return Some(reason);
                    }
                }
            }
        }
    }

    /// Returns the reason to end a session in which something was said last at this time.
    fn look(&self, spoken: Instant) -> Option<String> {
        // An agent that has handed over the end has done its part.
        if let Some(silence) = self.orders.silence(self.id) {
            let agent = &self.agent;
            if !self.presence.is_here(agent) {
                return Some(format!("agent {agent} is not connected any more"));
            }
            if silence >= LOST {
                return Some(format!("agent {agent} does not serve the session any more"));
            }
        }
        let hours = IDLE.as_secs() / 3_600;
        (spoken.elapsed() >= IDLE).then(|| format!("nothing was said for {hours} hours"))
    }
}
