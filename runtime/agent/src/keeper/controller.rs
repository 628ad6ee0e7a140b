//! What a keeper asks of its controller, so that tests can answer in its place.

use std::{future::Future, path::Path};

use futures_util::stream::BoxStream;
use periapt_host_api::{
    Digest, ModelUuid, Refusal, UnitName,
    agent::{AgentAssignments, Register, RunnerAnswer, RunnerCommand},
    api::WatchPosition,
    command::CommandResults,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
    view::FrameLine,
};

mod http;

pub(crate) use http::HttpController;

/// Why a call of a keeper failed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ControllerError {
    /// The controller said no.
    #[error("the controller refused")]
    Refused(#[source] Refusal),
    /// It is not known whether it happened.
    #[error("{0}")]
    Away(String),
    /// What it sent came whole and cannot be used: it is damaged, or this host cannot store it. To ask again costs as much
    /// as it did.
    #[error("{0}")]
    Unusable(String),
}

/// The answers of a stream.
pub(crate) type Answers<T> = BoxStream<'static, Result<T, ControllerError>>;

/// The controller, as the keeper of one agent sees it. Each call may be made again.
pub(crate) trait Controller: Clone + Send + Sync + 'static {
    /// Says who and where the agent is.
    fn register(&self, register: Register) -> impl Future<Output = Result<(), ControllerError>> + Send;

    /// What the agent must run, whole whenever it differs.
    fn assignments(&self) -> impl Future<Output = Result<Answers<AgentAssignments>, ControllerError>> + Send;

    /// The view of one model's runner, from a position on, line by line.
    fn watch(
        &self,
        model: ModelUuid,
        position: Option<WatchPosition>,
    ) -> impl Future<Output = Result<Answers<FrameLine>, ControllerError>> + Send;

    /// Commands of one model's runner, in one call.
    fn commands(
        &self,
        model: ModelUuid,
        commands: Vec<RunnerCommand>,
    ) -> impl Future<Output = Result<CommandResults<RunnerAnswer>, ControllerError>> + Send;

    /// Content that a unit of a model may read.
    fn secret(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &SecretKey,
    ) -> impl Future<Output = Result<SecretData, ControllerError>> + Send;

    /// Writes the content of a resource that a unit of a model may read to a file, its digest verified.
    fn resource(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &ResourceKey,
        file: &Path,
    ) -> impl Future<Output = Result<(), ControllerError>> + Send;

    /// Writes a charm's archive to a file, its digest verified.
    fn charm(&self, digest: Digest, file: &Path) -> impl Future<Output = Result<(), ControllerError>> + Send;
}
