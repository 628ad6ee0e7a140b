//! Calls between units on two hosts, over real sockets.

use std::net::SocketAddr;

use periapt_host_api::{
    Digest, Timestamp,
    agent::{PeerOrder, PeerTarget},
    status::{StatusInfo, WorkloadStatus},
    view::UnitOutline,
};
use periapt_transport::{AgentKey, AgentTls, Authority, ClientCertificate};
use tokio::net::{TcpSocket, TcpStream};

use super::*;
use crate::keeper::peers::{DialError, PeerListener};

/// An agent with its key, of the tests' authority.
struct Joined {
    tls: AgentTls,
    key: Digest,
}

impl Joined {
    fn new(authority: &Authority, name: &str) -> Self {
        let key = AgentKey::generate().unwrap();
        let (request, day) = (key.request().unwrap(), Duration::from_secs(86_400));
        let issued = authority.issue_agent(&request, &name.parse().unwrap(), Timestamp::now(), day).unwrap();
        let shown = ClientCertificate::default();
        shown.set(&issued, &key).unwrap();
        Self { tls: AgentTls::new(shown, authority.certificate()).unwrap(), key: key.digest() }
    }
}

/// An agent that runs units.
struct Host {
    stage: Stage,
    peers: Arc<Peers>,
    ways: Arc<ToldWays>,
    place: AgentPlace,
    revision: u64,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Host {
    fn new(authority: &Authority, name: &str, address: &str, puts: Vec<ViewEntity>) -> Self {
        let joined = Joined::new(authority, name);
        let address: IpAddr = address.parse().unwrap();
        let listener = PeerListener::bind(&[address], Some(0)).unwrap().unwrap();
        let place =
            AgentPlace { addresses: vec![address.to_string()], port: Some(listener.port()), key: joined.key };
        let peers = Arc::new(Peers::new(joined.tls));
        let server = tokio::spawn(listener.serve(&peers).unwrap());
        let agent = CallingAgent {
            name: name.parse().unwrap(),
            addresses: vec![address],
            peers: Some(Arc::clone(&peers)),
            egress: None,
        };
        let ways = Arc::<ToldWays>::default();
        let stage = Stage::of(agent, &format!("{name}/0"), Arc::clone(&ways), puts);
        Self { stage, peers, ways, place, revision: 1, server }
    }

    fn knows(&self, name: &str, place: &AgentPlace) {
        self.ways.0.lock().insert(name.parse().unwrap(), place.clone());
    }

    fn observes(&mut self, puts: Vec<ViewEntity>, deletes: Vec<ViewKey>) {
        let mut line = frame(Some(self.revision), self.revision + 1, puts);
        line.deletes = deletes;
        self.stage.neighbours.observe(&line);
        self.revision += 1;
    }

    /// Dials `db/0` at another host in the name of a unit, whatever this host runs.
    async fn dials(
        &self,
        to: &Host,
        from: &str,
        change: impl FnOnce(&mut PeerOrder),
    ) -> Result<(), DialError> {
        let to_unit = PeerTarget::Unit("db/0".parse().unwrap());
        let mut order = PeerOrder { model: MODEL, from: from.parse().unwrap(), to: to_unit, port: 5432 };
        change(&mut order);
        let name = &to.stage.neighbours.agent.name;
        timeout(SOON, self.peers.dial(name, &to.place, &order)).await.unwrap().map(|_| ())
    }
}

fn outline(unit: &str, agent: &str) -> ViewEntity {
    ViewEntity::Outline(UnitOutline {
        name: unit.parse().unwrap(),
        life: Life::Alive,
        workload_status: StatusInfo::new(WorkloadStatus::Active, "", Timestamp::UNIX_EPOCH),
        agent: Some(agent.parse().unwrap()),
    })
}

/// Returns an authority and two hosts: `app` runs `app/0`, and `db` runs `db/0`.
fn two_hosts() -> (Authority, Host, Host) {
    let authority = Authority::generate().unwrap();
    let seen = || vec![relation(1, ["app", "db"]), outline("app/0", "app"), outline("db/0", "db")];
    let app = Host::new(&authority, "app", "127.0.2.1", seen());
    let db = Host::new(&authority, "db", "127.0.2.2", [seen(), vec![machine("5432/tcp", &[])]].concat());
    app.knows("db", &db.place);
    db.knows("app", &app.place);
    (authority, app, db)
}

#[tokio::test]
async fn related_units_on_two_hosts_reach_each_other_by_each_name() {
    let (_, app, mut db) = two_hosts();
    for host in ["db-0", "db", "db-0.db-endpoints.lab.svc.cluster.local", "db.lab.svc"] {
        let (word, mut client) = app.stage.call("app/0", host, 5432).await;
        assert_eq!(word, OPENED, "{host}");
        let workload = timeout(SOON, db.stage.streams.recv()).await;
        let mut workload = workload.unwrap_or_else(|_| panic!("{host}")).unwrap();
        client.write_all(b"select").await.unwrap();
        client.shutdown().await.unwrap();
        let mut asked = Vec::new();
        timeout(SOON, workload.read_to_end(&mut asked)).await.unwrap().unwrap();
        assert_eq!(asked, b"select", "{host}");
        // The answer comes after the client's end, and is more than all buffers on the way hold.
        let answer = vec![b'x'; 4 << 20];
        let (written, read) = tokio::join!(
            async {
                workload.write_all(&answer).await.unwrap();
                drop(workload);
            },
            async {
                let mut read = Vec::new();
                timeout(SOON, client.read_to_end(&mut read)).await.unwrap().unwrap();
                read
            }
        );
        let () = written;
        assert!(read == answer, "{host}: {} bytes", read.len());
    }
    for (unit, host, port) in [
        ("other/0", "db-0", 5432),
        ("app/0", "db-0", 5433),
        ("app/0", "db-1", 5432),
        ("app/0", "169.254.169.254", 80),
    ] {
        assert!(!app.stage.reaches(unit, host, port).await, "{unit} to {host}:{port}");
    }
}

#[tokio::test]
async fn an_agent_speaks_for_the_units_that_it_runs_and_for_no_others() {
    let (authority, app, mut db) = two_hosts();
    app.dials(&db, "app/0", |_| {}).await.unwrap();
    let refused =
        |result: Result<(), DialError>| assert!(matches!(result, Err(DialError::Refused(_))), "{result:?}");
    refused(app.dials(&db, "db/0", |_| {}).await);
    refused(app.dials(&db, "app/1", |_| {}).await);
    refused(app.dials(&db, "other/0", |_| {}).await);
    refused(app.dials(&db, "app/0", |order| order.model = ModelUuid(Uuid::from_u128(7))).await);
    refused(app.dials(&db, "app/0", |order| order.to = PeerTarget::Unit("app/0".parse().unwrap())).await);
    // Another agent of the same controller, and one that has the name but not its key.
    let other = Host::new(&authority, "other", "127.0.2.4", Vec::new());
    refused(other.dials(&db, "app/0", |_| {}).await);
    let imposter = Host::new(&authority, "app", "127.0.2.5", Vec::new());
    refused(imposter.dials(&db, "app/0", |_| {}).await);
    // The unit moves to it, and the controller tells its key.
    db.observes(vec![outline("app/0", "other")], Vec::new());
    refused(app.dials(&db, "app/0", |_| {}).await);
    db.knows("other", &other.place);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    other.dials(&db, "app/0", |_| {}).await.unwrap();
    // An agent that a caller does not expect at an address gets nothing.
    let elsewhere =
        AgentPlace { port: other.place.port, addresses: vec!["127.0.2.4".into()], ..db.place.clone() };
    let order = PeerOrder { model: MODEL, from: "app/0".parse().unwrap(), to: PeerTarget::Host, port: 1 };
    let dialled = app.peers.dial(&"db".parse().unwrap(), &elsewhere, &order).await.map(|_| ());
    assert!(matches!(dialled, Err(DialError::Unreachable { .. })), "{dialled:?}");
}

#[tokio::test]
async fn a_connection_between_hosts_ends_with_what_allows_it() {
    let (_, mut app, mut db) = two_hosts();
    let ends = async |client: &mut UnixStream, workload: &mut UnixStream| {
        let mut read = [0; 6];
        assert_eq!(timeout(SOON, client.read(&mut read)).await.unwrap().unwrap_or(0), 0);
        assert_eq!(timeout(SOON, workload.read(&mut read)).await.unwrap().unwrap_or(0), 0);
    };
    let (_, mut client) = app.stage.call("app/0", "db-0", 5432).await;
    let mut workload = timeout(SOON, db.stage.streams.recv()).await.unwrap().unwrap();
    db.observes(Vec::new(), vec![ViewKey::Relation(RelationId(1))]);
    ends(&mut client, &mut workload).await;
    assert!(!app.stage.reaches("app/0", "db-0", 5432).await);
    db.observes(vec![relation(1, ["app", "db"])], Vec::new());
    let (_, mut client) = app.stage.call("app/0", "db-0", 5432).await;
    let mut workload = timeout(SOON, db.stage.streams.recv()).await.unwrap().unwrap();
    app.observes(vec![outline("db/0", "third")], Vec::new());
    ends(&mut client, &mut workload).await;
    drop((client, workload));
    let all_free = async {
        while !(app.stage.neighbours.connections.are_free() && db.stage.neighbours.connections.are_free()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, all_free).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_starts_anew_is_found_on_its_new_port() {
    let (authority, app, db) = two_hosts();
    assert!(app.stage.reaches("app/0", "db-0", 5432).await);
    drop(db);
    let seen = vec![relation(1, ["app", "db"]), outline("app/0", "app"), outline("db/0", "db")];
    let db = Host::new(&authority, "db", "127.0.2.2", seen);
    db.knows("app", &app.place);
    app.knows("db", &db.place);
    let found = async {
        while !app.stage.reaches("app/0", "db-0", 5432).await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(SOON, found).await.unwrap();
}

#[tokio::test]
async fn hosts_that_say_nothing_or_nonsense_keep_nobody_else_waiting() {
    let (_, app, db) = two_hosts();
    let target = SocketAddr::new("127.0.2.2".parse().unwrap(), db.place.port.unwrap());
    let connect = async |from: &str| -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
        socket.connect(target).await.unwrap()
    };
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(connect("127.0.2.66").await);
    }
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 0xff, 0xff], &[0; 64 << 10]] {
        let mut stream = connect("127.0.2.67").await;
        let _ = stream.write_all(nonsense).await;
        silent.push(stream);
    }
    assert!(app.stage.reaches("app/0", "db-0", 5432).await);
    // Those beyond the bound were closed at once.
    let mut closed = 0;
    for stream in silent.iter_mut().take(100) {
        let read = timeout(Duration::from_millis(20), stream.read(&mut [0; 1])).await;
        closed += usize::from(matches!(read, Ok(Ok(0) | Err(_))));
    }
    assert!(closed >= 80, "{closed}");
}
