//! The course of a migration: one controller serves the model at a time, until its end.

use periapt_host_api::{
    ErrorCode,
    agent::RunnerCommand,
    command::{Command, ControllerCommand},
    migration::{DELETING, MIGRATION_SECONDS, MigrationPhase},
};
use periapt_model::{WorkerCommand, moved_to, plan_begun_migration};

use super::{activate, begin, carry, migrate, name, place, seconds, source, status, target};
use crate::world::World;

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
