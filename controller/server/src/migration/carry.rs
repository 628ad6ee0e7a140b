//! The carrying of one model: blobs, agents, entities and history.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use periapt_blobs::BlobError;
use periapt_client::Client;
use periapt_host_api::{
    Digest, Refusal,
    command::{Answer, ControllerCommand},
    migration::{DELETING, HELD, ImportPage, ImportedRecord},
    resource::ContentKind,
};
use periapt_model::{
    ModelState, RecordBody, Root, agents_to_migrate, entities_to_migrate, entity::Export, open_entity,
    plan_begun_migration,
};
use periapt_store::{Order, RecordPosition, Store, StoreError, codec, key};

use super::{
    Outgoing, Stop,
    pages::{BYTES, Pages},
};
use crate::state::{Contents, StoredContent};

/// The agents of one page. Each takes two entities.
const AGENTS: usize = 40;

/// The rows of history that are read at a time.
const RECORDS: usize = 100;

/// The names of sequences that are read at a time.
const SEQUENCES: usize = 200;

impl Outgoing {
    /// Carries all of the model. What has come before, in an earlier attempt, is not sent again.
    pub(super) async fn carry(&mut self, root: &Root, export: &Export) -> Result<(), Stop> {
        let plan = plan_begun_migration(root, &self.model, export.id)?;
        let client = self.client(export)?;
        let begun = ControllerCommand::BeginImport { plan: Box::new(plan.clone()), check: false };
        let answer = client.controller_command(begun).await?;
        self.reached = true;
        let deletes =
            || Stop::Later("the other controller deletes what came in an earlier attempt".to_owned());
        let next = match answer {
            Answer::Import { next: DELETING } => return Err(deletes()),
            // An earlier attempt has sent all of it, and that was checked.
            Answer::Import { next: HELD } => return Ok(()),
            Answer::Import { next } => next,
            _ => return Err(Stop::Failed("the other controller answered something else".to_owned())),
        };
        // Another controller of this log, or this one before its restart, cut those pages. Its history may be pruned
        // elsewhere than here, so pages of two controllers do not fit together.
        if next > 0 && self.sent != Some(export.id) {
            self.give_up_part(export).await?;
            return Err(deletes());
        }
        self.sent = Some(export.id);
        let state = root.model_or_remains(&self.model).ok_or(Stop::Over)?;
        self.carry_blobs(&client, root, state).await?;
        let mut pages = Pages::new(self.model, export.id, next);
        let mut count: u64 = 0;
        for entity in entities_to_migrate(root, state) {
            count += 1;
            let entity = open_entity(&self.state.sealer.key, &self.model, entity)?;
            let value = serde_json::to_value(entity).map_err(|error| Stop::Failed(error.to_string()))?;
            if let Some(page) = pages.add_entity(value) {
                self.send(&client, export, Some(page)).await?;
            }
        }
        self.send(&client, export, pages.end()).await?;
        // After their machines, by which the other controller finds them if the model is given up.
        for agents in agents_to_migrate(root, &plan, AGENTS, BYTES) {
            let page = pages.of_agents(agents);
            self.send(&client, export, page).await?;
        }
        self.carry_history(&client, export, &mut pages).await?;
        self.send(&client, export, pages.end()).await?;
        self.check_exporting(export.id)?;
        let held = ControllerCommand::HoldImport { model: self.model, id: export.id, entities: count };
        client.controller_command(held).await?;
        Ok(())
    }

    /// Sends a page, if there is one that has not come.
    async fn send(&self, client: &Client, export: &Export, page: Option<ImportPage>) -> Result<(), Stop> {
        let Some(page) = page else { return Ok(()) };
        self.check_exporting(export.id)?;
        client.controller_command(ControllerCommand::ImportPage(Box::new(page))).await?;
        Ok(())
    }

    /// Uploads the charms of the model and the contents of its resources, unless they are there.
    async fn carry_blobs(&self, client: &Client, root: &Root, state: &ModelState) -> Result<(), Stop> {
        let charms: BTreeSet<Digest> = state
            .charms()
            .map(|charm| charm.digest)
            .chain(state.applications().map(|application| application.charm.digest))
            .collect();
        for digest in charms {
            if !client.has_charm(&digest).await? {
                let stored = StoredContent::blob(digest);
                self.require(&self.state.charms.contents, &stored).await?;
                client.upload_charm_stream(&digest, pieces(&self.state.charms.contents, stored)).await?;
            }
        }
        let resources: BTreeSet<Digest> = state
            .applications()
            .flat_map(|application| application.resources.values().map(|resource| resource.current.digest))
            .collect();
        // Hooks that run may still read former contents. What is not kept any more cannot be read here either.
        let former: BTreeSet<Digest> = state
            .applications()
            .flat_map(|application| application.resources.values())
            .flat_map(|resource| resource.former.iter().map(|former| former.content.digest))
            .collect();
        for digest in former.difference(&resources) {
            let (kind, stored) = (kind_of(root, digest), StoredContent::of_resource(root, digest));
            if !client.has_content(digest, kind).await?
                && self.require(&self.state.resources.contents, &stored).await.is_ok()
            {
                let content = pieces(&self.state.resources.contents, stored);
                client.upload_content(digest, kind, content).await?;
            }
        }
        for digest in resources {
            let (kind, stored) = (kind_of(root, &digest), StoredContent::of_resource(root, &digest));
            if !client.has_content(&digest, kind).await? {
                self.require(&self.state.resources.contents, &stored).await?;
                let content = pieces(&self.state.resources.contents, stored);
                client.upload_content(&digest, kind, content).await?;
            }
        }
        Ok(())
    }

    /// Fetches the blobs of a content from another controller of this log, if this one does not have them.
    async fn require(&self, contents: &Contents, stored: &StoredContent) -> Result<(), Stop> {
        stored.obtain(contents).await;
        match stored.readable_size(&contents.blobs).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => {
                let (kind, digest) = (contents.kind.as_str(), stored.digest().short());
                Err(Stop::Failed(format!("the {kind} {digest} is missing")))
            }
            Err(error) => Err(Stop::Later(error.to_string())),
        }
    }

    /// Sends logs, statuses, hooks and results of tasks, sequence by sequence.
    async fn carry_history(&self, client: &Client, export: &Export, pages: &mut Pages) -> Result<(), Stop> {
        let prefix = key::records_of_model(&self.model);
        let mut after = prefix.clone();
        loop {
            let names = self.records()?.sequences(Some(after.as_slice()), SEQUENCES).await.map_err(later)?;
            let Some(last) = names.last().cloned() else { return Ok(()) };
            for name in names {
                if !name.starts_with(&prefix) {
                    return Ok(());
                }
                self.carry_sequence(client, export, pages, &name).await?;
            }
            after = last;
        }
    }

    async fn carry_sequence(
        &self,
        client: &Client,
        export: &Export,
        pages: &mut Pages,
        name: &[u8],
    ) -> Result<(), Stop> {
        let entity = name.splitn(3, |byte| *byte == b'/').nth(2).unwrap_or_default();
        let entity = String::from_utf8_lossy(entity).into_owned();
        let mut after: Option<RecordPosition> = None;
        loop {
            let order = Order::OldestFirst { after };
            let records = self.records()?.records(name, order, RECORDS).await.map_err(later)?;
            let Some(last) = records.last().map(|record| record.position) else { return Ok(()) };
            after = Some(last);
            for record in records {
                let body = match codec::body(&record).map_err(|error| Stop::Failed(error.to_string()))? {
                    RecordBody::Journal(journal) => {
                        RecordBody::Journal(Box::new(self.state.sealer.open_journal(&self.model, *journal)?))
                    }
                    other => other,
                };
                let body = serde_json::to_value(body).map_err(|error| Stop::Failed(error.to_string()))?;
                let record = ImportedRecord { entity: entity.clone(), at: record.at, body };
                if let Some(page) = pages.add_record(record) {
                    self.send(client, export, Some(page)).await?;
                }
            }
        }
    }

    fn records(&self) -> Result<Arc<dyn Store>, Refusal> {
        self.state.durable.records()
    }
}

fn later(error: StoreError) -> Stop {
    Stop::Later(error.to_string())
}

/// Returns a content, read anew at each call.
fn pieces(
    contents: &Contents,
    stored: StoredContent,
) -> impl Fn() -> stream::BoxStream<'static, std::io::Result<bytes::Bytes>> + Send + Sync + use<> {
    let blobs = contents.blobs.clone();
    move || {
        let (blobs, stored) = (blobs.clone(), stored.clone());
        stream::once(async move {
            let content = stored.read(&blobs, None).await?;
            Ok::<_, BlobError>(content.unwrap_or_else(|| stream::empty().boxed()))
        })
        .try_flatten()
        .map_err(std::io::Error::other)
        .boxed()
    }
}

/// Returns the kind that content was checked to be of.
fn kind_of(root: &Root, digest: &Digest) -> ContentKind {
    let image = root.resource_content(digest).and_then(|known| known.image.as_ref());
    image.map_or(ContentKind::File, |_| ContentKind::OciImage)
}
