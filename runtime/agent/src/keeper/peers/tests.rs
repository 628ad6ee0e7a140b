//! Sockets for other agents, and the ways to them.

use std::{
    io,
    net::TcpListener,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_host_api::{Digest, agent::AgentPlace};
use tokio::time::advance;
use uuid::Uuid;

use super::{listener::DEFAULT_PEER_PORT, *};
use crate::keeper::controller::ControllerError;

const MODEL: ModelUuid = ModelUuid(Uuid::nil());

#[test]
fn an_agent_listens_on_the_port_that_it_is_told_or_on_one_that_is_free() {
    let [one, other]: [IpAddr; 2] = ["127.0.3.1", "127.0.3.2"].map(|text| text.parse().unwrap());
    let listener = PeerListener::bind(&[one, other], Some(0)).unwrap().unwrap();
    let port = listener.port();
    let addresses: Vec<_> = listener.addresses().collect();
    assert_eq!(addresses, [SocketAddr::new(one, port), SocketAddr::new(other, port)]);
    let (address, error) = PeerListener::bind(&[one], Some(port)).unwrap_err();
    assert_eq!((address, error.kind()), (SocketAddr::new(one, port), io::ErrorKind::AddrInUse));
    // Two agents on one host.
    let usual = TcpListener::bind((other, DEFAULT_PEER_PORT));
    let second = PeerListener::bind(&[other], None).unwrap().unwrap();
    assert!(usual.is_err() || second.port() != DEFAULT_PEER_PORT);
    // An address that is none of this host.
    assert!(PeerListener::bind(&["192.0.2.1".parse().unwrap()], Some(0)).unwrap().is_none());
    assert!(PeerListener::bind(&[], None).unwrap().is_none());
}

/// A controller that counts questions, and answers with as many addresses.
#[derive(Default)]
struct Counting {
    asked: AtomicUsize,
    is_away: std::sync::atomic::AtomicBool,
}

impl AskWays for Counting {
    fn ask(&self, _: ModelUuid) -> BoxFuture<'_, Result<BTreeMap<AgentName, AgentPlace>, ControllerError>> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let is_away = self.is_away.load(Ordering::Relaxed);
        let place = AgentPlace { addresses: vec![asked.to_string()], port: None, key: Digest::of(b"key") };
        async move {
            match is_away {
                true => std::future::pending().await,
                false => Ok(BTreeMap::from([("other".parse().unwrap(), place)])),
            }
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn the_controller_is_asked_seldom_and_its_last_answer_counts_while_it_is_away() {
    let source = Arc::new(Counting::default());
    let ways = PeerWays::new(MODEL, Arc::clone(&source) as Arc<dyn AskWays>);
    let asked = || source.asked.load(Ordering::Relaxed);
    let first = ways.recent().await;
    assert!(Arc::ptr_eq(&first, &ways.recent().await) && asked() == 1);
    assert!(Arc::ptr_eq(&first, &ways.after(&first).await) && asked() == 1, "asked just now");
    advance(Duration::from_secs(2)).await;
    let second = ways.after(&first).await;
    assert!(!Arc::ptr_eq(&first, &second) && asked() == 2);
    advance(Duration::from_secs(2)).await;
    assert!(Arc::ptr_eq(&second, &ways.after(&first).await) && asked() == 2, "newer ones are known");
    advance(Duration::from_secs(61)).await;
    assert!(!Arc::ptr_eq(&second, &ways.recent().await) && asked() == 3);
    source.is_away.store(true, Ordering::Relaxed);
    advance(Duration::from_secs(61)).await;
    let kept = ways.recent().await;
    assert_eq!((kept.len(), asked()), (1, 4));
    ways.recent().await;
    assert_eq!(asked(), 4, "and not asked again at once");
}
