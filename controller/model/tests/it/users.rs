//! Users, sessions, grants, and what each caller may do.

use periapt_host_api::{
    Digest, Refusal,
    access::ModelAccess,
    command::{Caller, Command},
};
use periapt_model::{
    IdentityCommand, Input, NewSession, Output,
    entity::{PasswordHash, Registration, SessionKind, User},
};

use crate::world::World;

mod accounts;
mod external;
mod grants;
mod offers;
mod sessions;
mod uploads;

fn user(name: &str) -> Caller {
    Caller::User(name.parse().unwrap())
}

fn registration(world: &World, name: &str) -> Registration {
    let expires_at = world.now + jiff_seconds(60);
    Registration { token: Digest::of(format!("registration of {name}").as_bytes()), expires_at }
}

fn jiff_seconds(seconds: i64) -> std::time::Duration {
    std::time::Duration::from_secs(seconds.unsigned_abs())
}

fn session(world: &World, token: &str, kind: SessionKind) -> NewSession {
    let expires_at = world.now + jiff_seconds(3_600);
    NewSession { token: Digest::of(token.as_bytes()), kind, expires_at, address: "192.0.2.7".into() }
}

fn identity(world: &mut World, caller: &Caller, command: IdentityCommand) -> Result<Output, Refusal> {
    world.ask(caller, &Input::Identity(command))
}

fn add(world: &mut World, name: &str) {
    let registration = registration(world, name);
    let command =
        IdentityCommand::AddUser { name: name.parse().unwrap(), display_name: String::new(), registration };
    identity(world, &user("admin"), command).unwrap();
}

/// Adds a user, registers it with a password, and returns the digest of its session.
fn registered(world: &mut World, name: &str) -> Digest {
    add(world, name);
    register(world, name, &format!("first session of {name}")).unwrap()
}

fn register(world: &mut World, name: &str, token: &str) -> Result<Digest, Refusal> {
    let session = session(world, token, SessionKind::Login);
    let opened = session.token;
    let registration = registration(world, name).token;
    let password = password(name);
    identity(world, &Caller::Worker, IdentityCommand::Register { registration, password, session })?;
    Ok(opened)
}

fn password(name: &str) -> PasswordHash {
    PasswordHash(format!("hash of {name}"))
}

fn as_user(world: &mut World, name: &str, command: Command) -> Result<Output, Refusal> {
    let model = world.model;
    world.ask(&user(name), &Input::Model(model, command))
}

fn grant(world: &mut World, name: &str, access: ModelAccess) -> Result<Output, Refusal> {
    as_user(world, "admin", Command::GrantModel { user: name.parse().unwrap(), access })
}

fn revoke(world: &mut World, name: &str, access: ModelAccess) -> Result<Output, Refusal> {
    as_user(world, "admin", Command::RevokeModel { user: name.parse().unwrap(), access })
}

fn found<'a>(world: &'a World, name: &str) -> &'a User {
    world.root.user(&name.parse().unwrap()).unwrap()
}

/// A command that changes the model, for a user with write access.
fn write() -> Command {
    Command::SetModelConfig { set: Default::default(), reset: vec![] }
}
