//! The note with which a keeper leaves a pod to the next one, and the place of the pod at the holder.

use std::os::{fd::OwnedFd, unix::net::UnixStream};

use periapt_host_api::{Digest, ModelUuid};
use serde::{Deserialize, Serialize};

use super::PodId;
use crate::keeper::held::PodHolder;

/// The version of the words between keepers and pods. Pods of another version are ended, and started anew.
const PROTOCOL: u32 = 1;

/// The last words of the names of a pod's descriptors.
pub(super) const PROCESS: &str = " process";
pub(super) const SOCKET: &str = " socket";

/// A pod as its keeper describes it to the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct PodNote {
    protocol: u32,
    pub(super) model: ModelUuid,
    pub(super) pod: PodId,
    /// The digest of all that decides what the pod runs.
    pub(super) software: Digest,
    /// The name of the directory with its files.
    pub(super) directory: Option<String>,
}

/// The names under which a pod is held, and the holder.
#[derive(Debug)]
pub(super) struct HeldPlace {
    holder: PodHolder,
    name: String,
}

impl PodNote {
    /// Describes a pod.
    pub(super) fn new(model: ModelUuid, pod: &PodId, software: Digest, directory: Option<String>) -> Self {
        Self { protocol: PROTOCOL, model, pod: pod.clone(), software, directory }
    }

    /// Returns true if the pod speaks as this keeper does.
    pub(super) fn is_understood(&self) -> bool {
        self.protocol == PROTOCOL
    }
}

impl HeldPlace {
    /// Returns the place of a pod.
    pub(super) fn new(holder: &PodHolder, note: &PodNote) -> Self {
        let (unit, container) = &note.pod;
        Self { holder: holder.clone(), name: format!("pod {} {unit} {container}", note.model) }
    }

    /// Hands a pod over: its process first, so that no pod is held whose end nobody can see.
    pub(super) fn hold(&self, note: &PodNote, process: &OwnedFd, socket: &UnixStream) {
        let Ok(note) = serde_json::to_string(note) else { return };
        self.holder.hold(&format!("{}{PROCESS}", self.name), &note, process);
        self.holder.hold(&format!("{}{SOCKET}", self.name), &note, socket);
    }

    /// Forgets a pod that has ended.
    pub(super) fn release(&self) {
        for part in [SOCKET, PROCESS] {
            self.holder.release(&format!("{}{part}", self.name));
        }
    }

    /// Returns true if the pod is left to the next keeper.
    pub(super) fn is_left(&self) -> bool {
        self.holder.has_left()
    }
}
