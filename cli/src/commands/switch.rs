//! `switch`: which controller and model commands go to.

use clap::Args;
use periapt_host_api::{ModelName, api::ModelSelector};

use crate::{
    context::{Context, unknown_controller},
    data::{ClientData, ControllerName},
    error::{Failure, Result},
    output::Sink,
};

/// Select the controller and the model that commands go to, or say which they are
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt switch\n  periapt switch blog\n  periapt switch staging\n  periapt switch staging:blog"
)]
pub(crate) struct Switch {
    /// A controller, a model of the current one, or both; none: say what is selected
    #[arg(value_name = "[CONTROLLER:]MODEL | CONTROLLER")]
    target: Option<String>,
}

impl Switch {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let known = ClientData::read(&context.data)?;
        let before = selected(&known);
        let Some(target) = self.target else {
            let text = before.ok_or_else(|| {
                Failure::new("no controller is selected").with_hint("`periapt bootstrap` makes one")
            })?;
            return Sink::new(None, context.color)?.write(&format!("{text}\n"));
        };
        let (controller, model) = self::target(&known, &target)?;
        if let Some(model) = &model {
            // Only what exists can be selected.
            let connection = context.controller(Some(&controller))?;
            connection.client.model(&ModelSelector::Name(model.clone())).await?;
        }
        let now = ClientData::update(&context.data, |data| {
            let entry =
                data.controllers.get_mut(&controller).ok_or_else(|| unknown_controller(&controller))?;
            if model.is_some() {
                entry.current_model = model;
            }
            data.current_controller = Some(controller);
            Ok(selected(data))
        })?;
        let text = |selected: Option<String>| selected.unwrap_or_else(|| "-".to_owned());
        context.say(format_args!("{} -> {}", text(before), text(now)));
        Ok(())
    }
}

/// As Juju reads it: `CONTROLLER:MODEL`; a known controller's name, or one with `:` at its end; else a model.
fn target(known: &ClientData, text: &str) -> Result<(ControllerName, Option<ModelName>)> {
    let parse = |name: &str| name.parse::<ControllerName>().map_err(|error| Failure::new(error.to_string()));
    let current = || {
        known.current_controller.clone().ok_or_else(|| {
            Failure::new(format!("{text} is no controller, and none is selected"))
                .with_hint("`periapt controllers` lists them")
        })
    };
    match text.split_once(':') {
        Some(("", model)) => Ok((current()?, Some(ModelName::new(model)?))),
        Some((controller, "")) => Ok((parse(controller)?, None)),
        Some((controller, model)) => Ok((parse(controller)?, Some(ModelName::new(model)?))),
        None => match parse(text) {
            Ok(controller) if known.controllers.contains_key(&controller) => Ok((controller, None)),
            _ => Ok((current()?, Some(ModelName::new(text)?))),
        },
    }
}

fn selected(data: &ClientData) -> Option<String> {
    let controller = data.current_controller.as_ref()?;
    let entry = data.controllers.get(controller)?;
    Some(match &entry.current_model {
        Some(model) => format!("{controller}:{model}"),
        None => format!("{controller} (no model)"),
    })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::data::ControllerEntry;

    fn known() -> ClientData {
        let entry = ControllerEntry {
            url: "http://127.0.0.1:1".into(),
            uuid: Uuid::nil(),
            current_model: None,
            local: None,
        };
        let mut data = ClientData::default();
        data.controllers.insert("local".parse().unwrap(), entry);
        data.current_controller = Some("local".parse().unwrap());
        data
    }

    fn check(text: &str, controller: &str, model: Option<&str>) {
        let (got_controller, got_model) = target(&known(), text).unwrap();
        assert_eq!(got_controller.as_str(), controller, "{text}");
        assert_eq!(got_model.as_ref().map(ModelName::as_str), model, "{text}");
    }

    #[test]
    fn a_controller_is_told_from_a_model_by_being_known() {
        check("local", "local", None);
        check("other:", "other", None);
        check("blog", "local", Some("blog"));
        check(":blog", "local", Some("blog"));
        check("other:blog", "other", Some("blog"));
        assert!(target(&known(), "No Model").is_err());
        assert!(target(&ClientData::default(), "blog").is_err());
    }
}
