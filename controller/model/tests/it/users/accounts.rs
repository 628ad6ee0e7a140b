//! Accounts: the first user, the owner, and users who are disabled or removed.

use periapt_host_api::{
    ErrorCode,
    access::{ControllerAccess, ModelAccess},
    command::{Caller, ControllerCommand},
};
use periapt_model::{
    EntityKey, IdentityCommand, Input, Root, WorkerCommand, active_user, authenticate, model_access,
    model_users, users,
};

use super::{as_user, found, grant, identity, password, registered, user, write};
use crate::world::World;

#[test]
fn a_controller_begins_with_one_superuser_who_has_no_password() {
    let world = World::new();
    let names: Vec<_> = users(&world.root, &world.user()).into_iter().map(|user| user.name).collect();
    assert_eq!(names, ["admin".parse().unwrap()]);
    let admin = found(&world, "admin");
    assert_eq!((admin.access, admin.password.clone()), (Some(ControllerAccess::Superuser), None));
    assert_eq!(model_users(&world.root, world.state())[0].access, ModelAccess::Admin, "of its own model");
}

#[test]
fn a_store_of_an_earlier_form_gets_its_first_user_at_the_next_start_and_only_then() {
    let mut world = World::new();
    let earlier = world.stored.iter().filter(|(key, _)| !matches!(key, EntityKey::User(_)));
    let earlier = earlier.map(|(key, entity)| (key.clone(), entity.clone()));
    world.root = Root::from_entities(earlier, world.root.revision()).unwrap();
    world.stored.retain(|key, _| !matches!(key, EntityKey::User(_)));
    assert!(active_user(&world.root, &world.user()).is_none());
    world.work(WorkerCommand::Initialize { name: "another".into() });
    assert!(active_user(&world.root, &world.user()).is_some());
    assert_eq!(world.root.controller().unwrap().name, "home");
    assert_eq!(model_access(&world.root, world.state(), &world.user()), Some(ModelAccess::Admin));
    let first = found(&world, "admin").uuid;
    world.work(WorkerCommand::Initialize { name: "home".into() });
    assert_eq!(found(&world, "admin").uuid, first);
}

#[test]
fn a_disabled_or_removed_user_has_no_session_and_no_access() {
    let mut world = World::new();
    let opened = registered(&mut world, "jane");
    grant(&mut world, "jane", ModelAccess::Write).unwrap();
    as_user(&mut world, "jane", write()).unwrap();
    let jane = || "jane".parse().unwrap();
    world.control(ControllerCommand::DisableUser { user: jane() }).unwrap();
    assert!(authenticate(&world.root, &opened, world.now).is_none());
    assert!(active_user(&world.root, &user("jane")).is_none());
    assert_eq!(as_user(&mut world, "jane", write()).unwrap_err().code, ErrorCode::NotFound);
    world.control(ControllerCommand::EnableUser { user: jane() }).unwrap();
    assert!(authenticate(&world.root, &opened, world.now).is_none(), "the session does not come back");
    as_user(&mut world, "jane", write()).unwrap();
    world.control(ControllerCommand::RemoveUser { user: jane() }).unwrap();
    assert_eq!(as_user(&mut world, "jane", write()).unwrap_err().code, ErrorCode::NotFound);
    // A later user of the same name inherits nothing.
    registered(&mut world, "jane");
    assert_eq!(model_access(&world.root, world.state(), &user("jane")), None);
    assert_eq!(as_user(&mut world, "jane", write()).unwrap_err().code, ErrorCode::NotFound);
    grant(&mut world, "jane", ModelAccess::Read).unwrap();
    assert_eq!(model_access(&world.root, world.state(), &user("jane")), Some(ModelAccess::Read));
}

#[test]
fn the_controllers_owner_stays_a_superuser() {
    let mut world = World::new();
    let admin = || "admin".parse().unwrap();
    let superuser = ControllerAccess::Superuser;
    for (command, text) in [
        (ControllerCommand::RemoveUser { user: admin() }, "cannot delete controller owner \"admin\""),
        (ControllerCommand::DisableUser { user: admin() }, "cannot disable controller owner \"admin\""),
        (
            ControllerCommand::RevokeController { user: admin(), access: superuser },
            "could not revoke controller access: \"admin\" is the controller's owner and stays a superuser",
        ),
    ] {
        assert_eq!(world.control(command).unwrap_err().message, text);
    }
}

#[test]
fn only_superusers_manage_users_and_others_see_themselves_alone() {
    let mut world = World::new();
    registered(&mut world, "jane");
    registered(&mut world, "joe");
    let jane = user("jane");
    let names = |world: &World, caller: &Caller| -> Vec<String> {
        users(&world.root, caller).into_iter().map(|user| user.name.to_string()).collect()
    };
    assert_eq!(names(&world, &jane), ["jane"]);
    assert_eq!(names(&world, &user("admin")), ["admin", "jane", "joe"]);
    let joe = || "joe".parse().unwrap();
    for command in [
        ControllerCommand::RemoveUser { user: joe() },
        ControllerCommand::DisableUser { user: joe() },
        ControllerCommand::GrantController { user: joe(), access: ControllerAccess::Superuser },
    ] {
        let refused = world.ask(&jane, &Input::Controller(command)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::PermissionDenied);
    }
    let set = |user| IdentityCommand::SetPassword { user, password: password("x"), session: None };
    assert_eq!(identity(&mut world, &jane, set(joe())).unwrap_err().code, ErrorCode::PermissionDenied);
    identity(&mut world, &user("joe"), set(joe())).unwrap();
}
