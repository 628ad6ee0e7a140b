//! Storage (`docs/conformance.md` L, `docs/hook-model.md` 1.7 rule 13, U-40, U-42, 5.8).

use std::time::Duration;

use periapt_host_api::{
    ModelUuid, StorageId,
    command::{Command, ControllerCommand, Deploy, Force, Placement, ResolveMode},
    storage::{StorageEnd, UnitStorage},
};
use periapt_lab::{Action, HookRunState, Lab, LabCharm, LabError, invariants};

use crate::bench::{charm, does, fails, lab, runs};

const STORED: &str = "
name: stored
storage:
  data: {type: filesystem, location: /srv/data}
  logs: {type: filesystem, multiple: {range: 0-2}, minimum-size: 100M}
";

const FIRST: [&str; 5] = ["data-storage-attached", "install", "leader-elected", "config-changed", "start"];

/// Returns a model with a started `a/0`, which has `data/0`.
fn stored() -> Lab {
    let mut lab = lab();
    lab.deploy("a", &charm(STORED), 1).unwrap();
    lab.run_until_idle().unwrap();
    lab
}

fn id(text: &str) -> StorageId {
    text.parse().unwrap()
}

/// Returns the model's storage with its statuses.
fn shown(lab: &Lab) -> Vec<String> {
    let storage = lab.status().unwrap().storage.unwrap_or_default().storage;
    storage.iter().map(|(id, info)| format!("{id} {}", info.status.current)).collect()
}

fn add(lab: &mut Lab, directive: &str) -> Result<(), LabError> {
    let (name, directive) = directive.split_once('=').unwrap();
    let storage = [(name.parse().unwrap(), directive.parse().unwrap())].into();
    lab.command(&Command::AddStorage { unit: "a/0".parse().unwrap(), storage }).map(|_| ())
}

#[test]
fn l01_no_hook_runs_before_the_storage_is_there() {
    let mut lab = lab();
    lab.hold_disk("host").unwrap();
    lab.deploy("a", &charm(STORED), 1).unwrap();
    lab.advance(Duration::from_secs(600)).unwrap();
    assert_eq!(runs(&lab, "a/0"), [""; 0]);
    assert_eq!(shown(&lab), ["data/0 pending"]);
    lab.mend_disk("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0"), FIRST);
}

#[test]
fn l02_the_attached_hook_comes_before_install() {
    let lab = stored();
    assert_eq!(runs(&lab, "a/0"), FIRST);
    assert_eq!(shown(&lab), ["data/0 attached"]);
    assert_eq!(invariants::rest_violations(lab.state().unwrap()), []);
}

#[test]
fn l03_a_dying_unit_lets_its_storage_go_and_then_stops() {
    let mut lab = stored();
    lab.remove_unit("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0")[FIRST.len()..], ["data-storage-detaching", "stop", "remove"]);
    assert!(lab.unit("a/0").is_err());
    assert_eq!(shown(&lab), ["data/0 detached"], "it outlives its unit");
}

#[test]
fn storage_that_is_to_be_destroyed_with_its_unit_is_deleted_after_it() {
    let mut lab = stored();
    lab.hold_disk("host").unwrap();
    let unit = "a/0".parse().unwrap();
    lab.command(&Command::RemoveUnit { unit, force: None, storage: UnitStorage::Destroy }).unwrap();
    lab.run_until_idle().unwrap();
    assert!(lab.unit("a/0").is_err());
    assert_eq!(shown(&lab), ["data/0 removing"]);
    lab.mend_disk("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(shown(&lab), [""; 0]);
}

#[test]
fn l05_a_unit_whose_storage_never_came_terminates_and_u40_without_a_hook() {
    let mut lab = lab();
    lab.hold_disk("host").unwrap();
    lab.deploy("a", &charm(STORED), 1).unwrap();
    lab.run_until_idle().unwrap();
    lab.remove_unit("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert!(lab.unit("a/0").is_err());
    assert_eq!((runs(&lab, "a/0"), shown(&lab)), (vec![], vec![]));
}

#[test]
fn l06_storage_that_is_added_later_holds_nothing_up() {
    let mut lab = stored();
    lab.hold_disk("host").unwrap();
    add(&mut lab, "logs=2").unwrap();
    lab.reboot_host("host").unwrap();
    lab.hold_disk("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0")[FIRST.len()..], ["start"]);
    lab.mend_disk("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0")[FIRST.len() + 1..], ["logs-storage-attached", "logs-storage-attached"]);
}

#[test]
fn a_size_alone_makes_one_instance_of_storage_that_the_charm_can_do_without() {
    for (directive, expected) in [
        ("logs=100M", &["data/0 attached", "logs/1 attached"][..]),
        ("logs=rootfs,100M", &["data/0 attached", "logs/1 attached"]),
        ("logs=rootfs", &["data/0 attached"]),
        ("logs=2", &["data/0 attached", "logs/1 attached", "logs/2 attached"]),
        ("data=2G", &["data/0 attached"]),
    ] {
        let mut lab = lab();
        let (name, text) = directive.split_once('=').unwrap();
        let charm = charm(STORED);
        lab.deploy("without-units", &charm, 0).unwrap();
        let deploy = Deploy {
            charm: charm.digest(),
            application: Some("a".parse().unwrap()),
            units: 1,
            config: Default::default(),
            placement: Vec::new(),
            storage: [(name.parse().unwrap(), text.parse().unwrap())].into(),
            trust: false,
            force: false,
            bindings: Default::default(),
            resources: Default::default(),
            attach_storage: Vec::new(),
            constraints: Default::default(),
        };
        lab.command(&Command::Deploy(deploy)).unwrap();
        lab.run_until_idle().unwrap();
        assert_eq!(shown(&lab), expected, "{directive}");
    }
}

#[test]
fn l07_a_charm_may_only_say_how_many() {
    let mut lab = stored();
    lab.script("a/0", "start", vec![Action::attempt("storage-add data=1G"), Action::attempt("storage-add")])
        .unwrap();
    lab.reboot_host("host").unwrap();
    lab.run_until_idle().unwrap();
    let tools = &lab.trace().last().unwrap().tools;
    let ended: Vec<_> =
        tools.iter().map(|call| (call.output.exit_code, call.output.stderr.trim_end())).collect();
    assert_eq!(
        ended,
        [
            (2, "ERROR only count can be specified for \"data\""),
            (2, "ERROR storage add requires a storage directive"),
        ]
    );
}

#[test]
fn a_charm_adds_storage_and_the_controller_counts_it_at_commit() {
    let mut lab = stored();
    lab.script("a/0", "start", does("storage-add logs=2")).unwrap();
    lab.reboot_host("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(shown(&lab), ["data/0 attached", "logs/1 attached", "logs/2 attached"]);
    lab.reboot_host("host").unwrap();
    lab.run_until_idle().unwrap();
    let last = lab.trace().last().unwrap();
    assert_eq!((last.event.hook_name().as_str(), last.state), ("start", HookRunState::Failed));
    let operation = format!("{:?}", lab.unit("a/0").unwrap().record.operation);
    assert!(operation.contains("at most 2 instances supported, 4 specified"), "{operation}");
}

#[test]
fn the_tools_tell_of_what_is_there_and_of_what_is_not_yet() {
    let mut lab = stored();
    lab.hold_disk("host").unwrap();
    add(&mut lab, "logs=1").unwrap();
    let tools = [
        "storage-list",
        "storage-list logs",
        "storage-get -s data/0",
        "storage-get -s data/0 location",
        "storage-get -s logs/1",
        "storage-get -s data/7",
        "storage-get",
        "storage-get -s data/0 size",
    ];
    lab.script("a/0", "start", tools.iter().map(|tool| Action::attempt(tool)).collect()).unwrap();
    lab.reboot_host("host").unwrap();
    lab.hold_disk("host").unwrap();
    lab.run_until_idle().unwrap();
    let said: Vec<_> = lab.trace().last().unwrap().tools.iter().map(|call| &call.output).collect();
    let said: Vec<_> =
        said.iter().map(|out| (out.exit_code, format!("{}{}", out.stdout, out.stderr))).collect();
    let expected = [
        (0, "data/0\nlogs/1\n"),
        (0, "logs/1\n"),
        (0, "kind: filesystem\nlocation: /srv/data\n"),
        (0, "/srv/data\n"),
        (1, "ERROR storage \"logs/1\" is not provisioned\n"),
        (2, "ERROR invalid value \"data/7\" for option -s: storage not found\n"),
        (2, "ERROR no storage instance specified\n"),
        (1, "ERROR invalid storage attribute \"size\"\n"),
    ];
    assert_eq!(said, expected.map(|(code, text)| (code, text.to_owned())));
}

#[test]
fn a_run_that_was_cut_short_is_counted_in_the_attempt_of_the_next() {
    let mut lab = stored();
    lab.reboot_host("host").unwrap();
    for expected in 1..=3 {
        assert!(lab.start_hook("a/0").unwrap());
        let last = lab.trace().last().unwrap();
        assert_eq!((last.event.hook_name().as_str(), last.attempt), ("start", expected));
        lab.crash_runner("host").unwrap();
    }
    let operations: Vec<_> = lab.trace()[FIRST.len()..].iter().map(|traced| traced.operation).collect();
    assert!(operations.windows(2).all(|pair| pair[0] == pair[1]), "{operations:?}");
    lab.script("a/0", "start", fails()).unwrap();
    lab.run_until_idle().unwrap();
    lab.unscript_all();
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    let attempts: Vec<_> = lab.trace()[FIRST.len()..].iter().map(|traced| traced.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5]);
    add(&mut lab, "logs=1").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.trace().last().unwrap().attempt, 1);
}

#[test]
fn u42_storage_that_goes_before_its_hook_goes_in_silence() {
    let mut lab = stored();
    lab.hold_disk("host").unwrap();
    add(&mut lab, "logs=1").unwrap();
    lab.run_until_idle().unwrap();
    lab.command(&Command::DetachStorage { storage: id("logs/1"), force: None }).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!((runs(&lab, "a/0").len(), shown(&lab)), (FIRST.len(), vec!["data/0 attached".to_owned()]));
}

#[test]
fn u29_no_storage_hook_runs_while_another_has_failed() {
    let mut lab = stored();
    lab.script("a/0", "start", fails()).unwrap();
    lab.reboot_host("host").unwrap();
    lab.run_until_idle().unwrap();
    add(&mut lab, "logs=1").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0").last().unwrap(), "start");
    assert_eq!(shown(&lab), ["data/0 attached", "logs/1 attached"]);
    lab.unscript_all();
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/0").last().unwrap(), "logs-storage-attached");
}

#[test]
fn detached_storage_is_attached_to_another_unit_of_its_agent_only() {
    let mut lab = stored();
    lab.add_agent("far").unwrap();
    lab.remove_unit("a/0").unwrap();
    lab.run_until_idle().unwrap();
    lab.deploy_to("b", &charm(&STORED.replace("data: {", "data: {multiple: {range: 0+}, ")), 1, "far")
        .unwrap();
    lab.deploy_to("c", &charm(&STORED.replace("data: {", "data: {multiple: {range: 0-1}, ")), 1, "host")
        .unwrap();
    lab.run_until_idle().unwrap();
    let attach = |unit: &str| Command::AttachStorage { unit: unit.parse().unwrap(), storage: id("data/0") };
    let refused = lab.command(&attach("b/0")).unwrap_err().to_string();
    assert!(refused.contains("it lies on agent host, and unit b/0 is on agent far"), "{refused}");
    lab.command(&attach("c/0")).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "c/0").last().unwrap(), "data-storage-attached");
    let again = lab.command(&attach("c/0")).unwrap_err().to_string();
    assert!(again.contains("unit c/0 has it"), "{again}");
}

#[test]
fn what_was_forced_for_one_detachment_touches_no_later_one() {
    let mut lab = stored();
    add(&mut lab, "logs=1").unwrap();
    lab.run_until_idle().unwrap();
    let detach = |force| Command::DetachStorage { storage: id("logs/1"), force };
    lab.command(&detach(Some(Force { max_wait: 3_600 }))).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(shown(&lab), ["data/0 attached", "logs/1 detached"]);
    lab.command(&Command::AttachStorage { unit: "a/0".parse().unwrap(), storage: id("logs/1") }).unwrap();
    lab.run_until_idle().unwrap();
    lab.hold("a/0").unwrap();
    lab.command(&detach(None)).unwrap();
    lab.advance(Duration::from_secs(3_601)).unwrap();
    assert_eq!(shown(&lab), ["data/0 attached", "logs/1 detaching"], "its hook has not run");
    lab.command(&detach(Some(Force { max_wait: 60 }))).unwrap();
    lab.advance(Duration::from_secs(61)).unwrap();
    assert_eq!(shown(&lab), ["data/0 attached", "logs/1 detached"]);
}

/// Returns the charm of [`STORED`] with a minimum size of its storage.
fn at_least(size: &str) -> LabCharm {
    charm(&STORED.replace("/srv/data}", &format!("/srv/data, minimum-size: {size}}}")))
}

#[test]
fn a_charm_takes_no_more_of_a_disk_than_its_model_lets_it_unless_its_operator_says_so() {
    let mut lab = lab();
    let refused = lab.deploy("a", &at_least("1P"), 1).unwrap_err().to_string();
    let expected = "charm \"stored\" store \"data\": it wants at least 1024.0TiB, and storage-default-max-size lets charms \
                    take 16.0GiB; give its size, as in data=1024.0TiB, or raise the setting";
    assert!(refused.contains(expected), "{refused}");
    lab.deploy("a", &at_least("16G"), 1).unwrap();
    let set = |size: &str| Command::SetModelConfig {
        set: [("storage-default-max-size".to_owned(), size.to_owned())].into(),
        reset: Vec::new(),
    };
    // Admitted storage stays, and goes on to other charms; more is refused.
    lab.command(&set("1G")).unwrap();
    lab.refresh(
        "a",
        &charm(&format!("{STORED}# again\n").replace("/srv/data}", "/srv/data, minimum-size: 16G}")),
    )
    .unwrap();
    let refused = lab.refresh("a", &at_least("17G")).unwrap_err().to_string();
    assert!(refused.contains("cannot refresh application \"a\"") && refused.contains("17.0GiB"), "{refused}");
    lab.command(&set("17G")).unwrap();
    lab.refresh("a", &at_least("17G")).unwrap();
    lab.run_until_idle().unwrap();
    lab.command(&set("512M")).unwrap();
    let refused = add(&mut lab, "logs=1").unwrap_err().to_string();
    assert!(refused.contains("store \"logs\": it wants at least 1.0GiB"), "{refused}");
    add(&mut lab, "logs=1,200M").unwrap();
}

#[test]
fn storage_of_an_agent_that_is_gone_is_removed_by_force_alone() {
    let mut lab = stored();
    lab.remove_unit("a/0").unwrap();
    lab.run_until_idle().unwrap();
    lab.kill_agent("host").unwrap();
    let remove = |force| Command::RemoveStorage { storage: id("data/0"), end: StorageEnd::Destroy, force };
    lab.command(&remove(None)).unwrap();
    lab.advance(Duration::from_secs(600)).unwrap();
    assert_eq!(shown(&lab), ["data/0 removing"]);
    lab.command(&remove(Some(Force { max_wait: 60 }))).unwrap();
    lab.advance(Duration::from_secs(61)).unwrap();
    assert_eq!(shown(&lab), [""; 0]);
    let again = lab.command(&remove(None)).unwrap_err().to_string();
    assert!(again.contains("not found"), "{again}");
    // The controller forgets the files only after the returning agent has deleted them.
    assert_eq!(lab.state().unwrap().forgotten_storages().count(), 1);
    lab.start_agent("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.state().unwrap().forgotten_storages().count(), 0);
}

#[test]
fn a_disk_that_fails_is_seen_and_a_unit_in_wait_says_for_which_agent() {
    let mut lab = lab();
    lab.break_disk("host", "cannot make its directory: no space left").unwrap();
    lab.deploy("a", &charm(STORED), 1).unwrap();
    lab.run_until_idle().unwrap();
    let shown = lab.status().unwrap().storage.unwrap();
    let status = &shown.storage["data/0"].status;
    assert_eq!(
        (status.current.as_str(), status.message.as_str()),
        ("error", "cannot make its directory: no space left")
    );
    lab.mend_disk("host").unwrap();
    lab.run_until_idle().unwrap();
    lab.kill_agent("host").unwrap();
    lab.advance(Duration::from_secs(120)).unwrap();
    assert_eq!(lab.statuses("a/0").unwrap().0.message, "waits for agent host, where its storage lies");
}

/// The unit goes to the agent of the detached storage, gets no other in its place, and has it as its own.
#[test]
fn a_new_unit_takes_detached_storage_over() {
    let mut lab = lab();
    lab.add_agent("other").unwrap();
    lab.deploy_to("a", &charm(STORED), 1, "other").unwrap();
    lab.run_until_idle().unwrap();
    lab.remove_unit("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(shown(&lab), ["data/0 detached"]);
    let add = |count, placement, ids: &[&str]| Command::AddUnits {
        application: "a".parse().unwrap(),
        count,
        placement,
        attach_storage: ids.iter().map(|text| id(text)).collect(),
    };
    let elsewhere = vec![Placement::Agent("host".parse().unwrap())];
    for (command, expected) in [
        (add(2, vec![], &["data/0"]), "storage is attached to one unit, and 2 units are asked for"),
        (add(1, elsewhere, &["data/0"]), "its storage lies on agent other, and it is placed on agent host"),
        (add(1, vec![], &["data/7"]), "storage \"data/7\" not found"),
    ] {
        let error = lab.command(&command).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    lab.command(&add(1, vec![], &["data/0", "data/0"])).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/1"), FIRST);
    assert_eq!(shown(&lab), ["data/0 attached"], "none was made in its place");
    let agent = &lab.status().unwrap().machines.into_values().next().unwrap().instance_id;
    assert_eq!(agent, "other");
    let again = lab.command(&add(1, vec![], &["data/0"])).unwrap_err().to_string();
    assert!(again.contains("cannot attach storage data/0: unit a/1 has it"), "{again}");
}

/// Destroys a model by force while its agent is away, and returns it after the time-out.
fn forced(end: StorageEnd) -> (Lab, ModelUuid) {
    let mut lab = stored();
    let model = lab.model();
    lab.kill_agent("host").unwrap();
    let force = Some(Force { max_wait: 60 });
    lab.control(&ControllerCommand::DestroyModel { model, force, storage: Some(end) }).unwrap();
    lab.advance(Duration::from_secs(61)).unwrap();
    assert!(lab.root().model(&model).is_none() && lab.root().models().next().is_none());
    (lab, model)
}

#[test]
fn what_a_destroyed_model_forgot_by_force_is_deleted_when_its_agent_is_back() {
    let (mut lab, model) = forced(StorageEnd::Destroy);
    let files = |lab: &Lab| {
        lab.root().model_or_remains(&model).map_or(0, |remains| remains.forgotten_storages().count())
    };
    assert_eq!(files(&lab), 1);
    // No operator sees it, and its name is free.
    let destroy = ControllerCommand::DestroyModel { model, force: None, storage: None };
    assert!(lab.control(&destroy).unwrap_err().to_string().contains("not found"));
    lab.add_model("lab").unwrap();
    lab.restart_controller().unwrap();
    assert_eq!(files(&lab), 1);
    lab.start_agent("host").unwrap();
    lab.run_until_idle().unwrap();
    assert!(lab.root().model_or_remains(&model).is_none(), "nothing remains once the files are deleted");
}

#[test]
fn what_a_destroyed_model_released_is_nobodys_to_delete() {
    let (lab, model) = forced(StorageEnd::Release);
    assert!(lab.root().model_or_remains(&model).is_none());
}

#[test]
fn an_agent_promises_no_more_storage_than_it_may() {
    let mut lab = lab();
    lab.limit_storage("host", 2_500).unwrap();
    lab.deploy("a", &charm(STORED), 2).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(shown(&lab), ["data/0 attached", "data/1 attached"]);
    add(&mut lab, "logs=1,500M").unwrap();
    lab.run_until_idle().unwrap();
    let status = |lab: &Lab, id: &str| lab.status().unwrap().storage.unwrap().storage[id].status.clone();
    let waiting = status(&lab, "logs/2");
    assert_eq!(waiting.current, "pending");
    assert_eq!(
        waiting.message,
        "not enough space for 500MiB: 2.0GiB of the 2.4GiB that storage on agent host may take are promised; remove storage \
         there, or run the agent with a larger --storage-limit"
    );
    // Freed room is used, whether from other storage, from another model, or by a larger bound.
    lab.remove_unit("a/1").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(status(&lab, "logs/2").current, "pending", "what outlives its unit still takes room");
    let remove = Command::RemoveStorage { storage: id("data/1"), end: StorageEnd::Destroy, force: None };
    lab.command(&remove).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(
        (status(&lab, "logs/2").current, status(&lab, "logs/2").message),
        ("attached".into(), String::new())
    );
    add(&mut lab, "logs=1,1G").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(status(&lab, "logs/3").current, "pending");
    lab.limit_storage("host", 2_548).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(status(&lab, "logs/3").current, "attached");
    // Present storage stays under any later bound.
    lab.limit_storage("host", 1).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(shown(&lab), ["data/0 attached", "logs/2 attached", "logs/3 attached"]);
    assert_eq!(invariants::rest_violations(lab.state().unwrap()), []);
}
