//! The registration and connection state of agents.

use periapt_host_api::{
    AgentName, Refusal,
    agent::{MAX_CONTAINER_PROBLEM, MAX_FIREWALL_PROBLEM, Register},
    constraints::MAX_TAGS,
    network::HostInterface,
    program::{MAX_PROGRAM_TEXT, MAX_REASON, RunningProgram},
};

use crate::{
    entity::{Agent, EntityKey},
    input::Environment,
    root::{
        Presence, Root,
        changes::{Changes, VolatileChange},
    },
};

/// The most addresses that an agent may report, and the most bytes of each text. Addresses go into every unit's bags.
const MAX_ADDRESSES: usize = 32;
const MAX_TEXT: usize = 256;

/// The most interfaces that an agent may report. They are part of the view of each of its machines.
const MAX_INTERFACES: usize = 32;

/// Notes that an agent is there.
pub(crate) fn connected(agent: &AgentName, env: &Environment) -> Changes {
    noted(agent, Presence { connected: true, last_seen: env.now, since_ms: env.lease_now_ms })
}

/// Notes that an agent has gone.
pub(crate) fn disconnected(agent: &AgentName, env: &Environment) -> Changes {
    noted(agent, Presence { connected: false, last_seen: env.now, since_ms: env.lease_now_ms })
}

fn noted(agent: &AgentName, presence: Presence) -> Changes {
    let change = VolatileChange::Presence { agent: agent.clone(), presence };
    Changes { volatile: vec![change], ..Changes::default() }
}

pub(crate) fn register(
    root: &Root,
    name: &AgentName,
    register: &Register,
    env: &Environment,
) -> Result<Changes, Refusal> {
    check(register)?;
    let mut changes = connected(name, env);
    let created_at = root.agent(name).map_or(env.now, |agent| agent.created_at);
    let agent = Agent { name: name.clone(), host: register.clone(), created_at };
    if root.agent(name) != Some(&agent) {
        changes.puts.insert(EntityKey::Agent(name.clone()), Some(agent.into()));
    }
    Ok(changes)
}

/// Refuses a description of a host that exceeds a bound.
pub(crate) fn check(register: &Register) -> Result<(), Refusal> {
    let texts = [
        &register.boot_id,
        &register.hostname,
        &register.availability_zone,
        &register.version,
        &register.engine,
    ];
    if register.addresses.len() > MAX_ADDRESSES {
        return Err(Refusal::bad_request(format!("more than {MAX_ADDRESSES} addresses")));
    }
    if texts.into_iter().chain(&register.addresses).any(|text| text.len() > MAX_TEXT) {
        return Err(Refusal::bad_request(format!("a text is longer than {MAX_TEXT} bytes")));
    }
    if register.addresses.iter().any(|address| address.is_empty() || address.contains(char::is_whitespace)) {
        return Err(Refusal::bad_request("an address is empty or holds blanks"));
    }
    if register.tags.len() > MAX_TAGS {
        return Err(Refusal::bad_request(format!("more than {MAX_TAGS} tags")));
    }
    check_interfaces(&register.interfaces)?;
    check_program(register.program.as_ref())?;
    check_problem("firewall", register.firewall_problem.as_deref(), MAX_FIREWALL_PROBLEM)?;
    check_problem("containers", register.container_problem.as_deref(), MAX_CONTAINER_PROBLEM)
}

/// Checks the texts about the agent's program, which lists show.
fn check_program(program: Option<&RunningProgram>) -> Result<(), Refusal> {
    let Some(program) = program else { return Ok(()) };
    let reason = program.failed.as_ref().map_or(0, |failed| failed.reason.len());
    if program.version.len() > MAX_PROGRAM_TEXT || reason > MAX_REASON {
        return Err(Refusal::bad_request(format!(
            "a program's version has at most {MAX_PROGRAM_TEXT} bytes, and the reason of its failure {MAX_REASON}"
        )));
    }
    Ok(())
}

/// Checks a text about a part of the host, which tables show.
fn check_problem(part: &str, problem: Option<&str>, most: usize) -> Result<(), Refusal> {
    let is_line = |text: &str| (1..=most).contains(&text.len()) && !text.contains(char::is_control);
    match problem.is_none_or(is_line) {
        true => Ok(()),
        false => Err(Refusal::bad_request(format!(
            "a problem of the host's {part} is one line of 1 to {most} bytes"
        ))),
    }
}

fn check_interfaces(interfaces: &[HostInterface]) -> Result<(), Refusal> {
    let too_many = |what: &str, most: usize| Err(Refusal::bad_request(format!("more than {most} {what}")));
    if interfaces.len() > MAX_INTERFACES {
        return too_many("interfaces", MAX_INTERFACES);
    }
    if interfaces.iter().any(|interface| interface.addresses.len() > MAX_ADDRESSES) {
        return too_many("addresses of one interface", MAX_ADDRESSES);
    }
    if interfaces.iter().any(|interface| interface.name.len().max(interface.mac.len()) > MAX_TEXT) {
        return Err(Refusal::bad_request(format!("a text is longer than {MAX_TEXT} bytes")));
    }
    Ok(())
}
