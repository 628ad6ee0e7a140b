//! Tools that Juju knows and a hook cannot use here. Each says so clearly, and why, instead of being unknown.

use super::Output;
use crate::CallError;

/// Of clouds, of which there are none; its error is Juju's (`hook-model.md` 5.2).
const CREDENTIALS: &str = "credential-get";

/// Of subjects that a sandbox does not have, or that Juju itself gave up (`hook-model.md` section 0, 5.13).
const NEVER: &[&str] = &[
    "add-metric",
    "juju-reboot",
    "k8s-raw-get",
    "k8s-raw-set",
    "k8s-spec-get",
    "k8s-spec-set",
    "payload-register",
    "payload-status-set",
    "payload-unregister",
    "pod-spec-get",
    "pod-spec-set",
];

/// Whether it is one of these.
pub(super) fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Their names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NEVER.iter().copied().chain([CREDENTIALS])
}

/// What a tool answers that does nothing here.
/// In an action, a reboot is refused in words of its own (N07).
pub(super) fn answer(name: &str, arguments: &[String], in_action: bool) -> Result<Output, CallError> {
    let error = if name == CREDENTIALS {
        CallError::NotSupported("cannot access cloud credentials: machines here are of no cloud".to_owned())
    } else if in_action && name == "juju-reboot" {
        CallError::NotSupported("juju-reboot is not supported when running an action.".to_owned())
    } else if NEVER.contains(&name) {
        CallError::NotSupported(format!("{name} is not supported in the sandbox"))
    } else {
        return Err(CallError::NotFound(format!("unknown command {name:?}")));
    };
    // Charms look for a tool by asking for its help.
    let flags = arguments.iter().take_while(|argument| *argument != "--");
    match flags.into_iter().any(|argument| argument == "--help") {
        true => Ok(format!("Usage: {name}\n\nSummary:\n{error}\n").into()),
        false => Err(error),
    }
}
