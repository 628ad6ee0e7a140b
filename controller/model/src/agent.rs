//! Agents, charms and the controller itself: what belongs to no model.

use std::sync::Arc;

use periapt_host_api::{
    AgentName, CharmDigest, ErrorCode, Refusal, agent::Register, cloud::Kept, constraints::MAX_TAGS,
    network::HostInterface, settings::ModelSettings,
};

use crate::{
    changes::{Changes, VolatileChange},
    entity::{Agent, Charm, Controller, EntityKey},
    input::{Environment, UploadedCharm},
    root::Root,
    transaction::check_size,
};

/// The most addresses that an agent may report, and the longest text: they go into every unit's bags.
const MAX_ADDRESSES: usize = 32;
const MAX_TEXT: usize = 256;

/// The most interfaces that an agent may report: they are part of the view of each of its machines.
const MAX_INTERFACES: usize = 32;

pub(crate) fn initialize(root: &Root, name: &str, env: &Environment) -> Changes {
    let mut changes = Changes::default();
    if root.controller().is_none() {
        let controller = Controller {
            uuid: env.uuid(),
            name: name.to_owned(),
            model_defaults: ModelSettings::default(),
            kept: Kept::default(),
            created_at: env.now,
        };
        changes.puts.insert(EntityKey::Controller, Some(controller.into()));
    }
    changes
}

pub(crate) fn presence(agent: &AgentName, connected: bool, env: &Environment) -> Changes {
    let change = VolatileChange::Presence { agent: agent.clone(), connected, at: env.now };
    Changes { volatile: vec![change], ..Changes::default() }
}

pub(crate) fn register(
    root: &Root,
    name: &AgentName,
    register: &Register,
    env: &Environment,
) -> Result<Changes, Refusal> {
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
    let mut changes = presence(name, true, env);
    let created_at = root.agent(name).map_or(env.now, |agent| agent.created_at);
    let agent = Agent { name: name.clone(), host: register.clone(), created_at };
    if root.agent(name) != Some(&agent) {
        changes.puts.insert(EntityKey::Agent(name.clone()), Some(agent.into()));
    }
    Ok(changes)
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

pub(crate) fn upload_charm(
    root: &Root,
    charm: &UploadedCharm,
    env: &Environment,
) -> Result<Changes, Refusal> {
    let UploadedCharm { digest, component, meta, size } = charm;
    let mut changes = Changes::default();
    match root.charm(digest) {
        // The digest is over all of the archive.
        Some(known) if known.component == *component && known.meta == *meta => {}
        Some(_) => return Err(Refusal::new(ErrorCode::Internal, "one archive was read in two ways")),
        None => {
            let charm = Arc::new(Charm {
                digest: *digest,
                component: *component,
                meta: meta.clone(),
                size: *size,
                uploaded_at: env.now,
            });
            changes.puts.insert(EntityKey::Charm(*digest), Some(crate::entity::Entity::Charm(charm)));
        }
    }
    check_size(&changes)?;
    Ok(changes)
}

pub(crate) fn forget_charm(root: &Root, digest: &CharmDigest) -> Changes {
    let mut changes = Changes::default();
    if root.charm(digest).is_some() && !root.uses_charm(digest) {
        changes.puts.insert(EntityKey::Charm(*digest), None);
    }
    changes
}
