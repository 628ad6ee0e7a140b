//! `config` and `trust`: an application's settings.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use periapt_host_api::{
    ApplicationName,
    api::{ApplicationDetails, BudgetDetails, BudgetSource, SettingDetails, SettingSource},
    budget::BudgetKey,
    command::Command,
    egress::WORKLOAD_EGRESS,
    settings::{ModelSettings, SettingKey, WORKLOAD_CRASH, WorkloadCrash},
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{OutputArgs, Sink, Text},
    parse::settings,
};

/// Show or change an application's settings
///
/// Without a key all options are shown with their types, defaults and values; with one only its value. All changes
/// of one call happen together or not at all.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt config wordpress
  periapt config wordpress port
  periapt config wordpress blog-title=Cats port=8080
  periapt config wordpress --reset port,debug
  periapt config wordpress update-status-hook-interval=15m
  periapt config wordpress trust=true
  periapt config wordpress hook-memory-limit=512M hook-timeout=10m
  periapt config wordpress workload-egress=api.example.com:443
  periapt config wordpress workload-crash=error
  periapt config wordpress --file settings.yaml")]
pub(crate) struct Config {
    /// The application
    application: ApplicationName,
    /// A key to show, or KEY=VALUE to set (KEY=@FILE for a file's content)
    #[arg(value_name = "KEY[=VALUE]")]
    arguments: Vec<String>,
    /// Options to reset to their defaults, and budgets to reset to the model's
    #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
    reset: Vec<String>,
    /// A YAML file of settings
    #[arg(long)]
    file: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Trust an application with the abilities that its charm declares
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt trust wordpress\n  periapt trust wordpress --remove")]
pub(crate) struct Trust {
    /// The application
    application: ApplicationName,
    /// Revoke the trust
    #[arg(long)]
    remove: bool,
    /// Accepted for compatibility with Juju: cluster, a scope of Kubernetes alone
    #[arg(long, value_name = "SCOPE", value_parser = ["cluster"])]
    scope: Option<String>,
    #[command(flatten)]
    model: ModelArg,
}

/// The configuration as Juju prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Listing {
    application: String,
    application_config: BTreeMap<&'static str, ApplicationSetting>,
    charm: String,
    settings: BTreeMap<String, Setting>,
}

/// A setting of the application that is not its charm's.
#[derive(Debug, Serialize)]
struct ApplicationSetting {
    #[serde(skip_serializing_if = "Value::is_null")]
    default: Value,
    description: String,
    source: &'static str,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Value::is_null")]
    value: Value,
}

#[derive(Debug, Serialize)]
struct Setting {
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
    description: String,
    source: SettingSource,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

impl Verb for Config {
    async fn run(self, context: &Context) -> Result<()> {
        let (mut set, keys) = settings::pairs_and_keys(&self.arguments)?;
        if let Some(file) = &self.file {
            let from_file = settings::from_file(file, Some(self.application.as_str()))?;
            for (key, value) in from_file {
                set.entry(key).or_insert(value);
            }
        }
        let changes = !set.is_empty() || !self.reset.is_empty() || self.file.is_some();
        match (keys.as_slice(), changes) {
            (_, true) if !keys.is_empty() => {
                Err(Failure::new("showing and setting cannot be mixed in one call"))
            }
            (_, true) => {
                if let Some(both) = self.reset.iter().find(|key| set.contains_key(*key)) {
                    return Err(Failure::new(format!("{both} cannot be set and reset in one call")));
                }
                let model = context.model(&self.model)?;
                let Self { application, reset, .. } = self;
                model.command(Command::SetConfig { application, set, reset }).await?;
                Ok(())
            }
            ([], _) => self.show(context, None).await,
            ([key], _) => self.show(context, Some(key)).await,
            _ => Err(Failure::new("one key at a time can be shown")),
        }
    }
}

impl Config {
    async fn show(&self, context: &Context, key: Option<&str>) -> Result<()> {
        let model = context.model(&self.model)?;
        let details = model.client().application(&model.selector, &self.application).await?;
        match key {
            Some(key) if application_key(&details, key).is_some() => {
                let text = application_key(&details, key).unwrap_or_default();
                Sink::new(self.output.output.as_deref(), context.color)?
                    .write(Text::value(format!("{text}\n")))
            }
            Some(key) => {
                let setting = details.settings.get(key).ok_or_else(|| {
                    Failure::new(format!("application {} has no option {key}", self.application))
                        .with_hint(format!("`periapt config {}` lists its options", self.application))
                })?;
                let text = setting.value.as_ref().map(ToString::to_string).unwrap_or_default();
                Sink::new(self.output.output.as_deref(), context.color)?
                    .write(Text::value(format!("{text}\n")))
            }
            None => self.output.or_yaml().print(context.color, &listing(details), |_| String::new()),
        }
    }
}

impl Verb for Trust {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        model.command(Command::SetTrust { application: self.application, trust: !self.remove }).await?;
        Ok(())
    }
}

fn listing(details: ApplicationDetails) -> Listing {
    let trust = ApplicationSetting {
        default: false.into(),
        description: "Does this application have access to what its charm asks for".to_owned(),
        source: if details.trust { "user" } else { "default" },
        r#type: "boolean",
        value: details.trust.into(),
    };
    let interval = ApplicationSetting {
        default: Value::Null,
        description: "Time between update-status hooks, 0 for none; the model's if unset".to_owned(),
        source: if details.update_status_hook_interval.is_some() { "user" } else { "unset" },
        r#type: "string",
        value: own_interval(&details).unwrap_or_default(),
    };
    let budgets = details.budgets.iter().map(|(key, budget)| (key.as_str(), budget_setting(*key, *budget)));
    let egress = ApplicationSetting {
        default: Value::Null,
        description: "Hosts outside that its workloads may connect to; the model's if unset".to_owned(),
        source: if details.workload_egress.is_some() { "user" } else { "unset" },
        r#type: "string",
        value: details.workload_egress.as_ref().map(|grants| grants.to_string().into()).unwrap_or_default(),
    };
    let crash = ApplicationSetting {
        default: WorkloadCrash::default().as_str().into(),
        description: "What becomes of a hook that was cut short beside its workloads: retry or error"
            .to_owned(),
        source: if details.workload_crash.is_default() { "default" } else { "user" },
        r#type: "string",
        value: details.workload_crash.as_str().into(),
    };
    let others = [
        ("trust", trust),
        ("update-status-hook-interval", interval),
        (WORKLOAD_CRASH, crash),
        (WORKLOAD_EGRESS, egress),
    ];
    let application_config = budgets.chain(others).collect();
    Listing {
        application: details.name.to_string(),
        application_config,
        charm: details.charm_name,
        settings: details.settings.into_iter().map(|(key, setting)| (key, shown(setting))).collect(),
    }
}

/// Returns the application's own interval between update-status hooks.
fn own_interval(details: &ApplicationDetails) -> Option<Value> {
    let update_status_hook_interval = details.update_status_hook_interval;
    let own = ModelSettings { update_status_hook_interval, ..ModelSettings::default() };
    own.show(SettingKey::UpdateStatusHookInterval)
}

/// Returns the value of a setting of the application itself, unless its charm has an option of that name.
fn application_key(details: &ApplicationDetails, key: &str) -> Option<String> {
    if details.settings.contains_key(key) {
        return None;
    }
    match key {
        "trust" => return Some(details.trust.to_string()),
        "update-status-hook-interval" => {
            return Some(own_interval(details).as_ref().map(settings::plain).unwrap_or_default());
        }
        WORKLOAD_CRASH => return Some(details.workload_crash.to_string()),
        WORKLOAD_EGRESS => {
            return Some(details.workload_egress.as_ref().map(ToString::to_string).unwrap_or_default());
        }
        _ => {}
    }
    let key: BudgetKey = key.parse().ok()?;
    details.budgets.get(&key).map(|budget| key.show(budget.value))
}

fn budget_setting(key: BudgetKey, budget: BudgetDetails) -> ApplicationSetting {
    ApplicationSetting {
        default: key.show(key.default_value()).into(),
        description: key.description().to_owned(),
        source: match budget.source {
            BudgetSource::Application => "user",
            BudgetSource::Model => "model",
            BudgetSource::Controller => "controller",
            BudgetSource::Default => "default",
        },
        r#type: "string",
        value: key.show(budget.value).into(),
    }
}

fn shown(setting: SettingDetails) -> Setting {
    Setting {
        default: setting.default.map(|value| value.to_json()),
        description: setting.description,
        source: setting.source,
        r#type: setting.kind.as_str(),
        value: setting.value.map(|value| value.to_json()),
    }
}
