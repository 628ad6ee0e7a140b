//! Grants over models and the controller, and the rights of each level.

use periapt_host_api::{
    ErrorCode, ModelUuid,
    access::{ControllerAccess, ModelAccess},
    action::{EnqueueOperation, Parameters},
    command::{Caller, Command, ControllerCommand, Deploy},
    exec,
};
use periapt_model::{Input, Right, TABLE, active_user, is_visible, model_access, sessions};

use super::{as_user, found, grant, registered, revoke, user, write};
use crate::world::World;

#[test]
fn a_grant_that_gives_nothing_new_is_refused_in_jujus_words() {
    let mut world = World::new();
    registered(&mut world, "jane");
    grant(&mut world, "jane", ModelAccess::Write).unwrap();
    let refused = grant(&mut world, "jane", ModelAccess::Read).unwrap_err();
    assert_eq!(refused.message, "could not grant model access: user already has \"read\" access or greater");
    let command =
        ControllerCommand::GrantController { user: "jane".parse().unwrap(), access: ControllerAccess::Login };
    let refused = world.control(command).unwrap_err();
    assert_eq!(
        refused.message,
        "could not grant controller access: user already has \"login\" access or greater"
    );
    let unknown = grant(&mut world, "nobody", ModelAccess::Read).unwrap_err();
    assert_eq!((unknown.code, &*unknown.message), (ErrorCode::NotFound, "user \"nobody\" not found"));
}

#[test]
fn a_revoked_level_leaves_the_next_lower_one() {
    let mut world = World::new();
    registered(&mut world, "jane");
    grant(&mut world, "jane", ModelAccess::Admin).unwrap();
    let has = |world: &World| model_access(&world.root, world.state(), &user("jane"));
    revoke(&mut world, "jane", ModelAccess::Admin).unwrap();
    assert_eq!(has(&world), Some(ModelAccess::Write));
    assert_eq!(revoke(&mut world, "jane", ModelAccess::Admin).unwrap_err().code, ErrorCode::NotFound);
    revoke(&mut world, "jane", ModelAccess::Read).unwrap();
    assert_eq!(has(&world), None);
    let superuser = ControllerAccess::Superuser;
    let jane = || "jane".parse().unwrap();
    world.control(ControllerCommand::GrantController { user: jane(), access: superuser }).unwrap();
    assert_eq!(has(&world), Some(ModelAccess::Admin), "superusers administer every model");
    world.control(ControllerCommand::RevokeController { user: jane(), access: superuser }).unwrap();
    assert_eq!(found(&world, "jane").access, Some(ControllerAccess::Login));
    let login = ControllerAccess::Login;
    world.control(ControllerCommand::RevokeController { user: jane(), access: login }).unwrap();
    assert!(active_user(&world.root, &user("jane")).is_none());
    assert!(sessions(&world.root, &jane(), None).is_empty());
}

#[test]
fn each_level_may_do_what_the_table_says_and_no_more() {
    let mut world = World::new();
    registered(&mut world, "jane");
    let destroy = |model: ModelUuid| {
        Input::Controller(ControllerCommand::DestroyModel { model, force: None, storage: None })
    };
    let model = world.model;
    let grant_other = || Command::GrantModel { user: "jane".parse().unwrap(), access: ModelAccess::Admin };
    // Without access, a model is refused as one that does not exist.
    let hidden = as_user(&mut world, "jane", write()).unwrap_err();
    let nowhere = ModelUuid(uuid::Uuid::from_u128(99));
    let missing = world.ask(&user("jane"), &Input::Model(nowhere, write())).unwrap_err();
    assert_eq!(
        hidden.message.replace(&model.to_string(), ""),
        missing.message.replace(&nowhere.to_string(), "")
    );
    assert_eq!((hidden.code, hidden.subject), (missing.code, missing.subject));
    assert_eq!(world.ask(&user("jane"), &destroy(model)).unwrap_err().code, ErrorCode::NotFound);

    grant(&mut world, "jane", ModelAccess::Read).unwrap();
    assert!(is_visible(&world.root, &user("jane"), world.state()));
    for command in [write(), in_container()] {
        assert_eq!(as_user(&mut world, "jane", command).unwrap_err().code, ErrorCode::PermissionDenied);
    }
    assert_eq!(world.ask(&user("jane"), &destroy(model)).unwrap_err().code, ErrorCode::PermissionDenied);

    grant(&mut world, "jane", ModelAccess::Write).unwrap();
    as_user(&mut world, "jane", write()).unwrap();
    assert_ne!(as_user(&mut world, "jane", in_container()).unwrap_err().code, ErrorCode::PermissionDenied);
    for command in [grant_other(), script()] {
        assert_eq!(as_user(&mut world, "jane", command).unwrap_err().code, ErrorCode::PermissionDenied);
    }

    grant(&mut world, "jane", ModelAccess::Admin).unwrap();
    assert_eq!(as_user(&mut world, "jane", grant_other()).unwrap_err().code, ErrorCode::AlreadyExists);
    assert_ne!(as_user(&mut world, "jane", script()).unwrap_err().code, ErrorCode::PermissionDenied);
    let add = Input::Controller(ControllerCommand::add_model("mine".parse().unwrap()));
    assert_eq!(world.ask(&user("jane"), &add).unwrap_err().code, ErrorCode::PermissionDenied);
    world.ask(&user("jane"), &destroy(model)).unwrap();
}

#[test]
fn only_administrators_of_a_model_grant_hosts_outside() {
    let mut world = World::new();
    let charm = world.upload_app();
    world.deploy(charm, "app", 0);
    registered(&mut world, "jane");
    grant(&mut world, "jane", ModelAccess::Write).unwrap();
    let pair = |value: &str| [("workload-egress".to_owned(), value.to_owned())].into();
    let key = || vec!["workload-egress".to_owned()];
    let app = || "app".parse().unwrap();
    let commands = || {
        let own = |set, reset| Command::SetConfig { application: app(), set, reset };
        let mut deploy = Deploy::of(charm, 0);
        deploy.application = Some("other".parse().unwrap());
        deploy.config = pair("example.com");
        [
            Command::SetModelConfig { set: pair("example.com"), reset: vec![] },
            Command::SetModelConfig { set: Default::default(), reset: key() },
            own(pair("203.0.113.7:443"), vec![]),
            own(Default::default(), key()),
            Command::Deploy(deploy),
        ]
    };
    for command in commands() {
        let refused = as_user(&mut world, "jane", command).unwrap_err();
        assert_eq!(refused.code, ErrorCode::PermissionDenied, "{refused}");
    }
    as_user(&mut world, "jane", write()).unwrap();
    grant(&mut world, "jane", ModelAccess::Admin).unwrap();
    for command in commands() {
        as_user(&mut world, "jane", command).unwrap();
    }
    let granted = world.application("other").workload_egress.clone();
    assert_eq!(granted.map(|granted| granted.to_string()).as_deref(), Some("example.com"));
    assert_eq!(world.application("app").workload_egress, None);
}

/// A script on no unit.
fn script() -> Command {
    run(Default::default())
}

/// A program in a container of no unit.
fn in_container() -> Command {
    let container = "web".parse().unwrap();
    run(exec::ExecRequest::in_container(&["true".to_owned()], container).unwrap().into_parameters())
}

fn run(parameters: Parameters) -> Command {
    let (action, turns) = (exec::ACTION.into(), Default::default());
    Command::EnqueueOperation(EnqueueOperation { action, receivers: vec![], parameters, turns })
}

#[test]
fn no_caller_but_users_holds_a_right_over_users_and_models() {
    let mut world = World::new();
    registered(&mut world, "jane");
    let model = world.model;
    for caller in [Caller::Agent("a1".parse().unwrap()), world.runner("a1")] {
        let command = world.ask(&caller, &Input::Model(model, write())).unwrap_err();
        assert_eq!(command.code, ErrorCode::PermissionDenied);
        let remove = ControllerCommand::RemoveUser { user: "jane".parse().unwrap() };
        let refused = world.ask(&caller, &Input::Controller(remove)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::PermissionDenied);
    }
    let anyone: Vec<Right> = TABLE
        .iter()
        .filter(|row| row.holders.contains(&periapt_model::Holder::Anyone))
        .map(|row| row.right)
        .collect();
    assert_eq!(anyone, [Right::LogIn, Right::JoinControllers, Right::JoinAgent]);
}
