//! Checks of a scene before it is set up: contradictions within it, and with the charm's declarations. They are those
//! of Scenario's consistency checker, and those that Scenario's types rule out. `runtime/hook/tests/impossible.json`
//! has an example of each; the SDKs' harnesses refuse them with the same messages.

use std::collections::BTreeSet;

use periapt_host_api::{
    ApplicationName, UnitName,
    charm::{CharmMeta, EndpointMeta},
    ports::PortRange,
    relation::{Role, Scope},
    schema::{self, ValidationBudget},
    secret::SecretRevision,
};
use serde_json::Value;

use super::{EventKind, RelationScene, Scene, SceneError};

type Checked = Result<(), SceneError>;

fn refuse(text: String) -> Checked {
    Err(SceneError::Contradiction(text))
}

/// Refuses an invalid scene. The lookups refuse names that the charm does not declare.
pub(crate) fn check(scene: &Scene, meta: &CharmMeta) -> Checked {
    if scene.attempt == 0 {
        return refuse("attempt is 0; the first attempt is 1".to_owned());
    }
    principal(scene, meta)?;
    scene.relations.iter().try_for_each(|it| relation(scene, it, meta))?;
    storages(scene)?;
    secrets(scene)?;
    ports(&scene.ports)?;
    bindings(scene, meta)?;
    parameters(scene, meta)
}

fn principal(scene: &Scene, meta: &CharmMeta) -> Checked {
    let Some(principal) = &scene.principal else { return Ok(()) };
    let own = scene.unit.application();
    if principal.application() == own {
        return refuse(format!(
            "{principal} cannot be the principal: it is a unit of {own} itself; name a unit of another application"
        ));
    }
    if !meta.subordinate {
        return refuse(format!(
            "{principal} cannot be the principal: the charm is no subordinate; declare `subordinate: true` or leave \
             the principal out"
        ));
    }
    Ok(())
}

fn relation(scene: &Scene, relation: &RelationScene, meta: &CharmMeta) -> Checked {
    let Some(declared) = meta.endpoints.get(&relation.endpoint) else {
        return Err(SceneError::Undeclared { what: "endpoint", name: relation.endpoint.to_string() });
    };
    let remote = remote_application(scene, relation, declared)?;
    for unit in relation.members.keys().chain(relation.former_members.keys()) {
        remote_unit(scene, relation, remote, unit)?;
    }
    if let Some(unit) = relation.members.keys().find(|unit| relation.former_members.contains_key(unit)) {
        return refuse(format!(
            "{unit} stands among the members of relation {} and among the former ones; leave one of them out",
            relation.id
        ));
    }
    match declared.scope {
        Scope::Container => within_container(scene, relation, remote),
        Scope::Global => Ok(()),
    }
}

/// Returns the application at the other end, to which all members must belong.
pub(crate) fn remote_application<'a>(
    scene: &'a Scene,
    relation: &'a RelationScene,
    declared: &EndpointMeta,
) -> Result<&'a ApplicationName, SceneError> {
    let own = scene.unit.application();
    let refuse = |text: String| Err(SceneError::Contradiction(text));
    let id = relation.id;
    match (declared.role, &relation.remote_application) {
        (Role::Peer, Some(remote)) if remote != own => {
            refuse(format!("relation {id} is of peers: it has no remote application"))
        }
        (Role::Peer, _) if relation.remote_model.is_some() => {
            refuse(format!("relation {id} is of peers: it has no remote-model"))
        }
        (Role::Peer, _) if !relation.remote_settings.is_empty() => refuse(format!(
            "relation {id} is of peers: its application's settings are application-settings, not remote-settings"
        )),
        (Role::Peer, _) => Ok(own),
        (Role::Provider | Role::Requirer, Some(remote)) if remote == own => refuse(format!(
            "relation {id} cannot be with {own} itself: {} is no endpoint of peers; name another application",
            relation.endpoint
        )),
        (Role::Provider | Role::Requirer, Some(remote)) => Ok(remote),
        (Role::Provider | Role::Requirer, None) => {
            refuse(format!("relation {id} needs its remote-application"))
        }
    }
}

/// Refuses an invalid remote unit of a relation: a unit of another application, or the unit itself.
pub(crate) fn remote_unit(
    scene: &Scene,
    relation: &RelationScene,
    remote: &ApplicationName,
    unit: &UnitName,
) -> Checked {
    let id = relation.id;
    if *unit == scene.unit {
        return refuse(format!(
            "{unit} cannot be a remote unit of relation {id}: it is the unit itself; name another unit of {remote}"
        ));
    }
    if unit.application() != remote {
        return refuse(format!(
            "{unit} cannot be a remote unit of relation {id}: the remote application is {remote}; name a unit of {remote}"
        ));
    }
    Ok(())
}

/// Refuses more than a principal and its subordinate in a container relation, which see each other alone.
fn within_container(scene: &Scene, relation: &RelationScene, remote: &ApplicationName) -> Checked {
    let mut members = relation.members.keys();
    let (Some(first), second) = (members.next(), members.next()) else { return Ok(()) };
    let id = relation.id;
    if let Some(second) = second {
        return refuse(format!(
            "relation {id} is of scope container, with one remote unit at most; it has {first} and {second}"
        ));
    }
    let principal = scene.principal.as_ref().filter(|principal| principal.application() == remote);
    match principal.filter(|principal| *principal != first) {
        Some(principal) => refuse(format!(
            "{first} cannot be a remote unit of relation {id}: it is of scope container, and the principal is \
             {principal}"
        )),
        None => Ok(()),
    }
}

fn storages(scene: &Scene) -> Checked {
    let mut seen = BTreeSet::new();
    match scene.storages.iter().find(|storage| !seen.insert(&storage.id)) {
        Some(twice) => refuse(format!("storage {} is given twice; give each a number of its own", twice.id)),
        None => Ok(()),
    }
}

fn secrets(scene: &Scene) -> Checked {
    let mut seen = BTreeSet::new();
    for secret in &scene.secrets {
        let id = secret.id;
        if !seen.insert(id) {
            return refuse(format!("secret {id} is given twice; give each an id of its own"));
        }
        if secret.revisions.is_empty() {
            return refuse(format!("secret {id} has no revision"));
        }
        if secret.revisions.contains_key(&SecretRevision::NONE) {
            return refuse(format!("secret {id} has revision 0; revisions begin with 1"));
        }
    }
    Ok(())
}

fn ports(ports: &BTreeSet<PortRange>) -> Checked {
    // An author's list is short enough to compare each pair.
    for (place, one) in ports.iter().enumerate() {
        if let Some(other) = ports.iter().skip(place + 1).find(|other| one.overlaps(other)) {
            return refuse(format!("ports {one} and {other} overlap; a unit opens each port once"));
        }
    }
    Ok(())
}

fn bindings(scene: &Scene, meta: &CharmMeta) -> Checked {
    if let Some(name) = scene.bindings.endpoints.keys().find(|name| !meta.has_binding(name)) {
        return Err(SceneError::Undeclared { what: "endpoint or extra binding", name: name.clone() });
    }
    match scene.bindings.spaces().find(|space| !scene.spaces.has(space)) {
        Some(space) => {
            refuse(format!("an endpoint is bound to space {space}, which the scene's spaces lack"))
        }
        None => Ok(()),
    }
}

/// Checks parameters as when an operator runs the action. Required ones may be left out, as in Scenario.
fn parameters(scene: &Scene, meta: &CharmMeta) -> Checked {
    let told = &scene.event;
    if scene.parameters.is_empty() {
        return Ok(());
    }
    if told.kind != EventKind::Action {
        return refuse(format!("{} takes no parameters; an action does", told.hook));
    }
    let Some(action) = meta.actions.get(&told.hook) else { return Ok(()) };
    let mut schema = action.params.clone();
    if let Some(keywords) = schema.as_object_mut() {
        keywords.remove("required");
    }
    let given = Value::Object(scene.parameters.clone());
    schema::validate(&schema, &given, &mut ValidationBudget::default())
        .map_err(|wrong| SceneError::Contradiction(format!("parameters of {}: {wrong}", told.hook)))
}

/// Refuses invalid remote units of a batch.
pub(crate) fn batch(scene: &Scene, relation: &RelationScene, remote: &ApplicationName) -> Checked {
    let batch = scene.event.batch.iter();
    let mut units = batch.flat_map(|it| it.joined.iter().chain(&it.changed).chain(&it.departed));
    units.try_for_each(|unit| remote_unit(scene, relation, remote, unit))
}

#[cfg(test)]
mod tests;
