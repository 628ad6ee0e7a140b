//! Settings on a command line: `KEY=VALUE`, `KEY=@FILE`, or a YAML file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use clap::Args;
use periapt_host_api::settings::{KeptKey, SettingKey};
use serde_json::Value;

use crate::{
    context::Context,
    error::{Explain as _, Failure, Result},
    input,
};

/// The options of model settings in a file.
#[derive(Debug, Clone, Args)]
pub(crate) struct FileArgs {
    /// A YAML file of settings, as the command prints them or by their keys alone; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Accepted for compatibility with Juju; defaults in the file are never set
    #[arg(long, hide = true)]
    ignore_read_only_fields: bool,
}

impl FileArgs {
    /// Returns the settings of the file; none without one.
    pub(crate) fn read(&self) -> Result<BTreeMap<String, String>> {
        let Some(path) = &self.file else { return Ok(BTreeMap::new()) };
        let text = input::text_or_stdin(path)?;
        let document: serde_json::Map<String, Value> =
            periapt_host_api::yaml::parse(&text).explain(|| format!("{}", path.display()))?;
        of_model(document).explain(|| format!("{}", path.display()))
    }
}

/// Prints which of these settings are stored without effect, and why.
pub(crate) fn tell_of_kept<'a>(context: &Context, keys: impl IntoIterator<Item = &'a String>) {
    for key in keys {
        if let Ok(SettingKey::Kept(kept)) = key.parse() {
            context.say(format_args!("setting {key} is stored without effect: {}", because(kept)));
        }
    }
}

/// Returns the reason why a setting of Juju's models has no effect. Tests of charms set such settings.
fn because(key: KeptKey) -> &'static str {
    match key {
        KeptKey::LoggingConfig => "all that charms log is kept, and `debug-log --level` chooses",
        KeptKey::CharmhubUrl
        | KeptKey::Development
        | KeptKey::DisableTelemetry
        | KeptKey::TestMode
        | KeptKey::TransmitVendorMetrics => "no store is asked, and nobody is told of a model",
        KeptKey::AgentMetadataUrl
        | KeptKey::AgentStream
        | KeptKey::AptMirror
        | KeptKey::CloudinitUserdata
        | KeptKey::ContainerImageStream
        | KeptKey::DefaultBase
        | KeptKey::DefaultSeries
        | KeptKey::EnableOsRefreshUpdate
        | KeptKey::EnableOsUpgrade
        | KeptKey::ImageMetadataUrl
        | KeptKey::ImageStream
        | KeptKey::LxdSnapChannel
        | KeptKey::NumContainerProvisionWorkers
        | KeptKey::NumProvisionWorkers
        | KeptKey::ProvisionerHarvestMode => "no machines are made, and nothing is installed on them",
    }
}

/// Returns settings by key, or from the output of `model-config` and `model-defaults`, without the defaults.
fn of_model(document: serde_json::Map<String, Value>) -> Result<BTreeMap<String, String>> {
    let mut settings = BTreeMap::new();
    for (key, value) in document {
        let value = match value {
            Value::Object(mut described) => match described.remove("controller") {
                Some(value) => Some(value),
                None if described.get("source").and_then(Value::as_str) == Some("model") => {
                    described.remove("value")
                }
                None if described.contains_key("source") || described.contains_key("default") => None,
                None => return Err(Failure::new(format!("unknown model setting {key}"))),
            },
            value => Some(value),
        };
        if let Some(text) = value.map(|value| text_of(&key, value)).transpose()?.flatten() {
            settings.insert(key, text);
        }
    }
    Ok(settings)
}

/// Formats a value as on a command line. None for a null.
fn text_of(key: &str, value: Value) -> Result<Option<String>> {
    match value {
        Value::String(text) => Ok(Some(text)),
        Value::Bool(truth) => Ok(Some(truth.to_string())),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Null => Ok(None),
        Value::Array(_) | Value::Object(_) => {
            Err(Failure::new(format!("{key} is neither a text nor a number nor a truth value")))
        }
    }
}

/// Returns the default of a setting that is listed only when it is set.
pub(crate) fn default_of_kept(key: &str) -> Result<Value> {
    match key.parse() {
        Ok(SettingKey::Kept(kept)) => Ok(kept.default_value()),
        _ => Err(no_setting(key)),
    }
}

/// Returns the error for an unknown key.
pub(crate) fn no_setting(key: &str) -> Failure {
    Failure::new(format!("unknown model setting {key}")).with_hint("`periapt model-config` lists them")
}

/// Reads the values of `--config`: pairs, and files with settings of one application. Later ones win.
pub(crate) fn from_options(
    options: &[String],
    application: Option<&str>,
) -> Result<BTreeMap<String, String>> {
    let mut settings = BTreeMap::new();
    for option in options {
        match option.split_once('=') {
            Some((key, value)) => {
                settings.insert(key_of(key)?, value_of(value)?);
            }
            None => settings.extend(from_file(Path::new(option), application)?),
        }
    }
    Ok(settings)
}

/// Reads a file: settings by key, or by application and key as `periapt config` prints them.
pub(crate) fn from_file(path: &Path, application: Option<&str>) -> Result<BTreeMap<String, String>> {
    let text = input::text(path)?;
    let document: BTreeMap<String, Value> =
        periapt_host_api::yaml::parse(&text).explain(|| format!("{}", path.display()))?;
    from_document(document, application).explain(|| format!("{}", path.display()))
}

fn from_document(
    mut document: BTreeMap<String, Value>,
    application: Option<&str>,
) -> Result<BTreeMap<String, String>> {
    let nested = document.values().any(Value::is_object);
    let of_application = application.and_then(|name| document.remove(name));
    let settings = match (of_application, document.remove("settings")) {
        (Some(Value::Object(settings)), _) | (None, Some(Value::Object(settings))) => settings,
        _ if nested => {
            return Err(Failure::new(match application {
                Some(name) => format!("it holds no settings for application {name}"),
                None => "it holds settings by application, and no application is named".to_owned(),
            }));
        }
        _ => document.into_iter().collect(),
    };
    let mut read = BTreeMap::new();
    for (key, value) in settings {
        // In the output of `config`, `value` holds the setting, and defaults are not settings.
        let value = match value {
            Value::Object(mut described) if described.contains_key("type") => {
                let source = described.get("source").and_then(Value::as_str);
                let was_set = matches!(source, Some("user") | None);
                match described.remove("value").filter(|_| was_set) {
                    Some(value) => value,
                    None => continue,
                }
            }
            other => other,
        };
        if let Some(text) = text_of(&key, value)? {
            read.insert(key, text);
        }
    }
    Ok(read)
}

/// Splits the arguments into `KEY=VALUE` pairs and keys.
pub(crate) fn pairs_and_keys(arguments: &[String]) -> Result<(BTreeMap<String, String>, Vec<String>)> {
    let (mut pairs, mut keys) = (BTreeMap::new(), Vec::new());
    for argument in arguments {
        match argument.split_once('=') {
            Some((key, value)) => {
                if pairs.insert(key_of(key)?, value_of(value)?).is_some() {
                    return Err(Failure::new(format!("{key} is set twice")));
                }
            }
            None => keys.push(argument.clone()),
        }
    }
    Ok((pairs, keys))
}

/// Formats a value as an operator would write it.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn key_of(key: &str) -> Result<String> {
    match key.trim() {
        "" => Err(Failure::new("a setting without a key: write KEY=VALUE")),
        key => Ok(key.to_owned()),
    }
}

/// Returns the setting's value. `@FILE` stands for the file's content, `@@` for a value that begins with `@`.
fn value_of(value: &str) -> Result<String> {
    match value.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => Ok(rest.to_owned()),
        Some(path) => input::text(Path::new(path)),
        None => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(yaml: &str, application: Option<&str>) -> Result<BTreeMap<String, String>> {
        from_document(periapt_host_api::yaml::parse(yaml).unwrap(), application)
    }

    fn check(yaml: &str, application: Option<&str>, expected: &[(&str, &str)]) {
        let expected = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(read(yaml, application).unwrap(), expected, "{yaml}");
    }

    #[test]
    fn a_file_holds_settings_by_key_or_by_application_and_key() {
        check("port: 80\ndebug: true\ntitle: a", None, &[("debug", "true"), ("port", "80"), ("title", "a")]);
        check("blog:\n  port: 80\nother:\n  port: 81", Some("blog"), &[("port", "80")]);
        let error = read("blog:\n  port: 80", Some("shop")).unwrap_err().to_string();
        assert_eq!(error, "it holds no settings for application shop");
        assert!(read("port: [80]", None).is_err());
    }

    #[test]
    fn what_config_prints_can_be_read_back() {
        let printed = "application: blog\nsettings:\n  port:\n    type: int\n    source: user\n    value: 80\n  \
                       title:\n    type: string\n    source: default\n    value: My Blog\n";
        check(printed, Some("blog"), &[("port", "80")]);
    }

    #[test]
    fn what_model_config_and_model_defaults_print_can_be_read_back() {
        let read = |yaml: &str| of_model(periapt_host_api::yaml::parse(yaml).unwrap());
        let printed = "firewall-mode: {value: none, source: model}\nhook-timeout: {value: 10m, source: controller}\n\
                       hook-tmp-limit: {default: 64M, controller: 8M}\nhook-log-limit: {default: 1M}\nhook-call-limit: 7\n";
        let expected = [("firewall-mode", "none"), ("hook-call-limit", "7"), ("hook-tmp-limit", "8M")];
        assert_eq!(
            read(printed).unwrap(),
            expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        );
        assert!(read("blog: {port: 80}").is_err());
    }

    #[test]
    fn arguments_are_pairs_or_keys() {
        let arguments = ["a=1", "b", "c=x=y", "d=@@e", "e="].map(str::to_owned);
        let (pairs, keys) = pairs_and_keys(&arguments).unwrap();
        let expected = [("a", "1"), ("c", "x=y"), ("d", "@e"), ("e", "")];
        assert_eq!(pairs, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        assert_eq!(keys, ["b"]);
        assert!(pairs_and_keys(&["a=1".to_owned(), "a=2".to_owned()]).is_err());
        assert!(pairs_and_keys(&["=1".to_owned()]).is_err());
    }

    #[test]
    fn a_value_can_be_a_files_content() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("title");
        fs::write(&path, "A Blog\n").unwrap();
        let (pairs, _) = pairs_and_keys(&[format!("title=@{}", path.display())]).unwrap();
        assert_eq!(pairs.get("title").map(String::as_str), Some("A Blog\n"));
    }
}
