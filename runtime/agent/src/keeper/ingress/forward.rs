//! One connection: from a client to a stream of the unit's pods.

use std::{net::IpAddr, sync::Arc};

use periapt_hook::WorkloadTarget;
use periapt_host_api::{connections::ConnectionOrigin, firewall::IngressRules, ports::Transport};
use tokio::{
    net::{TcpStream, UnixStream},
    sync::watch,
};

use super::UnitWay;
use crate::{
    keeper::relay::{ResetOnDrop, relay},
    metrics::{Share, metrics},
};

/// Forwards a connection to a port of the unit until either side ends it, its bounds are reached, or the unit's rules do
/// not admit the client any more. A client whose connection does not end in order is reset.
pub(super) async fn serve(way: &UnitWay, client: TcpStream, from: IpAddr, port: u16) {
    let mut client = ResetOnDrop::new(client);
    let mut open = Share::of(&metrics().open_connections);
    open.set(1);
    let mut rules = way.rules.clone();
    let barred = barred(&mut rules, from, port);
    tokio::pin!(barred);
    let workload = tokio::select! {
        () = &mut barred => return,
        workload = open_stream(way, port) => workload,
    };
    let mut workload = match workload {
        Ok(workload) => workload,
        Err(reason) => {
            metrics().connections.inc(&["unanswered"]);
            tracing::debug!(unit = %way.unit, port, reason, "a connection leads nowhere");
            return;
        }
    };
    metrics().connections.inc(&["forwarded"]);
    let received = |bytes| {
        metrics().connection_bytes.add(&["received"], bytes);
        for unit in [&way.traffic, &*way.total] {
            unit.received(bytes);
        }
    };
    let sent = |bytes| {
        metrics().connection_bytes.add(&["sent"], bytes);
        for unit in [&way.traffic, &*way.total] {
            unit.sent(bytes);
        }
    };
    let relayed = tokio::select! {
        () = &mut barred => None,
        relayed = relay(client.stream(), &mut workload, &received, &sent) => Some(relayed),
    };
    match relayed {
        Some(Ok(())) => client.ended_in_order(),
        Some(Err(error)) => tracing::debug!(unit = %way.unit, port, %error, "a connection was cut off"),
        None => tracing::debug!(unit = %way.unit, port, %from, "a connection is not admitted any more"),
    }
}

async fn open_stream(way: &UnitWay, port: u16) -> Result<UnixStream, String> {
    let _turn = way.opening.acquire().await.map_err(|error| error.to_string())?;
    let stream = way.streams.open(&way.unit, &WorkloadTarget::Port(port)).await?;
    UnixStream::from_std(stream).map_err(|error| error.to_string())
}

/// Waits until the unit's rules do not admit the client.
async fn barred(rules: &mut watch::Receiver<Arc<IngressRules>>, from: IpAddr, port: u16) {
    let admits =
        |rules: &Arc<IngressRules>| ConnectionOrigin::Host(from).admit(rules, Transport::Tcp, port).is_ok();
    // An error means that the unit is gone.
    let _ = rules.wait_for(|rules| !admits(rules)).await;
}
