//! Registrations, logins, sessions and tokens.

use periapt_host_api::{
    Digest, ErrorCode,
    access::ModelAccess,
    command::{Caller, ControllerCommand},
    user::{SessionId, TokenScope},
};
use periapt_model::{
    IdentityCommand, Input, authenticate,
    entity::{PasswordHash, SessionKind},
    sessions,
};

use super::{add, identity, password, register, registered, registration, session, user};
use crate::world::World;

#[test]
fn a_registration_token_is_used_once_and_in_time() {
    let mut world = World::new();
    add(&mut world, "jane");
    let opened = register(&mut world, "jane", "one").unwrap();
    let (who, _) = authenticate(&world.root, &opened, world.now).unwrap();
    assert_eq!(who.name.as_str(), "jane");
    let again = register(&mut world, "jane", "two").unwrap_err();
    assert_eq!(again.code, ErrorCode::NotLoggedIn);
    add(&mut world, "joe");
    let (late, never) = {
        let command = IdentityCommand::Register {
            registration: registration(&world, "joe").token,
            password: password("joe"),
            session: session(&world, "three", SessionKind::Login),
        };
        world.advance(60);
        let unknown = IdentityCommand::Register {
            registration: Digest::of(b"never issued"),
            password: password("joe"),
            session: session(&world, "four", SessionKind::Login),
        };
        let late = identity(&mut world, &Caller::Worker, command).unwrap_err();
        (late, identity(&mut world, &Caller::Worker, unknown).unwrap_err())
    };
    assert_eq!((&late, &again), (&never, &never), "used, expired and unknown tokens are refused alike");
}

#[test]
fn a_login_needs_the_password_that_is_set_now_and_ends_by_time() {
    let mut world = World::new();
    registered(&mut world, "jane");
    let log_in = |world: &mut World, verified: PasswordHash, token: &str| {
        let session = session(world, token, SessionKind::Login);
        let opened = session.token;
        let command = IdentityCommand::LogIn { user: "jane".parse().unwrap(), verified, session };
        identity(world, &Caller::Worker, command).map(|_| opened)
    };
    let opened = log_in(&mut world, password("jane"), "a").unwrap();
    assert!(authenticate(&world.root, &opened, world.now).is_some());
    let changed = IdentityCommand::SetPassword {
        user: "jane".parse().unwrap(),
        password: PasswordHash("another".into()),
        session: Some(opened),
    };
    identity(&mut world, &user("jane"), changed).unwrap();
    assert_eq!(sessions(&world.root, &"jane".parse().unwrap(), None).len(), 1, "the others end");
    assert!(authenticate(&world.root, &opened, world.now).is_some());
    let refused = log_in(&mut world, password("jane"), "b").unwrap_err();
    assert_eq!(refused.message, "invalid entity name or password");
    world.advance(3_600);
    assert!(authenticate(&world.root, &opened, world.now).is_none());
    world.settle();
    assert!(world.root.session(&opened).is_none(), "the worker deletes it");
}

#[test]
fn a_session_is_closed_by_its_user_or_a_superuser_and_is_nothing_to_others() {
    let mut world = World::new();
    let opened = registered(&mut world, "jane");
    registered(&mut world, "joe");
    let close = |digest: &Digest| {
        Input::Controller(ControllerCommand::CloseSession { session: SessionId::of(digest) })
    };
    let foreign = world.ask(&user("joe"), &close(&opened)).unwrap_err();
    let missing = world.ask(&user("joe"), &close(&Digest::of(b"none"))).unwrap_err();
    assert_eq!((foreign.code, missing.code), (ErrorCode::NotFound, ErrorCode::NotFound));
    assert!(authenticate(&world.root, &opened, world.now).is_some());
    world.ask(&user("jane"), &close(&opened)).unwrap();
    assert!(authenticate(&world.root, &opened, world.now).is_none());
}

#[test]
fn sessions_and_tokens_of_a_user_are_bounded() {
    let mut world = World::new();
    let first = registered(&mut world, "jane");
    for number in 0..40 {
        world.advance(1);
        let session = session(&world, &format!("login {number}"), SessionKind::Login);
        identity(&mut world, &user("jane"), IdentityCommand::OpenSession { session }).unwrap();
    }
    assert!(world.root.session(&first).is_none(), "the oldest make room");
    let token = |world: &mut World, name: String| {
        let scope = TokenScope { access: ModelAccess::Read, models: vec![] };
        let session = session(world, &name, SessionKind::Api { name: name.clone(), scope });
        identity(world, &user("jane"), IdentityCommand::OpenSession { session })
    };
    for number in 0..32 {
        token(&mut world, format!("ci-{number}")).unwrap();
    }
    assert_eq!(token(&mut world, "ci-0".into()).unwrap_err().code, ErrorCode::AlreadyExists);
    assert_eq!(token(&mut world, "more".into()).unwrap_err().code, ErrorCode::QuotaExceeded);
    assert_eq!(token(&mut world, "".into()).unwrap_err().code, ErrorCode::BadRequest);
    assert_eq!(sessions(&world.root, &"jane".parse().unwrap(), None).len(), 64);
    world.control(ControllerCommand::RemoveUser { user: "jane".parse().unwrap() }).unwrap();
    assert!(sessions(&world.root, &"jane".parse().unwrap(), None).is_empty(), "all in one commit");
}
