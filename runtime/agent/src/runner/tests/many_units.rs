//! Tests of the work of a runner with many idle units at each frame.

use std::sync::Arc;

use periapt_host_api::{
    ApplicationName, MachineId, StoreId, Timestamp, UnitName,
    relation::{BagKey, BagOwner},
    status::AgentStatus,
    view::{BagView, MachineView, UnitView, View},
};
use periapt_lab::{Lab, LabCharm};
use periapt_sandbox::{Options, Sandbox};
use periapt_uniter::{Timeline, executor::Dependency};
use tokio::{net::UnixStream, runtime::Handle};
use uuid::Uuid;

use super::stage::start;
use crate::{
    clock::BootTime,
    protocol::{FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT, Incoming, Outgoing, Start, ToKeeper, ToRunner, split},
    runner::{
        RunnerContext, admission::Admission, charms::PreparedCharms, fetch::Fetch, groups::Groups,
        link::Link, mirror::Mirror, storage::Storages, units::Units,
    },
};

const STORE: StoreId = StoreId(Uuid::from_u128(9));

const MANY: u32 = 10_000;

/// The number of units of the other application.
const FEW: u32 = 10;

const RELATED: &str = "name: app\nsummary: many\ndescription: many\nrequires:\n  db: {interface: sql}\n";
const PROVIDER: &str = "name: b\nsummary: one\ndescription: one\nprovides:\n  db: {interface: sql}\n";
const LONELY: &str = "name: c\nsummary: few\ndescription: few\n";

/// Returns the view of two applications with started, idle units, and the time in it. Each application has a leader.
/// The units of the first are related to `b/0` on another agent.
fn many_units() -> (View, Timestamp) {
    let mut lab = Lab::new(1).unwrap();
    lab.add_agent("elsewhere").unwrap();
    lab.deploy_to("b", &LabCharm::new(PROVIDER).unwrap(), 1, "elsewhere").unwrap();
    for (name, charm) in [("app", RELATED), ("c", LONELY)] {
        lab.deploy_to(name, &LabCharm::new(charm).unwrap(), 2, "host").unwrap();
    }
    lab.integrate("app", "b").unwrap();
    lab.run_until_idle().unwrap();
    let mut view = lab.mirror("host").unwrap();
    for (application, count) in [("app", MANY), ("c", FEW)] {
        let names = [0, 1].map(|number| UnitName::new(application.parse().unwrap(), number));
        let leader = view.applications[names[0].application()].leader.clone().unwrap().unit;
        let follower = names.into_iter().find(|name| *name != leader).unwrap();
        let unit = view.units[&follower].clone();
        assert_eq!(unit.agent_status.status, AgentStatus::Idle);
        let machine = view.machines[&unit.machine].clone();
        for number in 2..count {
            let name = UnitName::new(application.parse().unwrap(), number);
            let id = MachineId(1_000_000 * (unit.machine.0 + 1) + number);
            view.machines.insert(id, MachineView { id, ..machine.clone() });
            view.units.insert(name.clone(), UnitView { name, machine: id, ..unit.clone() });
        }
    }
    (view, lab.now())
}

/// A runner that only the test drives.
struct Runner {
    units: Arc<Units>,
    view: View,
    _keeper: Incoming<ToKeeper>,
}

impl Runner {
    fn new(now: Timestamp) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_, outgoing): (Incoming<ToRunner>, Outgoing<ToKeeper>) =
            split(ours, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT);
        let (link, _writer) = Link::new(outgoing);
        let (keeper, _): (_, Outgoing<ToRunner>) = split(theirs, FROM_RUNNER_LIMIT, FROM_KEEPER_LIMIT);
        let sandbox = Sandbox::new(Options { hooks_in_flight: 1, ..Options::default() }).unwrap();
        // None of the units' timers is due.
        let timeline = Timeline::new(now, BootTime::now().0);
        let start = Start { timeline, ..start(Vec::new(), 60_000) };
        let runner = RunnerContext {
            incarnation: Default::default(),
            engine: "none".into(),
            mirror: Mirror::default(),
            leases: Arc::default(),
            charms: PreparedCharms::new(sandbox.clone(), link.clone()),
            fetch: Fetch::new(link.clone()),
            storages: Storages::new(start.storage.clone()),
            hooks: Admission::new(1, 1024),
            groups: Groups::default(),
            workloads: Default::default(),
            start,
            link,
            sandbox,
        };
        let (units, _) = Units::new(Arc::new(runner));
        Self { units, view: View::default(), _keeper: keeper }
    }

    /// Applies a change of the view. Returns the number of executors that it woke.
    async fn shows(&mut self, change: impl FnOnce(&mut View)) -> u64 {
        let mut newer = self.view.clone();
        change(&mut newer);
        newer.revision.0 += 1;
        let frame = match self.view.model {
            None => newer.full_frame(STORE),
            Some(_) => self.view.frame_to(&newer, STORE),
        };
        self.view = newer;
        let mirror = &self.units.runner.mirror;
        mirror.apply(frame).unwrap();
        let before = self.units.woken();
        if let Some(news) = mirror.news() {
            self.units.hear(news).await;
        }
        self.units.woken() - before
    }
}

fn unit(number: u32) -> UnitName {
    UnitName::new("app".parse().unwrap(), number)
}

#[tokio::test]
async fn a_frame_wakes_the_units_that_it_concerns_and_no_other() {
    let (view, now) = many_units();
    let mut runner = Runner::new(now);
    let tasks = Handle::current().metrics().num_alive_tasks();
    runner.shows(|shown| *shown = view).await;
    runner.units.begin(&[]).await;
    let all = u64::from(MANY + FEW);
    assert!(runner.units.at_rest().is_some(), "nothing is due for any of them");
    assert_eq!(runner.units.under_way(), 0);
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks, "who rests has no task");

    assert_eq!(runner.shows(|_| {}).await, 0, "a heartbeat");
    let one = runner.shows(|view| view.units.get_mut(&unit(7)).unwrap().record.seq += 1).await;
    assert_eq!(one, 1, "the commit of a unit");
    let said = |view: &mut View| view.units.get_mut(&unit(7)).unwrap().early_number += 1;
    assert_eq!(runner.shows(said).await, 0, "what a unit said");
    let ports = |view: &mut View| {
        let machine = view.units[&unit(7)].machine;
        view.machines.get_mut(&machine).unwrap().ports.insert(unit(7), Vec::new());
    };
    assert_eq!(runner.shows(ports).await, 0, "a port of a unit");
    let bag = |owner: BagOwner| {
        move |view: &mut View| {
            let relation = *view.relations.keys().next().unwrap();
            let key = BagKey { relation, owner };
            let bag = BagView { key: key.clone(), settings: Default::default(), version: 1, container: None };
            view.bags.insert(key, bag);
        }
    };
    assert_eq!(runner.shows(bag(BagOwner::Unit(unit(7)))).await, 0, "a unit's own bag");
    let joined = |view: &mut View| {
        let id = *view.relations.keys().next().unwrap();
        view.relations.get_mut(&id).unwrap().members.insert(unit(MANY), Default::default());
    };
    assert_eq!(runner.shows(joined).await, 0, "one more of their own in a relation");
    let exposed = |view: &mut View| view.applications.get_mut(unit(0).application()).unwrap().exposed = true;
    assert_eq!(runner.shows(exposed).await, 0, "what people read");
    let budget = |view: &mut View| {
        let c: ApplicationName = "c".parse().unwrap();
        view.applications.get_mut(&c).unwrap().leader_settings.insert("a".to_owned(), "b".to_owned());
    };
    assert_eq!(runner.shows(budget).await, u64::from(FEW), "settings of a small application");
    let model = |view: &mut View| {
        view.model.as_mut().unwrap().config.automatically_retry_hooks ^= true;
    };
    assert_eq!(runner.shows(model).await, all, "the model's own settings");
    assert!(runner.units.at_rest().is_some());
    assert_eq!(runner.units.under_way(), 0);
}

#[tokio::test]
async fn what_many_units_look_at_is_theirs_to_be_woken_by() {
    let (view, now) = many_units();
    let mut runner = Runner::new(now);
    runner.shows(|shown| *shown = view).await;
    runner.units.begin(&[]).await;
    let relation = *runner.view.relations.keys().next().unwrap();
    let members = Dependency::Members(relation, "b".parse().unwrap());
    let concerned = runner.units.concerned(&[members].into());
    assert_eq!(concerned.len(), usize::try_from(MANY).unwrap(), "all that are related to b");
    let machine = Dependency::Machine(runner.view.units[&unit(9)].machine);
    let concerned = runner.units.concerned(&[machine].into());
    assert_eq!(concerned, [unit(9)].into());
}
