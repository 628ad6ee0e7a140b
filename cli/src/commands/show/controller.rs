//! `show-controller`

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use crate::{
    commands::model::by_name,
    context::{Context, ControllerArg},
    data::ControllerName,
    error::Result,
    output::OutputArgs,
};

/// Show all that is known of controllers
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt show-controller\n  periapt show-controller local --format json")]
pub(crate) struct ShowController {
    /// The controllers; none: the current one
    controllers: Vec<ControllerName>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    controller: ControllerArg,
}

/// As Juju prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Shown {
    details: Details,
    models: BTreeMap<String, ShownModel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_model: Option<String>,
    account: Account,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Details {
    controller_uuid: String,
    api_endpoints: [String; 1],
    cloud: &'static str,
    agent_version: String,
    engine: String,
    writable: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownModel {
    model_uuid: String,
    machine_count: u32,
    unit_count: u32,
}

#[derive(Debug, Serialize)]
struct Account {
    user: &'static str,
    access: &'static str,
}

impl ShowController {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let mut named: Vec<Option<&ControllerName>> = self.controllers.iter().map(Some).collect();
        if named.is_empty() {
            named.push(self.controller.controller.as_ref());
        }
        let mut shown = BTreeMap::new();
        for name in named {
            let controller = context.controller(name)?;
            let info = controller.client.controller().await?;
            let models = by_name(&controller.client).await?.into_iter().map(|model| {
                let counts = ShownModel {
                    model_uuid: model.uuid.to_string(),
                    machine_count: model.machines,
                    unit_count: model.units,
                };
                (format!("{}/{}", model.owner, model.name), counts)
            });
            let one = Shown {
                details: Details {
                    controller_uuid: info.uuid.to_string(),
                    api_endpoints: [controller.entry.url],
                    cloud: "periapt",
                    agent_version: info.version,
                    engine: info.engine,
                    writable: info.writable,
                },
                models: models.collect(),
                current_model: controller.entry.current_model.map(|model| model.to_string()),
                account: Account { user: "admin", access: "superuser" },
            };
            shown.insert(controller.name, one);
        }
        self.output.or_yaml().print(context.color, &shown, |_| String::new())
    }
}
