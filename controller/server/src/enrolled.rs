//! The agents that have joined, as their connections follow them: a connection ends when its agent is removed or joins
//! again with another key.

use periapt_model::Enrolments;
use periapt_transport::AgentCertificate;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::published::Subscription;

/// The agents that have joined. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Enrolled(watch::Receiver<Enrolments>);

/// The work that keeps [`Enrolled`] up to date.
pub(crate) struct Follow {
    state: Subscription,
    sender: watch::Sender<Enrolments>,
}

impl Enrolled {
    /// Returns the agents of a state, and the work that follows it.
    pub(crate) fn of(mut state: Subscription) -> (Self, Follow) {
        let (sender, receiver) = watch::channel(state.seen().root.enrolments());
        (Self(receiver), Follow { state, sender })
    }

    /// Waits until the controller, which has known the agent of a certificate by its key, knows it by another key or not
    /// at all. Waits for ever for an agent that is not known: each of its requests is refused, with the reason.
    pub(crate) async fn revoked(mut self, certificate: &AgentCertificate) {
        let is_known = |known: &Enrolments| known.key_of(&certificate.agent) == Some(certificate.key);
        // An agent that has just joined may connect before this is up to date.
        let revoked = self.0.wait_for(is_known).await.is_ok()
            && self.0.wait_for(|known| !is_known(known)).await.is_ok();
        if !revoked {
            // The controller stops: no further state comes, and connections end once they are drained.
            std::future::pending::<()>().await;
        }
    }
}

impl Follow {
    /// Follows the state until the controller stops. Most commits change no agent, and wake no connection.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            let published = self.state.seen();
            self.sender.send_if_modified(|known| {
                let now = published.root.enrolments();
                let differs = !known.is_same(&now);
                if differs {
                    *known = now;
                }
                differs
            });
            tokio::select! {
                () = stop.cancelled() => return,
                alive = self.state.changed() => if !alive { return },
            }
        }
    }
}
