//! Connections to hosts outside, over real sockets in a network that the test plays.

use std::sync::atomic::Ordering;

use uuid::Uuid;

use super::{played::PlayedWay, *};

const MODEL: ModelUuid = ModelUuid(Uuid::nil());

fn options(reach: EgressReach) -> EgressOptions {
    EgressOptions { reach, denied: vec!["203.0.113.128/25".parse().unwrap()] }
}

async fn open(host: &EgressHost, grants: &str, to: &str) -> Result<OpenedEgress, EgressFailure> {
    let (host_name, port) = to.rsplit_once(':').unwrap();
    let order = DialOrder { host: host_name.to_owned(), port: port.parse().unwrap() };
    let (grants, unit) = (grants.parse().unwrap(), "app/0".parse().unwrap());
    let agents = [("10.0.0.9".parse().unwrap(), 17072)].into();
    host.open(EgressCall { model: MODEL, unit: &unit, grants: &grants, agents, order: &order }).await
}

async fn refusal(host: &EgressHost, grants: &str, to: &str) -> Option<EgressRefusal> {
    match open(host, grants, to).await {
        Err(EgressFailure::Refused(refusal)) => Some(refusal),
        Err(_) | Ok(_) => None,
    }
}

#[tokio::test]
async fn a_granted_name_leads_to_the_address_that_was_judged() {
    let way = PlayedWay::of(&["198.51.100.1"]);
    let server = way.server("203.0.113.7:443").await;
    way.name(
        "api.example.com",
        &["169.254.169.254", "198.51.100.1", "10.0.0.5", "203.0.113.200", "203.0.113.7"],
    );
    let host = way.host(options(EgressReach::Granted), &["198.51.100.2:17070"]);
    let mut opened = open(&host, "*.example.com:443", "API.example.com.:443").await.unwrap();
    let (_stream, from) = server.accept().await.unwrap();
    assert_eq!(opened.stream.stream().local_addr().unwrap(), from);
    // Each other answer for the name was judged, and refused.
    assert_eq!(*way.connected.lock(), ["203.0.113.7:443".parse::<SocketAddr>().unwrap()]);
    assert!(opened.granted.is_admitted(&"*.example.com".parse().unwrap()));
    assert!(!opened.granted.is_admitted(&"*.example.com:80,other.example".parse().unwrap()));
    // The answer is kept.
    open(&host, "api.example.com", "api.example.com:443").await.unwrap();
    assert_eq!(*way.asked.lock(), ["api.example.com"]);
}

#[tokio::test]
async fn a_model_that_has_all_its_connections_leaves_others_room() {
    let way = PlayedWay::of(&["198.51.100.1"]);
    let server = way.server("203.0.113.7:443").await;
    tokio::spawn(async move {
        let mut taken = Vec::new();
        while let Ok((stream, _)) = server.accept().await {
            taken.push(stream);
        }
    });
    let host = way.host(options(EgressReach::Public), &[]);
    let mut opened = Vec::new();
    for _ in 0..MAX_OF_ONE_MODEL {
        opened.push(open(&host, "203.0.113.7", "203.0.113.7:443").await.unwrap());
    }
    let refused = open(&host, "203.0.113.7", "203.0.113.7:443").await;
    assert!(matches!(refused, Err(EgressFailure::TooMany(_))));
    let order = DialOrder { host: "203.0.113.7".to_owned(), port: 443 };
    let (grants, unit) = ("203.0.113.7".parse().unwrap(), "app/0".parse().unwrap());
    let other = ModelUuid(Uuid::from_u128(2));
    let call =
        EgressCall { model: other, unit: &unit, grants: &grants, agents: BTreeSet::new(), order: &order };
    host.open(call).await.unwrap();
    opened.pop();
    open(&host, "203.0.113.7", "203.0.113.7:443").await.unwrap();
}

#[tokio::test]
async fn what_is_not_granted_is_not_looked_up_and_not_connected_to() {
    let way = PlayedWay::of(&["198.51.100.1"]);
    way.name("node.example.com", &["198.51.100.2"]);
    way.name("rebound.example.com", &["10.0.0.5"]);
    let host = way.host(options(EgressReach::Granted), &["node.example.com:17070", "198.51.100.3:17070"]);
    let all = "0.0.0.0/0,10.0.0.0/8,*.example.com";
    for (grants, to, expected) in [
        ("", "203.0.113.7:443", EgressRefusal::NotGranted),
        ("203.0.113.7", "secret.attacker.example:443", EgressRefusal::NotGranted),
        ("203.0.113.7:80", "203.0.113.7:443", EgressRefusal::NotGranted),
        (all, "203.0.113.200:443", EgressRefusal::Denied),
        (all, "198.51.100.1:22", EgressRefusal::OwnHost),
        (all, "198.51.100.2:17070", EgressRefusal::Controller),
        (all, "node.example.com:443", EgressRefusal::Controller),
        (all, "198.51.100.3:443", EgressRefusal::Controller),
        (all, "10.0.0.9:17072", EgressRefusal::Agent),
        ("0.0.0.0/0,*.example.com", "rebound.example.com:80", EgressRefusal::Private),
    ] {
        assert_eq!(refusal(&host, grants, to).await, Some(expected), "{to}");
    }
    for metadata in ["169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254", "127.0.0.1", "0.0.0.0"] {
        let refused = refusal(&host, "0.0.0.0/0,::/0", &format!("{metadata}:80")).await;
        assert!(matches!(refused, Some(EgressRefusal::Never(_))), "{metadata}: {refused:?}");
    }
    assert!(way.connected.lock().is_empty());
    assert!(!way.asked.lock().iter().any(|name| name.contains("attacker")));

    let forbids = way.host(options(EgressReach::Nothing), &[]);
    for to in ["203.0.113.7:80", "www.example.com:80"] {
        assert_eq!(refusal(&forbids, all, to).await, Some(EgressRefusal::NothingCounts), "{to}");
    }
    assert!(!forbids.has_name(&all.parse().unwrap(), "www.example.com"));
    assert!(host.has_name(&all.parse().unwrap(), "www.example.com"));
}

#[tokio::test]
async fn hosts_that_do_not_answer_are_no_connections_and_few_are_tried() {
    let way = PlayedWay::of(&[]);
    let many: Vec<String> = (1..40).map(|last| format!("203.0.113.{last}")).collect();
    way.name("many.example.com", &many.iter().map(String::as_str).collect::<Vec<_>>());
    let host = way.host(options(EgressReach::Public), &[]);
    for to in ["many.example.com:80", "none.example.com:80"] {
        let failed = open(&host, "*.example.com", to).await.err().unwrap();
        assert!(matches!(failed, EgressFailure::Unreachable(_)), "{to}: {failed}");
    }
    assert_eq!(way.connected.lock().len(), MAX_TRIED);
    let failed = open(&host, "*.example.com", "none.example.com:80").await.err().unwrap();
    assert_eq!(failed.to_string(), "there is no host of this name", "it is not looked up again at once");
    assert_eq!(way.asked.lock().len(), 2);
}

#[tokio::test]
async fn a_resolver_that_hangs_holds_up_lookups_of_its_unit_alone() {
    let way = PlayedWay::of(&[]);
    let _server = way.server("203.0.113.7:80").await;
    way.hangs.store(true, Ordering::Relaxed);
    let host = Arc::new(way.host(options(EgressReach::Public), &[]));
    let ask = |number: usize| {
        let host = Arc::clone(&host);
        async move { open(&host, "*.example.com", &format!("host-{number}.example.com:80")).await.map(drop) }
    };
    let waits: Vec<_> = (0..4).map(|number| tokio::spawn(ask(number))).collect();
    while way.asked.lock().len() < waits.len() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let fifth = ask(5).await.err().unwrap();
    assert!(matches!(fifth, EgressFailure::TooMany(_)), "{fifth}");
    // Addresses need no lookup.
    open(&host, "203.0.113.7", "203.0.113.7:80").await.unwrap();
    way.hangs.store(false, Ordering::Relaxed);
    for wait in waits {
        let failed = wait.await.unwrap().err().unwrap();
        assert!(matches!(failed, EgressFailure::Unreachable(_)), "{failed}");
    }
    // Lookups that nobody waits for any more end a moment later.
    let fifth = loop {
        match ask(5).await.err().unwrap() {
            EgressFailure::TooMany(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            other => break other,
        }
    };
    assert!(matches!(fifth, EgressFailure::Unreachable(_)), "{fifth}");
}
