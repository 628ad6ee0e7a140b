//! `controllers`: what this client knows, and whether it answers.

use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    context::{Context, client},
    data::{ClientData, ControllerEntry, ControllerName},
    error::Result,
    output::{OutputArgs, Table, Tone},
};

/// How long a controller may take to say that it is there.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// List the controllers that this client knows
#[derive(Debug, Args)]
pub(crate) struct Controllers {
    /// Taken for Juju's sake: each is asked at any rate
    #[arg(long, hide = true)]
    refresh: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Listing {
    controllers: std::collections::BTreeMap<ControllerName, Row>,
    current_controller: Option<ControllerName>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Row {
    api_endpoints: [String; 1],
    uuid: String,
    cloud: &'static str,
    user: &'static str,
    access: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_model: Option<String>,
    /// `available`, `read-only` or `down`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller_process: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_process: Option<u32>,
}

impl Controllers {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let data = ClientData::read(&context.data)?;
        if data.controllers.is_empty() {
            context.say("no controllers yet: `periapt bootstrap` makes one");
        }
        let rows = data.controllers.into_iter().map(async |(name, entry)| (name, row(entry).await));
        let controllers = join_all(rows).await.into_iter().collect();
        let listing = Listing { controllers, current_controller: data.current_controller };
        self.output.print(context.color, &listing, table)
    }
}

async fn row(entry: ControllerEntry) -> Row {
    let answer = async {
        let client = client(&entry.url).ok()?;
        let info = client.controller().await.ok()?;
        // A controller at the same address that is another one is none of ours.
        let models = client.models().await.ok()?.len();
        (info.uuid == entry.uuid).then_some((info, models))
    };
    let answer = timeout(ANSWERS_WITHIN, answer).await.ok().flatten();
    let (info, models) = answer.unzip();
    Row {
        status: match &info {
            None => "down",
            Some(info) if info.writable => "available",
            Some(_) => "read-only",
        },
        api_endpoints: [entry.url],
        uuid: entry.uuid.to_string(),
        cloud: "periapt",
        user: "admin",
        access: "superuser",
        current_model: entry.current_model.map(|model| model.to_string()),
        agent_version: info.as_ref().map(|info| info.version.clone()),
        engine: info.map(|info| info.engine),
        model_count: models,
        controller_process: entry.local.as_ref().map(|local| local.controller.pid),
        agent_process: entry.local.and_then(|local| local.agent).map(|agent| agent.process.pid),
    }
}

fn table(listing: &Listing) -> String {
    let mut table = Table::new([
        "Controller",
        "Model",
        "User",
        "Access",
        "Cloud/Region",
        "Models",
        "Status",
        "Address",
        "Version",
    ])
    .right(5);
    for (name, row) in &listing.controllers {
        let current = listing.current_controller.as_ref() == Some(name);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let tone = if row.status == "available" { Tone::Good } else { Tone::Bad };
        let [address] = &row.api_endpoints;
        table.row([
            format!("{name}{}", if current { "*" } else { "" }).into(),
            or_dash(row.current_model.clone()).into(),
            row.user.into(),
            row.access.into(),
            row.cloud.into(),
            or_dash(row.model_count.map(|count| count.to_string())).into(),
            (row.status, tone).into(),
            address.into(),
            or_dash(row.agent_version.clone()).into(),
        ]);
    }
    table.render()
}
