//! Calls of units on other hosts.

use std::{io, sync::Arc};

use periapt_host_api::{
    UnitName,
    agent::{PeerOrder, PeerTarget},
    pod::{OPENED, REFUSED},
};
use periapt_transport::AgentCertificate;
use tokio::io::AsyncWriteExt as _;

use super::{CallRefused, Neighbours, OpenedCall, facts::NeighbourFacts};
use crate::{
    keeper::{peers::PeerCall, relay::relay},
    metrics::metrics,
};

impl Neighbours {
    /// Answers a call of another agent, and serves its connection.
    pub(super) async fn answer(self: Arc<Self>, call: PeerCall) {
        let (agent, unit) = (call.agent.agent.clone(), call.order.from.clone());
        if let Err(error) = self.serve(call).await {
            tracing::debug!(%agent, %unit, %error, "a connection of a unit on another host was cut off");
        }
    }

    async fn serve(&self, mut call: PeerCall) -> io::Result<()> {
        let mut opened = match self.open_for(&call).await {
            Ok(opened) => opened,
            Err(refused) => {
                metrics().calls.inc(&[refused.outcome()]);
                let (agent, unit) = (&call.agent.agent, &call.order.from);
                tracing::debug!(%agent, %unit, port = call.order.port, %refused, "a call of another host was refused");
                call.stream.write_all(&[REFUSED]).await?;
                return call.stream.shutdown().await;
            }
        };
        metrics().calls.inc(&["connected"]);
        call.stream.write_all(&[OPENED]).await?;
        call.stream.flush().await?;
        let unit = self.streams.traffic(&opened.target);
        unit.connected();
        let received = |bytes| {
            metrics().connection_bytes.add(&["received"], bytes);
            unit.received(bytes);
        };
        let sent = |bytes| {
            metrics().connection_bytes.add(&["sent"], bytes);
            unit.sent(bytes);
        };
        let mut facts = self.facts.subscribe();
        let (from, agent, order, target) =
            (call.from, call.agent.clone(), call.order.clone(), opened.target.clone());
        let barred = facts.wait_for(|facts| {
            !runs(facts, &agent, &order.from)
                || Self::admit(facts, (&order.from, from), &target, order.port).is_err()
        });
        tokio::select! {
            relayed = relay(&mut call.stream, &mut opened.workload, &received, &sent) => relayed,
            _ = barred => Err(io::Error::other("the units may not reach each other any more")),
        }
    }

    /// Opens a connection for a call, if the agent runs the unit that it speaks for and the policy admits it.
    async fn open_for(&self, call: &PeerCall) -> Result<OpenedCall, CallRefused> {
        let PeerCall { agent, from, order: PeerOrder { from: asking, to, port, .. }, .. } = call;
        if !runs(&self.facts.borrow(), agent, asking) || !self.has_key(agent).await {
            return Err(CallRefused::NotItsUnit(agent.agent.clone()));
        }
        let targets = match to {
            PeerTarget::Unit(unit) => vec![unit.clone()],
            PeerTarget::Host => self.facts.borrow().with_port(asking, *port),
        };
        self.open_here((asking, *from), targets, *port).await
    }

    /// Returns true if the controller knows the agent by this key. Another agent may have joined under its name.
    async fn has_key(&self, agent: &AgentCertificate) -> bool {
        let mut ways = self.ways.recent().await;
        if ways.get(&agent.agent).is_none_or(|place| place.key != agent.key) {
            ways = self.ways.after(&ways).await;
        }
        ways.get(&agent.agent).is_some_and(|place| place.key == agent.key)
    }
}

/// Returns true if an agent runs a unit.
fn runs(facts: &NeighbourFacts, agent: &AgentCertificate, unit: &UnitName) -> bool {
    facts.agent_of(unit) == Some(&agent.agent)
}
