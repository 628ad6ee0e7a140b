//! Calls to hosts outside, over real sockets in a network that the test plays.

use periapt_host_api::pod::NAME_ASKED;

use super::*;
use crate::{
    keeper::{egress::played::PlayedWay, tests::fake::led_by},
    options::EgressOptions,
};

/// Returns the model with the destinations that it grants.
fn granting(destinations: &str) -> ViewEntity {
    let ViewEntity::Model(mut view) = model() else { panic!("a model") };
    view.config.workload_egress = destinations.parse().unwrap();
    ViewEntity::Model(view)
}

/// Returns an application with destinations of its own, or with those of its model.
fn application(name: &str, destinations: Option<&str>) -> ViewEntity {
    let ViewEntity::Application(mut view) = led_by(name, &format!("{name}/0")) else {
        panic!("an application")
    };
    view.workload_egress = destinations.map(|destinations| destinations.parse().unwrap());
    ViewEntity::Application(view)
}

fn stage(way: &Arc<PlayedWay>, puts: Vec<ViewEntity>) -> Stage {
    let agent = CallingAgent {
        name: "host".parse().unwrap(),
        addresses: vec![HOST.parse().unwrap()],
        peers: None,
        egress: Some(Arc::new(way.host(EgressOptions::default(), &[]))),
    };
    Stage::of(agent, "db/0", Arc::default(), puts)
}

#[tokio::test]
async fn a_workload_reaches_a_host_outside_for_as_long_as_that_is_granted() {
    let way = PlayedWay::of(&[HOST]);
    let server = way.server("203.0.113.7:443").await;
    way.name("api.example.com", &["203.0.113.7"]);
    let stage = stage(&way, vec![machine("5432/tcp", &[])]);
    for host in ["203.0.113.7", "api.example.com", "169.254.169.254"] {
        assert!(!stage.reaches("app/0", host, 443).await, "{host} by default");
    }
    stage.neighbours.observe(&frame(Some(1), 2, vec![granting("*.example.com:443,203.0.113.7")]));
    for host in ["203.0.113.7", "api.example.com", "API.example.com."] {
        assert!(stage.reaches("app/0", host, 443).await, "{host}");
        timeout(SOON, server.accept()).await.unwrap().unwrap();
    }
    for (host, port) in [
        ("169.254.169.254", 80),
        ("203.0.113.8", 443),
        ("api.example.com", 80),
        (HOST, 443),
        ("198.18.1.0", 443),
    ] {
        assert!(!stage.reaches("app/0", host, port).await, "{host}:{port}");
    }

    let (word, mut workload) = stage.call("app/0", "api.example.com", 443).await;
    assert_eq!(word, OPENED);
    let (mut outside, _) = timeout(SOON, server.accept()).await.unwrap().unwrap();
    workload.write_all(b"hello").await.unwrap();
    let mut read = [0; 5];
    timeout(SOON, outside.read_exact(&mut read)).await.unwrap().unwrap();
    outside.write_all(&read).await.unwrap();
    timeout(SOON, workload.read_exact(&mut read)).await.unwrap().unwrap();
    assert_eq!(&read, b"hello");
    // Another grant that has the name as well changes nothing.
    stage.neighbours.observe(&frame(Some(2), 3, vec![granting("api.example.com:443")]));
    workload.write_all(b"again").await.unwrap();
    timeout(SOON, outside.read_exact(&mut read)).await.unwrap().unwrap();
    // An application's own destinations hold in place of the model's.
    stage.neighbours.observe(&frame(Some(3), 4, vec![application("app", Some(""))]));
    assert_eq!(timeout(SOON, workload.read(&mut read)).await.unwrap().unwrap_or(0), 0);
    assert_eq!(timeout(SOON, outside.read(&mut read)).await.unwrap().unwrap_or(0), 0);
    assert!(!stage.reaches("app/0", "api.example.com", 443).await);
    assert!(stage.reaches("db/0", "api.example.com", 443).await);
    stage.neighbours.observe(&frame(Some(4), 5, vec![application("app", None)]));
    assert!(stage.reaches("app/0", "api.example.com", 443).await);
}

#[tokio::test]
async fn names_of_units_stay_names_of_units_and_nothing_is_asked_for_them() {
    let way = PlayedWay::of(&[]);
    let granted = granting("0.0.0.0/0,::/0,*.svc.cluster.local,*.example.com");
    let stage = stage(&way, vec![granted, machine("5432/tcp", &[]), relation(1, ["app", "db"])]);
    for host in ["db-0", "db", "db-0.db-endpoints.lab.svc.cluster.local"] {
        assert!(stage.reaches("app/0", host, 5432).await, "{host}");
        assert!(!stage.reaches("other/0", host, 5432).await, "{host} without a relation");
    }
    assert!(way.asked.lock().is_empty() && way.connected.lock().is_empty());
}

#[tokio::test]
async fn a_gate_is_told_of_the_names_that_are_granted_and_nothing_is_connected() {
    let way = PlayedWay::of(&[]);
    let stage = stage(&way, vec![granting("api.example.com:443")]);
    assert!(stage.reaches("app/0", "api.example.com", NAME_ASKED).await);
    for host in ["www.example.com", "203.0.113.7", ""] {
        assert!(!stage.reaches("app/0", host, NAME_ASKED).await, "{host}");
    }
    assert!(way.asked.lock().is_empty() && way.connected.lock().is_empty());
}

#[tokio::test]
async fn connections_to_hosts_outside_are_bounded_as_those_to_units() {
    let way = PlayedWay::of(&[]);
    let server = way.server("203.0.113.7:443").await;
    let stage = stage(&way, vec![granting("203.0.113.7")]);
    let mut held = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let (word, client) = stage.call("app/0", "203.0.113.7", 443).await;
        assert_eq!(word, OPENED);
        held.push((client, timeout(SOON, server.accept()).await.unwrap().unwrap()));
    }
    assert!(!stage.reaches("app/0", "203.0.113.7", 443).await);
    held.clear();
    let all_free = async {
        while !stage.neighbours.connections.are_free() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, all_free).await.unwrap();
}
