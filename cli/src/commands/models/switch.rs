//! `switch`: the controller and the model for commands.

use clap::Args;
use periapt_client::ClientError;
use periapt_host_api::{ErrorCode, UserName, api::ModelSelector};

use crate::{
    commands::Verb,
    context::{Context, logged_in, unknown_controller},
    data::{ClientData, ControllerName, CurrentModel, DataDir},
    error::{Failure, Result},
    output::Sink,
};

/// Select or show the current controller and model
///
/// PERIAPT_CONTROLLER and PERIAPT_MODEL override the selection; while one of them is set, nothing can be
/// selected.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt switch\n  periapt switch blog\n  periapt switch staging\n  periapt switch staging:admin/blog"
)]
pub(crate) struct Switch {
    /// A controller, a model of the current one, or both; without one the selection is shown
    #[arg(value_name = "[CONTROLLER:][USER/]MODEL | CONTROLLER")]
    target: Option<String>,
}

impl Verb for Switch {
    async fn run(self, context: &Context) -> Result<()> {
        let known = ClientData::read(&context.data)?;
        let Some(target) = self.target else {
            let text = selected(&known, &user(&context.data, &known)?).ok_or_else(|| {
                Failure::new("no controller is selected").with_hint("`periapt bootstrap` makes one")
            })?;
            return Sink::new(None, context.color)?.write(format!("{text}\n"));
        };
        if let Some((what, variable, value)) = context.environment.overriding() {
            let text = format!("cannot switch when {variable} is overriding the {what} (set to {value:?})");
            return Err(Failure::new(text).with_hint(format!("unset {variable}")));
        }
        let (controller, model) = self::target(&known, &target)?;
        let model = match model {
            // Only an existing model can be selected.
            Some(model) => {
                let connection = context.controller(Some(&controller))?;
                let found = connection.client.model(&model).await.map_err(|error| unknown(error, &target))?;
                Some(CurrentModel::from(&found))
            }
            None => None,
        };
        let before = formatted(&known, &user(&context.data, &known)?);
        let now = ClientData::update(&context.data, |data| {
            let entry =
                data.controllers.get_mut(&controller).ok_or_else(|| unknown_controller(&controller))?;
            if model.is_some() {
                entry.current_model = model;
            }
            data.current_controller = Some(controller);
            Ok(data.clone())
        })?;
        let now = formatted(&now, &user(&context.data, &now)?);
        match before == now {
            true => context.say(format_args!("{before} (no change)")),
            false => context.say(format_args!("{before} -> {now}")),
        }
        Ok(())
    }
}

/// Converts the error for a model that does not exist to Juju's text, because the target may have been meant
/// as a controller.
fn unknown(error: ClientError, target: &str) -> Failure {
    match error {
        ClientError::Refused(refusal) if refusal.code == ErrorCode::NotFound => {
            Failure::new(format!("{target:?} is not the name of a model or controller"))
                .with_hint("`periapt models` and `periapt controllers` list them")
        }
        other => other.into(),
    }
}

/// Parses a target as Juju does: `CONTROLLER:MODEL`; a known controller's name, or one with `:` at its end;
/// else a model.
fn target(known: &ClientData, text: &str) -> Result<(ControllerName, Option<ModelSelector>)> {
    let parse = |name: &str| name.parse::<ControllerName>().map_err(|error| Failure::new(error.to_string()));
    let current = || {
        known.current_controller.clone().ok_or_else(|| {
            Failure::new(format!("controller {text} not found, and none is selected"))
                .with_hint("`periapt controllers` lists them")
        })
    };
    match text.split_once(':') {
        Some(("", model)) => Ok((current()?, Some(model.parse()?))),
        Some((controller, "")) => Ok((parse(controller)?, None)),
        Some((controller, model)) => Ok((parse(controller)?, Some(model.parse()?))),
        None => match parse(text) {
            Ok(controller) if known.controllers.contains_key(&controller) => Ok((controller, None)),
            _ => Ok((current()?, Some(text.parse()?))),
        },
    }
}

/// Returns the user who is logged in to the current controller; without one, the user of a new client.
fn user(directory: &DataDir, data: &ClientData) -> Result<UserName> {
    logged_in(directory, data.current_controller.as_ref())
}

/// Returns the selection as other commands take it: `CONTROLLER:USER/MODEL`, or a controller alone. `user` is logged in
/// there.
fn selected(data: &ClientData, user: &UserName) -> Option<String> {
    let controller = data.current_controller.as_ref()?;
    let entry = data.controllers.get(controller)?;
    Some(match &entry.current_model {
        Some(model) => format!("{controller}:{}", model.qualified(user)),
        None => controller.to_string(),
    })
}

/// Formats the selection for an operator.
fn formatted(data: &ClientData, user: &UserName) -> String {
    match selected(data, user) {
        Some(text) if !text.contains(':') => format!("{text} (controller)"),
        Some(text) => text,
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::data::ControllerEntry;

    fn known() -> ClientData {
        let entry = ControllerEntry {
            url: "https://127.0.0.1:1".into(),
            addresses: Vec::new(),
            ca_cert: None,
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
        assert_eq!(got_model.map(|model| model.to_string()).as_deref(), model, "{text}");
    }

    #[test]
    fn a_controller_is_told_from_a_model_by_being_known() {
        check("local", "local", None);
        check("other:", "other", None);
        check("blog", "local", Some("blog"));
        check(":blog", "local", Some("blog"));
        check("other:blog", "other", Some("blog"));
        check("jane/blog", "local", Some("jane/blog"));
        check("other:jane/blog", "other", Some("jane/blog"));
        assert!(target(&known(), "No Model").is_err());
        assert!(target(&ClientData::default(), "blog").is_err());
    }

    #[test]
    fn what_is_selected_is_said_as_it_is_taken() {
        let jane = "jane".parse().unwrap();
        let mut data = known();
        let said = |data: &ClientData| (selected(data, &jane), formatted(data, &jane));
        assert_eq!(said(&data), (Some("local".to_owned()), "local (controller)".to_owned()));
        for (kept, shown) in
            [("joe/blog", "local:joe/blog"), ("jane/blog", "local:jane/blog"), ("blog", "local:jane/blog")]
        {
            let entry = data.controllers.values_mut().next().unwrap();
            entry.current_model = Some(kept.parse().unwrap());
            assert_eq!(said(&data), (Some(shown.to_owned()), shown.to_owned()));
        }
        assert_eq!(said(&ClientData::default()), (None, "-".to_owned()));
    }
}
