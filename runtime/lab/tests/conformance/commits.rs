//! I: a hook's effects happen wholly, in one request, or not at all (`docs/hook-model.md` 3.1).

use periapt_host_api::{
    RelationId,
    command::{Command, Deploy, Placement},
    event::Event,
    record::{HookStep, Operation},
    relation::{BagKey, BagOwner},
    state::StateKey,
    status::WorkloadStatus,
};
use periapt_lab::{Action, Hook, Lab};
use serde_json::json;

use crate::bench::{
    LOCAL, REMOTE, bag_of, charm, check_error, fails, lab, ports_of, runs, started, tries, workload,
};

/// The effects of a hook (3.1), in the model and in the view of the other side's agent.
#[derive(Debug, PartialEq)]
struct CommittedEffects {
    unit_bag: Option<String>,
    application_bag: Option<String>,
    leader_settings: usize,
    stored: Option<String>,
    ports: Vec<String>,
    seen_afar: Option<String>,
    told_afar: Vec<String>,
}

/// Returns a model with `a/0` and `b/0` related, each on an agent of its own, after all their
/// hooks.
fn related() -> (Lab, RelationId) {
    let mut lab = started(LOCAL, 1);
    lab.add_agent("far").unwrap();
    lab.deploy_to("b", &charm(REMOTE), 1, "far").unwrap();
    let relation = lab.integrate("a:db", "b:db").unwrap();
    lab.run_until_idle().unwrap();
    (lab, relation)
}

fn left(lab: &Lab, relation: RelationId, heard_before: usize) -> CommittedEffects {
    let own = |owner| BagKey { relation, owner };
    let unit = own(BagOwner::Unit("a/0".parse().unwrap()));
    let application = own(BagOwner::Application("a".parse().unwrap()));
    let stored = StateKey { unit: "a/0".parse().unwrap(), key: "kept".to_owned() };
    let state = lab.state().unwrap();
    CommittedEffects {
        unit_bag: bag_of(lab, relation, "a/0").get("mine").cloned(),
        application_bag: state.bag(&application).and_then(|bag| bag.settings.get("ours").cloned()),
        leader_settings: state.application(&"a".parse().unwrap()).unwrap().leader_settings.len(),
        stored: state.state_entry(&stored).map(|entry| entry.value.clone()),
        ports: ports_of(lab, "a/0"),
        seen_afar: lab.mirror("far").unwrap().bags[&unit].settings.get("mine").cloned(),
        told_afar: runs(lab, "b/0").split_off(heard_before),
    }
}

/// Returns a hook with every kind of effect.
fn everything() -> Vec<Action> {
    let tools = [
        "relation-set -r 0 mine=1",
        "relation-set -r 0 --app ours=1",
        "leader-set who=me",
        "state-set kept=1",
        "open-port 80",
        "open-port 90-99/udp",
    ];
    tools.map(Action::tool).to_vec()
}

#[test]
fn i01_of_a_hook_that_fails_nothing_is_visible() {
    let (mut lab, relation) = related();
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    let heard = runs(&lab, "b/0").len();
    let before = left(&lab, relation, heard);
    lab.script("a/0", "config-changed", [everything(), fails()].concat()).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    let failed = lab.trace().last().unwrap();
    assert!(failed.tools.iter().all(|call| call.output.exit_code == 0), "all was taken: {failed:?}");
    assert_eq!(left(&lab, relation, heard), before);
    assert_eq!((&before.unit_bag, &before.ports[..], before.told_afar.len()), (&None, &[][..], 0));
    check_error(&lab, "a/0", "config-changed", &json!({"hook": "config-changed"}));
    // The repeated hook starts without the effects of the first run, too.
    lab.script("a/0", "config-changed", tries(&["relation-get -r 0 mine a/0", "opened-ports", "state-get"]))
        .unwrap();
    lab.resolve("a/0", periapt_host_api::command::ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    let empty = |output: &str| output.is_empty() || output == "{}\n";
    assert!(lab.trace().last().unwrap().tools.iter().all(|call| empty(&call.output.stdout)));
    assert_eq!(left(&lab, relation, heard), before);
}

#[test]
fn i02_all_that_a_hook_asked_for_becomes_visible_by_one_request() {
    let (mut lab, relation) = related();
    let heard = runs(&lab, "b/0").len();
    lab.script("a/0", "config-changed", everything()).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.hold("b/0").unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    let revision = lab.root().revision();
    assert_eq!(left(&lab, relation, heard).unit_bag, None, "not before the handler is done");
    assert!(lab.step("a/0").unwrap());
    assert_eq!(lab.root().revision().0, revision.0 + 1, "one write brought it all");
    lab.release("b/0").unwrap();
    lab.run_until_idle().unwrap();
    let expected = CommittedEffects {
        unit_bag: Some("1".to_owned()),
        application_bag: Some("1".to_owned()),
        leader_settings: 1,
        stored: Some("1".to_owned()),
        ports: vec!["80/tcp []".to_owned(), "90-99/udp []".to_owned()],
        seen_afar: Some("1".to_owned()),
        told_afar: vec!["db-relation-changed".to_owned(), "db-relation-changed a/0".to_owned()],
    };
    assert_eq!(left(&lab, relation, heard), expected);
}

#[test]
fn i03_a_refused_commit_is_a_failed_hook_of_which_nothing_is_visible() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    lab.deploy("b", &charm(REMOTE), 0).unwrap();
    lab.run_until_idle().unwrap();
    let machine = lab.unit("a/0").unwrap().machine.unwrap();
    lab.upload(&charm(LOCAL)).unwrap();
    lab.command(&Command::Deploy(Deploy {
        application: Some("c".parse().unwrap()),
        placement: vec![Placement::Machine(machine)],
        ..Deploy::of(charm(LOCAL).digest(), 1)
    }))
    .unwrap();
    let relations = ["a", "c"].map(|application| lab.integrate(application, "b").unwrap());
    lab.run_until_idle().unwrap();
    // Both units of the machine request the same port at the same time, so neither can know of the
    // other.
    for (unit, relation) in ["a/0", "c/0"].iter().zip(relations) {
        let set = format!("relation-set -r {relation} k=v");
        let tools = ["open-port 80", "leader-set who=both", &set].map(Action::tool);
        lab.script(unit, "config-changed", tools.to_vec()).unwrap();
    }
    for application in ["a", "c"] {
        lab.configure(application, &[("colour", "blue")]).unwrap();
    }
    for unit in ["a/0", "c/0"] {
        assert!(lab.start_hook(unit).unwrap());
    }
    lab.run_until_idle().unwrap();
    let failure = &lab.unit("c/0").unwrap().record.operation;
    let Operation::Hook { step: HookStep::Failed(failure), .. } = failure else { panic!("{failure:?}") };
    assert!(failure.message.contains("port range conflicts"), "{}", failure.message);
    check_error(&lab, "c/0", "config-changed", &json!({"hook": "config-changed"}));
    let settings = |name: &str| {
        lab.state().unwrap().application(&name.parse().unwrap()).unwrap().leader_settings.clone()
    };
    assert_eq!((settings("a").len(), settings("c").len()), (1, 0));
    assert!(lab.unit("c/0").unwrap().ports.is_empty());
    let written = |unit, relation| bag_of(&lab, relation, unit).contains_key("k");
    assert_eq!((written("a/0", relations[0]), written("c/0", relations[1])), (true, false));
}

/// Fills the commit to its bound.
fn fill(hook: &mut Hook<'_>) -> Result<(), String> {
    for number in 0.. {
        // A quote takes two bytes in a commit.
        let value = "\"".repeat(30_000);
        let said = hook.run_tool(&["state-set".into(), format!("key{number}={value}")], None);
        if said.exit_code != 0 {
            return if said.stderr.contains("fit into one commit") { Ok(()) } else { Err(said.stderr) };
        }
    }
    Ok(())
}

#[test]
fn what_fits_into_a_hook_fits_into_its_commit_however_large_unit_and_application_are() {
    for colour in ["red".to_owned(), "\"".repeat(200_000)] {
        let mut lab = lab();
        let filler = charm(LOCAL).with_handler(|hook| match hook.event() {
            Event::Start => fill(hook),
            _ => Ok(()),
        });
        lab.deploy("a", &filler, 1).unwrap();
        lab.configure("a", &[("colour", &colour)]).unwrap();
        lab.run_until_idle().unwrap();
        assert_eq!(workload(&lab, "a/0").0, WorkloadStatus::Unknown, "no hook has failed");
        let state = lab.state().unwrap();
        let stored: usize = state.state_of(&"a/0".parse().unwrap()).map(|entry| entry.value.len()).sum();
        let room = (1 << 20) - 2 * colour.len();
        assert!(2 * stored > room - (256 << 10), "{stored} bytes of {room} were stored");
    }
}

#[test]
fn one_large_value_reaches_another_agent_and_many_do_not_exceed_a_commit() {
    let mut lab = lab();
    let writer = charm(LOCAL).with_handler(|hook| {
        if !matches!(hook.event(), Event::ConfigChanged) {
            return Ok(());
        }
        let relations = hook.tool("relation-ids db")?;
        for relation in relations.split_whitespace() {
            // A quote takes two bytes in a commit, so three such bags exceed one.
            let argv = ["relation-set", "-r", relation, &format!("big={}", "\"".repeat(200 << 10))]
                .map(str::to_owned);
            let said = hook.run_tool(&argv, None);
            if said.exit_code != 0 {
                return if said.stderr.contains("fit into one commit") { Ok(()) } else { Err(said.stderr) };
            }
        }
        Err("all of them were taken".to_owned())
    });
    lab.deploy("a", &writer, 1).unwrap();
    lab.add_agent("far").unwrap();
    let mut relations = Vec::new();
    for name in ["b", "c", "d"] {
        lab.deploy_to(name, &charm(REMOTE), 1, "far").unwrap();
        relations.push(lab.integrate("a:db", &format!("{name}:db")).unwrap());
    }
    for unit in ["b/0", "c/0", "d/0"] {
        lab.script(unit, "db-relation-changed", tries(&["relation-get big a/0"])).unwrap();
    }
    lab.run_until_idle().unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(workload(&lab, "a/0").0, WorkloadStatus::Unknown, "no hook has failed");
    let written = |relation: &RelationId| bag_of(&lab, *relation, "a/0").get("big").map(String::len);
    let written: Vec<_> = relations.iter().map(written).collect();
    assert_eq!(written, [Some(200 << 10), Some(200 << 10), None]);
    let read = |unit: &str| {
        let hooks = lab.trace().iter().filter(|hook| hook.unit.to_string() == unit);
        hooks.flat_map(|hook| &hook.tools).map(|call| call.output.stdout.trim_end().len()).max()
    };
    assert_eq!([read("b/0"), read("c/0"), read("d/0")], [Some(200 << 10), Some(200 << 10), Some(0)]);
}
