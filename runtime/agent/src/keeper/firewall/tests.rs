//! The firewall of an agent, and what its controller hears of it.

use periapt_host_api::agent::MAX_FIREWALL_PROBLEM;
use periapt_netlink::testing::in_own_network;
use tokio::runtime::Builder;
use uuid::Uuid;

use super::{rules::MAX_RULES, *};
use crate::keeper::{
    registration::AgentRegistration,
    tests::fake::{FakeController, host},
};

/// A time in which the agent tries many times.
const LONG: Duration = Duration::from_secs(600);

/// Returns a machine on which one unit has so many ports open, none beside another.
fn machine(ports: usize) -> MachinePorts {
    let range = |number: usize| {
        let port = u16::try_from(2 * number + 1).unwrap();
        PortRange::new(Transport::Udp, port, port).unwrap()
    };
    let mut machine = MachinePorts::default();
    machine.open.insert("app/0".parse().unwrap(), (0..ports).map(range).collect());
    machine
}

async fn report(mut registration: AgentRegistration<FakeController>) {
    loop {
        registration.due().await;
        registration.report().await;
    }
}

/// Waits for so many registrations, and then for others, of which there must be none. Returns the last problem.
async fn last_of(controller: &FakeController, registrations: usize) -> Option<String> {
    let arrive = async {
        while controller.firewall_problems().len() < registrations {
            sleep(SETTLES).await;
        }
    };
    timeout(LONG, arrive).await.unwrap();
    sleep(LONG).await;
    let problems = controller.firewall_problems();
    assert_eq!(problems.len(), registrations, "{problems:?}");
    problems.into_iter().next_back().flatten()
}

async fn fails_and_recovers() {
    let table = HostTable::new("periapt-one-1".to_owned());
    let firewall = Arc::new(Firewall::with(BTreeSet::new(), table));
    let controller = FakeController::without_models();
    let mut registration = AgentRegistration::new(controller.clone(), host(), Some(firewall.problem()));
    registration.send().await.unwrap();
    let model = ModelUuid(Uuid::nil());
    firewall.assign(&[model].into());
    firewall.observe(model, vec![machine(MAX_RULES)]);
    let tasks = [tokio::spawn(Arc::clone(&firewall).run()), tokio::spawn(report(registration))];
    assert_eq!(last_of(&controller, 1).await, None, "rules that are written are no news");

    firewall.observe(model, vec![machine(MAX_RULES + 1)]);
    let problem = last_of(&controller, 2).await.unwrap();
    assert!(problem.contains("more than 1024 are needed") && !problem.contains("app/0"), "{problem}");
    firewall.observe(model, vec![machine(1)]);
    assert_eq!(last_of(&controller, 3).await, None, "the rules are written again");
    for task in tasks {
        assert!(!task.is_finished());
        task.abort();
    }
}

#[test]
fn rules_that_cannot_be_written_are_reported_once_and_so_is_their_end() {
    let name = "keeper::firewall::tests::rules_that_cannot_be_written_are_reported_once_and_so_is_their_end";
    in_own_network(name, || {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(fails_and_recovers());
    })
    .unwrap();
}

#[test]
fn a_problem_is_one_line_that_a_controller_takes() {
    let too_many = FirewallRules::new(&[&machine(MAX_RULES + 1)], &BTreeSet::new()).unwrap_err();
    let long = std::io::Error::other("\u{e9}".repeat(MAX_FIREWALL_PROBLEM));
    let full = std::io::Error::from_raw_os_error(28);
    let errors = [
        FirewallError::NoRight,
        FirewallError::Kernel(full),
        FirewallError::Kernel(long),
        FirewallError::TooMany(too_many),
    ];
    let lines = errors.iter().map(FirewallError::for_status).chain([error::unfinished_for_status()]);
    for line in lines {
        assert!(line.starts_with("the host's firewall lacks the newest rules: "), "{line}");
        assert!(line.len() <= MAX_FIREWALL_PROBLEM && !line.contains(char::is_control), "{line}");
    }
}
