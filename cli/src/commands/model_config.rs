//! `model-config`: settings of a whole model.

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{
    budget::{BudgetKey, BudgetSettings},
    command::Command,
    settings::ModelConfig as Config,
};
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
  periapt model-config hook-memory-limit=64M hook-cpu-budget=10s
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
    let own = as_object(&Config { budgets: BudgetSettings::default(), ..config.clone() })?;
    let budgets = BudgetKey::ALL.map(|key| {
        let (value, source) = match config.budgets.get(key) {
            Some(value) => (value, "model"),
            None => (key.default_value(), "default"),
        };
        (key.to_string(), Attribute { value: key.show(value).into(), source })
    });
    Ok(own.into_iter().map(attribute).chain(budgets).collect())
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
        let mut config = Config { automatically_retry_hooks: false, ..Config::default() };
        config.budgets.set(BudgetKey::HookTimeout, "90s").unwrap();
        let text = anstream::adapter::strip_str(&table(&attributes(&config).unwrap())).to_string();
        assert_eq!(
            text,
            "Attribute                    From     Value\n\
             action-timeout               default  1h\n\
             automatically-retry-hooks    model    false\n\
             hook-call-limit              default  1000000\n\
             hook-cpu-budget              default  30s\n\
             hook-log-limit               default  1M\n\
             hook-memory-limit            default  256M\n\
             hook-timeout                 model    90s\n\
             hook-tmp-limit               default  64M\n\
             max-action-results-age       default  1209600\n\
             max-action-results-size      default  5120\n\
             max-status-history-age       default  1209600\n\
             max-status-history-size      default  5120\n\
             storage-default-max-size     default  16384\n\
             update-status-hook-interval  default  300\n"
        );
    }
}
