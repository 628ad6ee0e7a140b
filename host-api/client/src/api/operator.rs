//! The calls of the command line.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use http::Method;
use periapt_host_api::{
    ActionOperationId, ApplicationName, Digest, ModelName, Revision, TaskId, UnitName, UserName,
    action::{OperationDetails, OperationQuery, TaskDetails, TaskUpdate},
    api::{
        ApplicationDetails, Journal, JournalQuery, ModelConfigDetails, ModelDefaults, ModelSelector,
        SecretDetails, SecretQuery, SpaceList, UnitDetails, WatchPosition,
    },
    charm::ActionMeta,
    cloud::StoredClouds,
    command::{
        AgentSummary, Answer, Command, CommandResults, Commands, ControllerCommand, ControllerInfo,
        ModelSummary,
    },
    constraints::Constraints,
    logs::{LogLine, LogQuery},
    migration::{ImportPlan, MigrationStatus},
    offer::{OfferDetails, OfferUrl},
    refresh::RefreshPlan,
    ssh_key::SshKey,
    status::{CombinedStorage, FullStatus, MachineStatus, StatusHistory, StatusHistoryQuery},
    usage::ModelUsage,
    workload_log::{WorkloadLogLine, WorkloadLogQuery},
};

use crate::{Client, NdJson, Result, ndjson, request::Received, seen};

impl Client {
    /// Returns the controller's description of itself.
    pub async fn controller(&self) -> Result<ControllerInfo> {
        self.get("/v1/controller").value().await
    }

    /// Sends commands to the controller, outside of any model; each has its own result.
    pub async fn controller_commands(
        &self,
        commands: Vec<ControllerCommand>,
    ) -> Result<CommandResults<Answer>> {
        self.call(Method::POST, "/v1/commands").json(&Commands::from(commands))?.once().results().await
    }

    /// Sends one command to the controller. A refusal of the command is an error.
    pub async fn controller_command(&self, command: ControllerCommand) -> Result<Answer> {
        let results = self.controller_commands(vec![command]).await?;
        self.only(results).map(|(answer, _)| answer)
    }

    /// Returns the clouds and credentials, which the controller stores without effect.
    pub async fn kept(&self) -> Result<StoredClouds> {
        self.get("/v1/kept").value().await
    }

    /// Returns the models that the caller may see.
    pub async fn models(&self) -> Result<Vec<ModelSummary>> {
        self.get("/v1/models").value().await
    }

    /// Returns the state of a model's migration, also of a model that has moved; none without a migration.
    pub async fn migration(&self, model: &ModelSelector) -> Result<Option<MigrationStatus>> {
        self.get(format!("/v1/models/{model:#}/migration")).value().await
    }

    /// Returns what another controller needs to know before a model migrates to it.
    pub async fn migration_plan(&self, model: &ModelSelector) -> Result<ImportPlan> {
        self.get(format!("/v1/models/{model:#}/migration/plan")).value().await
    }

    /// Returns one model.
    pub async fn model(&self, model: &ModelSelector) -> Result<ModelSummary> {
        self.get(format!("/v1/models/{model:#}")).value().await
    }

    /// Sends commands to a model; each has its own result.
    pub async fn commands(
        &self,
        model: &ModelSelector,
        commands: Vec<Command>,
    ) -> Result<CommandResults<Answer>> {
        let path = format!("/v1/models/{model:#}/commands");
        self.call(Method::POST, path).json(&Commands::from(commands))?.once().results().await
    }

    /// Sends one command to a model. A refusal of the command is an error.
    pub async fn command(&self, model: &ModelSelector, command: Command) -> Result<Answer> {
        let results = self.commands(model, vec![command]).await?;
        self.only(results).map(|(answer, _)| answer)
    }

    /// Returns a model's status.
    pub async fn status(&self, model: &ModelSelector) -> Result<FullStatus> {
        self.get(format!("/v1/models/{model:#}/status")).value().await
    }

    /// Streams a model's status: once at the start, and after each change. A slow reader gets only the newest.
    ///
    /// Each status counts as seen: no later answer or stream is of an older state, whichever controller it comes from.
    pub async fn watch_status(&self, model: &ModelSelector) -> Result<NdJson<FullStatus>> {
        let call = self.get(format!("/v1/models/{model:#}/status/watch"));
        let Received { peer, response, .. } = call.response().await?;
        let (told, seen) = (seen::told(response.headers()), self.options().seen.clone());
        let statuses: NdJson<FullStatus> = ndjson::decode(response.into_body(), peer);
        let noted = statuses.map(move |item| {
            item.map(|mut status| {
                // A controller of an earlier release tells none with its lines.
                let revision = status.controller.revision.take();
                if let (Some(WatchPosition { store, .. }), Some(revision)) = (told, revision) {
                    seen.raise(WatchPosition { store, revision });
                }
                status
            })
        });
        Ok(Box::pin(noted.fuse()))
    }

    /// Returns a unit with its relations and its newest hooks.
    pub async fn unit(&self, model: &ModelSelector, unit: &UnitName) -> Result<UnitDetails> {
        self.get(format!("/v1/models/{model:#}/units/{unit}")).value().await
    }

    /// Returns a model's secrets, without content.
    pub async fn secrets(&self, model: &ModelSelector) -> Result<Vec<SecretDetails>> {
        self.get(format!("/v1/models/{model:#}/secrets")).value().await
    }

    /// Returns one secret, by name, id or URI; none if the answer is empty.
    pub async fn secret(
        &self,
        model: &ModelSelector,
        secret: &str,
        query: &SecretQuery,
    ) -> Result<Option<SecretDetails>> {
        let mut call = self.get(format!("/v1/models/{model:#}/secrets")).query("secret", secret);
        if query.reveal {
            call = call.query("reveal", true);
        }
        if let Some(revision) = query.revision {
            call = call.query("revision", revision);
        }
        let found: Vec<SecretDetails> = call.value().await?;
        Ok(found.into_iter().next())
    }

    /// Returns an application with its settings.
    pub async fn application(
        &self,
        model: &ModelSelector,
        application: &ApplicationName,
    ) -> Result<ApplicationDetails> {
        self.get(format!("/v1/models/{model:#}/applications/{application}")).value().await
    }

    /// Returns the changes that a refresh to an uploaded charm would make, and its obstacles. Changes nothing.
    pub async fn refresh_plan(
        &self,
        model: &ModelSelector,
        application: &ApplicationName,
        charm: &Digest,
        force: bool,
    ) -> Result<RefreshPlan> {
        let path = format!("/v1/models/{model:#}/applications/{application}/refresh");
        self.get(path).query("charm", charm).query("force", force).value().await
    }

    /// Returns a model's machines, by number.
    pub async fn machines(&self, model: &ModelSelector) -> Result<BTreeMap<String, MachineStatus>> {
        self.get(format!("/v1/models/{model:#}/machines")).value().await
    }

    /// Returns a model's storage, by id.
    pub async fn storage(&self, model: &ModelSelector) -> Result<CombinedStorage> {
        self.get(format!("/v1/models/{model:#}/storage")).value().await
    }

    /// Returns the defaults of model configuration.
    pub async fn model_defaults(&self) -> Result<ModelDefaults> {
        self.get("/v1/model-defaults").value().await
    }

    /// Returns a model's configuration with the sources of its values.
    pub async fn model_config(&self, model: &ModelSelector) -> Result<ModelConfigDetails> {
        self.get(format!("/v1/models/{model:#}/config")).value().await
    }

    /// Returns a model's constraints.
    pub async fn model_constraints(&self, model: &ModelSelector) -> Result<Constraints> {
        self.get(format!("/v1/models/{model:#}/constraints")).value().await
    }

    /// Returns a model's public SSH keys, which have no effect.
    pub async fn ssh_keys(&self, model: &ModelSelector) -> Result<Vec<SshKey>> {
        self.get(format!("/v1/models/{model:#}/ssh-keys")).value().await
    }

    /// Returns the resources that a model's units have used.
    pub async fn usage(&self, model: &ModelSelector) -> Result<ModelUsage> {
        self.get(format!("/v1/models/{model:#}/usage")).value().await
    }

    /// Returns a model's spaces with their subnets.
    pub async fn spaces(&self, model: &ModelSelector) -> Result<SpaceList> {
        self.get(format!("/v1/models/{model:#}/spaces")).value().await
    }

    /// Returns a model's offers with their connections.
    pub async fn offers(&self, model: &ModelSelector) -> Result<Vec<OfferDetails>> {
        self.get(format!("/v1/models/{model:#}/offers")).value().await
    }

    /// Returns one offer of any model.
    pub async fn offer(&self, url: &OfferUrl) -> Result<OfferDetails> {
        let found: Vec<OfferDetails> = self.get("/v1/offers").query("url", url).value().await?;
        found.into_iter().next().ok_or_else(|| self.protocol(format!("the answer has no offer {url}")))
    }

    /// Returns the offers of all models, or of the models of an owner, of a name, or of both.
    pub async fn find_offers(
        &self,
        owner: Option<&UserName>,
        model: Option<&ModelName>,
    ) -> Result<Vec<OfferDetails>> {
        let mut call = self.get("/v1/offers");
        if let Some(owner) = owner {
            call = call.query("owner", owner);
        }
        if let Some(model) = model {
            call = call.query("model", model);
        }
        call.value().await
    }

    /// Streams the output of a container's services, the oldest line first. The stream ends unless the query follows.
    pub async fn workload_logs(
        &self,
        model: &ModelSelector,
        unit: &UnitName,
        query: &WorkloadLogQuery,
    ) -> Result<NdJson<WorkloadLogLine>> {
        let mut call = self.get(format!("/v1/models/{model:#}/units/{unit}/workload-logs"));
        call = call.query("container", &query.container);
        for service in &query.services {
            call = call.query("service", service);
        }
        if let Some(tail) = query.tail {
            call = call.query("tail", tail);
        }
        if query.follow {
            call = call.query("follow", true);
        }
        call.beside_others().lines().await
    }

    /// Streams log lines of a model, the oldest first. The stream ends unless the query follows.
    pub async fn logs(&self, model: &ModelSelector, query: &LogQuery) -> Result<NdJson<LogLine>> {
        let mut call = self.get(format!("/v1/models/{model:#}/logs"));
        if let Some(tail) = query.tail {
            call = call.query("tail", tail);
        }
        for (key, wanted) in [("replay", query.replay), ("follow", query.follow)] {
            if wanted {
                call = call.query(key, true);
            }
        }
        for (key, wanted) in [
            ("include", &query.include),
            ("exclude", &query.exclude),
            ("include-module", &query.include_module),
            ("exclude-module", &query.exclude_module),
        ] {
            for one in wanted {
                call = call.query(key, one);
            }
        }
        if let Some(level) = query.level {
            call = call.query("level", level);
        }
        call.lines().await
    }

    /// Returns the newest hooks of one unit, or a few of each unit of a model, the oldest first, without host calls.
    pub async fn journal(&self, model: &ModelSelector, unit: Option<&UnitName>) -> Result<Journal> {
        let mut query = JournalQuery { unit: unit.cloned(), ..JournalQuery::default() };
        let mut all = Journal::default();
        loop {
            let page = self.journal_page(model, &query).await?;
            all.entries.extend(page.entries);
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        // Pages have the newest hook of each unit first. The sort is stable, so hooks of one commit stay in order.
        all.entries.reverse();
        all.entries.sort_by_key(|entry| entry.revision);
        Ok(all)
    }

    /// Returns one page of the journal.
    pub async fn journal_page(&self, model: &ModelSelector, query: &JournalQuery) -> Result<Journal> {
        let mut call = self.get(format!("/v1/models/{model:#}/journal"));
        if let Some(unit) = &query.unit {
            call = call.query("unit", unit);
        }
        if let Some(seq) = query.seq {
            call = call.query("seq", seq);
        }
        for (key, wanted) in [("calls", query.calls), ("secrets", query.secrets)] {
            if wanted {
                call = call.query(key, true);
            }
        }
        if let Some(after) = &query.after {
            call = call.query("after", after);
        }
        call.value().await
    }

    /// Returns the status history of a unit, an application or a machine, the oldest first.
    pub async fn status_history(
        &self,
        model: &ModelSelector,
        query: &StatusHistoryQuery,
    ) -> Result<StatusHistory> {
        let mut call = self
            .get(format!("/v1/models/{model:#}/status-history"))
            .query("entity", &query.entity)
            .query("type", query.kind);
        if let Some(tail) = query.tail {
            call = call.query("tail", tail);
        }
        if let Some(since) = query.since {
            call = call.query("since", since);
        }
        call.value().await
    }

    /// Returns the actions that an application's charm declares.
    pub async fn actions(
        &self,
        model: &ModelSelector,
        application: &ApplicationName,
    ) -> Result<BTreeMap<String, ActionMeta>> {
        self.get(format!("/v1/models/{model:#}/applications/{application}/actions")).value().await
    }

    /// Returns operations, the newest first, with tasks that lack messages and results.
    pub async fn operations(
        &self,
        model: &ModelSelector,
        query: &OperationQuery,
    ) -> Result<Vec<OperationDetails>> {
        let mut call = self.get(format!("/v1/models/{model:#}/operations")).query("offset", query.offset);
        if let Some(limit) = query.limit {
            call = call.query("limit", limit);
        }
        for action in &query.actions {
            call = call.query("action", action);
        }
        for application in &query.applications {
            call = call.query("application", application);
        }
        for unit in &query.units {
            call = call.query("unit", unit);
        }
        for status in &query.status {
            call = call.query("status", status);
        }
        call.value().await
    }

    /// Returns an operation with its tasks.
    pub async fn operation(
        &self,
        model: &ModelSelector,
        operation: ActionOperationId,
    ) -> Result<OperationDetails> {
        let path = format!("/v1/models/{model:#}/operations/{operation}");
        let mut operation: OperationDetails = self.get(path).value().await?;
        let mut tasks = Vec::with_capacity(operation.tasks.len());
        for task in operation.tasks {
            tasks.push(self.rest_of_task(model, task).await?);
        }
        operation.tasks = tasks;
        Ok(operation)
    }

    /// Streams the messages of an operation's tasks, and each task once it has ended. The stream ends with the last
    /// task.
    pub async fn watch_operation(
        &self,
        model: &ModelSelector,
        operation: ActionOperationId,
    ) -> Result<NdJson<TaskUpdate>> {
        self.get(format!("/v1/models/{model:#}/operations/{operation}/watch")).lines().await
    }

    /// Returns a task with its messages and results.
    pub async fn task(&self, model: &ModelSelector, task: TaskId) -> Result<TaskDetails> {
        let first = self.get(format!("/v1/models/{model:#}/tasks/{task}")).value().await?;
        self.rest_of_task(model, first).await
    }

    /// Fetches the remaining pages of a task, of which the caller has the first.
    pub async fn rest_of_task(&self, model: &ModelSelector, mut task: TaskDetails) -> Result<TaskDetails> {
        while let Some(next) = task.next.take() {
            let path = format!("/v1/models/{model:#}/tasks/{}", task.id);
            let mut page: TaskDetails = self.get(path).query("after", next).value().await?;
            page.log.splice(..0, task.log);
            page.results = page.results.or(task.results);
            task = page;
        }
        Ok(task)
    }

    /// Returns the agents that the controller knows.
    pub async fn agents(&self) -> Result<Vec<AgentSummary>> {
        self.get("/v1/agents").value().await
    }

    /// Returns the result of a call with one command.
    pub(crate) fn only<T>(&self, results: CommandResults<T>) -> Result<(T, Revision)> {
        let revision = results.revision;
        let mut results = results.results.into_iter();
        match (results.next(), results.next()) {
            (Some(result), None) => Ok((std::result::Result::from(result)?, revision)),
            _ => Err(self.protocol("one command has one result")),
        }
    }
}
