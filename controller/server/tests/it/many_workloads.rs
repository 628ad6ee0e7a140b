//! Reports of the workloads of many units, to a controller with its store on the disk (decision 93).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use periapt_client::{Client, Identity, NdJson};
use periapt_host_api::{
    AgentName, ErrorCode, Incarnation, UnitName,
    agent::{RunnerAnswer, RunnerCommand},
    api::UnitDetails,
    command::{Answer, Command, CommandResult, ControllerCommand, Deploy},
    container::{ContainerReport, ContainerState, PodState, ReportedDriver, WorkloadsReport},
    view::{Frame, ViewEntity},
};
use tokio::time::{sleep, timeout};

use crate::fixture::{
    Agent, CountedStores, Model, TIMEOUT, Writes, Written, application, charm_with_container, in_directory,
    next, run,
};

/// The units of the model when the costs are compared.
const SIZES: [u32; 2] = [100, 10_000];

/// The reports of one call, as many as a keeper makes.
const PART: usize = 32;

/// The difference of two stored entities that have different times.
const TIMES: usize = 12;

/// The agents of a model, with their runners.
struct Site {
    client: Client,
    model: Model,
    agents: BTreeMap<AgentName, (Agent, Incarnation)>,
    writes: Writes,
}

/// An agent's own units, and the further frames of its view.
struct Watched {
    units: Vec<UnitName>,
    frames: NdJson<Frame>,
}

fn report(boot_id: &str) -> Box<WorkloadsReport> {
    let container = ContainerReport {
        driver: Some(ReportedDriver::Namespaces),
        content: None,
        state: ContainerState::Running { boot_id: boot_id.to_owned() },
        starts: 1,
        pod: PodState::default(),
        usage: None,
    };
    let containers = [("web".parse().unwrap(), container)].into();
    Box::new(WorkloadsReport { containers, ..WorkloadsReport::default() })
}

impl Site {
    /// Returns a model with the fewest units on two agents: an agent has access to a model once it has units of it.
    async fn new(client: Client, url: String, writes: Writes) -> Self {
        let add = ControllerCommand::add_model("m".parse().unwrap());
        let Answer::Model { uuid } = client.controller_command(add).await.unwrap() else {
            panic!("a model was added");
        };
        let mut connected = Vec::new();
        for name in ["one", "two"] {
            let name = AgentName::new(name).unwrap();
            let options = periapt_client::Options::new(url.clone(), Identity::Agent(name.clone()));
            let agent = Agent { name, client: Client::new(options).unwrap() };
            let mut assignments = agent.connect().await;
            tokio::spawn(async move { while assignments.next().await.is_some() {} });
            connected.push(agent);
        }
        let charm = client.upload_charm(charm_with_container()).await.unwrap().digest;
        let model = Model { client: client.clone(), uuid };
        model.command(Command::Deploy(Deploy::of(charm, 0))).await.unwrap();
        let mut site = Self { client, model, agents: BTreeMap::new(), writes };
        site.grow(0, SIZES[0]).await;
        for agent in connected {
            let attach = agent.client.runner_command(&agent.name, &uuid, RunnerCommand::Attach);
            let attached = attach.await.unwrap();
            let (RunnerAnswer::Attached { incarnation }, _) = attached else { panic!("{attached:?}") };
            site.agents.insert(agent.name.clone(), (agent, incarnation));
        }
        // What attaching has written is none of a report's costs.
        site.writes.take();
        site
    }

    /// Adds units, and waits until the last one is placed and nothing is written any more.
    async fn grow(&self, from: u32, to: u32) {
        let (placement, attach_storage) = (vec![], vec![]);
        let application = application("served");
        let add = Command::AddUnits { application, count: to - from, placement, attach_storage };
        self.model.command(add).await.unwrap();
        let last = format!("served/{}", to - 1).parse().unwrap();
        let placed = async {
            loop {
                match self.client.unit(&self.model.selector(), &last).await {
                    Ok(UnitDetails { agent: Some(_), .. }) => break,
                    Ok(_) => {}
                    Err(error) => assert_eq!(error.refusal().unwrap().code, ErrorCode::NotFound),
                }
                sleep(Duration::from_millis(20)).await;
            }
            while self.writes.take() != Written::default() {
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(5 * TIMEOUT, placed).await.unwrap();
    }

    async fn watch(&self, agent: &Agent) -> Watched {
        let mut frames = agent.client.watch(&agent.name, &self.model.uuid, None).await.unwrap();
        let whole = next(&mut frames).await;
        let unit = |entity: &ViewEntity| match entity {
            ViewEntity::Unit(unit) => Some(unit.name.clone()),
            _ => None,
        };
        Watched { units: whole.puts.iter().filter_map(unit).collect(), frames }
    }

    /// Reports the workloads of a unit by its agent, and returns what was written. No agent hears more than that
    /// something was written.
    async fn report(
        &self,
        agent: &AgentName,
        unit: &UnitName,
        boot_id: &str,
        watched: &mut BTreeMap<AgentName, Watched>,
    ) -> Written {
        let (agent, incarnation) = &self.agents[agent];
        let (unit, incarnation) = (unit.clone(), *incarnation);
        let command = RunnerCommand::Workloads { unit, incarnation, report: report(boot_id) };
        let told = agent.client.runner_command(&agent.name, &self.model.uuid, command).await;
        let (_, revision) = told.unwrap();
        let written = self.writes.take();
        for Watched { frames, .. } in watched.values_mut() {
            let mut seen = None;
            while written.entities > 0 && seen < Some(revision) {
                let frame = next(frames).await;
                assert!(frame.puts.is_empty() && frame.deletes.is_empty(), "{frame:?}");
                seen = Some(frame.to);
            }
        }
        written
    }
}

#[tokio::test]
async fn a_report_of_one_units_workloads_costs_the_same_among_ten_thousand_units() {
    let directory = tempfile::tempdir().unwrap();
    let (mut options, writes) = (in_directory(directory.path()), Writes::default());
    options.store = Arc::new(CountedStores {
        stores: options.store,
        writes: writes.clone(),
        prune_takes: Duration::ZERO,
    });
    let (handle, client, running) = run(options).await;
    client.controller().await.unwrap();
    let site = Site::new(client, handle.url(), writes).await;
    let one = AgentName::new("one").unwrap();

    let (mut present, mut costs, mut units) = (SIZES[0], Vec::new(), Vec::new());
    for size in SIZES {
        if size > present {
            site.grow(present, size).await;
            present = size;
        }
        let mut watched = BTreeMap::new();
        for (name, (agent, _)) in &site.agents {
            watched.insert(name.clone(), site.watch(agent).await);
        }
        let all: usize = watched.values().map(|watched| watched.units.len()).sum();
        assert_eq!(all, usize::try_from(size).unwrap());
        units.clone_from(&watched[&one].units);
        // Names of the same length, of units that have made no report.
        let mut two_digits = units.iter().filter(|unit| (10..100).contains(&unit.number()));
        let unit = two_digits.nth(costs.len()).unwrap();
        let written = site.report(&one, unit, "b1", &mut watched).await;
        assert_eq!((written.entities, written.records), (1, 0));
        costs.push(written.bytes);
        let again = site.report(&one, unit, "b1", &mut watched).await;
        assert_eq!(again, Written::default(), "what is no news is not written");
        let shown = site.client.unit(&site.model.selector(), unit).await.unwrap();
        assert!(shown.containers[&"web".parse().unwrap()].report.is_some());
    }
    assert!(costs[0].abs_diff(costs[1]) <= TIMES, "{costs:?}");

    // The first reports of an agent with many units come in parts, each of which is a write of its own bounds.
    assert!(units.len() > 4_000, "{}", units.len());
    let (agent, incarnation) = &site.agents[&one];
    let mut entities = 0;
    for part in units.chunks(PART) {
        let command = |unit: &UnitName| {
            let (unit, incarnation) = (unit.clone(), *incarnation);
            RunnerCommand::Workloads { unit, incarnation, report: report("b2") }
        };
        let commands: Vec<_> = part.iter().map(command).collect();
        let told = agent.client.runner_commands(&one, &site.model.uuid, commands).await.unwrap();
        assert!(told.results.iter().all(|result| matches!(result, CommandResult::Ok(_))), "{told:?}");
        let written = site.writes.take();
        assert!(written.largest <= PART && written.records == 0, "{written:?}");
        entities += written.entities;
    }
    assert_eq!(entities, units.len());
    handle.shutdown();
    running.await.unwrap().unwrap();
}
