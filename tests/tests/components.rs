//! Real components in the laboratory: the production sandbox, with virtual time and printed seeds.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::{sync::LazyLock, time::Duration};

use periapt_archive::{Archive, COMPONENT};
use periapt_host_api::{
    RelationId,
    command::ResolveMode,
    journal::JournalRecord,
    relation::{BagKey, BagOwner},
    status::WorkloadStatus,
};
use periapt_lab::{Action, Component, Lab, LabCharm, invariants};
use periapt_model::RecordBody;
use periapt_sandbox::{Budgets, Options, Sandbox};

/// A charm in C that uses Juju's hook tools. It greets each related unit, and reports the data that it reads.
const HELLO: &[u8] = include_bytes!("../../runtime/sandbox/tests/fixtures/hello-0.1.0.charm");

static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| {
    // The laboratory runs one hook at a time; a small pool reserves little memory.
    Sandbox::new(Options { hooks_in_flight: 4, ..Options::default() }).unwrap()
});

fn hello(budgets: Budgets) -> LabCharm {
    let archive = Archive::read(HELLO).unwrap();
    let metadata = std::str::from_utf8(archive.file("charmcraft.yaml").unwrap()).unwrap().to_owned();
    let component = Component::new(&SANDBOX, archive.file(COMPONENT).unwrap(), None).unwrap();
    LabCharm::new(&metadata).unwrap().with_code(component.with_budgets(budgets))
}

/// Creates two related applications of the same charm, each on an agent of its own.
fn related(seed: u64) -> Lab {
    let charm = hello(Budgets::default());
    let mut lab = Lab::new(seed).unwrap();
    lab.add_agent("far").unwrap();
    lab.deploy_to("north", &charm, 1, "host").unwrap();
    lab.deploy_to("south", &charm, 1, "far").unwrap();
    lab.integrate("north:greeting", "south:hears").unwrap();
    lab.run_until_idle().unwrap();
    lab
}

fn journal(lab: &Lab, unit: &str) -> Vec<JournalRecord> {
    lab.records_of(unit)
        .filter_map(|record| match record {
            RecordBody::Journal(journal) => Some(JournalRecord::clone(journal)),
            _ => None,
        })
        .collect()
}

#[test]
fn two_components_start_and_tell_each_other_all() {
    let lab = related(1);
    assert_eq!(invariants::order_violations(lab.trace()), []);
    assert_eq!(invariants::rest_violations(lab.state().unwrap()), []);
    let start = ["install", "greeting-relation-created", "leader-elected", "config-changed", "start"];
    assert_eq!(lab.hooks_of("north/0")[..start.len()], start);
    let (heard, _) = lab.statuses("south/0").unwrap();
    assert_eq!(heard.status, WorkloadStatus::Active);
    assert!(heard.message.starts_with("heard from north/0: Hello"), "{}", heard.message);
    assert_eq!(lab.unit("north/0").unwrap().ports.len(), 1, "its config-changed opens a port");
}

#[test]
fn a_component_hears_of_a_changed_setting_through_its_relation() {
    let mut lab = related(2);
    lab.configure("north", &[("greeting", "Ahoy")]).unwrap();
    lab.run_until_idle().unwrap();
    let (heard, _) = lab.statuses("south/0").unwrap();
    assert!(heard.message.starts_with("heard from north/0: Ahoy"), "{}", heard.message);
}

#[test]
fn the_same_seed_gives_the_same_journal_and_another_seed_another() {
    let [one, again, other] = [7, 7, 8].map(related);
    for unit in ["north/0", "south/0"] {
        let journals = [&one, &again, &other].map(|lab| journal(lab, unit));
        assert!(!journals[0].is_empty());
        assert_eq!(journals[0], journals[1]);
        // The controller has sealed the seeds; equal seeds are sealed equally.
        let seeds =
            journals.map(|journal| journal.into_iter().map(|record| record.sealed).collect::<Vec<_>>());
        assert!(seeds[0].iter().all(|seed| seed.is_some() && !seeds[2].contains(seed)));
    }
}

#[test]
fn a_component_that_is_past_its_budget_is_a_failed_hook_until_it_is_resolved() {
    let mut lab = Lab::new(3).unwrap();
    lab.deploy("north", &hello(Budgets { fuel: 1_000, ..Budgets::default() }), 1).unwrap();
    lab.run_until_idle().unwrap();
    let (workload, _) = lab.statuses("north/0").unwrap();
    assert_eq!(
        (workload.status, workload.message.as_str()),
        (WorkloadStatus::Error, "hook failed: \"install\"")
    );
    assert!(
        matches!(&lab.trace()[0].ending, Some(periapt_lab::Ending::Failed(message)) if message.contains("budget"))
    );
    lab.upload(&hello(Budgets::default())).unwrap();
    lab.resolve("north/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.hooks_of("north/0"), ["install", "leader-elected", "config-changed", "start"]);
}

#[test]
fn a_runner_that_dies_between_any_two_steps_of_a_component_changes_nothing() {
    let end = |lab: &Lab| {
        let bags = lab.state().unwrap().relations_with_bags().flat_map(|id| lab.state().unwrap().bags(id));
        let bags: Vec<String> = bags.map(|bag| format!("{:?} {:?}", bag.key, bag.settings)).collect();
        (lab.hooks_of("north/0"), bags)
    };
    let undisturbed = end(&related(4));
    let charm = hello(Budgets::default());
    for steps in 0..12 {
        let mut lab = Lab::new(4).unwrap();
        lab.add_agent("far").unwrap();
        lab.deploy_to("north", &charm, 1, "host").unwrap();
        lab.deploy_to("south", &charm, 1, "far").unwrap();
        lab.integrate("north:greeting", "south:hears").unwrap();
        for _ in 0..steps {
            lab.micro_step("north/0").unwrap();
        }
        lab.crash_runner("host").unwrap();
        lab.run_until_idle().unwrap();
        assert_eq!(end(&lab), undisturbed, "killed after {steps} steps");
    }
}

#[test]
fn a_script_stands_in_for_one_hook_of_a_component() {
    let mut lab = related(5);
    lab.script("north/0", "config-changed", vec![Action::fail("out of luck")]).unwrap();
    lab.configure("north", &[("greeting", "Ahoy")]).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.statuses("north/0").unwrap().0.status, WorkloadStatus::Error);
    lab.unscript_all();
    lab.advance(Duration::from_secs(6)).unwrap();
    let (heard, _) = lab.statuses("south/0").unwrap();
    assert!(heard.message.starts_with("heard from north/0: Ahoy"), "{}", heard.message);
}

/// Returns the effects of the component's hook: the key in its bag, its ports and its status message.
fn left(lab: &Lab, relation: RelationId) -> (bool, usize, String) {
    let key = BagKey { relation, owner: BagOwner::Unit("a/0".parse().unwrap()) };
    let bag = lab.state().unwrap().bag(&key).unwrap();
    let message = lab.unit("a/0").unwrap().workload_status.message.clone();
    (bag.settings.contains_key("mine"), lab.unit("a/0").unwrap().ports.len(), message)
}

/// Creates a probe `a/0` with config-changed due: the hook writes to its bag, opens a port, sets a status, and ends
/// with the script line `end`.
fn about_to_write(end: &str) -> (Lab, RelationId) {
    let directory = tempfile::tempdir().unwrap();
    let archive = std::fs::read(periapt_tests::packed("probe", directory.path()).unwrap()).unwrap();
    let archive = Archive::read(&archive).unwrap();
    let metadata = std::str::from_utf8(archive.file("charmcraft.yaml").unwrap()).unwrap().to_owned();
    let component = Component::new(&SANDBOX, archive.file(COMPONENT).unwrap(), None).unwrap();
    let probe = LabCharm::new(&metadata).unwrap().with_code(component);
    let mut lab = Lab::new(6).unwrap();
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    lab.deploy("a", &probe, 1).unwrap();
    lab.deploy("b", &probe, 0).unwrap();
    let relation = lab.integrate("a:sink", "b:db").unwrap();
    lab.run_until_idle().unwrap();
    let lines = ["set mine=1", "open-port 80/tcp", "status active done", end];
    let script: Vec<_> = lines.iter().map(|line| format!("config-changed: {line}")).collect();
    lab.configure("a", &[("script", &script.join("\n"))]).unwrap();
    assert_eq!(left(&lab, relation), (false, 0, String::new()));
    (lab, relation)
}

#[test]
fn i01_of_a_component_that_fails_nothing_is_visible_but_its_status() {
    for end in ["fail no luck", "panic no luck", "trap"] {
        let (mut lab, relation) = about_to_write(end);
        lab.run_until_idle().unwrap();
        assert_eq!(left(&lab, relation), (false, 0, "done".to_owned()), "{end}");
        assert_eq!(lab.statuses("a/0").unwrap().0.message, "hook failed: \"config-changed\"", "{end}");
    }
}

#[test]
fn i02_all_that_a_component_asked_for_becomes_visible_by_one_request() {
    let (mut lab, relation) = about_to_write("log well");
    assert!(lab.start_hook("a/0").unwrap());
    assert_eq!(left(&lab, relation), (false, 0, String::new()));
    let revision = lab.root().revision().0;
    assert!(lab.step("a/0").unwrap());
    assert_eq!((left(&lab, relation), lab.root().revision().0), ((true, 1, "done".to_owned()), revision + 1));
}
