//! Calls of workloads on this host.

use std::{io, net::IpAddr, os::unix::net::UnixStream as Started, sync::Arc, time::Duration};

use periapt_host_api::{
    AgentName, UnitName,
    agent::{AgentPlace, PeerOrder, PeerTarget},
    pod::{DialOrder, OPENED, REFUSED},
};
use tokio::{io::AsyncWriteExt as _, net::UnixStream, time::timeout};

use super::{CallRefused, ConnectionEnd, Neighbours, OpenedCall, facts::NeighbourFacts};
use crate::{
    keeper::{peers::DialledStream, places::Place, pods::PodDial, relay::relay},
    metrics::metrics,
};

/// The time for all units that a call may mean.
const OPENS_WITHIN: Duration = Duration::from_secs(30);

/// The most units on other hosts that one call tries.
const MAX_TRIED: usize = 4;

/// The other side of a call.
enum OtherSide {
    /// On this host.
    Here(OpenedCall),
    /// On another host, with the unit if its name is known.
    There(Box<DialledStream>, AgentName, Option<UnitName>),
}

impl Neighbours {
    /// Answers a call, and serves its connection.
    pub(super) async fn call(self: Arc<Self>, dial: PodDial) {
        let unit = dial.unit.clone();
        if let Err(error) = self.connect(dial).await {
            tracing::debug!(%unit, %error, "a connection to another unit was cut off");
        }
    }

    async fn connect(&self, dial: PodDial) -> io::Result<()> {
        let PodDial { unit, order, stream } = dial;
        let stream = Started::from(stream);
        stream.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(stream)?;
        let late = |_| Err(CallRefused::Unanswered("nobody answers in time".to_owned()));
        let (mut other, _place) = match timeout(OPENS_WITHIN, self.open(&unit, &order))
            .await
            .unwrap_or_else(late)
        {
            Ok(opened) => opened,
            Err(refused) => {
                metrics().calls.inc(&[refused.outcome()]);
                tracing::debug!(%unit, host = order.host, port = order.port, %refused, "a call was refused");
                return stream.write_all(&[REFUSED]).await;
            }
        };
        metrics().calls.inc(&["connected"]);
        stream.write_all(&[OPENED]).await?;
        let caller = self.streams.traffic(&unit);
        // That of a unit on another host is counted there.
        let target = match &other {
            OtherSide::Here(call) => Some(self.streams.traffic(&call.target)),
            OtherSide::There(..) => None,
        };
        for unit in [Some(&caller), target.as_ref()].into_iter().flatten() {
            unit.connected();
        }
        let received = |bytes| {
            metrics().connection_bytes.add(&["received"], bytes);
            caller.sent(bytes);
            if let Some(target) = &target {
                target.received(bytes);
            }
        };
        let sent = |bytes| {
            metrics().connection_bytes.add(&["sent"], bytes);
            caller.received(bytes);
            if let Some(target) = &target {
                target.sent(bytes);
            }
        };
        let mut facts = self.facts.subscribe();
        let allowed = self.allowance(&unit, &other, order.port);
        let barred = facts.wait_for(|facts| !allowed(facts));
        let relayed = async {
            match &mut other {
                OtherSide::Here(call) => relay(&mut stream, &mut call.workload, &received, &sent).await,
                OtherSide::There(call, ..) => relay(&mut stream, &mut call.stream, &received, &sent).await,
            }
        };
        tokio::select! {
            relayed = relayed => relayed,
            _ = barred => Err(io::Error::other("the units may not reach each other any more")),
        }
    }

    /// Returns the condition under which an opened connection goes on. On another host, its agent judges as well.
    fn allowance(
        &self,
        unit: &UnitName,
        other: &OtherSide,
        port: u16,
    ) -> impl Fn(&NeighbourFacts) -> bool + Send + use<> {
        let (unit, own) = (unit.clone(), self.own_address());
        let (target, agent) = match other {
            OtherSide::Here(call) => (Some(call.target.clone()), None),
            OtherSide::There(_, agent, target) => (target.clone(), Some(agent.clone())),
        };
        move |facts| match (&target, &agent) {
            (Some(target), None) => Self::admit(facts, (&unit, own), target, port).is_ok(),
            (Some(target), Some(agent)) => facts.agent_of(target) == Some(agent),
            (None, _) => true,
        }
    }

    /// Opens a connection to the first unit that is meant, may be reached and answers. Units on this host come first.
    async fn open(
        &self,
        asking: &UnitName,
        DialOrder { host, port }: &DialOrder,
    ) -> Result<(OtherSide, Place<ConnectionEnd>), CallRefused> {
        let place = self.connections.take(ConnectionEnd::From(asking.clone())).ok_or(CallRefused::TooMany)?;
        let meaning = {
            let facts = self.facts.borrow();
            facts.meant((&self.agent.name, asking), host, *port, &self.agent.addresses, &self.streams)
        };
        let mut refused = CallRefused::Unknown;
        if !meaning.here.is_empty() {
            match self.open_here((asking, self.own_address()), meaning.here, *port).await {
                Ok(opened) => return Ok((OtherSide::Here(opened), place)),
                Err(refusal) => refused = refusal,
            }
        }
        let mut there: Vec<(AgentName, Option<UnitName>)> =
            meaning.there.into_iter().map(|(agent, unit)| (agent, Some(unit))).collect();
        // Each caller begins with another unit, so that not all call the first one.
        if !there.is_empty() {
            let first = usize::try_from(asking.number()).unwrap_or(0) % there.len();
            there.rotate_left(first);
        }
        if let Some(address) = meaning.address {
            there.extend(self.agents_at(address).await.into_iter().map(|agent| (agent, None)));
        }
        for (agent, unit) in there.into_iter().take(MAX_TRIED) {
            match self.open_there(asking, &agent, unit.as_ref(), *port).await {
                Ok(opened) => return Ok((OtherSide::There(Box::new(opened), agent, unit), place)),
                Err(refusal) => refused = refusal,
            }
        }
        Err(refused)
    }

    /// Returns the other agents whose host has an address.
    async fn agents_at(&self, address: IpAddr) -> Vec<AgentName> {
        if self.agent.peers.is_none() {
            return Vec::new();
        }
        let is_there = |place: &AgentPlace| {
            place
                .addresses
                .iter()
                .any(|text| text.parse().is_ok_and(|at: IpAddr| at.to_canonical() == address))
        };
        let mut ways = self.ways.recent().await;
        if !ways.values().any(is_there) {
            ways = self.ways.after(&ways).await;
        }
        ways.iter().filter(|(_, place)| is_there(place)).map(|(agent, _)| agent.clone()).collect()
    }

    /// Opens a connection to a unit on another agent's host, or to one that has the port open there.
    async fn open_there(
        &self,
        asking: &UnitName,
        agent: &AgentName,
        unit: Option<&UnitName>,
        port: u16,
    ) -> Result<DialledStream, CallRefused> {
        let Some(peers) = &self.agent.peers else { return Err(CallRefused::Unknown) };
        let to = unit.map_or(PeerTarget::Host, |unit| PeerTarget::Unit(unit.clone()));
        let order = PeerOrder { model: self.model, from: asking.clone(), to, port };
        let ways = self.ways.recent().await;
        let mut failed = CallRefused::Unknown;
        if let Some(place) = ways.get(agent) {
            match peers.dial(agent, place, &order).await {
                Ok(opened) => return Ok(opened),
                Err(error) if error.is_of_the_way() => failed = error.into(),
                Err(error) => return Err(error.into()),
            }
        }
        // It may have started anew, on another port or with another key.
        let newer = self.ways.after(&ways).await;
        match newer.get(agent).filter(|place| ways.get(agent) != Some(*place)) {
            Some(place) => Ok(peers.dial(agent, place, &order).await?),
            None => Err(failed),
        }
    }
}
