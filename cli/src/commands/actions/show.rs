//! `show-action`: an action's description and parameters.

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{ApplicationName, charm::ActionMeta};
use serde::Serialize;
use serde_json::Value;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{OutputArgs, Text, to_yaml},
};

/// Show an action's description and parameters
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt show-action mysql backup\n  periapt show-action mysql backup --format json"
)]
pub(crate) struct ShowAction {
    /// The application
    application: ApplicationName,
    /// The action
    action: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// An action as Juju shows it.
#[derive(Debug, Serialize)]
struct ShownAction {
    description: String,
    arguments: BTreeMap<String, Argument>,
}

#[derive(Debug, Serialize)]
struct Argument {
    #[serde(rename = "type")]
    kind: Option<Value>,
    description: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
}

impl Verb for ShowAction {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut actions = model.client().actions(&model.selector, &self.application).await?;
        let Some(action) = actions.remove(&self.action) else {
            return Err(Failure::new(format!("unknown action {:?}", self.action))
                .with_hint(format!("`periapt actions {}` lists them", self.application)));
        };
        let shown = ShownAction::from(action);
        let text = text(&shown)?;
        self.output.print(context.color, &shown, |_| text)
    }
}

impl From<ActionMeta> for ShownAction {
    fn from(action: ActionMeta) -> Self {
        let properties = action.params.get("properties").and_then(Value::as_object);
        let arguments = properties.into_iter().flatten().filter_map(|(name, property)| {
            let property = property.as_object()?;
            let said = |key: &str| property.get(key).cloned();
            let argument =
                Argument { kind: said("type"), description: said("description"), default: said("default") };
            Some((name.clone(), argument))
        });
        Self { description: action.description, arguments: arguments.collect() }
    }
}

/// Formats the description, then the arguments as YAML.
fn text(shown: &ShownAction) -> Result<Text> {
    let arguments = to_yaml(&shown.arguments)?;
    Ok(Text::value(format!("{}\n\nArguments\n{}\n", shown.description, &*arguments)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_action_is_shown_as_juju_shows_it() {
        let params = json!({"type": "object", "properties": {
            "outfile": {"type": "string", "description": "Where to.", "default": "foo.bz2"},
            "level": {"type": "integer"},
        }});
        let meta = ActionMeta {
            description: "Takes a snapshot.".into(),
            parallel: false,
            execution_group: None,
            params,
        };
        let shown = text(&ShownAction::from(meta)).unwrap();
        let expected = "Takes a snapshot.\n\nArguments\nlevel:\n  type: integer\n  description: null\noutfile:\n  \
            type: string\n  description: Where to.\n  default: foo.bz2\n\n";
        assert_eq!(&*shown, expected);
    }
}
