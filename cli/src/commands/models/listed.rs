//! The output of `models`: Juju's fields and columns.

use periapt_host_api::{
    JUJU_VERSION, Timestamp, UserName,
    command::{ControllerInfo, ModelSummary},
    status::Life,
};
use serde::Serialize;

use crate::{
    context::Controller,
    data::CurrentModel,
    output::{Table, Text, TextStyle},
    print::identity::{CLOUD, NOT_RECORDED, REGION},
};

/// The models of a controller.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Listing {
    models: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_model: Option<String>,
    #[serde(skip)]
    current: Option<CurrentModel>,
    #[serde(skip)]
    user: UserName,
    #[serde(skip)]
    controller: String,
}

/// The choice whether a table has a column of UUIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uuids {
    Shown,
    LeftOut,
}

/// A model with Juju's field names, then with fields that Juju has in tables alone, or not at all.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Row {
    name: String,
    short_name: String,
    model_uuid: String,
    model_type: &'static str,
    controller_uuid: String,
    controller_name: String,
    is_controller: bool,
    owner: String,
    cloud: &'static str,
    region: &'static str,
    r#type: &'static str,
    life: String,
    status: Status,
    access: String,
    last_connection: &'static str,
    agent_version: &'static str,
    created_at: Timestamp,
    applications: u32,
    units: u32,
    machines: u32,
    periapt_version: String,
}

#[derive(Debug, Serialize)]
struct Status {
    current: &'static str,
    since: Timestamp,
}

impl Listing {
    pub(super) fn of(models: Vec<ModelSummary>, controller: &Controller, info: &ControllerInfo) -> Self {
        let current = controller.entry.current_model.clone();
        Self {
            models: models.into_iter().map(|model| Row::of(model, controller, info)).collect(),
            current_model: current.as_ref().map(|model| model.shown_to(&controller.user)),
            current,
            user: controller.user.clone(),
            controller: controller.name.to_string(),
        }
    }

    pub(super) fn table(&self, uuids: Uuids) -> Text {
        let of_uuid = usize::from(uuids == Uuids::Shown);
        let mut heading = vec!["Model"];
        heading.extend((uuids == Uuids::Shown).then_some("UUID"));
        heading.extend(["Cloud/Region", "Type", "Status", "Machines", "Units", "Access", "Last connection"]);
        let mut table = Table::new(heading).right(4 + of_uuid).right(5 + of_uuid);
        for model in &self.models {
            let current =
                self.current.as_ref().is_some_and(|current| current.qualified(&self.user) == model.name);
            // As in Juju, the name alone for a model of the user's own.
            let name = if model.owner == self.user.as_str() { &model.short_name } else { &model.name };
            let style = if model.status.current == AVAILABLE { TextStyle::Good } else { TextStyle::Busy };
            let mut row = vec![format!("{name}{}", if current { "*" } else { "" }).into()];
            row.extend((uuids == Uuids::Shown).then(|| (&model.model_uuid).into()));
            row.extend([
                format!("{}/{}", model.cloud, model.region).into(),
                model.r#type.into(),
                (model.status.current, style).into(),
                model.machines.into(),
                model.units.into(),
                model.access.as_str().into(),
                model.last_connection.into(),
            ]);
            table.row(row);
        }
        Text::joined([format!("Controller: {}", self.controller).into(), table.render()], "\n\n")
    }
}

const AVAILABLE: &str = "available";

impl Row {
    fn of(model: ModelSummary, controller: &Controller, info: &ControllerInfo) -> Self {
        let current = match model.life {
            Life::Alive => AVAILABLE,
            Life::Dying | Life::Dead => "destroying",
        };
        Self {
            name: format!("{}/{}", model.owner, model.name),
            short_name: model.name.to_string(),
            model_uuid: model.uuid.to_string(),
            model_type: "iaas",
            controller_uuid: info.uuid.to_string(),
            controller_name: controller.name.to_string(),
            is_controller: false,
            owner: model.owner.to_string(),
            cloud: CLOUD,
            region: REGION,
            r#type: CLOUD,
            life: model.life.to_string(),
            status: Status { current, since: model.life_since },
            access: model.access.to_string(),
            last_connection: NOT_RECORDED,
            agent_version: JUJU_VERSION,
            created_at: model.created_at,
            applications: model.applications,
            units: model.units,
            machines: model.machines,
            periapt_version: info.version.clone(),
        }
    }
}
