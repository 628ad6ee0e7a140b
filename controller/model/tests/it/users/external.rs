//! Users of an issuer of identities: their accounts, sessions and grants.

use periapt_host_api::{
    Digest, ErrorCode, Refusal,
    access::{ControllerAccess, ModelAccess},
    command::{Answer, Caller, ControllerCommand},
    user::ExternalIdentity,
};
use periapt_model::{IdentityCommand, IssuerLogin, Output, authenticate, entity::SessionKind};

use super::{found, grant, identity, password, registered, registration, session, user};
use crate::world::World;

fn at_issuer(world: &mut World, name: &str, subject: &str) -> Result<Output, Refusal> {
    let identity = ExternalIdentity { issuer: "https://id.example".into(), subject: subject.to_owned() };
    let user = name.parse().unwrap();
    let login = IssuerLogin { user, identity, display_name: Some("Jane Doe".into()) };
    let session = session(world, &format!("session of {subject}"), SessionKind::Login);
    self::identity(world, &Caller::Worker, IdentityCommand::LogInAtIssuer { login, session })
}

fn grant_login(world: &mut World, name: &str) -> Result<Answer, Refusal> {
    let access = ControllerAccess::Login;
    world.control(ControllerCommand::GrantController { user: name.parse().unwrap(), access })
}

#[test]
fn an_external_user_may_log_in_once_granted_and_is_one_account_from_then_on() {
    let mut world = World::new();
    let name = "jane@example.com";
    let unknown = at_issuer(&mut world, name, "1").unwrap_err();
    assert_eq!(unknown.code, ErrorCode::PermissionDenied);
    assert!(unknown.message.contains("has no access to this controller"), "{unknown}");
    assert_eq!(grant(&mut world, name, ModelAccess::Read).unwrap_err().code, ErrorCode::NotFound);
    grant_login(&mut world, name).unwrap();
    assert_eq!(grant_login(&mut world, name).unwrap_err().code, ErrorCode::AlreadyExists);
    assert_eq!((found(&world, name).identity.clone(), found(&world, name).password.clone()), (None, None));
    at_issuer(&mut world, name, "1").unwrap();
    let opened = Digest::of(b"session of 1");
    assert_eq!(authenticate(&world.root, &opened, world.now).unwrap().0.name.as_str(), name);
    assert_eq!(found(&world, name).display_name, "Jane Doe");
    let other = at_issuer(&mut world, name, "2").unwrap_err();
    assert!(other.message.contains("another account"), "{other}");

    // Without access, disabled or removed it is refused, and its sessions end.
    let user = || name.parse().unwrap();
    world.control(ControllerCommand::DisableUser { user: user() }).unwrap();
    assert!(authenticate(&world.root, &opened, world.now).is_none());
    assert!(at_issuer(&mut world, name, "1").unwrap_err().message.contains("is disabled"));
    world.control(ControllerCommand::EnableUser { user: user() }).unwrap();
    let access = ControllerAccess::Login;
    world.control(ControllerCommand::RevokeController { user: user(), access }).unwrap();
    assert_eq!(at_issuer(&mut world, name, "1").unwrap_err().message, unknown.message);
    world.control(ControllerCommand::RemoveUser { user: user() }).unwrap();
    assert_eq!(at_issuer(&mut world, name, "1").unwrap_err().message, unknown.message);
    // Another account takes the name over only after the user was removed.
    grant_login(&mut world, name).unwrap();
    at_issuer(&mut world, name, "2").unwrap();
}

#[test]
fn an_external_user_has_no_password_and_no_account_becomes_a_local_user() {
    let mut world = World::new();
    registered(&mut world, "jane");
    assert_eq!(at_issuer(&mut world, "jane", "1").unwrap_err().code, ErrorCode::PermissionDenied);
    assert_eq!(at_issuer(&mut world, "admin", "1").unwrap_err().code, ErrorCode::PermissionDenied);
    let name = "joe@example.com";
    grant_login(&mut world, name).unwrap();
    let registration = registration(&world, name);
    let add = IdentityCommand::AddUser {
        name: "new@example.com".parse().unwrap(),
        display_name: String::new(),
        registration,
    };
    let reset = IdentityCommand::ResetPassword { user: name.parse().unwrap(), registration };
    let set =
        IdentityCommand::SetPassword { user: name.parse().unwrap(), password: password(name), session: None };
    for command in [add, reset, set] {
        let refused = identity(&mut world, &user("admin"), command.clone()).unwrap_err();
        assert_eq!(refused.code, ErrorCode::BadRequest, "{command:?}");
    }
}
