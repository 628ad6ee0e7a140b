//! Calls between units, with a target whose pod the test plays.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::net::UnixStream as Started,
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use periapt_host_api::{
    MachineId, RelationId,
    agent::AgentPlace,
    firewall::IngressRules,
    pod::{DialOrder, OPENED, PodStream},
    ports::OpenedPorts,
    relation::{Endpoint, Role, Scope},
    settings::ModelConfig,
    status::Life,
    view::{MachineView, ModelView, RelationView, ViewEntity, ViewKey},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};
use uuid::Uuid;

use super::*;
use crate::keeper::{controller::ControllerError, peers::AskWays, tests::fake::frame};

mod hosts;
mod outside;

/// The time for what happens at once on a machine that is not busy.
const SOON: Duration = Duration::from_secs(30);

/// The address of the host.
const HOST: &str = "10.0.0.1";

const MODEL: ModelUuid = ModelUuid(Uuid::nil());

/// The ways that the test tells.
#[derive(Default)]
struct ToldWays(Mutex<BTreeMap<AgentName, AgentPlace>>);

impl AskWays for ToldWays {
    fn ask(&self, _: ModelUuid) -> BoxFuture<'_, Result<BTreeMap<AgentName, AgentPlace>, ControllerError>> {
        async { Ok(self.0.lock().clone()) }.boxed()
    }
}

pub(super) fn model() -> ViewEntity {
    ViewEntity::Model(ModelView {
        uuid: MODEL,
        name: "lab".parse().unwrap(),
        life: Life::Alive,
        config: ModelConfig::default(),
        workload_limits: Default::default(),
        spaces: Default::default(),
    })
}

pub(super) fn relation(id: u32, ends: [&str; 2]) -> ViewEntity {
    let end = |application: &str| Endpoint {
        application: application.parse().unwrap(),
        name: "end".parse().unwrap(),
        interface: "sql".parse().unwrap(),
        role: Role::Provider,
    };
    ViewEntity::Relation(RelationView {
        id: RelationId(id),
        endpoints: ends.map(end).to_vec(),
        scope: Scope::Global,
        life: Life::Alive,
        suspended: false,
        state: Default::default(),
        state_since: Default::default(),
        members: Default::default(),
        remote: None,
        egress: Vec::new(),
    })
}

/// Returns the machine of `db/0`, which has a port open, to these subnets.
fn machine(port: &str, from: &[&str]) -> ViewEntity {
    machine_of(0, port, from)
}

/// Returns the machine of the unit of `db` with a number, which has a port open, to these subnets.
fn machine_of(number: u32, port: &str, from: &[&str]) -> ViewEntity {
    let unit = UnitName::new("db".parse().unwrap(), number);
    let opened = OpenedPorts { range: port.parse().unwrap(), endpoints: BTreeSet::new() };
    let subnets: BTreeSet<_> = from.iter().map(|subnet| subnet.parse().unwrap()).collect();
    let rules = IngressRules::from([(port.parse().unwrap(), subnets)]);
    ViewEntity::Machine(MachineView {
        id: MachineId(number),
        agent: "host".parse().unwrap(),
        boot_id: String::new(),
        addresses: Vec::new(),
        interfaces: Vec::new(),
        addresses_hash: String::new(),
        availability_zone: String::new(),
        ports: [(unit.clone(), vec![opened])].into(),
        ingress: IngressRules::new(),
        unit_ingress: if from.is_empty() { BTreeMap::new() } else { [(unit, rules)].into() },
    })
}

/// A model in which a unit serves port 5432, and the streams that its pod is given.
struct Stage {
    neighbours: Arc<Neighbours>,
    dials: mpsc::Sender<PodDial>,
    streams: mpsc::UnboundedReceiver<UnixStream>,
}

/// Returns an agent without connections to others.
fn lone_agent() -> CallingAgent {
    CallingAgent {
        name: "host".parse().unwrap(),
        addresses: vec![HOST.parse().unwrap()],
        peers: None,
        egress: None,
    }
}

/// Returns the way to a unit whose workload tells each caller the unit's name.
fn telling(unit: &str) -> PodStreams {
    let name = unit.to_owned();
    PodStreams::played(&unit.parse().unwrap(), move |target| {
        if target != PodStream::Port(5432) {
            return Err("nobody listens".to_owned());
        }
        let (ours, mut theirs) = Started::pair().unwrap();
        std::io::Write::write_all(&mut theirs, name.as_bytes()).unwrap();
        ours.set_nonblocking(true).unwrap();
        Ok(ours)
    })
}

impl Stage {
    fn with(puts: Vec<ViewEntity>) -> Self {
        Self::of(lone_agent(), "db/0", Arc::default(), puts)
    }

    /// Returns the stage of an agent that runs one unit.
    fn of(agent: CallingAgent, runs: &str, ways: Arc<ToldWays>, puts: Vec<ViewEntity>) -> Self {
        let (opened, streams) = mpsc::unbounded_channel();
        let pods = PodStreams::played(&runs.parse().unwrap(), move |target| {
            if target != PodStream::Port(5432) {
                return Err("nobody listens".to_owned());
            }
            let (ours, theirs) = Started::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            theirs.set_nonblocking(true).unwrap();
            opened.send(UnixStream::from_std(theirs).unwrap()).map_err(|_| "nobody listens")?;
            Ok(ours)
        });
        Self { streams, ..Self::before(pods, agent, ways, puts) }
    }

    /// Returns the stage of an agent with pods that the test plays.
    fn before(pods: PodStreams, agent: CallingAgent, ways: Arc<ToldWays>, puts: Vec<ViewEntity>) -> Self {
        let (_, streams) = mpsc::unbounded_channel();
        let neighbours = Arc::new(Neighbours::new(MODEL, agent, pods, PeerWays::new(MODEL, ways)));
        neighbours.observe(&frame(None, 1, [vec![model()], puts].concat()));
        let (dials, dialled) = mpsc::channel(WAITING);
        tokio::spawn(Arc::clone(&neighbours).run(dialled));
        Self { neighbours, dials, streams }
    }

    /// Calls a host as a workload of `unit`; returns the stream with its first byte.
    async fn call(&self, unit: &str, host: &str, port: u16) -> (u8, UnixStream) {
        let (ours, theirs) = Started::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut ours = UnixStream::from_std(ours).unwrap();
        let (unit, order) = (unit.parse().unwrap(), DialOrder { host: host.to_owned(), port });
        self.dials.send(PodDial { unit, order, stream: theirs.into() }).await.unwrap();
        let word = timeout(SOON, ours.read_u8()).await.unwrap().unwrap();
        (word, ours)
    }

    async fn reaches(&self, unit: &str, host: &str, port: u16) -> bool {
        self.call(unit, host, port).await.0 == OPENED
    }

    /// Returns the name, of four bytes, of the unit that `app/0` reaches.
    async fn reached(&self, host: &str) -> String {
        let (word, mut client) = self.call("app/0", host, 5432).await;
        assert_eq!(word, OPENED, "{host}");
        let mut name = [0; 4];
        timeout(SOON, client.read_exact(&mut name)).await.unwrap().unwrap();
        String::from_utf8_lossy(&name).into_owned()
    }
}

#[tokio::test]
async fn related_units_reach_each_other_by_each_name_and_nobody_else_is_reached() {
    let stage = Stage::with(vec![machine("5432/tcp", &[]), relation(1, ["app", "db"])]);
    for host in ["db-0", "db", "db-0.db-endpoints.lab.svc.cluster.local", "db.lab.svc", HOST] {
        assert!(stage.reaches("app/0", host, 5432).await, "{host}");
        assert!(stage.reaches("db/1", host, 5432).await, "{host} from the same application");
        assert!(!stage.reaches("other/0", host, 5432).await, "{host} without a relation");
    }
    assert!(stage.reaches("db/0", "localhost", 5432).await);
    for (host, port) in [
        ("db-0", 5433),
        (HOST, 22),
        ("db-1", 5432),
        ("db-0.db-endpoints.other.svc", 5432),
        ("169.254.169.254", 5432),
        ("10.0.0.2", 5432),
        ("192.0.2.1", 5432),
        ("example.com", 5432),
        ("localhost", 5432),
        ("", 5432),
    ] {
        assert!(!stage.reaches("app/0", host, port).await, "{host}:{port}");
    }
}

#[tokio::test]
async fn a_hosts_address_leads_to_the_first_of_its_units_and_a_name_to_each() {
    let machines = [0, 1].map(|number| machine_of(number, "5432/tcp", &[]));
    let puts = [vec![relation(1, ["app", "db"])], machines.to_vec()].concat();
    let pods = telling("db/1").beside(&telling("db/0"));
    let stage = Stage::before(pods, lone_agent(), Arc::default(), puts);
    for (host, unit) in [(HOST, "db/0"), ("db", "db/0"), ("db-0", "db/0"), ("db-1", "db/1")] {
        assert_eq!(stage.reached(host).await, unit, "{host}");
    }
    // An address leads to units that have the port open; a name leads to its unit at each port.
    stage.neighbours.observe(&frame(Some(1), 2, vec![machine_of(0, "5433/tcp", &[])]));
    for (host, unit) in [(HOST, "db/1"), ("db", "db/0"), ("db-0", "db/0"), ("db-1", "db/1")] {
        assert_eq!(stage.reached(host).await, unit, "{host}");
    }
}

#[tokio::test]
async fn a_unit_without_a_relation_gets_what_its_host_gets() {
    let stage = Stage::with(vec![machine("5432/tcp", &["10.0.0.0/24"])]);
    assert!(stage.reaches("app/0", "db-0", 5432).await);
    stage.neighbours.observe(&frame(Some(1), 2, vec![machine("5432/tcp", &["10.0.1.0/24"])]));
    assert!(!stage.reaches("app/0", "db-0", 5432).await);
}

#[tokio::test]
async fn a_connection_ends_with_the_last_relation_that_allows_it() {
    let mut stage = Stage::with(vec![relation(1, ["app", "db"]), relation(2, ["db", "app"])]);
    let (word, mut client) = stage.call("app/0", "db-0", 5432).await;
    assert_eq!(word, OPENED);
    let mut workload = timeout(SOON, stage.streams.recv()).await.unwrap().unwrap();
    let removed = |from, id| {
        let mut line = frame(Some(from), from + 1, Vec::new());
        line.deletes = vec![ViewKey::Relation(RelationId(id))];
        line
    };
    stage.neighbours.observe(&removed(1, 1));
    client.write_all(b"select").await.unwrap();
    let mut read = [0; 6];
    timeout(SOON, workload.read_exact(&mut read)).await.unwrap().unwrap();
    stage.neighbours.observe(&removed(2, 2));
    assert_eq!(timeout(SOON, client.read(&mut read)).await.unwrap().unwrap_or(0), 0);
    assert_eq!(timeout(SOON, workload.read(&mut read)).await.unwrap().unwrap_or(0), 0);
    assert!(!stage.reaches("app/0", "db-0", 5432).await);
}

#[tokio::test]
async fn the_connections_of_a_unit_are_bounded() {
    let mut stage = Stage::with(vec![relation(1, ["app", "db"])]);
    let mut held = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let (word, client) = stage.call("app/0", "db", 5432).await;
        assert_eq!(word, OPENED);
        held.push((client, stage.streams.recv().await.unwrap()));
    }
    assert!(!stage.reaches("app/0", "db", 5432).await);
    assert!(!stage.reaches("app/1", "db", 5432).await, "the target has as many");
    held.pop();
    let again = async {
        while !stage.reaches("app/1", "db", 5432).await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, again).await.unwrap();
    // Both sides have to end, and the pod has not taken the last stream.
    held.clear();
    while stage.streams.try_recv().is_ok() {}
    let all_free = async {
        while !stage.neighbours.connections.are_free() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, all_free).await.unwrap();
}
