//! The controller over HTTP/2, with one connection for all calls of an agent.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use bytes::Bytes;
use futures_util::StreamExt as _;
use parking_lot::{Mutex, RwLock};
use periapt_client::{Client, ClientError, KnownLayer, Learned, NdJson, PartialFile};
use periapt_host_api::{
    AgentName, Digest, ErrorCode, ModelUuid, RequestId, UnitName,
    agent::{AgentAssignments, AgentPlace, ControllerPlace, Register, RunnerAnswer, RunnerCommand},
    api::WatchPosition,
    command::{CommandResults, Commands},
    resource::{ContentLayers, ResourceKey},
    secret::{SecretData, SecretKey},
    view::FrameLine,
    workload_log::{PartAnswer, WorkloadLogPart},
};
use tokio::sync::{Notify, watch};

use super::{Answers, Controller, ControllerError};
use crate::keeper::addresses::KeptAddresses;

/// A client with the agent's name.
#[derive(Debug, Clone)]
pub(crate) struct HttpController {
    /// The client of the controller that the agent belongs to, which changes with its models.
    client: Arc<RwLock<Client>>,
    agent: AgentName,
    kept: KeptAddresses,
    refused: Arc<Notify>,
    /// Changes when all streams must be opened again.
    moved: Arc<watch::Sender<()>>,
    /// The controller to which all models of the agent have moved, as the earlier one told.
    place: Arc<watch::Sender<Option<ControllerPlace>>>,
    /// The host as the agent has registered it last.
    registered: Arc<Mutex<Option<Register>>>,
}

impl HttpController {
    /// Creates the interface for one agent. `refused` is notified when the controller does not know the agent by its
    /// certificate: the stream of assignments is open all the time, and is refused then.
    pub(crate) fn new(client: Client, agent: AgentName, kept: KeptAddresses, refused: Arc<Notify>) -> Self {
        let client = Arc::new(RwLock::new(client));
        let (moved, place, registered) = (Arc::default(), Arc::default(), Arc::default());
        Self { client, agent, kept, refused, moved, place, registered }
    }

    /// Returns a receiver of the controller to which all models of the agent have moved.
    pub(crate) fn place(&self) -> watch::Receiver<Option<ControllerPlace>> {
        self.place.subscribe()
    }

    /// Goes on with another controller, which is told what the agent has registered last. Calls that are on their way
    /// fail, and are made again there.
    pub(crate) async fn follow(&self, client: Client) -> Result<(), ClientError> {
        let register = self.registered.lock().clone();
        if let Some(register) = register {
            client.register(&self.agent, &register).await?;
        }
        *self.client.write() = client;
        self.place.send_replace(None);
        self.moved.send_replace(());
        Ok(())
    }

    fn client(&self) -> Client {
        self.client.read().clone()
    }

    /// Takes the list of all controllers of the store, and keeps it for the agent's next start.
    fn learn(&self, addresses: &[String]) {
        self.kept.write(addresses);
        if self.client().learn(addresses) == Learned::FirstAlternatives {
            tracing::info!("there are other controllers to go on with");
            self.moved.send_replace(());
        }
    }
}

impl From<ClientError> for ControllerError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(refusal) if !refusal.code.is_temporary() => Self::Refused(refusal),
            damaged @ ClientError::Damaged { .. } => Self::Unusable(damaged.to_string()),
            other => Self::Away(other.to_string()),
        }
    }
}

/// Returns the items of a stream, until all streams must be opened again.
fn answers<T: Send + 'static>(stream: NdJson<T>, mut moves: watch::Receiver<()>) -> Answers<T> {
    let moved = async move {
        // Without a sender nobody follows the addresses any more, and the stream stays.
        if moves.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    stream.map(|item| item.map_err(ControllerError::from)).take_until(moved).boxed()
}

impl Controller for HttpController {
    async fn register(&self, register: Register) -> Result<(), ControllerError> {
        self.client().register(&self.agent, &register).await?;
        *self.registered.lock() = Some(register);
        Ok(())
    }

    async fn assignments(&self) -> Result<Answers<AgentAssignments>, ControllerError> {
        let moves = self.moved.subscribe();
        let opened = self.client().assignments(&self.agent).await;
        let refusal = opened.as_ref().err().and_then(ClientError::refusal);
        if refusal.is_some_and(|refusal| refusal.code == ErrorCode::NotLoggedIn) {
            self.refused.notify_one();
        }
        let controller = self.clone();
        let items = answers(opened?, moves).then(move |item| {
            let controller = controller.clone();
            async move {
                if let Ok(AgentAssignments { addresses, moved, .. }) = &item {
                    controller.learn(addresses);
                    controller.place.send_if_modified(|place| {
                        let differs = place != moved;
                        place.clone_from(moved);
                        differs
                    });
                }
                item
            }
        });
        Ok(items.boxed())
    }

    async fn watch(
        &self,
        model: ModelUuid,
        position: Option<WatchPosition>,
    ) -> Result<Answers<FrameLine>, ControllerError> {
        let moves = self.moved.subscribe();
        Ok(answers(self.client().watch_lines(&self.agent, &model, position).await?, moves))
    }

    async fn commands(
        &self,
        model: ModelUuid,
        commands: Commands<RunnerCommand>,
    ) -> Result<CommandResults<RunnerAnswer>, ControllerError> {
        Ok(self.client().runner_commands(&self.agent, &model, commands).await?)
    }

    async fn peers(&self, model: ModelUuid) -> Result<BTreeMap<AgentName, AgentPlace>, ControllerError> {
        Ok(self.client().peers(&self.agent, &model).await?)
    }

    async fn workload_log_part(
        &self,
        id: RequestId,
        part: (WorkloadLogPart, Bytes),
    ) -> Result<PartAnswer, ControllerError> {
        Ok(self.client().workload_log_part(&self.agent, id, part).await?)
    }

    async fn exec_session_input(&self, id: RequestId) -> Result<Bytes, ControllerError> {
        Ok(self.client().exec_session_input(&self.agent, id).await?)
    }

    async fn secret(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &SecretKey,
    ) -> Result<SecretData, ControllerError> {
        Ok(self.client().unit_secret(&self.agent, &model, unit, key).await?)
    }

    async fn resource(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &ResourceKey,
        file: &mut PartialFile,
    ) -> Result<(), ControllerError> {
        Ok(self.client().fetch_unit_resource(&self.agent, &model, unit, key, file).await?)
    }

    async fn resource_layers(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &ResourceKey,
    ) -> Result<ContentLayers, ControllerError> {
        Ok(self.client().unit_resource_layers(&self.agent, &model, unit, key).await?)
    }

    async fn resource_beside(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &ResourceKey,
        known: (u64, Vec<KnownLayer>),
        file: &mut PartialFile,
    ) -> Result<bool, ControllerError> {
        let whose = (&self.agent, &model);
        Ok(self.client().fetch_unit_resource_beside(whose, unit, key, known, file).await?)
    }

    async fn charm(&self, digest: Digest, file: &mut PartialFile) -> Result<(), ControllerError> {
        Ok(self.client().fetch_charm_to(&digest, file).await?)
    }

    async fn program(&self, digest: Digest, file: &Path) -> Result<(), ControllerError> {
        let unusable =
            |error: std::io::Error| ControllerError::Unusable(format!("{}: {error}", file.display()));
        let mut writer = tokio::fs::File::create(file).await.map_err(unusable)?;
        self.client().fetch_program(&self.agent, &digest, &mut writer).await?;
        writer.sync_all().await.map_err(unusable)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, stream};
    use periapt_client::{Identity, Options, Trust};
    use periapt_transport::Authority;
    use tempfile::TempDir;

    use super::*;

    fn controller(directory: &TempDir) -> HttpController {
        let trust = Trust::Authority(Authority::generate().unwrap().certificate().to_owned());
        let options = Options::new("https://a:1", Identity::Local).with_trust(trust);
        let kept = KeptAddresses::in_directory(directory.path().to_owned());
        HttpController::new(Client::new(options).unwrap(), "one".parse().unwrap(), kept, Arc::default())
    }

    fn open_stream(controller: &HttpController) -> Answers<u8> {
        let items = stream::iter([Ok(1)]).chain(stream::pending());
        answers(Box::pin(items), controller.moved.subscribe())
    }

    #[tokio::test]
    async fn streams_end_once_when_there_are_first_alternatives() {
        let directory = TempDir::new().unwrap();
        let controller = controller(&directory);
        let mut streams = [open_stream(&controller), open_stream(&controller)];
        for stream in &mut streams {
            assert!(matches!(stream.next().await, Some(Ok(1))));
        }
        controller.learn(&["https://a:1".into()]);
        for stream in &mut streams {
            assert!(stream.next().now_or_never().is_none(), "one address is no alternative");
        }
        controller.learn(&["https://a:1".into(), "https://b:1".into()]);
        for stream in &mut streams {
            assert!(stream.next().await.is_none());
        }
        let mut again = open_stream(&controller);
        assert!(again.next().await.is_some());
        controller.learn(&["https://b:1".into(), "https://c:1".into()]);
        assert!(again.next().now_or_never().is_none(), "its connection notices silence soon");
        assert_eq!(controller.client().urls().len(), 3);
    }
}
