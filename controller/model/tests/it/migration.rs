//! Models that migrate to another controller: what is frozen, what comes, and that one controller serves at a time.

use periapt_host_api::{
    AgentName, Digest, ErrorCode, ModelUuid, Refusal,
    access::ModelAccess,
    agent::{Admission, ControllerPlace, RunnerCommand},
    command::{Answer, Caller, Command, ControllerCommand},
    migration::{
        DELETING, HELD, ImportPage, ImportPlan, MIGRATION_SECONDS, MOVED_SECONDS, MigrationPhase,
        MigrationTarget,
    },
    secret::{Confidential, Sealed},
};
use periapt_model::{
    Input, UploadedCharm, WorkerCommand, agents_to_migrate, entities_to_migrate, migration_status, moved_to,
    plan_begun_migration, plan_migration,
};
use uuid::Uuid;

use crate::{
    cost::counted,
    world::{World, deploy_command},
};

/// Makes a controller whose agent "a1" has joined with a key, with an application of three units.
fn source() -> World {
    let mut world = World::new();
    world.join("a1", "key");
    world.deploy_db("db", 3);
    world
}

fn target() -> World {
    World::bare("other", 1 << 20)
}

fn seconds(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap()
}

fn name(text: &str) -> AgentName {
    text.parse().unwrap()
}

fn place(of: &World) -> ControllerPlace {
    ControllerPlace {
        controller: of.root.controller().unwrap().uuid,
        addresses: vec!["https://other.example:17070".to_owned()],
        authority: "PEM".to_owned(),
    }
}

fn migrate(from: &mut World, to: &World) -> Result<Uuid, Refusal> {
    let sealed = Sealed { checksum: "c".to_owned(), bytes: "b".to_owned() };
    let target = Box::new(MigrationTarget { place: place(to), token: Confidential::Sealed(sealed) });
    let model = from.model;
    from.control(ControllerCommand::Migrate { model, target })?;
    Ok(status(from, model).unwrap().0)
}

fn status(world: &World, model: ModelUuid) -> Option<(Uuid, MigrationPhase)> {
    let status = migration_status(world.root.model_or_remains(&model)?)?;
    Some((status.id, status.phase))
}

fn begin(to: &mut World, plan: &ImportPlan, check: bool) -> Result<u64, Refusal> {
    match to.control(ControllerCommand::BeginImport { plan: Box::new(plan.clone()), check })? {
        Answer::Import { next } => Ok(next),
        other => panic!("{other:?}"),
    }
}

fn upload_charms(from: &World, to: &mut World) {
    for charm in from.root.charms() {
        let charm = UploadedCharm {
            digest: charm.digest,
            component: charm.component,
            meta: charm.meta.clone(),
            size: charm.size,
        };
        to.ask(&to.user(), &Input::UploadCharm(charm)).unwrap();
    }
}

/// Returns the pages of a model, of few entities each.
fn pages(from: &World, id: Uuid) -> Vec<ImportPage> {
    let plan = plan_begun_migration(&from.root, &from.model, id).unwrap();
    let state = from.root.model(&from.model).unwrap();
    let page = || ImportPage {
        model: from.model,
        id,
        number: 0,
        agents: Vec::new(),
        entities: Vec::new(),
        records: Vec::new(),
    };
    let entities: Vec<_> =
        entities_to_migrate(&from.root, state).map(|entity| serde_json::to_value(entity).unwrap()).collect();
    let entities = entities.chunks(3).map(|entities| ImportPage { entities: entities.to_vec(), ..page() });
    let agents = agents_to_migrate(&from.root, &plan, 1, 1 << 20).into_iter();
    let mut pages: Vec<_> = entities.chain(agents.map(|agents| ImportPage { agents, ..page() })).collect();
    for (number, page) in pages.iter_mut().enumerate() {
        page.number = u64::try_from(number).unwrap();
    }
    pages
}

fn count(world: &World) -> u64 {
    let state = world.root.model(&world.model).unwrap();
    u64::try_from(entities_to_migrate(&world.root, state).count()).unwrap()
}

fn send(to: &mut World, page: ImportPage) -> Result<(), Refusal> {
    to.control(ControllerCommand::ImportPage(Box::new(page))).map(drop)
}

fn hold(to: &mut World, model: ModelUuid, id: Uuid, entities: u64) -> Result<(), Refusal> {
    to.control(ControllerCommand::HoldImport { model, id, entities }).map(drop)
}

fn activate(to: &mut World, model: ModelUuid, id: Uuid) -> Result<(), Refusal> {
    to.control(ControllerCommand::ActivateImport { model, id }).map(drop)
}

/// Carries a model that is being exported, up to the point at which the other controller has all of it.
fn carry(from: &World, to: &mut World, id: Uuid) {
    upload_charms(from, to);
    let plan = plan_begun_migration(&from.root, &from.model, id).unwrap();
    assert_eq!(begin(to, &plan, false), Ok(0));
    for page in pages(from, id) {
        send(to, page).unwrap();
    }
    hold(to, from.model, id, count(from)).unwrap();
}

#[test]
fn a_model_is_served_by_one_controller_at_a_time() {
    let (mut from, mut to) = (source(), target());
    let model = from.model;
    let before = from.state().clone();
    let id = migrate(&mut from, &to).unwrap();
    let frozen = |world: &mut World| {
        let refusals = [
            world.run(Command::SetModelConfig { set: Default::default(), reset: Vec::new() }).unwrap_err(),
            world.runner_call("a1", RunnerCommand::Attach).unwrap_err(),
        ];
        refusals.map(|refusal| refusal.code)
    };
    assert_eq!(frozen(&mut from), [ErrorCode::Migrating; 2]);
    from.settle();
    assert!(activate(&mut to, model, id).is_err(), "nothing has come");
    carry(&from, &mut to, id);
    assert!(to.root.model(&model).is_none(), "it is hidden until it is taken over");
    assert_eq!(moved_to(&from.root, &name("a1")), None);

    from.work(WorkerCommand::HandOverModel(model, id));
    assert_eq!(frozen(&mut from), [ErrorCode::Migrating; 2]);
    let refused = from.control(ControllerCommand::AbortMigration { model, force: false }).unwrap_err();
    assert!(refused.message.contains("handed over"), "{refused}");
    from.advance(seconds(MIGRATION_SECONDS * 2));
    from.settle();
    assert_eq!(status(&from, model), Some((id, MigrationPhase::HandedOver)), "no time ends it");

    activate(&mut to, model, id).unwrap();
    activate(&mut to, model, id).unwrap();
    from.work(WorkerCommand::NoteMoved(model, id));
    from.work(WorkerCommand::NoteMoved(model, id));
    let [command, runner] = [
        from.run(Command::SetModelConfig { set: Default::default(), reset: Vec::new() }).unwrap_err(),
        from.runner_call("a1", RunnerCommand::Attach).unwrap_err(),
    ];
    assert_eq!((command.code, runner.code), (ErrorCode::Moved, ErrorCode::Migrating));
    assert!(command.message.contains("https://other.example:17070"), "{command}");
    assert_eq!(moved_to(&from.root, &name("a1")), Some(place(&to)));
    assert!(from.root.model(&model).is_none());
    from.add_model("m");

    to.model = model;
    let after = to.state();
    for (one, other) in before.units().zip(after.units()) {
        assert_eq!(one, other);
    }
    assert_eq!(before.units().count(), after.units().count());
    assert_eq!(before.applications().count(), 1);
    assert_eq!(after.model().arrived, Some(id));
    to.settle();
    to.attach("a1");
    to.run(Command::AddUnits {
        application: "db".parse().unwrap(),
        count: 1,
        placement: Vec::new(),
        attach_storage: Vec::new(),
    })
    .unwrap();
    to.settle();
    assert!(to.has_unit("db/3"), "numbers go on");
}

#[test]
fn pages_that_come_again_change_nothing_and_none_may_be_missing() {
    let (mut from, mut to) = (source(), target());
    let id = migrate(&mut from, &to).unwrap();
    let plan = plan_begun_migration(&from.root, &from.model, id).unwrap();
    begin(&mut to, &plan, false).unwrap();
    let pages = pages(&from, id);
    let without_charms = pages.iter().find_map(|page| send(&mut to, page.clone()).err()).unwrap();
    assert!(without_charms.message.contains("was not uploaded"), "{without_charms}");
    upload_charms(&from, &mut to);
    for page in &pages {
        send(&mut to, page.clone()).unwrap();
        let root = to.root.clone();
        send(&mut to, page.clone()).unwrap();
        assert_eq!(root.revision(), to.root.revision());
    }
    assert_eq!(begin(&mut to, &plan, false), Ok(u64::try_from(pages.len()).unwrap()), "it goes on there");
    let last = pages.last().unwrap();
    assert!(send(&mut to, ImportPage { number: last.number + 2, ..last.clone() }).is_err());
    assert!(hold(&mut to, from.model, id, count(&from) + 1).is_err(), "one entity is missing");
    assert!(activate(&mut to, from.model, id).is_err(), "it was not held");
    hold(&mut to, from.model, id, count(&from)).unwrap();
    assert!(send(&mut to, ImportPage { number: last.number + 1, ..last.clone() }).is_err(), "it is whole");
    assert_eq!(begin(&mut to, &plan, false), Ok(HELD), "it can be handed over");
    let part = ControllerCommand::AbortImport { model: from.model, id, unless_held: true };
    assert_eq!(to.control(part).unwrap_err().code, ErrorCode::TryAgain);
    assert!(activate(&mut to, from.model, Uuid::nil()).is_err());
    activate(&mut to, from.model, id).unwrap();
    let hostile = serde_json::json!({"unit": {"name": "x/0"}});
    assert!(send(&mut to, ImportPage { entities: vec![hostile], ..last.clone() }).is_err());
}

#[test]
fn what_is_not_taken_over_is_deleted_and_the_model_stays() {
    let (mut from, mut to) = (source(), target());
    let model = from.model;
    let id = migrate(&mut from, &to).unwrap();
    carry(&from, &mut to, id);
    // The operator changes their mind.
    from.control(ControllerCommand::AbortMigration { model, force: false }).unwrap();
    assert_eq!(status(&from, model), Some((id, MigrationPhase::Failed)));
    assert!(from.try_work(WorkerCommand::HandOverModel(model, id)).is_err());
    from.attach("a1");
    to.control(ControllerCommand::AbortImport { model, id, unless_held: false }).unwrap();
    assert!(activate(&mut to, model, id).is_err());
    to.settle();
    assert!(to.root.model_or_remains(&model).is_some(), "its history is deleted for a while");
    let untold = migrate(&mut from, &to).unwrap_err();
    assert_eq!(untold.code, ErrorCode::TryAgain, "{untold}");
    from.work(WorkerCommand::NoteAbortTold(model, id));
    let again = migrate(&mut from, &to).unwrap();
    let plan = plan_begun_migration(&from.root, &model, again).unwrap();
    assert_eq!(begin(&mut to, &plan, true).unwrap_err().code, ErrorCode::TryAgain);
    assert_eq!(begin(&mut to, &plan, false), Ok(DELETING), "not yet");
    to.advance(60);
    to.settle();
    assert!(to.root.model_or_remains(&model).is_none());
    assert!(to.root.agent(&name("a1")).is_none() && to.root.enrolments().key_of(&name("a1")).is_none());
    carry(&from, &mut to, again);

    // Nobody ends it, and the time is over before the model is handed over.
    from.advance(seconds(MIGRATION_SECONDS + 1));
    from.settle();
    assert_eq!(status(&from, model), Some((again, MigrationPhase::Failed)));
    from.attach("a1");
    // The other controller is lost for good, so nobody can tell it.
    assert!(from.control(ControllerCommand::AbortMigration { model, force: false }).is_err());
    from.control(ControllerCommand::AbortMigration { model, force: true }).unwrap();
    migrate(&mut from, &to).unwrap();
}

#[test]
fn what_came_in_part_leaves_nothing_behind() {
    let (mut from, mut to) = (source(), target());
    let model = from.model;
    let id = migrate(&mut from, &to).unwrap();
    upload_charms(&from, &mut to);
    let plan = plan_begun_migration(&from.root, &model, id).unwrap();
    let pages = pages(&from, id);
    for come in 0..=pages.len() {
        assert_eq!(begin(&mut to, &plan, false), Ok(0));
        for page in pages.iter().take(come) {
            send(&mut to, page.clone()).unwrap();
        }
        // The other controller is lost, so an operator of this one ends it.
        let error = to.control(ControllerCommand::AbortMigration { model, force: false }).unwrap_err();
        assert!(error.message.contains("end its migration there"), "{error}");
        to.control(ControllerCommand::AbortMigration { model, force: true }).unwrap();
        to.advance(60);
        to.settle();
        assert!(to.root.model_or_remains(&model).is_none(), "{come}");
        assert!(to.root.agent(&name("a1")).is_none() && to.root.enrolments().key_of(&name("a1")).is_none());
    }
    let agents = pages.iter().find(|page| !page.agents.is_empty()).unwrap();
    begin(&mut to, &plan, false).unwrap();
    let error = send(&mut to, ImportPage { number: 0, ..agents.clone() }).unwrap_err();
    assert!(error.message.contains("has no machine or storage of the model"), "{error}");
}

#[test]
fn an_agent_that_was_there_before_a_model_stays_without_it() {
    let (mut from, mut to) = (source(), target());
    to.join("a1", "key");
    let host = from.root.agent(&name("a1")).unwrap().host.clone();
    to.register(&name("a1"), host);
    to.advance(60);
    let model = from.model;
    let id = migrate(&mut from, &to).unwrap();
    carry(&from, &mut to, id);
    to.control(ControllerCommand::AbortImport { model, id, unless_held: false }).unwrap();
    to.advance(60);
    to.settle();
    assert!(to.root.model_or_remains(&model).is_none());
    assert!(to.root.agent(&name("a1")).is_some() && to.root.enrolments().key_of(&name("a1")).is_some());
}

#[test]
fn a_note_stays_while_an_agent_of_the_model_has_not_gone() {
    let (mut from, mut to) = (source(), target());
    let model = from.model;
    let id = migrate(&mut from, &to).unwrap();
    carry(&from, &mut to, id);
    from.work(WorkerCommand::HandOverModel(model, id));
    activate(&mut to, model, id).unwrap();
    from.work(WorkerCommand::NoteMoved(model, id));
    from.work(WorkerCommand::AgentConnected(name("a1")));
    from.advance(seconds(MOVED_SECONDS + 1));
    from.settle();
    assert_eq!(moved_to(&from.root, &name("a1")), Some(place(&to)));
    from.work(WorkerCommand::AgentDisconnected(name("a1")));
    from.advance(seconds(2 * 86_400));
    from.settle();
    assert!(from.root.model_or_remains(&model).is_none());
}

#[test]
fn another_session_lets_a_migration_go_on() {
    let (mut from, to) = (source(), target());
    let model = from.model;
    let id = migrate(&mut from, &to).unwrap();
    assert_eq!(migrate(&mut from, &to), Ok(id));
    from.work(WorkerCommand::HandOverModel(model, id));
    assert_eq!(migrate(&mut from, &to), Ok(id));
    assert_eq!(status(&from, model), Some((id, MigrationPhase::HandedOver)));
    let third = World::bare("third", 7);
    assert!(migrate(&mut from, &third).unwrap_err().message.contains("is under way"));
}

#[test]
fn the_agents_that_came_are_those_that_there_are() {
    let (mut from, mut to) = (source(), target());
    let model = from.model;
    let id = migrate(&mut from, &to).unwrap();
    let token = Digest::of(b"again");
    let admission = Admission { agent: name("a1"), token, valid_for: 60, again: true };
    from.control(ControllerCommand::AdmitAgent(admission)).unwrap();
    let join = Input::Join { agent: name("a1"), key: Digest::of(b"another key"), token };
    let other_key = |from: &mut World| from.ask(&Caller::Agent(name("a1")), &join).unwrap_err().code;
    assert_eq!(other_key(&mut from), ErrorCode::Migrating);
    carry(&from, &mut to, id);
    from.work(WorkerCommand::HandOverModel(model, id));
    assert_eq!(other_key(&mut from), ErrorCode::Migrating);
    let remove = || ControllerCommand::RemoveAgent { agent: name("a1"), force: true };
    assert_eq!(from.control(remove()).unwrap_err().code, ErrorCode::Migrating);

    let (mut from, to) = (source(), target());
    let id = migrate(&mut from, &to).unwrap();
    from.control(remove()).unwrap();
    let error = from.try_work(WorkerCommand::HandOverModel(model, id)).unwrap_err();
    assert!(error.message.contains("agent \"a1\" was removed"), "{error}");
}

#[test]
fn a_model_that_moved_on_was_taken_over_all_the_same() {
    let (mut from, mut to) = (source(), target());
    let model = from.model;
    let id = migrate(&mut from, &to).unwrap();
    carry(&from, &mut to, id);
    from.work(WorkerCommand::HandOverModel(model, id));
    activate(&mut to, model, id).unwrap();
    // The first controller did not hear of it, and the model goes on to a third one.
    let mut third = World::bare("third", 7);
    to.model = model;
    let next = migrate(&mut to, &third).unwrap();
    carry(&to, &mut third, next);
    to.work(WorkerCommand::HandOverModel(model, next));
    activate(&mut third, model, next).unwrap();
    to.work(WorkerCommand::NoteMoved(model, next));
    assert!(to.root.model(&model).is_none());
    activate(&mut to, model, id).unwrap();
    from.work(WorkerCommand::NoteMoved(model, id));
    assert_eq!(moved_to(&from.root, &name("a1")), Some(place(&to)));
}

#[test]
fn a_model_that_stays_keeps_its_leaders() {
    for by_time in [true, false] {
        let (mut from, to) = (source(), target());
        for unit in ["db/0", "db/1"] {
            from.start(unit);
        }
        from.claim("db/0", 60).unwrap();
        let led = from.application("db").leader.clone();
        assert!(led.is_some());
        let id = migrate(&mut from, &to).unwrap();
        from.advance(seconds(MIGRATION_SECONDS + 1));
        if !by_time {
            let (model, reason) = (from.model, "it is away".to_owned());
            from.work(WorkerCommand::NoteMigrationFailed { model, id, reason });
        }
        from.settle();
        assert_eq!(status(&from, from.model), Some((id, MigrationPhase::Failed)));
        assert_eq!(from.application("db").leader, led);
        from.claim("db/0", 60).unwrap();
    }
}

#[test]
fn the_number_of_entities_stays_although_users_go() {
    let (mut from, mut to) = (source_with_reader(), target());
    to.add_user("jane");
    let model = from.model;
    let id = migrate(&mut from, &to).unwrap();
    let entities = count(&from);
    upload_charms(&from, &mut to);
    let plan = plan_begun_migration(&from.root, &model, id).unwrap();
    begin(&mut to, &plan, false).unwrap();
    from.control(ControllerCommand::RemoveUser { user: "jane".parse().unwrap() }).unwrap();
    assert_eq!(count(&from), entities);
    for page in pages(&from, id) {
        send(&mut to, page).unwrap();
    }
    hold(&mut to, model, id, entities).unwrap();
    activate(&mut to, model, id).unwrap();
    let set = Command::SetModelConfig { set: Default::default(), reset: Vec::new() };
    let jane = Caller::User("jane".parse().unwrap());
    assert!(to.ask(&jane, &Input::Model(model, set)).is_err(), "her access was not carried");
}

/// Returns the most allocations that a page takes at the other controller, and the number of pages.
fn dearest_page(units: u32) -> (u64, usize) {
    let (mut from, mut to) = (source(), target());
    (from.checked, to.checked) = (false, false);
    let charm = from.upload_app();
    from.run(deploy_command(charm, "app", units)).unwrap();
    from.settle();
    let id = migrate(&mut from, &to).unwrap();
    upload_charms(&from, &mut to);
    let plan = plan_begun_migration(&from.root, &from.model, id).unwrap();
    begin(&mut to, &plan, false).unwrap();
    let pages = pages(&from, id);
    let number = pages.len();
    let dearest = pages.into_iter().map(|page| counted(|| send(&mut to, page).unwrap())).max().unwrap();
    hold(&mut to, from.model, id, count(&from)).unwrap();
    from.work(WorkerCommand::HandOverModel(from.model, id));
    activate(&mut to, from.model, id).unwrap();
    to.model = from.model;
    assert_eq!(to.state().units().count(), from.root.model(&from.model).unwrap().units().count());
    (dearest, number)
}

#[test]
fn a_page_of_a_model_with_10_000_units_costs_what_one_of_a_small_model_does() {
    let ((small, few), (large, many)) = (dearest_page(200), dearest_page(10_000));
    assert!(many > 20 * few, "{few} and {many} pages");
    assert!(large < 2 * small, "{small} and {large} allocations");
}

#[test]
fn a_note_ends_after_its_time_or_by_an_operator() {
    for by_time in [true, false] {
        let (mut from, mut to) = (source(), target());
        let model = from.model;
        let id = migrate(&mut from, &to).unwrap();
        carry(&from, &mut to, id);
        from.work(WorkerCommand::HandOverModel(model, id));
        activate(&mut to, model, id).unwrap();
        from.work(WorkerCommand::NoteMoved(model, id));
        from.settle();
        assert!(from.root.model_or_remains(&model).is_some());
        let back = plan_migration(&to.root, &model).unwrap();
        let error = begin(&mut from, &back, true).unwrap_err();
        assert!(error.message.contains("migrate --forget"), "{error}");
        match by_time {
            true => {
                from.work(WorkerCommand::AgentDisconnected(name("a1")));
                from.advance(seconds(MOVED_SECONDS + 1));
            }
            false => {
                from.work(WorkerCommand::AgentConnected(name("a1")));
                let forget = |force| ControllerCommand::ForgetMigration { model, force };
                let error = from.control(forget(false)).unwrap_err();
                assert!(error.message.contains("agent \"a1\" of the model was connected here"), "{error}");
                from.control(forget(true)).unwrap();
            }
        }
        from.settle();
        assert_eq!(begin(&mut from, &back, true).unwrap_err().code, ErrorCode::TryAgain);
        from.advance(60);
        from.settle();
        assert!(from.root.model_or_remains(&model).is_none());
        assert!(
            from.root.agent(&name("a1")).is_none() && from.root.enrolments().key_of(&name("a1")).is_none()
        );
        assert_eq!(from.stored.keys().filter(|key| format!("{key:?}").contains("Unit")).count(), 0);
        assert_eq!(begin(&mut from, &back, true), Ok(0), "it could come back");
    }
}

#[test]
fn a_model_that_cannot_go_is_refused_with_the_reason() {
    let refused = |world: &World| plan_migration(&world.root, &world.model).unwrap_err().message;
    let mut from = World::new();
    from.deploy_db("db", 1);
    assert!(refused(&from).contains("agent \"a1\" was removed"), "it has no key");
    let mut from = source();
    let other = from.other_model("n", &["a1"]);
    from.within(other, |world| world.deploy_app("app", 2));
    assert!(refused(&from).contains("serves model \"n\" as well"), "{}", refused(&from));
    let mut from = source();
    from.offer("db", &["server"]).unwrap();
    assert!(refused(&from).contains("it offers \"db\" to other models"), "{}", refused(&from));
    let mut from = source();
    let (model, force, storage) = (from.model, None, None);
    from.control(ControllerCommand::DestroyModel { model, force, storage }).unwrap();
    assert!(refused(&from).contains("it is being destroyed"), "{}", refused(&from));
    let (mut from, to) = (source(), target());
    migrate(&mut from, &to).unwrap();
    assert!(refused(&from).contains("a migration to https://other.example:17070 is under way"));
    let mut from = source();
    let own = World::bare("home", 0);
    assert!(migrate(&mut from, &own).unwrap_err().message.contains("on this controller already"));
}

#[test]
fn a_controller_that_cannot_take_a_model_refuses_it_with_the_reason() {
    let from = source();
    let plan = plan_migration(&from.root, &from.model).unwrap();
    let refused = |to: &mut World, plan: &ImportPlan| {
        let root = to.root.clone();
        let error = begin(to, plan, true).unwrap_err();
        assert_eq!(begin(to, plan, false), Err(error.clone()));
        assert_eq!(root.revision(), to.root.revision(), "nothing was written");
        error.message
    };
    let mut to = target();
    assert_eq!(begin(&mut to, &plan, true), Ok(0));
    to.add_model("m");
    assert!(refused(&mut to, &plan).contains("has a model of this name here already"));
    let mut to = target();
    to.join("a1", "another key");
    assert!(refused(&mut to, &plan).contains("agents with the names of its agents are here already: a1"));
    let mut to = target();
    let level = periapt_host_api::Level(9);
    assert!(refused(&mut to, &ImportPlan { level, ..plan.clone() }).contains("stores level 9"));
    let source = to.root.controller().unwrap().uuid;
    assert!(refused(&mut to, &ImportPlan { source, ..plan.clone() }).contains("on this controller already"));
    let model = serde_json::json!({"model": {}});
    assert!(refused(&mut to, &ImportPlan { model, ..plan.clone() }).contains("cannot be read"));

    let mut from = source_with_reader();
    let plan = plan_migration(&from.root, &from.model).unwrap();
    assert!(refused(&mut to, &plan).contains("users who may use it are not known here: jane"));
    to.add_user("jane");
    let id = migrate(&mut from, &to).unwrap();
    carry(&from, &mut to, id);
    activate(&mut to, from.model, id).unwrap();
    to.model = from.model;
    let set = Command::SetModelConfig { set: Default::default(), reset: Vec::new() };
    let jane = Caller::User("jane".parse().unwrap());
    assert!(to.ask(&jane, &Input::Model(to.model, set)).is_ok(), "the grant is of the user here");
}

fn source_with_reader() -> World {
    let mut world = source();
    world.add_user("jane");
    world.run(Command::GrantModel { user: "jane".parse().unwrap(), access: ModelAccess::Write }).unwrap();
    world
}

#[test]
fn no_unit_is_placed_on_an_agent_that_goes() {
    let (mut from, to) = (source(), target());
    let other = from.add_model("n");
    migrate(&mut from, &to).unwrap();
    from.within(other, |world| {
        world.deploy_app("app", 1);
        assert!(world.state().agent_of(world.unit("app/0")).is_none());
        world.agent("a2");
        world.settle();
        assert_eq!(world.agent_of("app/0"), "a2");
    });
}
