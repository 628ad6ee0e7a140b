//! The pages of a model: their order, their number, their cost, and an import that ends before the last one.

use periapt_host_api::{
    ErrorCode,
    command::{Caller, Command, ControllerCommand},
    migration::{HELD, ImportPage},
};
use periapt_model::{Input, WorkerCommand, plan_begun_migration};
use uuid::Uuid;

use super::{
    activate, begin, count, hold, migrate, name, pages, send, source, source_with_reader, target,
    upload_charms,
};
use crate::{cost::counted, world::deploy_command};

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
