//! `model-config`: the settings of a whole model.

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{
    api::{ModelConfigDetails, ModelSettingDetails, ModelSettingSource},
    command::Command,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{Format, OutputArgs, Sink, Table, Text},
    parse::settings,
};

/// Show or change a model's configuration
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt model-config
  periapt model-config update-status-hook-interval=5m automatically-retry-hooks=false
  periapt model-config hook-memory-limit=64M hook-cpu-budget=10s
  periapt model-config workload-egress=api.example.com:443,10.1.0.0/16
  periapt model-config egress-subnets=192.0.2.0/24 firewall-mode=global
  periapt model-config --reset update-status-hook-interval")]
pub(crate) struct ModelConfig {
    /// A key to show, or KEY=VALUE to set
    #[arg(value_name = "KEY[=VALUE]")]
    arguments: Vec<String>,
    /// Keys to reset to their defaults
    #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
    reset: Vec<String>,
    #[command(flatten)]
    file: settings::FileArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for ModelConfig {
    async fn run(self, context: &Context) -> Result<()> {
        let (pairs, keys) = settings::pairs_and_keys(&self.arguments)?;
        let mut set = self.file.read()?;
        set.extend(pairs);
        let given = !set.is_empty() || !self.reset.is_empty();
        let model = context.model(&self.model)?;
        if given {
            if !keys.is_empty() {
                return Err(Failure::new("showing and setting cannot be mixed in one call"));
            }
            let kept: Vec<_> = set.keys().cloned().collect();
            model.command(Command::SetModelConfig { set, reset: self.reset }).await?;
            settings::tell_of_kept(context, &kept);
            return Ok(());
        }
        let shown = model.client().model_config(&model.selector).await?;
        match keys.as_slice() {
            [] if self.output.format == Format::Json => {
                self.output.print(context.color, &capitalized(&shown), |_| String::new())
            }
            [] => self.output.print(context.color, &shown, table),
            [key] => {
                let value = match shown.0.get(key) {
                    Some(attribute) => attribute.value.clone(),
                    None => settings::default_of_kept(key)?,
                };
                let text = settings::plain(&value);
                Sink::new(self.output.output.as_deref(), context.color)?
                    .write(Text::value(format!("{text}\n")))
            }
            _ => Err(Failure::new("one key at a time can be shown")),
        }
    }
}

/// A setting with capitalized keys, which Juju has in JSON alone.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Capitalized<'a> {
    value: &'a Value,
    source: ModelSettingSource,
}

fn capitalized<'a>(shown: &'a ModelConfigDetails) -> BTreeMap<&'a str, Capitalized<'a>> {
    let one = |(key, ModelSettingDetails { value, source }): (&'a String, &'a ModelSettingDetails)| {
        (key.as_str(), Capitalized { value, source: *source })
    };
    shown.0.iter().map(one).collect()
}

fn table(shown: &ModelConfigDetails) -> Text {
    let mut table = Table::new(["Attribute", "From", "Value"]);
    for (key, attribute) in &shown.0 {
        let from = match attribute.source {
            ModelSettingSource::Default => "default",
            ModelSettingSource::Controller => "controller",
            ModelSettingSource::Model => "model",
        };
        table.row([key.into(), from.into(), settings::plain(&attribute.value).into()]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use periapt_host_api::settings::ModelSettings;

    use super::*;

    fn set(pairs: &[(&str, &str)]) -> ModelSettings {
        let mut settings = ModelSettings::default();
        for (key, text) in pairs {
            settings.set(key.parse().unwrap(), Some(text)).unwrap();
        }
        settings
    }

    #[test]
    fn each_attribute_says_who_set_it() {
        let model = set(&[("automatically-retry-hooks", "false"), ("hook-timeout", "90s")]);
        let shown = ModelConfigDetails::of(&model, &set(&[("firewall-mode", "none")]));
        let text = anstream::adapter::strip_str(&table(&shown)).to_string();
        assert_eq!(
            text,
            "Attribute                    From        Value\n\
             action-timeout               default     1h\n\
             agent-failover-after         default     90s\n\
             automatically-retry-hooks    model       false\n\
             egress-subnets               default\n\
             firewall-mode                controller  none\n\
             hook-call-limit              default     1000000\n\
             hook-cpu-budget              default     30s\n\
             hook-log-limit               default     1M\n\
             hook-memory-limit            default     256M\n\
             hook-timeout                 model       90s\n\
             hook-tmp-limit               default     64M\n\
             logging-config               default     <root>=INFO\n\
             max-action-results-age       default     336h\n\
             max-action-results-size      default     5G\n\
             max-status-history-age       default     336h\n\
             max-status-history-size      default     5G\n\
             storage-default-max-size     default     16G\n\
             update-status-hook-interval  default     5m\n\
             workload-cpu-limit           default     0\n\
             workload-egress              default\n\
             workload-memory-limit        default     1G\n\
             workload-memory-quota        default     unlimited\n\
             workload-process-limit       default     1024\n\
             workload-quota               default     unlimited\n"
        );
    }
}
