//! Juju's tools that a hook cannot use here. Each returns an error with the reason, instead of being unknown.

use super::Output;
use crate::CallError;

/// The tool for cloud credentials. Machines here belong to no cloud; the error is Juju's (`docs/hook-model.md`
/// 5.2).
const CREDENTIALS: &str = "credential-get";

/// Tools for subjects that a sandbox lacks, or that Juju itself dropped (`docs/hook-model.md` section 0, 5.13).
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

/// Returns true for the name of an unsupported tool.
pub(super) fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Iterates over the names of the unsupported tools.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NEVER.iter().copied().chain([CREDENTIALS])
}

/// Returns the error, or the help, of an unsupported tool. In an action `juju-reboot` has an error text of
/// its own (N07).
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
    // Charms test for a tool by its `--help`.
    let flags = arguments.iter().take_while(|argument| *argument != "--");
    match flags.into_iter().any(|argument| argument == "--help") {
        true => Ok(format!("Usage: {name}\n\nSummary:\n{error}\n").into()),
        false => Err(error),
    }
}
