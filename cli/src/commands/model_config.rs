//! `model-config`: settings of a whole model.

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{command::Command, settings::ModelConfig as Config};
use serde::Serialize;
use serde_json::Value;

use super::settings;
use crate::{
    context::{Context, ModelArg},
    error::{Explain as _, Failure, Result},
    output::{OutputArgs, Sink, Table},
};

/// Show or change a model's configuration
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt model-config
  periapt model-config update-status-hook-interval=5m automatically-retry-hooks=false
  periapt model-config --reset update-status-hook-interval")]
pub(crate) struct ModelConfig {
    /// A key to show, or KEY=VALUE to set
    #[arg(value_name = "KEY[=VALUE]")]
    arguments: Vec<String>,
    /// Keys that go back to their defaults
    #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
    reset: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Attribute {
    value: Value,
    source: &'static str,
}

impl ModelConfig {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let (set, keys) = settings::pairs_and_keys(&self.arguments)?;
        let model = context.model(&self.model)?;
        if !set.is_empty() || !self.reset.is_empty() {
            if !keys.is_empty() {
                return Err(Failure::new("showing and setting cannot be mixed in one call"));
            }
            model.command(Command::SetModelConfig { set, reset: self.reset }).await?;
            return Ok(());
        }
        let mut attributes = attributes(&model.client().model_config(&model.selector).await?)?;
        match keys.as_slice() {
            [] => self.output.print(context.color, &attributes, table),
            [key] => {
                let attribute = attributes.remove(key).ok_or_else(|| {
                    Failure::new(format!("a model has no setting {key}"))
                        .with_hint("`periapt model-config` lists them")
                })?;
                let text = plain(&attribute.value);
                Sink::new(self.output.output.as_deref(), context.color)?.write(&format!("{text}\n"))
            }
            _ => Err(Failure::new("one key at a time can be shown")),
        }
    }
}

/// Each key with its value, and whether that is the default.
fn attributes(config: &Config) -> Result<BTreeMap<String, Attribute>> {
    let as_object = |config: &Config| -> Result<serde_json::Map<String, Value>> {
        match serde_json::to_value(config).explain(|| "model configuration".to_owned())? {
            Value::Object(object) => Ok(object),
            _ => Err(Failure::new("the model's configuration has no keys")),
        }
    };
    let defaults = as_object(&Config::default())?;
    let attribute = |(key, value): (String, Value)| {
        let source = if defaults.get(&key) == Some(&value) { "default" } else { "model" };
        (key, Attribute { value, source })
    };
    Ok(as_object(config)?.into_iter().map(attribute).collect())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn table(attributes: &BTreeMap<String, Attribute>) -> String {
    let mut table = Table::new(["Attribute", "From", "Value"]);
    for (key, attribute) in attributes {
        table.row([key.into(), attribute.source.into(), plain(&attribute.value).into()]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attribute_says_whether_it_was_set() {
        let config = Config { automatically_retry_hooks: false, ..Config::default() };
        let text = anstream::adapter::strip_str(&table(&attributes(&config).unwrap())).to_string();
        assert_eq!(
            text,
            "Attribute                    From     Value\n\
             automatically-retry-hooks    model    false\n\
             max-action-results-age       default  1209600\n\
             max-action-results-size      default  5120\n\
             max-status-history-age       default  1209600\n\
             max-status-history-size      default  5120\n\
             update-status-hook-interval  default  300\n"
        );
    }
}
