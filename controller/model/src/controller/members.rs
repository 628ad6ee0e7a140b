//! The controllers of one log, as they are stored: which there are, what their programs know, and which were removed.

use periapt_host_api::{ErrorCode, Level, Refusal, excerpt};

use crate::{
    controller::entity::{Controller, ControllerMember},
    entity::EntityKey,
    root::{Root, changes::Changes},
};

/// The most controllers that are stored, with those that were removed.
const MAX_MEMBERS: usize = 64;

impl Root {
    /// Returns the stored controllers of the log, by name, without those that were removed.
    pub fn members(&self) -> impl Iterator<Item = (&str, &ControllerMember)> {
        let members = self.controller().into_iter().flat_map(|controller| &controller.members);
        members.filter(|(_, member)| !member.removed).map(|(name, member)| (name.as_str(), member))
    }

    /// Returns true if an operator has removed the controller of this name.
    pub fn is_removed_member(&self, name: &str) -> bool {
        let member = self.controller().and_then(|controller| controller.members.get(name));
        member.is_some_and(|member| member.removed)
    }
}

/// Admits a controller that is about to be given the keys, also one that was removed.
pub(crate) fn admit(root: &Root, name: &str, level: Level) -> Result<Changes, Refusal> {
    let stored = root.level();
    if level < stored {
        let text = format!(
            "the program of controller {name:?} is too old: it knows level {level}, and the controllers store level \
             {stored}; use a newer periapt there"
        );
        return Err(Refusal::new(ErrorCode::NotSupported, text));
    }
    let Some(controller) = root.controller() else { return Ok(Changes::default()) };
    check_room(controller, name)?;
    Ok(stored_with(controller, name, ControllerMember { url: None, level, removed: false }))
}

/// Notes what a controller reports.
pub(crate) fn note(root: &Root, name: &str, url: &str, level: Level) -> Result<Changes, Refusal> {
    let Some(controller) = root.controller() else { return Ok(Changes::default()) };
    let reported = ControllerMember { url: Some(url.to_owned()), level, removed: false };
    match controller.members.get(name) {
        Some(known) if known.removed || *known == reported => return Ok(Changes::default()),
        Some(_) => {}
        None => check_room(controller, name)?,
    }
    Ok(stored_with(controller, name, reported))
}

/// Removes a controller.
pub(crate) fn remove(root: &Root, name: &str) -> Result<Changes, Refusal> {
    let subject = || excerpt::shortened(name);
    let known = root.controller().and_then(|controller| Some((controller, controller.members.get(name)?)));
    let Some((controller, member)) = known.filter(|(_, member)| !member.removed) else {
        let names: Vec<_> = root.members().map(|(name, _)| name).collect();
        let text = match names.is_empty() {
            true => "this controller shares its state with no other".to_owned(),
            false => format!("the controllers are {}", names.join(", ")),
        };
        return Err(Refusal::not_found(format!("controller {:?} not found: {text}", subject())));
    };
    if root.members().count() == 1 {
        let text = format!(
            "controller {:?} is the only one: `periapt destroy-controller` removes it and all models",
            subject()
        );
        return Err(Refusal::new(ErrorCode::Conflict, text));
    }
    Ok(stored_with(controller, name, ControllerMember { removed: true, ..member.clone() }))
}

fn check_room(controller: &Controller, name: &str) -> Result<(), Refusal> {
    if controller.members.len() < MAX_MEMBERS || controller.members.contains_key(name) {
        return Ok(());
    }
    let text = format!(
        "{MAX_MEMBERS} names of controllers are stored, which is the most: choose the name of one that was removed"
    );
    Err(Refusal::new(ErrorCode::QuotaExceeded, text))
}

fn stored_with(controller: &Controller, name: &str, member: ControllerMember) -> Changes {
    let mut controller = controller.clone();
    controller.members.insert(name.to_owned(), member);
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::Controller, Some(controller.into()));
    changes
}
