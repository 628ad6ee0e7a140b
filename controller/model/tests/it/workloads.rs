//! The state of units' workloads, as agents report it (decision 93).

use periapt_host_api::{
    ErrorCode, Incarnation, Refusal,
    agent::{RunnerAnswer, RunnerCommand},
    command::Command,
    commit::PortRequest,
    container::{
        CheckState, CheckStatus, ContainerReport, ContainerState, PodState, ReportedDriver, ReportedStartup,
        ServiceCurrent, ServiceState, TakenPort, WorkloadsReport,
    },
};
use periapt_model::shown_workloads;

use crate::world::World;

/// A charm with two containers.
pub(crate) const CHARM: &str = "{name: web, summary: s, description: d, containers: {web: {}, db: {}}}";

/// Returns the report of one container.
pub(crate) fn report(state: ContainerState, current: ServiceCurrent) -> WorkloadsReport {
    let startup = ReportedStartup::Enabled;
    let service = ServiceState { name: "server".into(), startup, current, restarts: 3, cannot_start: None };
    let status = if current == ServiceCurrent::Active { CheckStatus::Up } else { CheckStatus::Down };
    let check = CheckState { name: "page".into(), startup, status, failures: 2, threshold: 2 };
    let pod = PodState { services: vec![service], checks: vec![check], left_out: 0 };
    let driver = Some(ReportedDriver::Wasm);
    let container = ContainerReport { driver, content: None, state, starts: 1, pod, usage: None };
    let containers = [("web".parse().unwrap(), container)].into();
    WorkloadsReport { containers, ..WorkloadsReport::default() }
}

pub(crate) fn running() -> ContainerState {
    ContainerState::Running { boot_id: "b1".into() }
}

fn send(
    world: &mut World,
    agent: &str,
    incarnation: Incarnation,
    report: &WorkloadsReport,
) -> Result<RunnerAnswer, Refusal> {
    let (unit, report) = ("web/0".parse().unwrap(), Box::new(report.clone()));
    world.runner_call(agent, RunnerCommand::Workloads { unit, incarnation, report })
}

fn problems(world: &World) -> Vec<String> {
    world.status().applications["web"].units["web/0"].workload_problems.clone()
}

fn scene() -> (World, Incarnation) {
    let mut world = World::new();
    let charm = world.upload(CHARM);
    world.deploy(charm, "web", 1);
    world.start("web/0");
    assert_eq!(world.agent_of("web/0"), "a1");
    let incarnation = world.attach("a1");
    (world, incarnation)
}

#[test]
fn the_state_of_workloads_is_that_of_the_units_own_agent_and_goes_with_the_unit() {
    let (mut world, incarnation) = scene();
    world.agent("a2");
    let other = world.attach("a2");
    let good = report(running(), ServiceCurrent::Active);
    assert_eq!(send(&mut world, "a2", other, &good).unwrap_err().code, ErrorCode::PermissionDenied);
    let former = Incarnation(incarnation.0 - 1);
    assert_eq!(send(&mut world, "a1", former, &good).unwrap_err().code, ErrorCode::Stale);

    let (view, stored) = (world.view("a1"), world.stored.len());
    send(&mut world, "a1", incarnation, &good).unwrap();
    assert_eq!(world.stored.len(), stored + 1);
    let kept = world.stored.clone();
    world.advance(1);
    send(&mut world, "a1", incarnation, &good).unwrap();
    assert!(world.stored == kept, "what was told is not written again");
    let mut after = world.view("a1");
    after.revision = view.revision;
    assert_eq!(after, view, "no agent hears of it");
    assert_eq!(problems(&world), Vec::<String>::new());

    let bad = report(running(), ServiceCurrent::Backoff);
    send(&mut world, "a1", incarnation, &bad).unwrap();
    assert_eq!(
        problems(&world),
        [
            "service server of container web ended, and is started again (restarts: 3)",
            "check page of container web failed 2 times or more",
        ]
    );
    let mut missing = report(running(), ServiceCurrent::Error);
    for service in missing.containers.values_mut().flat_map(|container| &mut container.pod.services) {
        service.cannot_start = Some("cannot find executable \"/bin/web\"".to_owned());
    }
    send(&mut world, "a1", incarnation, &missing).unwrap();
    assert_eq!(
        problems(&world)[0],
        "service server of container web does not start: cannot find executable \"/bin/web\""
    );
    let down = report(ContainerState::down("no image is attached"), ServiceCurrent::Active);
    send(&mut world, "a1", incarnation, &down).unwrap();
    assert_eq!(problems(&world), ["container web does not run: no image is attached"]);

    send(&mut world, "a1", incarnation, &WorkloadsReport::default()).unwrap();
    assert_eq!((world.stored.len(), problems(&world)), (stored, Vec::new()));
    send(&mut world, "a1", incarnation, &bad).unwrap();
    let unit = "web/0".parse().unwrap();
    world.run(Command::RemoveUnit { unit, force: None, storage: Default::default() }).unwrap();
    world.terminate("web/0").unwrap();
    assert!(world.state().workloads_of(&"web/0".parse().unwrap()).is_none());
}

#[test]
fn what_is_too_large_is_refused_and_what_is_much_is_cut_in_status() {
    let (mut world, incarnation) = scene();
    let mut large = report(ContainerState::Down { reason: "x".repeat(200_000) }, ServiceCurrent::Active);
    assert_eq!(send(&mut world, "a1", incarnation, &large).unwrap_err().code, ErrorCode::BadRequest);
    large = report(running(), ServiceCurrent::Active);
    let port = |port| TakenPort { port, address: "10.0.0.1".into(), reason: "it is taken".into() };
    large.taken_ports = (0..65).map(port).collect();
    assert_eq!(send(&mut world, "a1", incarnation, &large).unwrap_err().code, ErrorCode::BadRequest);
    large.taken_ports.truncate(64);
    send(&mut world, "a1", incarnation, &large).unwrap();
    let problems = problems(&world);
    assert_eq!((problems.len(), problems.last().map(String::as_str)), (11, Some("and 54 more")));
}

#[test]
fn open_ports_that_no_agent_forwards_are_told_while_other_hosts_are_let_in() {
    let (mut world, incarnation) = scene();
    let mut report = report(running(), ServiceCurrent::Active);
    send(&mut world, "a1", incarnation, &report).unwrap();
    let ranges = ["53/udp", "5000-5100/udp", "icmp", "80/tcp", "53/tcp", "8000-8061/tcp"];
    let open = |world: &mut World, ranges: &[&str]| {
        let request = |range: &&str| PortRequest { range: range.parse().unwrap(), endpoint: None };
        let requests = ranges.iter().map(request);
        world.commit("web/0", |commit| commit.effects.ports.open.extend(requests)).unwrap();
    };
    open(&mut world, &ranges);
    assert_eq!(problems(&world), Vec::<String>::new(), "no other host is let in");

    let application = || "web".parse().unwrap();
    world.run(Command::Expose { application: application(), endpoints: Default::default() }).unwrap();
    let others = ["icmp", "53/udp", "5000-5100/udp"];
    let mut expected: Vec<String> = others
        .iter()
        .map(|range| format!("{range} is open and not forwarded: agents forward TCP alone"))
        .collect();
    assert_eq!(problems(&world), expected, "64 ports of TCP are forwarded");
    open(&mut world, &["8060-9000/udp", "9000-9999/tcp"]);
    expected.push("8060-9000/udp is open and not forwarded: agents forward TCP alone".to_owned());
    let text = "TCP ports from 9000 on are open and not forwarded: agents forward 64 of a unit";
    expected.push(text.to_owned());
    assert_eq!(problems(&world), expected);

    // Processes of this driver may listen on the host, and an agent that runs no workload has nowhere to forward to.
    let mut with_driver = |driver| {
        for container in report.containers.values_mut() {
            container.driver = driver;
        }
        send(&mut world, "a1", incarnation, &report).unwrap();
        problems(&world).len()
    };
    let drivers = [Some(ReportedDriver::Plain), None, Some(ReportedDriver::Namespaces)];
    assert_eq!(drivers.map(&mut with_driver), [0, 0, expected.len()]);
    world.run(Command::Unexpose { application: application(), endpoints: Default::default() }).unwrap();
    assert_eq!(problems(&world), Vec::<String>::new());
}

#[test]
fn a_container_is_unknown_while_its_agent_is_away() {
    let (mut world, incarnation) = scene();
    let bad = report(running(), ServiceCurrent::Error);
    send(&mut world, "a1", incarnation, &bad).unwrap();
    let shown = |world: &World| {
        let status = world.status();
        assert!(status.applications.contains_key("web"));
        let (containers, _) =
            shown_workloads(&world.root, world.state(), world.unit("web/0"), world.lease_now_ms);
        let reported = |name: &str| containers[&name.parse().unwrap()].report.is_some();
        (reported("web"), reported("db"))
    };
    assert_eq!(shown(&world), (true, false));
    world.work(periapt_model::WorkerCommand::AgentDisconnected("a1".parse().unwrap()));
    world.advance(3_600);
    assert_eq!((shown(&world), problems(&world)), ((false, false), Vec::new()));
}
