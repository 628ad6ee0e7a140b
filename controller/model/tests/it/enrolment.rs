//! Agents that join by a token, and are known by their key from then on.

use periapt_host_api::{
    AgentName, Digest, ErrorCode, Refusal,
    agent::Admission,
    command::{Caller, ControllerCommand},
};
use periapt_model::Input;

use crate::world::World;

fn name(text: &str) -> AgentName {
    text.parse().unwrap()
}

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// Admits an agent for a minute.
fn admit(world: &mut World, agent: &str, token: &str, again: bool) -> Result<(), Refusal> {
    let admission = Admission { agent: name(agent), token: digest(token), valid_for: 60, again };
    world.control(ControllerCommand::AdmitAgent(admission)).map(drop)
}

fn join(world: &mut World, agent: &str, key: &str, token: &str) -> Result<(), String> {
    let (agent, key, token) = (name(agent), digest(key), digest(token));
    let input = Input::Join { agent: agent.clone(), key, token };
    world.ask(&Caller::Agent(agent), &input).map(drop).map_err(|refusal| {
        assert_eq!(refusal.code, ErrorCode::PermissionDenied);
        refusal.message
    })
}

fn key_of(world: &World, agent: &str) -> Option<Digest> {
    world.root.enrolments().key_of(&name(agent))
}

fn remove(world: &mut World, agent: &str, force: bool) -> Result<(), Refusal> {
    world.control(ControllerCommand::RemoveAgent { agent: name(agent), force }).map(drop)
}

#[test]
fn a_token_lets_its_agent_join_once_within_its_time() {
    let mut world = World::new();
    admit(&mut world, "b1", "token", false).unwrap();
    admit(&mut world, "b2", "other token", false).unwrap();
    assert_eq!(key_of(&world, "b1"), None);
    let error = join(&mut world, "b2", "key", "token").unwrap_err();
    assert!(
        error.starts_with("the join token is for agent \"b1\"; `periapt agent-token b2` makes another one"),
        "{error}"
    );
    let error = join(&mut world, "b1", "key", "no token").unwrap_err();
    assert!(error.starts_with("the join token is not one of this controller, or was replaced"), "{error}");

    join(&mut world, "b1", "key", "token").unwrap();
    assert_eq!(key_of(&world, "b1"), Some(digest("key")));
    // The agent that did not hear the answer asks again; another one is refused.
    let root = world.root.clone();
    join(&mut world, "b1", "key", "token").unwrap();
    assert!(root.enrolments().is_same(&world.root.enrolments()));
    let error = join(&mut world, "b1", "another key", "token").unwrap_err();
    assert!(error.starts_with("the join token was used at 2026-01-01 00:00:00Z"), "{error}");

    world.now += std::time::Duration::from_secs(60);
    let error = join(&mut world, "b2", "key", "other token").unwrap_err();
    assert!(error.starts_with("the join token expired at 2026-01-01 00:01:00Z"), "{error}");
    assert_eq!(key_of(&world, "b2"), None);
}

#[test]
fn a_name_that_is_taken_is_given_away_on_request_alone() {
    let mut world = World::new();
    admit(&mut world, "b1", "first", false).unwrap();
    // A newer token takes the place of one that nobody has used.
    admit(&mut world, "b1", "second", false).unwrap();
    assert!(join(&mut world, "b1", "key", "first").is_err());
    join(&mut world, "b1", "key", "second").unwrap();
    let refusal = admit(&mut world, "b1", "third", false).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::AlreadyExists);
    assert_eq!(refusal.message, "agent \"b1\" has joined already");
    admit(&mut world, "b1", "third", true).unwrap();
    assert_eq!(key_of(&world, "b1"), Some(digest("key")), "it goes on until another one joins");
    join(&mut world, "b1", "other key", "third").unwrap();
    assert_eq!(key_of(&world, "b1"), Some(digest("other key")));
}

#[test]
fn a_token_is_known_as_another_agents_until_it_is_replaced_or_its_agent_is_removed() {
    let mut world = World::new();
    for number in 0..100 {
        admit(&mut world, &format!("b{number}"), &format!("token {number}"), false).unwrap();
    }
    let error = |world: &mut World, token: &str| join(world, "c1", "key", token).unwrap_err();
    assert!(error(&mut world, "token 70").starts_with("the join token is for agent \"b70\""));
    admit(&mut world, "b70", "newer", false).unwrap();
    let unknown = "the join token is not one of this controller";
    assert!(error(&mut world, "token 70").starts_with(unknown));
    assert!(error(&mut world, "newer").starts_with("the join token is for agent \"b70\""));
    remove(&mut world, "b70", false).unwrap();
    assert!(error(&mut world, "newer").starts_with(unknown));
    // A token that is used is still known.
    join(&mut world, "b71", "key", "token 71").unwrap();
    assert!(error(&mut world, "token 71").starts_with("the join token is for agent \"b71\""));
}

#[test]
fn a_token_lives_for_a_while_and_not_for_ever() {
    let mut world = World::new();
    for valid_for in [0, 31 * 86_400, u64::MAX] {
        let admission = Admission { agent: name("b1"), token: digest("t"), valid_for, again: false };
        let refusal = world.control(ControllerCommand::AdmitAgent(admission)).unwrap_err();
        assert_eq!(refusal.message, "a join token is valid for 1 second to 30 days");
    }
}

#[test]
fn an_agent_that_is_removed_is_known_no_more() {
    let mut world = World::new();
    admit(&mut world, "b1", "token", false).unwrap();
    join(&mut world, "b1", "key", "token").unwrap();
    world.agent("b1");
    remove(&mut world, "b1", false).unwrap();
    assert_eq!(key_of(&world, "b1"), None);
    assert!(world.root.agent(&name("b1")).is_none());
    assert!(join(&mut world, "b1", "key", "token").is_err(), "its token is worth nothing, either");
    assert_eq!(remove(&mut world, "b1", true).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn an_agent_with_machines_is_removed_by_force_and_its_units_stay() {
    let mut world = World::new();
    admit(&mut world, "a1", "token", false).unwrap();
    join(&mut world, "a1", "key", "token").unwrap();
    world.deploy_db("db", 1);
    let refusal = remove(&mut world, "a1", false).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::Conflict);
    assert!(refusal.message.starts_with("agent \"a1\" has machines or storage of m; "), "{refusal}");
    remove(&mut world, "a1", true).unwrap();
    assert_eq!(key_of(&world, "a1"), None);
    assert!(world.root.agent(&name("a1")).is_some() && world.unit("db/0").machine.is_some());
}
