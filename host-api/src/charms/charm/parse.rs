//! The parser of metadata files (`docs/hook-model.md` 6.1 and 6.2), as far as the engine uses them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{
    Assumes, CharmFiles, CharmMeta, EndpointMeta, MetadataError, OptionMeta, OptionType, actions, containers,
    error::{read, rule},
    files::{ACTIONS, CONFIG},
    resource::{self, RawResource},
    storage::{RawStorage, ResourcesPath, declared},
    workloads,
};
use crate::{
    EndpointName, InterfaceName, NameError,
    name::ApplicationName,
    relation::{Role, Scope},
    rule::BrokenRule,
    settings::OptionValue,
};

/// Keys of old charms, and keys of new charms. Metadata with both is ambiguous (P06).
const OLD_KEYS: [&str; 3] = ["series", "deployment", "min-juju-version"];
const NEW_KEYS: [&str; 3] = ["assumes", "charm-user", "containers"];

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct RawMetadata {
    name: Option<String>,
    summary: Option<String>,
    description: Option<String>,
    subordinate: bool,
    provides: Option<BTreeMap<String, Value>>,
    requires: Option<BTreeMap<String, Value>>,
    peers: Option<BTreeMap<String, Value>>,
    extra_bindings: Option<BTreeMap<String, Option<Value>>>,
    storage: Option<BTreeMap<String, RawStorage>>,
    resources: Option<BTreeMap<String, RawResource>>,
    config: Option<RawConfig>,
    actions: Option<BTreeMap<String, Value>>,
    series: Option<Value>,
    deployment: Option<Value>,
    min_juju_version: Option<Value>,
    assumes: Option<Value>,
    charm_user: Option<Value>,
    containers: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawConfig {
    options: Option<BTreeMap<String, RawOption>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawOption {
    r#type: Option<String>,
    description: Option<String>,
    default: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawEndpoint {
    interface: Option<String>,
    limit: Option<u32>,
    scope: Option<Scope>,
    optional: bool,
    batch: bool,
}

impl CharmMeta {
    /// Parses and checks a charm's metadata.
    ///
    /// # Errors
    /// [`MetadataError`] names the file, the place and the rule.
    pub fn parse(files: &CharmFiles) -> Result<Self, MetadataError> {
        let (file, text) = files.main()?;
        let raw: RawMetadata = read(file, text)?;
        raw.check_generation(file)?;
        let (options_file, raw_config) = match (&files.config, &raw.config) {
            (Some(_), Some(_)) => {
                return Err(rule(file, "options stand here and in config.yaml; keep one of them"));
            }
            (Some(text), None) => (CONFIG, read_config(text)?),
            (None, Some(_)) | (None, None) => {
                (file, raw.config.unwrap_or_default().options.unwrap_or_default())
            }
        };
        let (actions_file, raw_actions) = match (&files.actions, raw.actions) {
            (Some(_), Some(_)) => {
                return Err(rule(file, "actions stand here and in actions.yaml; keep one of them"));
            }
            (Some(text), None) => {
                (ACTIONS, read::<Option<BTreeMap<String, Value>>>(ACTIONS, text)?.unwrap_or_default())
            }
            (None, actions) => (file, actions.unwrap_or_default()),
        };
        let refused = |broken: BrokenRule| rule(file, broken.to_string());
        let resources = resource::declared(raw.resources.unwrap_or_default()).map_err(refused)?;
        let place = if resources.is_empty() { ResourcesPath::Free } else { ResourcesPath::Taken };
        let storage = declared(raw.storage.unwrap_or_default(), place).map_err(refused)?;
        let mut containers =
            containers::declared(raw.containers.as_ref(), &resources, &storage).map_err(refused)?;
        workloads::join(&mut containers, files.workloads()?).map_err(refused)?;
        let meta = Self {
            name: name(file, required(file, "name", raw.name)?)?,
            summary: required(file, "summary", raw.summary)?,
            description: required(file, "description", raw.description)?,
            subordinate: raw.subordinate,
            endpoints: BTreeMap::new(),
            extra_bindings: raw.extra_bindings.unwrap_or_default().into_keys().collect(),
            storage,
            resources,
            containers,
            options: options(options_file, raw_config)?,
            actions: actions::parse(raw_actions).map_err(|broken| rule(actions_file, broken.to_string()))?,
            assumes: Assumes::parse(raw.assumes.as_ref()).map_err(refused)?,
            // The component's imports declare the grants, not the metadata.
            grants: BTreeSet::new(),
        };
        let sections =
            [(Role::Provider, raw.provides), (Role::Requirer, raw.requires), (Role::Peer, raw.peers)];
        meta.with_endpoints(file, sections)
    }

    fn with_endpoints(
        mut self,
        file: &'static str,
        sections: [(Role, Option<BTreeMap<String, Value>>); 3],
    ) -> Result<Self, MetadataError> {
        for (role, section) in sections {
            for (text, value) in section.unwrap_or_default() {
                let wrong_name = |source| MetadataError::Name { file, source };
                let name = EndpointName::new(&text).map_err(wrong_name)?;
                let endpoint = endpoint(file, &name, role, value)?;
                self.check_reserved(file, &name, &endpoint)?;
                if self.endpoints.insert(name.clone(), endpoint).is_some() {
                    return Err(rule(file, format!("endpoint name {name:?} is used twice")));
                }
                if self.extra_bindings.contains(name.as_str()) {
                    return Err(rule(file, format!("extra binding {name:?} has the name of an endpoint")));
                }
            }
        }
        let container =
            |endpoint: &EndpointMeta| endpoint.role == Role::Requirer && endpoint.scope == Scope::Container;
        if self.subordinate && !self.endpoints.values().any(container) {
            return Err(rule(file, "a subordinate charm must require an endpoint of scope container"));
        }
        Ok(self)
    }

    /// Refuses reserved names and interfaces of Juju's own (M-2).
    fn check_reserved(
        &self,
        file: &'static str,
        name: &EndpointName,
        endpoint: &EndpointMeta,
    ) -> Result<(), MetadataError> {
        let reserved = |text: &str| text == "juju" || text.starts_with("juju-");
        if reserved(&self.name) {
            return Ok(());
        }
        if reserved(name.as_str()) && !(endpoint.role == Role::Requirer && name.as_str() == "juju-info") {
            return Err(rule(file, format!("endpoint name {name:?} is reserved")));
        }
        let interface = endpoint.interface.as_str();
        if reserved(interface) && !(endpoint.role == Role::Requirer && interface == "juju-info") {
            return Err(rule(file, format!("endpoint {name:?} uses the reserved interface {interface:?}")));
        }
        Ok(())
    }
}

impl RawMetadata {
    fn check_generation(&self, file: &'static str) -> Result<(), MetadataError> {
        let present = |keys: [&'static str; 3], values: [&Option<Value>; 3]| {
            keys.into_iter()
                .zip(values)
                .filter(|(_, value)| value.is_some())
                .map(|(key, _)| key)
                .collect::<Vec<_>>()
        };
        let old = present(OLD_KEYS, [&self.series, &self.deployment, &self.min_juju_version]);
        let new = present(NEW_KEYS, [&self.assumes, &self.charm_user, &self.containers]);
        match old.is_empty() || new.is_empty() {
            true => Ok(()),
            false => Err(rule(
                file,
                format!("ambiguous metadata: keys {} cannot be used with {}", quoted(&old), quoted(&new)),
            )),
        }
    }
}

fn quoted(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(", ")
}

fn read_config(text: &str) -> Result<BTreeMap<String, RawOption>, MetadataError> {
    let raw: RawConfig = read(CONFIG, text)?;
    raw.options.ok_or_else(|| rule(CONFIG, "invalid config: no options"))
}

fn required(file: &'static str, field: &'static str, value: Option<String>) -> Result<String, MetadataError> {
    value.filter(|text| !text.trim().is_empty()).ok_or(MetadataError::MissingField { file, field })
}

/// Parses a charm's name by the rule for applications, because it is the default name of one.
fn name(file: &'static str, text: String) -> Result<String, MetadataError> {
    ApplicationName::new(&text)
        .map(String::from)
        .map_err(|source| MetadataError::Name { file, source: NameError { kind: "charm", ..source } })
}

/// Parses `NAME: INTERFACE` or `NAME: {interface: ..., ...}`.
fn endpoint(
    file: &'static str,
    name: &EndpointName,
    role: Role,
    value: Value,
) -> Result<EndpointMeta, MetadataError> {
    let raw = match value {
        Value::String(interface) => RawEndpoint { interface: Some(interface), ..RawEndpoint::default() },
        value => serde_json::from_value(value)
            .map_err(|error| rule(file, format!("endpoint {name:?}: {error}")))?,
    };
    let interface =
        raw.interface.ok_or_else(|| rule(file, format!("endpoint {name:?} names no interface")))?;
    let interface = InterfaceName::new(&interface).map_err(|source| MetadataError::Name { file, source })?;
    if role == Role::Peer && raw.scope == Some(Scope::Container) {
        return Err(rule(file, format!("endpoint {name:?}: peers have no container scope")));
    }
    Ok(EndpointMeta {
        role,
        interface,
        limit: raw.limit.filter(|limit| *limit > 0),
        scope: raw.scope.unwrap_or_default(),
        optional: raw.optional,
        batch: raw.batch,
    })
}

fn options(
    file: &'static str,
    raw: BTreeMap<String, RawOption>,
) -> Result<BTreeMap<String, OptionMeta>, MetadataError> {
    raw.into_iter()
        .map(|(name, raw)| {
            let kind = match raw.r#type.as_deref() {
                None | Some("string") => OptionType::String,
                Some("int") => OptionType::Int,
                Some("float") => OptionType::Float,
                Some("boolean") => OptionType::Boolean,
                Some("secret") => OptionType::Secret,
                Some(other) => {
                    return Err(rule(
                        file,
                        format!("invalid config: option {name:?} has unknown type {other:?}"),
                    ));
                }
            };
            let default = match raw.default {
                None | Some(Value::Null) => None,
                Some(value) => Some(kind.from_json(&value).ok_or_else(|| {
                    let expected = kind.as_str();
                    rule(
                        file,
                        format!("invalid config default: option {name:?} expected {expected}, got {value}"),
                    )
                })?),
            };
            let description = raw.description.unwrap_or_default();
            Ok((name, OptionMeta { kind, description, default }))
        })
        .collect()
}

impl OptionType {
    /// Converts a value that has a type of its own (in YAML or JSON). A text is no number here.
    pub fn from_json(self, value: &Value) -> Option<OptionValue> {
        match (self, value) {
            (Self::String, Value::String(text)) => Some(OptionValue::Text(text.clone())),
            (Self::Int, Value::Number(number)) => number.as_i64().map(OptionValue::Integer),
            (Self::Float, Value::Number(number)) => number.as_f64().map(OptionValue::Number),
            (Self::Boolean, Value::Bool(truth)) => Some(OptionValue::Boolean(*truth)),
            (Self::Secret, Value::String(text)) => self.parse(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(charmcraft: &str) -> Result<CharmMeta, String> {
        let files = CharmFiles { charmcraft: Some(charmcraft.into()), ..CharmFiles::default() };
        CharmMeta::parse(&files).map_err(|error| error.to_string())
    }

    const HEAD: &str = "name: my-charm\nsummary: s\ndescription: d\n";

    fn refused(rest: &str) -> String {
        check(&format!("{HEAD}{rest}")).unwrap_err()
    }

    #[test]
    fn endpoints_and_options_are_read_in_both_spellings() {
        let meta = check(&format!(
            "{HEAD}provides:\n  web: http\nrequires:\n  db: {{interface: mysql, limit: 1, optional: true}}\n\
             peers:\n  ring: {{interface: ring}}\nconfig:\n  options:\n    port: {{type: int, default: 80}}\n\
             \x20   title: {{default: x}}\n    ratio: {{type: float}}\n"
        ))
        .unwrap();
        let endpoint = |name: &str| meta.endpoints.get(&EndpointName::new(name).unwrap()).unwrap();
        assert_eq!((endpoint("web").role, endpoint("web").limit), (Role::Provider, None));
        assert_eq!((endpoint("db").role, endpoint("db").limit), (Role::Requirer, Some(1)));
        assert_eq!(endpoint("ring").role, Role::Peer);
        let option = |name: &str| meta.options.get(name).unwrap();
        assert_eq!(option("port").default, Some(OptionValue::Integer(80)));
        assert_eq!(option("title").kind, OptionType::String);
        assert_eq!(option("ratio").default, None);
    }

    #[test]
    fn an_endpoint_may_ask_for_batches_in_any_role() {
        let meta = check(&format!(
            "{HEAD}provides: {{a: {{interface: x, batch: true}}, b: {{interface: x}}}}\n\
             peers: {{c: {{interface: z, batch: true}}}}\n"
        ))
        .unwrap();
        let batching: Vec<_> = meta
            .endpoints
            .iter()
            .filter(|(_, endpoint)| endpoint.batch)
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(batching, ["a", "c"]);
        let error = refused("provides: {a: {interface: x, batch: often}}\n");
        assert!(
            error.starts_with("charmcraft.yaml: endpoint \"a\": ") && error.contains("boolean"),
            "{error}"
        );
    }

    #[test]
    fn p01_an_endpoint_name_stands_once_over_all_roles() {
        let error = refused("provides: {db: x}\nrequires: {db: x}\n");
        assert_eq!(error, "charmcraft.yaml: endpoint name \"db\" is used twice");
    }

    #[test]
    fn p02_names_of_jujus_own_are_reserved() {
        assert_eq!(
            refused("provides: {juju-x: http}\n"),
            "charmcraft.yaml: endpoint name \"juju-x\" is reserved"
        );
        assert!(refused("provides: {x: juju-info}\n").contains("reserved interface"));
        assert!(check(&format!("{HEAD}requires: {{info: juju-info}}\n")).is_ok());
    }

    #[test]
    fn p04_a_default_must_be_of_the_options_type() {
        let error = refused("config: {options: {port: {type: int, default: abc}}}\n");
        assert_eq!(
            error,
            "charmcraft.yaml: invalid config default: option \"port\" expected int, got \"abc\""
        );
        let error = refused("config: {options: {port: {type: number}}}\n");
        assert_eq!(error, "charmcraft.yaml: invalid config: option \"port\" has unknown type \"number\"");
    }

    #[test]
    fn p06_old_and_new_keys_together_are_ambiguous() {
        let error = refused("series: [jammy]\nassumes: [juju]\n");
        assert_eq!(
            error,
            "charmcraft.yaml: ambiguous metadata: keys \"series\" cannot be used with \"assumes\""
        );
    }

    #[test]
    fn p10_an_extra_binding_must_not_be_named_like_an_endpoint() {
        let error = refused("extra-bindings: {db: }\nprovides: {db: x}\n");
        assert_eq!(error, "charmcraft.yaml: extra binding \"db\" has the name of an endpoint");
    }

    #[test]
    fn what_an_error_quotes_of_a_charm_is_short() {
        let long = "9".repeat(500_000);
        for rest in [
            format!("config: {{options: {{port: {{type: int, default: '{long}'}}}}}}\n"),
            format!("config: {{options: {{port: {{type: {long}}}}}}}\n"),
            format!("config: {{options: {{'{long}': {{type: number}}}}}}\n"),
            format!("config: {{options: {{port: {long}}}}}\n"),
            format!("provides: {{db: {{interface: x, limit: {long}}}}}\n"),
            format!("provides: {{'{long}': x}}\n"),
            format!("resources: {{a: {{type: {long}}}}}\n"),
            format!("resources: {{a: {{type: file, filename: 'a/{long}'}}}}\n"),
            format!("storage: {{a: {{type: filesystem, multiple: {{range: '{long}'}}}}}}\n"),
            format!("storage: {{a: {{type: filesystem, location: '{long}'}}}}\n"),
            format!("actions: {{go: '{long}'}}\n"),
            format!("actions: {{'{long}': {{}}}}\n"),
            format!("actions: {{go: {{params: {{a: {{type: '{long}'}}}}}}}}\n"),
            format!("containers: {{a: {{resource: '{long}'}}}}\n"),
            format!("containers: {{'{long}': 1}}\n"),
        ] {
            let error = refused(&rest);
            assert!(error.len() < 600, "{}: {} bytes: {}", &rest[..40], error.len(), &error[..600]);
        }
    }

    #[test]
    fn a_mistake_is_told_with_file_line_and_column() {
        let error = refused("provides: [\n");
        assert!(error.starts_with("charmcraft.yaml: line "), "{error}");
        assert_eq!(check("name: x\nsummary: s\n").unwrap_err(), "charmcraft.yaml: description is missing");
        assert!(check("name: X\nsummary: s\ndescription: d\n").unwrap_err().contains("invalid charm name"));
    }

    #[test]
    fn the_three_old_files_say_the_same_as_the_one() {
        let files = CharmFiles {
            metadata: Some(format!("{HEAD}provides: {{web: http}}\n")),
            config: Some("options: {port: {type: int, default: 80}}\n".into()),
            ..CharmFiles::default()
        };
        let one = check(&format!(
            "{HEAD}provides: {{web: http}}\nconfig: {{options: {{port: {{type: int, default: 80}}}}}}\n"
        ));
        assert_eq!(CharmMeta::parse(&files).unwrap(), one.unwrap());
    }
}
