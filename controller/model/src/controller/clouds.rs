//! Data that Juju's clients store and that has no effect: clouds, their credentials, and the public SSH keys of
//! people.

use periapt_host_api::{
    CloudName, CredentialName, ErrorCode, Refusal,
    cloud::{CloudChange, CloudDefinition, StoredClouds},
    command::Answer,
    size,
    ssh_key::SshKey,
};

use crate::{
    entity::EntityKey,
    root::{Root, changes::Changes},
    transaction::Transaction,
};

/// The most bytes of all clouds and credentials as JSON. They are part of the controller's own entity, which must fit
/// into a commit.
const MAX_BYTES: usize = 256 << 10;

/// The most bytes of an authentication type. Juju's longest has 28.
const MAX_AUTH_TYPE: usize = 64;

/// The most SSH keys of a model. They are part of its entity, with at most 4 KiB each.
const MAX_KEYS: usize = 50;

pub(crate) fn change(root: &Root, change: &CloudChange) -> Result<(Changes, Answer), Refusal> {
    let not_started = || Refusal::new(ErrorCode::TryAgain, "the controller has not started yet");
    let mut controller = root.controller().ok_or_else(not_started)?.clone();
    let kept = &mut controller.kept;
    match change {
        CloudChange::AddCloud { name, definition } => add_cloud(kept, name, definition)?,
        CloudChange::UpdateCloud { name, definition } => update_cloud(kept, name, definition)?,
        CloudChange::RemoveCloud { name } => remove_cloud(kept, name)?,
        CloudChange::AddCredential { cloud, name, auth_type } => {
            add_credential(kept, cloud, name, auth_type)?
        }
        CloudChange::RemoveCredential { cloud, name } => remove_credential(kept, cloud, name)?,
    }
    let bytes = size::of_json(&controller.kept);
    if bytes > MAX_BYTES {
        let text = format!("clouds and credentials would take {bytes} bytes, at most {MAX_BYTES} are kept");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::Controller, Some(controller.into()));
    Ok((changes, Answer::Done))
}

fn add_cloud(kept: &mut StoredClouds, name: &CloudName, definition: &CloudDefinition) -> Result<(), Refusal> {
    match kept.clouds.insert(name.clone(), definition.clone()) {
        Some(_) => Err(Refusal::already_exists(format!("cloud {:?} already exists", name.as_str()))
            .about(format!("cloud {name}"))),
        None => Ok(()),
    }
}

fn update_cloud(
    kept: &mut StoredClouds,
    name: &CloudName,
    definition: &CloudDefinition,
) -> Result<(), Refusal> {
    *kept.clouds.get_mut(name).ok_or_else(|| no_cloud(name))? = definition.clone();
    Ok(())
}

fn remove_cloud(kept: &mut StoredClouds, name: &CloudName) -> Result<(), Refusal> {
    kept.credentials.remove(name);
    kept.clouds.remove(name).map(drop).ok_or_else(|| no_cloud(name))
}

fn add_credential(
    kept: &mut StoredClouds,
    cloud: &CloudName,
    name: &CredentialName,
    auth_type: &str,
) -> Result<(), Refusal> {
    if auth_type.is_empty() || auth_type.len() > MAX_AUTH_TYPE {
        return Err(Refusal::bad_request(format!(
            "an authentication type has 1 to {MAX_AUTH_TYPE} bytes, such as userpass"
        )));
    }
    kept.credentials.entry(cloud.clone()).or_default().insert(name.clone(), auth_type.to_owned());
    Ok(())
}

fn remove_credential(
    kept: &mut StoredClouds,
    cloud: &CloudName,
    name: &CredentialName,
) -> Result<(), Refusal> {
    let of_cloud = kept.credentials.get_mut(cloud);
    if of_cloud.and_then(|credentials| credentials.remove(name)).is_none() {
        let text = format!("credential {:?} for cloud {:?} not found", name.as_str(), cloud.as_str());
        return Err(Refusal::not_found(text).about(format!("credential {name}")));
    }
    kept.credentials.retain(|_, credentials| !credentials.is_empty());
    Ok(())
}

fn no_cloud(name: &CloudName) -> Refusal {
    Refusal::not_found(format!("cloud {:?} not found", name.as_str())).about(format!("cloud {name}"))
}

pub(crate) fn add_keys(tx: &mut Transaction<'_>, keys: &[SshKey]) -> Result<Answer, Refusal> {
    let mut model = tx.state.model().clone();
    for key in keys {
        if model.ssh_keys.iter().any(|known| known.fingerprint() == key.fingerprint()) {
            let text = format!("duplicate ssh key: {}", key.fingerprint());
            return Err(Refusal::already_exists(text));
        }
        model.ssh_keys.push(key.clone());
    }
    if model.ssh_keys.len() > MAX_KEYS {
        let text =
            format!("a model keeps at most {MAX_KEYS} ssh keys, this would be {}", model.ssh_keys.len());
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    tx.put(model);
    Ok(Answer::Done)
}

pub(crate) fn remove_keys(tx: &mut Transaction<'_>, meant: &[String]) -> Result<Answer, Refusal> {
    let mut model = tx.state.model().clone();
    for text in meant {
        let before = model.ssh_keys.len();
        model.ssh_keys.retain(|key| !key.is_meant_by(text));
        if model.ssh_keys.len() == before {
            let shown: String = text.chars().take(64).collect();
            return Err(Refusal::not_found(format!("ssh key {shown:?} not found")));
        }
    }
    tx.put(model);
    Ok(Answer::Done)
}
