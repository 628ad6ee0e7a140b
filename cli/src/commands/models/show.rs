//! `show-model`

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{
    Timestamp,
    charm::assumes::{SUPPORTED_FEATURES, SupportedFeature},
    command::{ControllerInfo, ModelSummary},
    status::{FullStatus, MachineStatus},
    user::ModelUser,
};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::{Context, ModelArg, ModelRef},
    error::Result,
    output::{OutputArgs, to_the_second},
    print::identity::NEVER_CONNECTED,
};

/// Show details of models; status shows their content
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt show-model
  periapt show-model blog staging:admin/shop --format json")]
pub(crate) struct ShowModel {
    /// The models; none: the current one
    #[arg(value_name = "[CONTROLLER:][USER/]MODEL")]
    models: Vec<ModelRef>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// A model as Juju prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownModel {
    name: String,
    short_name: String,
    model_uuid: String,
    model_type: String,
    controller_uuid: String,
    controller_name: String,
    is_controller: bool,
    owner: String,
    cloud: String,
    region: &'static str,
    r#type: String,
    life: String,
    status: ShownStatus,
    users: BTreeMap<String, ShownUser>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    machines: BTreeMap<String, ShownMachine>,
    secret_backends: BTreeMap<&'static str, ShownBackend>,
    agent_version: String,
    supported_features: [ShownFeature; SUPPORTED_FEATURES.len()],
    periapt_version: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownStatus {
    current: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    since: Timestamp,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownUser {
    display_name: String,
    access: String,
    last_connection: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownMachine {
    /// The cores of its host; 0 if its agent does not report them.
    cores: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownBackend {
    num_secrets: usize,
    status: &'static str,
}

/// A feature that a charm's `assumes` may name.
#[derive(Debug, Serialize)]
struct ShownFeature {
    name: &'static str,
    description: &'static str,
    version: &'static str,
}

impl From<SupportedFeature> for ShownFeature {
    fn from(SupportedFeature { name, description, version }: SupportedFeature) -> Self {
        Self { name, description, version }
    }
}

impl Verb for ShowModel {
    async fn run(self, context: &Context) -> Result<()> {
        let mut named: Vec<ModelArg> =
            self.models.into_iter().map(|model| ModelArg { model: Some(model) }).collect();
        if named.is_empty() {
            named.push(self.model);
        }
        let mut shown = BTreeMap::new();
        for named in named {
            let model = context.model(&named)?;
            let client = model.client();
            let summary = client.model(&model.selector).await?;
            let selector = summary.uuid.into();
            let status = client.status(&selector).await?;
            let secrets = client.secrets(&selector).await?.len();
            let (name, controller) = (model.controller.name.to_string(), client.controller().await?);
            let users = client.model_users(&selector).await?;
            let one = self::shown(name, controller, summary, (status, users), secrets);
            shown.insert(one.short_name.clone(), one);
        }
        self.output.or_yaml().print(context.color, &shown, |_| String::new())
    }
}

fn shown(
    controller_name: String,
    controller: ControllerInfo,
    model: ModelSummary,
    (status, users): (FullStatus, Vec<ModelUser>),
    secrets: usize,
) -> ShownModel {
    let owner = model.owner.to_string();
    let machine = |(number, machine): (String, MachineStatus)| {
        (number, ShownMachine { cores: cores(&machine.hardware) })
    };
    let user = |user: ModelUser| {
        let last_connection = user.last_login.map_or_else(|| NEVER_CONNECTED.to_owned(), to_the_second);
        let access = user.access.to_string();
        (user.name.to_string(), ShownUser { display_name: user.display_name, access, last_connection })
    };
    ShownModel {
        name: format!("{owner}/{}", model.name),
        short_name: model.name.to_string(),
        model_uuid: model.uuid.to_string(),
        model_type: status.model.kind,
        controller_uuid: controller.uuid.to_string(),
        controller_name,
        is_controller: false,
        cloud: status.model.cloud.clone(),
        region: "default",
        r#type: status.model.cloud,
        life: model.life.to_string(),
        status: ShownStatus {
            current: status.model.model_status.current,
            message: status.model.model_status.message,
            since: status.model.model_status.since.unwrap_or(model.created_at),
        },
        users: users.into_iter().map(user).collect(),
        owner,
        machines: status.machines.into_iter().map(machine).collect(),
        // The one backend, under Juju's name for it.
        secret_backends: [("internal", ShownBackend { num_secrets: secrets, status: "active" })].into(),
        supported_features: SUPPORTED_FEATURES.map(ShownFeature::from),
        agent_version: status.model.version,
        periapt_version: controller.version,
    }
}

/// Returns the cores of a host; 0 if its agent does not report them.
fn cores(hardware: &str) -> u32 {
    let cores = hardware.split_whitespace().find_map(|word| word.strip_prefix("cores="));
    cores.and_then(|cores| cores.parse().ok()).unwrap_or_default()
}
