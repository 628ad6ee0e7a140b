//! The keeper's interface to the controller, which tests replace.

use std::{collections::BTreeMap, future::Future, path::Path};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use periapt_client::{KnownLayer, PartialFile};
use periapt_host_api::{
    AgentName, Digest, ModelUuid, Refusal, RequestId, UnitName,
    agent::{AgentAssignments, AgentPlace, Register, RunnerAnswer, RunnerCommand},
    api::WatchPosition,
    command::{CommandResults, Commands},
    resource::{ContentLayers, ResourceKey},
    secret::{SecretData, SecretKey},
    view::FrameLine,
    workload_log::{PartAnswer, WorkloadLogPart},
};

mod http;

pub(crate) use http::HttpController;

/// An error of a call to the controller.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ControllerError {
    /// The controller refused the call.
    #[error("the controller refused")]
    Refused(#[source] Refusal),
    /// The outcome is unknown.
    #[error("{0}")]
    Away(String),
    /// The answer arrived but is unusable: it is damaged, or this host cannot store it. Another attempt costs the same
    /// transfer.
    #[error("{0}")]
    Unusable(String),
}

/// A stream of answers.
pub(crate) type Answers<T> = BoxStream<'static, Result<T, ControllerError>>;

/// The controller, for the keeper of one agent. All calls but those of sessions are idempotent.
pub(crate) trait Controller: Clone + Send + Sync + 'static {
    /// Registers the agent and its host.
    fn register(&self, register: Register) -> impl Future<Output = Result<(), ControllerError>> + Send;

    /// Streams the agent's assignments, in full at each change.
    fn assignments(&self) -> impl Future<Output = Result<Answers<AgentAssignments>, ControllerError>> + Send;

    /// Streams the view of one model's runner from a position, line by line.
    fn watch(
        &self,
        model: ModelUuid,
        position: Option<WatchPosition>,
    ) -> impl Future<Output = Result<Answers<FrameLine>, ControllerError>> + Send;

    /// Sends commands of one model's runner in one call.
    fn commands(
        &self,
        model: ModelUuid,
        commands: Commands<RunnerCommand>,
    ) -> impl Future<Output = Result<CommandResults<RunnerAnswer>, ControllerError>> + Send;

    /// Returns the ways to the other agents with units that one model's runner may know of.
    fn peers(
        &self,
        model: ModelUuid,
    ) -> impl Future<Output = Result<BTreeMap<AgentName, AgentPlace>, ControllerError>> + Send;

    /// Offers a part of a workload's output, or of a session's, to the operator who ordered it.
    fn workload_log_part(
        &self,
        id: RequestId,
        part: (WorkloadLogPart, Bytes),
    ) -> impl Future<Output = Result<PartAnswer, ControllerError>> + Send;

    /// Takes the next bytes of a session's input, at most 64 KiB; none if there are none yet. What is lost on the way is
    /// lost: after an error the session ends.
    fn exec_session_input(
        &self,
        id: RequestId,
    ) -> impl Future<Output = Result<Bytes, ControllerError>> + Send;

    /// Returns the content of a secret that a unit may read.
    fn secret(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &SecretKey,
    ) -> impl Future<Output = Result<SecretData, ControllerError>> + Send;

    /// Fetches what a file lacks of the content of a resource that a unit may read, and verifies the digest of the whole.
    /// After an error, the file keeps what has arrived if another attempt may fetch the rest.
    fn resource(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &ResourceKey,
        file: &mut PartialFile,
    ) -> impl Future<Output = Result<(), ControllerError>> + Send;

    /// Returns the layers in the content of a resource that a unit may read.
    fn resource_layers(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &ResourceKey,
    ) -> impl Future<Output = Result<ContentLayers, ControllerError>> + Send;

    /// Adds what a file lacks of the content of a resource that a unit may read, from layers that are here and the
    /// controller. `known` has the size of the content, in bytes. Returns false if the whole does not have its digest: the
    /// file is empty then. After an error, it keeps what has arrived if another attempt may fetch the rest.
    fn resource_beside(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &ResourceKey,
        known: (u64, Vec<KnownLayer>),
        file: &mut PartialFile,
    ) -> impl Future<Output = Result<bool, ControllerError>> + Send;

    /// Fetches what a file lacks of a charm's archive, and verifies the digest of the whole. After an error, the file keeps
    /// what has arrived if another attempt may fetch the rest.
    fn charm(
        &self,
        digest: Digest,
        file: &mut PartialFile,
    ) -> impl Future<Output = Result<(), ControllerError>> + Send;

    /// Writes the program that the agent is to run to a file, and verifies its digest.
    fn program(
        &self,
        digest: Digest,
        file: &Path,
    ) -> impl Future<Output = Result<(), ControllerError>> + Send;
}

/// Hands a part over to the operator who ordered it. Waits for room for as long as the controller knows the order: each
/// offer waits there for a while, so that the agent's other calls need no pause between two of them.
pub(crate) async fn hand_over<C: Controller>(
    controller: &C,
    id: RequestId,
    (part, content): (WorkloadLogPart, Bytes),
) -> Result<(), ControllerError> {
    while controller.workload_log_part(id, (part, content.clone())).await? == PartAnswer::NoRoom {}
    Ok(())
}
