//! Calls of workloads on this host.

use std::{
    collections::BTreeSet, io, net::IpAddr, os::unix::net::UnixStream as Started, sync::Arc, time::Duration,
};

use periapt_host_api::{
    AgentName, UnitName,
    agent::{AgentPlace, PeerOrder, PeerTarget},
    pod::{DialOrder, NAME_ASKED, OPENED, REFUSED},
};
use tokio::{io::AsyncWriteExt as _, net::UnixStream, time::timeout};

use super::{
    CallRefused, ConnectionEnd, Neighbours, OpenedCall,
    facts::{MAX_TRIED_THERE, NeighbourFacts},
};
use crate::{
    keeper::{
        egress::{EgressCall, OpenedEgress},
        peers::DialledStream,
        places::Place,
        pods::PodDial,
        relay::relay,
    },
    metrics::metrics,
};

/// The time for all units that a call may mean.
const OPENS_WITHIN: Duration = Duration::from_secs(30);

/// The other side of a call.
enum OtherSide {
    /// On this host.
    Here(OpenedCall),
    /// On another host, with the unit if its name is known.
    There(Box<DialledStream>, AgentName, Option<UnitName>),
    /// On no host of the model.
    Outside(Box<OpenedEgress>),
}

impl Neighbours {
    /// Answers a call, and serves its connection.
    pub(super) async fn call(self: Arc<Self>, dial: PodDial) {
        let unit = dial.unit.clone();
        if let Err(error) = self.connect(dial).await {
            tracing::debug!(%unit, %error, "a connection of a workload was cut off");
        }
    }

    async fn connect(&self, dial: PodDial) -> io::Result<()> {
        let PodDial { unit, order, stream } = dial;
        let stream = Started::from(stream);
        stream.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(stream)?;
        if order.port == NAME_ASKED {
            let word = if self.knows_outside(&unit, &order.host) { OPENED } else { REFUSED };
            return stream.write_all(&[word]).await;
        }
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
            OtherSide::There(..) | OtherSide::Outside(_) => None,
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
                OtherSide::Outside(call) => relay(&mut stream, call.stream.stream(), &received, &sent).await,
            }
        };
        let ended = tokio::select! {
            relayed = relayed => relayed,
            _ = barred => Err(io::Error::other("the unit may not reach the other side any more")),
        };
        if let (Ok(()), OtherSide::Outside(call)) = (&ended, &mut other) {
            call.stream.ended_in_order();
        }
        ended
    }

    /// Returns true if the workloads of a unit may ask for a host outside by a name.
    fn knows_outside(&self, unit: &UnitName, name: &str) -> bool {
        let facts = self.facts.borrow();
        let grants = facts.egress(unit.application());
        self.agent.egress.as_ref().is_some_and(|egress| egress.has_name(grants, name))
    }

    /// Returns the condition under which an opened connection goes on. On another host, its agent judges as well.
    fn allowance(
        &self,
        unit: &UnitName,
        other: &OtherSide,
        port: u16,
    ) -> impl Fn(&NeighbourFacts) -> bool + Send + use<> {
        let (unit, own) = (unit.clone(), self.own_address());
        let (target, agent, granted) = match other {
            OtherSide::Here(call) => (Some(call.target.clone()), None, None),
            OtherSide::There(_, agent, target) => (target.clone(), Some(agent.clone()), None),
            OtherSide::Outside(call) => (None, None, Some(call.granted.clone())),
        };
        move |facts| match (&target, &agent, &granted) {
            (Some(target), None, _) => Self::admit(facts, (&unit, own), target, port).is_ok(),
            (Some(target), Some(agent), _) => facts.agent_of(target) == Some(agent),
            (None, _, Some(granted)) => granted.is_admitted(facts.egress(unit.application())),
            (None, _, None) => true,
        }
    }

    /// Opens a connection to the first unit that is meant, may be reached and answers. Units on this host come first. A call
    /// that means no unit goes outside, if that is granted.
    async fn open(
        &self,
        asking: &UnitName,
        order: &DialOrder,
    ) -> Result<(OtherSide, Place<ConnectionEnd>), CallRefused> {
        let DialOrder { host, port } = order;
        let place = self.connections.take(ConnectionEnd::From(asking.clone())).ok_or(CallRefused::TooMany)?;
        let meaning = {
            let facts = self.facts.borrow();
            facts.meant(asking, host, *port, &self.agent.addresses, &self.streams)
        };
        let mut refused = CallRefused::Unknown;
        let means_here = !meaning.here.is_empty();
        if means_here {
            match self.open_here((asking, self.own_address()), meaning.here, *port).await {
                Ok(opened) => return Ok((OtherSide::Here(opened), place)),
                Err(refusal) => refused = refusal,
            }
        }
        let mut there: Vec<(AgentName, Option<UnitName>)> =
            meaning.there.into_iter().map(|(agent, unit)| (agent, Some(unit))).collect();
        if let Some(address) = meaning.address {
            there.extend(self.agents_at(address).await.into_iter().map(|agent| (agent, None)));
        }
        if !means_here && there.is_empty() {
            let opened = self.open_outside(asking, order).await?;
            return Ok((OtherSide::Outside(Box::new(opened)), place));
        }
        for (agent, unit) in there.into_iter().take(MAX_TRIED_THERE) {
            match self.open_there(asking, &agent, unit.as_ref(), *port).await {
                Ok(opened) => return Ok((OtherSide::There(Box::new(opened), agent, unit), place)),
                Err(refusal) => refused = refusal,
            }
        }
        Err(refused)
    }

    /// Opens a connection to a host outside, if that is granted.
    async fn open_outside(&self, asking: &UnitName, order: &DialOrder) -> Result<OpenedEgress, CallRefused> {
        let grants = self.facts.borrow().egress(asking.application()).clone();
        let Some(egress) = self.agent.egress.as_ref().filter(|_| !grants.is_empty()) else {
            return Err(CallRefused::Unknown);
        };
        let agents = self.agents_elsewhere().await;
        let call = EgressCall { model: self.model, unit: asking, grants: &grants, agents, order };
        Ok(egress.open(call).await?)
    }

    /// Returns the addresses on which other agents take connections of agents, as far as they are known.
    async fn agents_elsewhere(&self) -> BTreeSet<(IpAddr, u16)> {
        if self.agent.peers.is_none() {
            return BTreeSet::new();
        }
        let ways = self.ways.recent().await;
        let mut known = BTreeSet::new();
        for AgentPlace { addresses, port, .. } in ways.values() {
            let addresses = addresses.iter().filter_map(|text| text.parse::<IpAddr>().ok());
            known.extend(port.iter().flat_map(|port| addresses.clone().map(|at| (at.to_canonical(), *port))));
        }
        known
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
