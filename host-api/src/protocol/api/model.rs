//! Model configuration with the sources of its values, and the forms in which requests name a model.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ModelName, ModelUuid, NameError, UserName,
    settings::{ModelSettings, SettingKey},
};

/// A model as a path names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelSelector {
    /// The model's UUID, which never changes.
    Uuid(ModelUuid),
    /// The name of a model that the caller owns, or else of the only model with that name.
    Name(ModelName),
    /// The name of a model that this user owns.
    Owned(UserName, ModelName),
}

/// Formats the selector as `NAME`, `USER/NAME` or a UUID; in the alternate form (`{:#}`) as one segment of a path.
impl fmt::Display for ModelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(uuid) => uuid.fmt(f),
            Self::Name(name) => name.fmt(f),
            Self::Owned(owner, name) if f.alternate() => write!(f, "{owner}%2F{name}"),
            Self::Owned(owner, name) => write!(f, "{owner}/{name}"),
        }
    }
}

impl FromStr for ModelSelector {
    type Err = NameError;
    /// Reads a hyphenated UUID as the model's UUID: nobody names a model so by accident.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((owner, name)) = text.split_once('/') {
            return Ok(Self::Owned(UserName::new(owner)?, ModelName::new(name)?));
        }
        match text.parse::<ModelUuid>() {
            Ok(uuid) if text.len() == 36 => Ok(Self::Uuid(uuid)),
            _ => ModelName::new(text).map(Self::Name),
        }
    }
}

impl From<ModelUuid> for ModelSelector {
    fn from(uuid: ModelUuid) -> Self {
        Self::Uuid(uuid)
    }
}

impl From<ModelName> for ModelSelector {
    fn from(name: ModelName) -> Self {
        Self::Name(name)
    }
}

/// A model's configuration with the sources of its values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ModelConfigDetails(
    /// The values, by key.
    pub BTreeMap<String, ModelSettingDetails>,
);

/// One key of a model's configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelSettingDetails {
    /// The value in effect, in the form that operators set.
    pub value: Value,
    /// The source of the value.
    pub source: ModelSettingSource,
}

/// The source of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelSettingSource {
    /// The built-in default.
    Default,
    /// The controller's default for all models.
    Controller,
    /// The model's own configuration.
    Model,
}

impl ModelConfigDetails {
    /// Returns the configuration in effect for a model's settings and its controller's defaults.
    pub fn of(model: &ModelSettings, controller: &ModelSettings) -> Self {
        let details = |key: SettingKey| {
            let (value, source) = match (model.show(key), controller.show(key)) {
                (Some(value), _) => (value, ModelSettingSource::Model),
                (None, Some(value)) => (value, ModelSettingSource::Controller),
                (None, None) => (key.default_value(), ModelSettingSource::Default),
            };
            (key.to_string(), ModelSettingDetails { value, source })
        };
        Self(listed([model, controller]).into_iter().map(details).collect())
    }
}

/// Returns the keys of a listing: all keys with an effect, and those without one that some of the settings set.
fn listed<const N: usize>(settings: [&ModelSettings; N]) -> BTreeSet<SettingKey> {
    let kept = settings.into_iter().flat_map(|settings| settings.kept.keys().copied().map(SettingKey::Kept));
    SettingKey::all().into_iter().chain(kept).collect()
}

/// The defaults of model configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ModelDefaults(
    /// The defaults, by key.
    pub BTreeMap<String, ModelDefault>,
);

/// The default of one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelDefault {
    /// The built-in default.
    pub default: Value,
    /// The controller's default for all models; none if the operator set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<Value>,
}

impl ModelDefaults {
    /// Returns the defaults of a controller with these settings.
    pub fn of(controller: &ModelSettings) -> Self {
        let default = |key: SettingKey| {
            let default = key.default_value();
            (key.to_string(), ModelDefault { default, controller: controller.show(key) })
        };
        Self(listed([controller]).into_iter().map(default).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_by_uuid_by_name_or_by_owner_and_name() {
        let uuid = "0197a5ee-0000-7000-8000-000000000001";
        assert!(matches!(uuid.parse::<ModelSelector>(), Ok(ModelSelector::Uuid(_))));
        assert!(matches!("blog".parse::<ModelSelector>(), Ok(ModelSelector::Name(_))));
        let undashed = "0197a5ee000070008000000000000001";
        assert!(matches!(undashed.parse::<ModelSelector>(), Ok(ModelSelector::Name(_))));
        let owned: ModelSelector = "jane/blog".parse().unwrap();
        assert!(matches!(owned, ModelSelector::Owned(..)));
        assert_eq!((owned.to_string(), format!("{owned:#}")), ("jane/blog".into(), "jane%2Fblog".into()));
        for wrong in ["No Such", "jane/", "/blog", "a/b/c"] {
            assert!(wrong.parse::<ModelSelector>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_value_says_where_it_comes_from() {
        let (mut model, mut controller) = (ModelSettings::default(), ModelSettings::default());
        let timeout: SettingKey = "hook-timeout".parse().unwrap();
        model.set(timeout, Some("90s")).unwrap();
        controller.set(timeout, Some("1h")).unwrap();
        controller.set(SettingKey::FirewallMode, Some("none")).unwrap();
        let shown = ModelConfigDetails::of(&model, &controller).0;
        let of = |key: &str| shown.get(key).map(|it| (it.value.clone(), it.source)).unwrap();
        assert_eq!(of("hook-timeout"), ("90s".into(), ModelSettingSource::Model));
        assert_eq!(of("firewall-mode"), ("none".into(), ModelSettingSource::Controller));
        assert_eq!(of("automatically-retry-hooks"), (true.into(), ModelSettingSource::Default));
        let defaults = ModelDefaults::of(&controller).0;
        let of = |key: &str| defaults.get(key).cloned().unwrap();
        assert_eq!(
            of("firewall-mode"),
            ModelDefault { default: "instance".into(), controller: Some("none".into()) }
        );
        assert_eq!(of("max-status-history-age"), ModelDefault { default: "336h".into(), controller: None });
    }

    #[test]
    fn what_has_no_effect_is_listed_once_it_is_set_and_logging_config_always() {
        let (mut model, mut controller) = (ModelSettings::default(), ModelSettings::default());
        let of = |model: &ModelSettings, controller: &ModelSettings, key: &str| {
            let shown = ModelConfigDetails::of(model, controller).0;
            shown.get(key).map(|it| (it.value.clone(), it.source))
        };
        let default = Some(("<root>=INFO".into(), ModelSettingSource::Default));
        assert_eq!(of(&model, &controller, "logging-config"), default);
        assert_eq!(of(&model, &controller, "test-mode"), None);
        let key = |text: &str| text.parse::<SettingKey>().unwrap();
        controller.set(key("test-mode"), Some("t")).unwrap();
        model.set(key("logging-config"), Some("unit=DEBUG")).unwrap();
        let logging = Some(("unit=DEBUG".into(), ModelSettingSource::Model));
        assert_eq!(of(&model, &controller, "logging-config"), logging);
        let controllers = Some((true.into(), ModelSettingSource::Controller));
        assert_eq!(of(&model, &controller, "test-mode"), controllers);
        assert!(ModelDefaults::of(&controller).0.contains_key("test-mode"));
        model.set(key("logging-config"), None).unwrap();
        assert_eq!(of(&model, &controller, "logging-config"), default);
    }
}
