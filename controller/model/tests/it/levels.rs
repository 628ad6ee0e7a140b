//! The level of what is stored.

use std::collections::BTreeMap;

use periapt_host_api::{
    Digest, ErrorCode, Incarnation, LEVEL, Level, OperationId, Refusal, Revision,
    agent::RunnerCommand,
    charm::{CharmFiles, CharmMeta},
    command::{Command, ControllerCommand},
    commit::UnitCommit,
    event::Event,
    journal::{HookOutcome, JournalRecord, Unrecorded},
    program::ProgramOffer,
    record::{Begun, HookFailure, HookStep, InterruptedHook, Operation, WorkloadRecord},
    resource::CheckedImage,
};
use periapt_model::{
    EntityKey, Input, Output, Root, UploadedCharm, UploadedResource, WorkerCommand, assignments,
    entity::{Controller, MetaReader},
    program_within, released_program, view,
};

use crate::{
    workloads::CHARM,
    world::{World, uploaded},
};

/// Sets the level back to that of a store of an earlier program.
fn set_back(world: &mut World) {
    let earlier = Controller { level: Level::FIRST, ..world.root.controller().unwrap().clone() };
    world.stored.insert(EntityKey::Controller, earlier.into());
    world.root = Root::from_entities(world.stored.clone(), world.root.revision()).unwrap();
}

#[test]
fn a_new_controller_has_the_level_of_its_program() {
    assert_eq!(World::new().root.level(), LEVEL);
    assert_eq!(Root::default().level(), Level::FIRST, "nothing is stored yet");
}

#[test]
fn the_level_of_a_store_of_an_earlier_program_is_raised_and_never_falls() {
    let mut world = World::new();
    set_back(&mut world);
    assert_eq!(world.root.level(), Level::FIRST);

    world.work(WorkerCommand::RaiseLevel(Level(LEVEL.0 + 7)));
    assert_eq!(world.root.level(), LEVEL, "no higher than this program knows");
    let before = world.root.controller().cloned();
    world.work(WorkerCommand::RaiseLevel(Level::FIRST));
    world.work(WorkerCommand::Initialize { name: "home".into() });
    assert_eq!(world.root.controller().cloned(), before);
}

#[test]
fn a_removed_controller_is_let_in_by_a_new_admission_alone() {
    let mut world = World::new();
    let (name, url) = ("two".to_owned(), "https://two:1".to_owned());
    let note =
        |name: &str, level| WorkerCommand::NoteController { name: name.into(), url: url.clone(), level };
    let remove = |name: &str| ControllerCommand::RemoveController { name: name.into() };
    let names =
        |world: &World| -> Vec<String> { world.root.members().map(|(name, _)| name.to_owned()).collect() };
    world.work(WorkerCommand::AdmitController { name: name.clone(), level: LEVEL });
    assert_eq!(names(&world), ["two"], "it is listed before it starts");
    let last = world.control(remove("two")).unwrap_err();
    assert_eq!(last.code, ErrorCode::Conflict, "{last}");
    world.work(note("one", LEVEL));
    world.work(note("two", LEVEL));
    world.control(remove("two")).unwrap();
    assert_eq!(world.control(remove("two")).unwrap_err().code, ErrorCode::NotFound);
    world.work(note("two", LEVEL));
    assert!(world.root.is_removed_member("two") && names(&world) == ["one"], "a report changes nothing");

    let too_old = WorkerCommand::AdmitController { name: name.clone(), level: Level::FIRST };
    let refused = world.try_work(too_old).unwrap_err();
    assert!(refused.message.contains("knows level 1, and the controllers store level 2"), "{refused}");
    world.work(WorkerCommand::AdmitController { name, level: LEVEL });
    assert_eq!(names(&world), ["one", "two"]);
}

#[test]
fn the_names_of_controllers_are_bounded_and_those_of_removed_ones_can_be_used_again() {
    let mut world = World::new();
    let admit = |number: u32| WorkerCommand::AdmitController { name: format!("c{number}"), level: LEVEL };
    for number in 0..64 {
        world.work(admit(number));
    }
    assert_eq!(world.try_work(admit(64)).unwrap_err().code, ErrorCode::QuotaExceeded);
    world.control(ControllerCommand::RemoveController { name: "c7".into() }).unwrap();
    assert_eq!(world.try_work(admit(64)).unwrap_err().code, ErrorCode::QuotaExceeded);
    world.work(admit(7));
    assert_eq!(world.root.members().count(), 64);
}

#[test]
fn what_an_earlier_program_does_not_know_is_refused_below_its_level() {
    let mut world = World::new();
    set_back(&mut world);
    let refused = world.control(ControllerCommand::RemoveController { name: "two".into() }).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotSupported);
    assert!(refused.message.contains("this needs level 2"), "{refused}");
    let program = ControllerCommand::SetProgram(offer(b"program"));
    assert_eq!(world.control(program).unwrap_err().code, ErrorCode::NotSupported);
    let note =
        WorkerCommand::NoteController { name: "two".into(), url: "https://two:1".into(), level: LEVEL };
    assert_eq!(world.try_work(note).unwrap_err().code, ErrorCode::NotSupported);
    assert!(world.root.members().next().is_none());
    let granted = || [("workload-egress".to_owned(), "example.com".to_owned())].into();
    let of_model = Command::SetModelConfig { set: granted(), reset: Vec::new() };
    let of_all = ControllerCommand::SetModelDefaults { set: granted(), reset: Vec::new() };
    assert_eq!(world.run(of_model).unwrap_err().code, ErrorCode::NotSupported);
    assert_eq!(world.control(of_all).unwrap_err().code, ErrorCode::NotSupported);
    let set = [("workload-crash".to_owned(), "error".to_owned())].into();
    let of_application = Command::SetConfig { application: "app".parse().unwrap(), set, reset: Vec::new() };
    assert_eq!(world.run(of_application).unwrap_err().code, ErrorCode::NotSupported);

    let image = CheckedImage { digest: Digest::of(b"manifest"), platform: "linux/amd64".into() };
    let digest = Digest::of(b"image");
    let image = UploadedResource { digest, size: 5, image: Some(image), parts: None };
    let refused = world.ask(&world.user(), &Input::UploadResource(image)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotSupported);
    let (unit, incarnation, report) = ("app/0".parse().unwrap(), Incarnation(1), Box::default());
    let report = RunnerCommand::Workloads { unit, incarnation, report };
    assert_eq!(world.runner_call("a1", report).unwrap_err().code, ErrorCode::NotSupported);
    let (model, id) = (world.model, Default::default());
    for migration in [
        ControllerCommand::AbortMigration { model, force: false },
        ControllerCommand::HoldImport { model, id, entities: 1 },
    ] {
        assert_eq!(world.control(migration).unwrap_err().code, ErrorCode::NotSupported);
    }
}

/// Returns the upload of a charm with containers.
fn with_containers() -> UploadedCharm {
    uploaded(&CharmFiles { metadata: Some(CHARM.into()), ..CharmFiles::default() })
}

/// Returns what an earlier program reads of the same archive.
fn read_by_an_earlier_program(charm: &UploadedCharm) -> UploadedCharm {
    let meta = CharmMeta { containers: BTreeMap::new(), ..charm.meta.clone() };
    UploadedCharm { meta, reader: MetaReader::FIRST, ..charm.clone() }
}

fn upload(world: &mut World, charm: &UploadedCharm) -> Result<Output, Refusal> {
    world.ask(&world.user(), &Input::UploadCharm(charm.clone()))
}

#[test]
fn charms_with_containers_are_refused_until_the_programs_of_all_controllers_keep_them() {
    let mut world = World::new();
    set_back(&mut world);
    let whole = with_containers();
    let refused = upload(&mut world, &whole).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotSupported);
    assert!(refused.message.contains("this needs level 2"), "{refused}");
    assert!(world.root.charm(&whole.digest).is_none());

    // An earlier program takes it, and another upload of it is refused as well.
    upload(&mut world, &read_by_an_earlier_program(&whole)).unwrap();
    let before = world.root.charm(&whole.digest).cloned();
    assert_eq!(upload(&mut world, &whole).unwrap_err().code, ErrorCode::NotSupported);
    assert_eq!(world.root.charm(&whole.digest).cloned(), before);
    world.upload_app();

    world.work(WorkerCommand::RaiseLevel(LEVEL));
    upload(&mut world, &whole).unwrap();
    assert_eq!(world.root.charm(&whole.digest).map(|charm| &charm.meta), Some(&whole.meta));
}

#[test]
fn a_charm_whose_containers_an_earlier_program_dropped_has_them_once_it_is_uploaded_again() {
    let mut world = World::new();
    let whole = with_containers();
    let earlier = read_by_an_earlier_program(&whole);
    upload(&mut world, &earlier).unwrap();
    world.deploy(whole.digest, "web", 1);
    world.start("web/0");
    let runner = world.runner("a1");
    assert!(view(&world.root, &runner).charms[&whole.digest].meta.containers.is_empty());

    upload(&mut world, &whole).unwrap();
    let known = world.root.charm(&whole.digest).unwrap().clone();
    assert_eq!((&known.meta, known.reader), (&whole.meta, MetaReader::NEWEST));
    assert_eq!(view(&world.root, &runner).charms[&whole.digest].meta, whole.meta, "its agent is shown them");
    for again in [&earlier, &whole] {
        upload(&mut world, again).unwrap();
        assert_eq!(world.root.charm(&whole.digest), Some(&known), "nothing is dropped again");
    }

    let summary = CharmMeta { summary: "another".into(), ..whole.meta.clone() };
    for (meta, reader) in [
        (summary.clone(), MetaReader::NEWEST),
        (summary, MetaReader::FIRST),
        (earlier.meta, MetaReader::NEWEST),
    ] {
        let other = UploadedCharm { meta, reader, ..whole.clone() };
        assert_eq!(upload(&mut world, &other).unwrap_err().code, ErrorCode::Internal);
    }
}

/// Returns changes of a commit that an earlier program would drop, or could not read.
fn told_of_workloads() -> [fn(&mut UnitCommit); 7] {
    fn ready() -> Event {
        Event::PebbleReady { container: "web".parse().unwrap() }
    }
    fn cut_short() -> HookFailure {
        let (message, failed_at) = ("cut short".into(), "2026-01-01T00:00:00Z".parse().unwrap());
        HookFailure { message, attempts: 1, failed_at, retry_after_ms: 1, cut_short: true }
    }
    fn ran(commit: &UnitCommit, event: Event) -> JournalRecord {
        let (charm, at) = (Digest::of(b"charm"), "2026-01-01T00:00:00Z".parse().unwrap());
        JournalRecord::of_no_run(commit.seq, event, HookOutcome::Handled, Revision(1), (charm, charm), at)
    }
    fn begun(event: Event, beside_workloads: bool) -> Option<Begun> {
        Some(Begun { event, attempt: 1, operation: OperationId(1), beside_workloads })
    }
    [
        |commit| {
            let told = WorkloadRecord { boot_id: "b1".into(), told: 0 };
            commit.record.workloads.insert("web".parse().unwrap(), told);
        },
        |commit| commit.record.begun = begun(Event::ConfigChanged, true),
        |commit| commit.record.begun = begun(ready(), false),
        |commit| commit.record.operation = Operation::Hook { event: ready(), step: HookStep::Queued },
        |commit| {
            let step = HookStep::Failed(cut_short());
            commit.record.operation = Operation::Hook { event: Event::ConfigChanged, step };
        },
        |commit| {
            let interrupted = InterruptedHook { event: ready(), failure: cut_short() };
            let failure = HookFailure { cut_short: false, ..cut_short() };
            let (charm, interrupted) = (commit.record.charm.unwrap(), Some(Box::new(interrupted)));
            commit.record.operation = Operation::DeployFailed { charm, failure, interrupted };
        },
        |commit| commit.journal = Some(ran(commit, ready())),
    ]
}

#[test]
fn commits_about_workloads_are_refused_until_the_programs_of_all_controllers_keep_them() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    let before = world.unit("app/0").clone();
    set_back(&mut world);
    for tell in told_of_workloads() {
        assert_eq!(world.commit("app/0", tell).unwrap_err().code, ErrorCode::NotSupported);
    }
    assert_eq!(*world.unit("app/0"), before);
    world.commit("app/0", |commit| commit.record.begun = None).unwrap();
    // A hook of any unit may make more calls than its record has room for.
    let calls_much = |commit: &mut UnitCommit| {
        let (charm, at) = (Digest::of(b"charm"), "2026-01-01T00:00:00Z".parse().unwrap());
        let (event, outcome) = (Event::ConfigChanged, HookOutcome::Handled);
        let mut ran = JournalRecord::of_no_run(commit.seq, event, outcome, Revision(1), (charm, charm), at);
        ran.calls.omitted = 1;
        ran.calls.unrecorded = Unrecorded { limit: 262_144, streams: BTreeMap::new() };
        commit.journal = Some(ran);
    };
    world.commit("app/0", calls_much).unwrap();

    world.work(WorkerCommand::RaiseLevel(LEVEL));
    for tell in told_of_workloads() {
        world.commit("app/0", tell).unwrap();
    }
}

fn offer(file: &[u8]) -> ProgramOffer {
    let (version, architecture) = ("1.2.3".to_owned(), "x86_64".to_owned());
    ProgramOffer { digest: Digest::of(file), version, architecture, level: LEVEL }
}

#[test]
fn the_program_of_all_is_an_uploaded_file_that_stays_and_agents_take_it_once_it_is_released() {
    let mut world = World::new();
    let set = |world: &mut World, offer: ProgramOffer| world.control(ControllerCommand::SetProgram(offer));
    let first = offer(b"first");
    assert_eq!(set(&mut world, first.clone()).unwrap_err().code, ErrorCode::NotFound, "it is not uploaded");
    for file in [&b"first"[..], b"second"] {
        let uploaded =
            UploadedResource { digest: Digest::of(file), size: file.len() as u64, image: None, parts: None };
        world.ask(&world.user(), &Input::UploadResource(uploaded)).unwrap();
    }
    let too_old = ProgramOffer { level: Level::FIRST, ..first.clone() };
    let refused = set(&mut world, too_old).unwrap_err();
    assert!(refused.message.contains("knows level 1"), "{refused}");
    for bad in ["", "two words", &"x".repeat(65)] {
        let bad = ProgramOffer { version: bad.to_owned(), ..first.clone() };
        assert_eq!(set(&mut world, bad).unwrap_err().code, ErrorCode::BadRequest);
    }

    set(&mut world, first.clone()).unwrap();
    let target = world.root.controller().and_then(|controller| controller.program.clone()).unwrap();
    assert_eq!((target.number, target.size, target.released), (1, 5, false));
    world.work(WorkerCommand::ForgetResource(first.digest));
    assert!(world.root.resource_content(&first.digest).is_some(), "agents and controllers still need it");
    assert_eq!(released_program(&world.root), None, "controllers come first");
    world.work(WorkerCommand::ReleaseProgram(2));
    assert_eq!(released_program(&world.root), None, "another target was meant");
    for number in world.root.agent_count()..12 {
        world.agent(&format!("more-{number}"));
    }
    assert_eq!(program_within(&world.root), 0, "there is nothing to fetch");
    world.work(WorkerCommand::ReleaseProgram(1));
    assert_eq!(released_program(&world.root).map(|target| &target.offer), Some(&first));
    let agent = world.root.agents().next().unwrap().name.clone();
    assert_eq!(assignments(&world.root, &agent).program_within, 2, "five of the twelve agents in a second");

    set(&mut world, offer(b"second")).unwrap();
    assert_eq!(released_program(&world.root), None);
    world.work(WorkerCommand::ForgetResource(first.digest));
    assert!(world.root.resource_content(&first.digest).is_none(), "nobody needs the first one any more");
    set(&mut world, offer(b"second")).unwrap();
    let again = world.root.controller().and_then(|controller| controller.program.as_ref());
    assert_eq!(again.map(|target| target.number), Some(3), "each command is another try");
}
