//! Agents that join by a token, and are known by their key from then on.

use periapt_host_api::{
    AgentName, Digest, ErrorCode, Refusal,
    agent::{Admission, PoolAdmission},
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

/// Admits agents of a pool for a minute.
fn admit_pool(world: &mut World, pool: &str, token: &str, uses: u32) -> Result<(), Refusal> {
    let admission = PoolAdmission { pool: name(pool), token: digest(token), valid_for: 60, uses };
    world.control(ControllerCommand::AdmitPool(admission)).map(drop)
}

#[test]
fn a_pools_token_lets_as_many_agents_join_as_were_admitted_each_under_a_name_of_its_own() {
    let mut world = World::new();
    admit_pool(&mut world, "worker", "token", 2).unwrap();
    for other in ["work", "worker", "workers-1", "a-worker-1"] {
        let error = join(&mut world, other, "key", "token").unwrap_err();
        assert!(
            error.starts_with("the join token is for agents of names that begin with \"worker-\"; "),
            "{error}"
        );
    }
    join(&mut world, "worker-1", "key 1", "token").unwrap();
    assert_eq!(key_of(&world, "worker-1"), Some(digest("key 1")));
    // The agent that did not hear the answer asks again, and another one cannot take its name.
    let root = world.root.clone();
    join(&mut world, "worker-1", "key 1", "token").unwrap();
    assert!(root.enrolments().is_same(&world.root.enrolments()));
    let error = join(&mut world, "worker-1", "key 2", "token").unwrap_err();
    assert!(error.starts_with("the name \"worker-1\" is taken in pool worker; "), "{error}");
    join(&mut world, "worker-2", "key 2", "token").unwrap();
    let error = join(&mut world, "worker-3", "key 3", "token").unwrap_err();
    assert!(error.starts_with("the join token is not one of this controller"), "{error}");
    assert_eq!([key_of(&world, "worker-2"), key_of(&world, "worker-3")], [Some(digest("key 2")), None]);
}

#[test]
fn a_pools_token_ends_by_time_by_a_newer_one_and_when_the_pool_is_closed() {
    let mut world = World::new();
    admit_pool(&mut world, "worker", "first", 9).unwrap();
    admit_pool(&mut world, "worker", "second", 9).unwrap();
    assert!(join(&mut world, "worker-1", "key", "first").is_err());
    join(&mut world, "worker-1", "key", "second").unwrap();
    world.control(ControllerCommand::ClosePool { pool: name("worker") }).unwrap();
    assert!(join(&mut world, "worker-2", "key 2", "second").is_err());
    assert_eq!(key_of(&world, "worker-1"), Some(digest("key")), "who has joined stays");
    let closed = world.control(ControllerCommand::ClosePool { pool: name("worker") }).unwrap_err();
    assert_eq!(closed.code, ErrorCode::NotFound);
    admit_pool(&mut world, "worker", "third", 9).unwrap();
    world.now += std::time::Duration::from_secs(60);
    let error = join(&mut world, "worker-2", "key 2", "third").unwrap_err();
    assert!(error.starts_with("the join token expired at 2026-01-01 00:01:00Z; "), "{error}");
}

#[test]
fn pools_are_bounded_and_those_that_are_over_make_room() {
    let mut world = World::new();
    for uses in [0, 1_001] {
        let refusal = admit_pool(&mut world, "worker", "token", uses).unwrap_err();
        assert_eq!(refusal.message, "a pool's token lets 1 to 1000 agents join");
    }
    for number in 0..64 {
        admit_pool(&mut world, &format!("p{number}"), &format!("token {number}"), 1).unwrap();
    }
    assert_eq!(admit_pool(&mut world, "more", "token", 1).unwrap_err().code, ErrorCode::QuotaExceeded);
    admit_pool(&mut world, "p0", "newer", 1).unwrap();
    world.now += std::time::Duration::from_secs(60);
    admit_pool(&mut world, "more", "token", 1).unwrap();
    join(&mut world, "more-1", "key", "token").unwrap();
}
