//! The note that a controller keeps of a model that has moved.

use periapt_host_api::{ErrorCode, command::ControllerCommand, migration::MOVED_SECONDS};
use periapt_model::{WorkerCommand, moved_to, plan_migration};

use super::{activate, begin, carry, migrate, name, place, seconds, source, target};

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
