//! Listeners with real sockets on addresses of the loopback, in front of a pod that the test plays.

use std::{net::IpAddr, time::Duration};

use periapt_host_api::{
    AgentName, MachineId,
    pod::PodStream,
    view::{MachineView, ViewEntity},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream, UnixStream},
    sync::mpsc,
    time::timeout,
};
use uuid::Uuid;

use super::*;
use crate::keeper::tests::fake::frame;

/// Returns a machine whose units have rules, each a unit, a range of ports and a subnet.
pub(super) fn machine(id: u64, rules: &[(&str, &str, &str)]) -> ViewEntity {
    let mut unit_ingress: BTreeMap<UnitName, IngressRules> = BTreeMap::new();
    for (unit, range, from) in rules {
        let of_unit = unit_ingress.entry(unit.parse().unwrap()).or_default();
        of_unit.entry(range.parse().unwrap()).or_default().insert(from.parse().unwrap());
    }
    ViewEntity::Machine(MachineView {
        id: MachineId(id.try_into().unwrap()),
        agent: "host".parse::<AgentName>().unwrap(),
        boot_id: String::new(),
        addresses: Vec::new(),
        interfaces: Vec::new(),
        addresses_hash: String::new(),
        availability_zone: String::new(),
        ports: BTreeMap::new(),
        ingress: IngressRules::new(),
        unit_ingress,
    })
}

/// The time for what happens at once on a machine that is not busy.
const SOON: Duration = Duration::from_secs(30);

const UNIT: &str = "app/0";
const EVERYWHERE: &str = "0.0.0.0/0";

/// The listeners of a model whose unit `app/0` has a pod, on one address.
struct Stage {
    address: IpAddr,
    ingress: Ingress,
    revision: u64,
    /// The streams that the pod is given, with their ports.
    streams: mpsc::UnboundedReceiver<(u16, UnixStream)>,
}

impl Stage {
    fn on(address: &str) -> Self {
        Self::beside(address, &[])
    }

    fn beside(address: &str, controllers: &[&str]) -> Self {
        let address = address.parse().unwrap();
        let (opened, streams) = mpsc::unbounded_channel();
        let unit: UnitName = UNIT.parse().unwrap();
        let pod = PodStreams::played(&unit, move |target| {
            let PodStream::Port(port) = target else { return Err("no port".to_owned()) };
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            theirs.set_nonblocking(true).unwrap();
            opened.send((port, UnixStream::from_std(theirs).unwrap())).map_err(|_| "nobody listens")?;
            Ok(ours)
        });
        let host = IngressHost::new([address], controllers.iter().copied());
        let mut ingress = Ingress::new(host, ModelUuid(Uuid::nil()), pod, Arc::default());
        ingress.have_pods(ChangedPodUnits { came: vec![unit], went: Vec::new() });
        ingress.observe(&frame(None, 1, vec![machine(0, &[])]));
        Self { address, ingress, revision: 1, streams }
    }

    /// Gives the unit's machine these rules.
    fn let_in(&mut self, rules: &[(&str, &str, &str)]) {
        let next = self.revision + 1;
        self.ingress.observe(&frame(Some(self.revision), next, vec![machine(0, rules)]));
        self.revision = next;
    }

    async fn connect(&self, from: &str, port: u16) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from.parse().unwrap(), 0))?;
        socket.connect(SocketAddr::new(self.address, port)).await
    }

    /// Connects, and returns both ends once the connection leads to the pod.
    async fn through(&mut self, from: &str, port: u16) -> (TcpStream, UnixStream) {
        let client = self.connect(from, port).await.unwrap();
        let (asked, workload) = timeout(SOON, self.streams.recv()).await.unwrap().unwrap();
        assert_eq!(asked, port);
        (client, workload)
    }

    /// Waits until nobody listens on a port.
    async fn closes(&self, port: u16) {
        let closed = async {
            while self.connect("127.0.0.1", port).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(SOON, closed).await.unwrap();
    }
}

/// Returns a port that is free on an address.
async fn free_port(address: &str) -> u16 {
    TcpListener::bind((address, 0)).await.unwrap().local_addr().unwrap().port()
}

/// Waits for the end of a connection that is cut off.
async fn is_reset(client: &mut TcpStream) -> bool {
    let ended = timeout(SOON, client.read(&mut [0; 8])).await.unwrap();
    ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

#[tokio::test]
async fn an_open_port_leads_to_the_workload_until_it_is_closed() {
    let mut stage = Stage::on("127.0.1.1");
    let (port, other) = (free_port("127.0.1.1").await, free_port("127.0.1.1").await);
    assert!(stage.connect("127.0.0.1", port).await.is_err(), "nothing is open");
    stage.let_in(&[(UNIT, &format!("{port}/tcp"), EVERYWHERE), (UNIT, &format!("{other}/udp"), EVERYWHERE)]);
    let (mut client, mut workload) = stage.through("127.0.0.1", port).await;
    client.write_all(b"ping").await.unwrap();
    let mut buffer = [0; 4];
    workload.read_exact(&mut buffer).await.unwrap();
    workload.write_all(b"pong").await.unwrap();
    client.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"pong");
    stage.closes(other).await;

    // Another port opens: connections to the first go on.
    let both = [(UNIT, &*format!("{port}/tcp"), EVERYWHERE), (UNIT, &*format!("{other}/tcp"), EVERYWHERE)];
    stage.let_in(&both);
    let (_second, _its_workload) = stage.through("127.0.0.1", other).await;
    client.write_all(b"more").await.unwrap();
    workload.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"more");

    // What the workload ends, the client sees end in order.
    let (mut whole, its_workload) = stage.through("127.0.0.1", port).await;
    drop(its_workload);
    assert_eq!(timeout(SOON, whole.read(&mut buffer)).await.unwrap().unwrap(), 0);

    // The port is closed: the listener goes, and its connections with it.
    stage.let_in(&both[1..]);
    stage.closes(port).await;
    assert!(is_reset(&mut client).await, "its client takes nothing of it for whole");
    assert_eq!(timeout(SOON, workload.read(&mut buffer)).await.unwrap().unwrap(), 0);

    // The unit's pods go, as with the unit.
    let unit = || vec![UNIT.parse().unwrap()];
    stage.ingress.have_pods(ChangedPodUnits { came: Vec::new(), went: unit() });
    stage.closes(other).await;
    stage.ingress.have_pods(ChangedPodUnits { came: unit(), went: Vec::new() });
    stage.through("127.0.0.1", other).await;
}

#[tokio::test]
async fn a_client_is_let_in_by_its_address_for_as_long_as_the_rules_say_so() {
    let mut stage = Stage::on("127.0.1.2");
    let range = format!("{}/tcp", free_port("127.0.1.2").await);
    let port = range.trim_end_matches("/tcp").parse().unwrap();
    stage.let_in(&[(UNIT, &range, "127.0.0.3/32")]);
    let (mut welcome, _workload) = stage.through("127.0.0.3", port).await;
    let mut stranger = stage.connect("127.0.0.4", port).await.unwrap();
    assert!(is_reset(&mut stranger).await);
    assert!(stage.streams.try_recv().is_err(), "the workload hears nothing of it");
    // The rules change: the one that was let in is cut off, the other one comes in.
    stage.let_in(&[(UNIT, &range, "127.0.0.4/32")]);
    assert!(is_reset(&mut welcome).await);
    stage.through("127.0.0.4", port).await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_used_once_it_is_free() {
    let mut stage = Stage::on("127.0.1.3");
    let holder = TcpListener::bind("127.0.1.3:0").await.unwrap();
    let port = holder.local_addr().unwrap().port();
    let range = format!("{port}/tcp");
    stage.let_in(&[(UNIT, &range, EVERYWHERE)]);
    let address = SocketAddr::new(stage.address, port);
    let refusal = |stage: &Stage| stage.ingress.host.listen(address, &"test").unwrap_err();
    assert_eq!(refusal(&stage), "another process of the host listens there");
    drop(holder);
    let client = async {
        loop {
            match stage.connect("127.0.0.1", port).await {
                Ok(client) => return client,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let _client = timeout(SOON, client).await.unwrap();
    timeout(SOON, stage.streams.recv()).await.unwrap().unwrap();
    // Other units with the same port are told who has it.
    assert!(refusal(&stage).starts_with("unit app/0 of model 00000000-"), "{}", refusal(&stage));
}

#[tokio::test]
async fn ports_of_controllers_and_addresses_of_others_are_not_listened_on() {
    let controller = free_port("127.0.1.4").await;
    let mut stage = Stage::beside("127.0.1.4", &[&format!("[::1]:{controller}"), "node.example"]);
    stage.let_in(&[(UNIT, &format!("{controller}/tcp"), EVERYWHERE)]);
    assert!(stage.connect("127.0.0.1", controller).await.is_err());
    let refusal = |at: &str| stage.ingress.host.listen(at.parse().unwrap(), &"test").unwrap_err();
    assert_eq!(refusal(&format!("127.0.1.4:{controller}")), "it is the port of a controller");
    assert_eq!(refusal("192.0.2.1:9"), "it is no address of this host: name one by --listen-address");
}

#[tokio::test]
async fn what_one_unit_takes_is_bounded() {
    let mut stage = Stage::on("127.0.1.5");
    stage.let_in(&[(UNIT, "20000-60000/tcp", EVERYWHERE), (UNIT, "30000-65535/tcp", EVERYWHERE)]);
    let ports = |stage: &Stage| stage.ingress.units.values().map(|unit| unit.ports.len()).sum::<usize>();
    assert_eq!(ports(&stage), MAX_FORWARDED_PORTS);
    stage.let_in(&[(UNIT, "20000/tcp", EVERYWHERE)]);
    assert_eq!(ports(&stage), 1);
    let mut held = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        held.push(stage.through("127.0.0.1", 20_000).await);
    }
    let mut one_more = stage.connect("127.0.0.1", 20_000).await.unwrap();
    assert!(is_reset(&mut one_more).await);
    // A place is free again soon after a connection has ended.
    held.pop();
    let again = async {
        loop {
            let _client = stage.connect("127.0.0.1", 20_000).await.unwrap();
            if let Ok(Some(stream)) = timeout(Duration::from_millis(200), stage.streams.recv()).await {
                return stream;
            }
        }
    };
    assert_eq!(timeout(SOON, again).await.unwrap().0, 20_000);
}
