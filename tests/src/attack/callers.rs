//! Callers that use the product's own client for what is not theirs.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use periapt_client::{ClientError, Identity};
use periapt_host_api::{
    AgentName, ErrorCode,
    agent::RunnerCommand,
    api::ModelSelector,
    command::{Command, ControllerCommand},
    logs::LogQuery,
};

use super::{row::StoppedBy, target::AttackedController};

/// The refusals of calls, all of which must have been refused.
#[derive(Default)]
struct Refusals {
    count: usize,
    /// The calls that were answered otherwise.
    others: Vec<String>,
}

impl Refusals {
    fn expect<T>(&mut self, call: &str, expected: ErrorCode, answered: Result<T, ClientError>) {
        match answered {
            Ok(_) => self.others.push(format!("{call} was granted")),
            Err(error) if error.refusal().is_some_and(|refusal| refusal.code == expected) => self.count += 1,
            Err(error) => self.others.push(format!("{call}: {error}")),
        }
    }

    fn stopped(self) -> StoppedBy {
        match self.others.is_empty() {
            true => StoppedBy::Refusals(self.count),
            false => StoppedBy::Nobody(self.others.join("; ")),
        }
    }
}

/// A user with a model of their own, who asks for another one's.
pub(super) async fn other_tenant(target: &AttackedController) -> anyhow::Result<StoppedBy> {
    let (client, mut refusals) = (target.client(&target.hostile)?, Refusals::default());
    let none = ErrorCode::NotFound;
    for model in [
        ModelSelector::Uuid(target.honest_model),
        ModelSelector::Name("honest".parse()?),
        ModelSelector::Owned("admin".parse()?, "honest".parse()?),
    ] {
        let following = LogQuery { follow: true, ..LogQuery::default() };
        let set = BTreeMap::from([("update-status-hook-interval".to_owned(), "1m".to_owned())]);
        let write = Command::SetModelConfig { set, reset: Vec::new() };
        refusals.expect("the model", none, client.model(&model).await);
        refusals.expect("its status", none, client.status(&model).await);
        refusals.expect("its status as a stream", none, client.watch_status(&model).await);
        refusals.expect("its logs", none, client.logs(&model, &following).await);
        refusals.expect("its journal", none, client.journal(&model, None).await);
        refusals.expect("its secrets", none, client.secrets(&model).await);
        refusals.expect("its machines", none, client.machines(&model).await);
        refusals.expect("its configuration", none, client.model_config(&model).await);
        refusals.expect("its users", none, client.model_users(&model).await);
        refusals.expect("a write to it", none, client.command(&model, write).await);
    }
    let denied = ErrorCode::PermissionDenied;
    let add = ControllerCommand::add_model("mine".parse()?);
    refusals.expect("the audit log", denied, client.audit(None).await);
    refusals.expect("another model", denied, client.controller_command(add).await);
    refusals.expect("another user", ErrorCode::NotFound, client.user(&"honest".parse()?).await);
    Ok(refusals.stopped())
}

/// A session that ends while it follows a stream, and is used afterwards.
pub(super) async fn revoked_session(target: &AttackedController) -> anyhow::Result<StoppedBy> {
    let token = target.another_session().await?;
    let (client, mut refusals) = (target.client(&token)?, Refusals::default());
    let model = ModelSelector::Uuid(target.hostile_model);
    let mut watch = client.watch_status(&model).await?;
    let first = watch.next().await;
    anyhow::ensure!(matches!(first, Some(Ok(_))), "the stream begins: {first:?}");
    target.client(&token)?.log_out().await?;
    while let Some(Ok(_)) = watch.next().await {}
    let ended = ErrorCode::NotLoggedIn;
    for client in [client, target.client(&token)?] {
        refusals.expect("itself", ended, client.whoami().await);
        refusals.expect("a stream", ended, client.watch_status(&model).await);
        refusals.expect("a session", ended, client.open_session().await);
    }
    Ok(refusals.stopped())
}

/// An agent without a unit of the model that it asks for.
pub(super) async fn stale_agent(target: &AttackedController) -> anyhow::Result<StoppedBy> {
    let agent: AgentName = "stale".parse()?;
    let (client, mut refusals) = (target.on_socket(Identity::Agent(agent.clone()))?, Refusals::default());
    let (denied, model) = (ErrorCode::PermissionDenied, target.honest_model);
    let none: Vec<RunnerCommand> = Vec::new();
    refusals.expect("a view", denied, client.watch(&agent, &model, None).await);
    refusals.expect("a commit", denied, client.runner_commands(&agent, &model, none.clone()).await);
    let other: AgentName = "other".parse()?;
    refusals.expect("another agent's assignments", denied, client.assignments(&other).await);
    refusals.expect("another agent's view", denied, client.watch(&other, &model, None).await);
    refusals.expect("another agent's commit", denied, client.runner_commands(&other, &model, none).await);
    refusals.expect("all models", denied, client.models().await);
    // Over TLS its word counts for nothing.
    let stranger = target.stranger(Identity::Agent(agent.clone()))?;
    refusals.expect("its assignments", ErrorCode::NotLoggedIn, stranger.assignments(&agent).await);
    Ok(refusals.stopped())
}
