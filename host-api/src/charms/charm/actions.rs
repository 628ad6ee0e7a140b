//! The actions that a charm declares (`docs/hook-model.md` 6.3).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    action::{ActionConcurrency, MAX_PARAMETER_BYTES, Parameters},
    rule::BrokenRule,
    schema::{self, Mismatch, ValidationBudget},
};

/// The most actions that a charm may declare.
const MAX_ACTIONS: usize = 500;

/// An action as the charm declares it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ActionMeta {
    /// The description of the action.
    pub description: String,
    /// True if the action may run beside other actions of its machine.
    pub parallel: bool,
    /// The execution group: actions of one group on one machine run one after the other.
    pub execution_group: Option<String>,
    /// The schema of the parameters, which are an object.
    pub params: Value,
}

/// An action's parameters that were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// The parameters do not match the action's schema, or take too long to check.
    #[error("validation failed: {0}")]
    Mismatch(#[from] Mismatch),
    /// The parameters, with defaults inserted, are too large. Holds their size in bytes.
    #[error(
        "validation failed: the parameters are {0} bytes long; at most {MAX_PARAMETER_BYTES} are allowed"
    )]
    TooLarge(usize),
}

impl ActionMeta {
    /// Returns the group of actions that run one after the other on a machine. `None` means that the action runs
    /// beside all others. All actions that are not parallel and name no group share one. Each rule of the request
    /// overrides the charm's.
    pub fn group(&self, asked: &ActionConcurrency) -> Option<String> {
        let group = asked.execution_group.as_ref().or(self.execution_group.as_ref());
        match (group, asked.parallel.unwrap_or(self.parallel)) {
            (Some(group), _) => Some(group.clone()),
            (None, false) => Some(String::new()),
            (None, true) => None,
        }
    }

    /// Inserts defaults of absent parameters, and checks the result (M-12). `budget` bounds the cost of the request.
    ///
    /// # Errors
    /// [`ParametersError`]
    pub fn complete(
        &self,
        given: &Parameters,
        budget: &mut ValidationBudget,
    ) -> Result<Parameters, ParametersError> {
        budget.spend(1)?;
        let mut parameters = given.clone();
        schema::insert_defaults(&self.params, &mut parameters);
        let whole = Value::Object(parameters);
        let bytes = whole.to_string().len();
        // Defaults may be large, even if the parameters are then refused.
        budget.spend_bytes(bytes.saturating_mul(4))?;
        if bytes > MAX_PARAMETER_BYTES {
            return Err(ParametersError::TooLarge(bytes));
        }
        schema::validate(&self.params, &whole, budget)?;
        match whole {
            Value::Object(parameters) => Ok(parameters),
            _ => Ok(Parameters::new()),
        }
    }
}

/// Parses the actions of `actions.yaml`, or of the `actions` of `charmcraft.yaml`.
pub(super) fn parse(raw: BTreeMap<String, Value>) -> Result<BTreeMap<String, ActionMeta>, BrokenRule> {
    if raw.len() > MAX_ACTIONS {
        return Err(format!("{} actions are declared; at most {MAX_ACTIONS} are allowed", raw.len()).into());
    }
    raw.into_iter()
        .map(|(name, raw)| {
            let action = action(&name, raw).map_err(|broken| broken.at(format_args!("action {name:?}")))?;
            Ok((name, action))
        })
        .collect()
}

fn action(name: &str, raw: Value) -> Result<ActionMeta, BrokenRule> {
    check_name(name)?;
    let mut keys = match raw {
        Value::Object(keys) => keys,
        Value::Null => Map::new(),
        other => return Err(format!("an object expected, not {other}").into()),
    };
    let description = match keys.remove("description") {
        None | Some(Value::Null) => "No description".to_owned(),
        Some(Value::String(text)) => text,
        Some(other) => return Err(format!("description: a text expected, not {other}").into()),
    };
    let parallel = match keys.remove("parallel") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(parallel)) => parallel,
        Some(other) => return Err(format!("parallel: true or false expected, not {other}").into()),
    };
    let execution_group = match keys.remove("execution-group") {
        None | Some(Value::Null) => None,
        Some(Value::String(group)) if !group.is_empty() && group.len() <= crate::name::MAX_NAME_LENGTH => {
            Some(group)
        }
        Some(other) => return Err(format!("execution-group: a name expected, not {other}").into()),
    };
    let properties = match keys.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(properties)) => properties,
        Some(other) => return Err(format!("params: an object expected, not {other}").into()),
    };
    // All other keys belong to the schema (M-11).
    let mut schema = keys;
    for (key, value) in [
        ("type", json!("object")),
        ("title", json!(name)),
        ("description", json!(description)),
        ("properties", Value::Object(properties)),
    ] {
        schema.entry(key).or_insert(value);
    }
    let params = Value::Object(schema);
    schema::check("params", &params).map_err(BrokenRule::of)?;
    if params.get("type") != Some(&json!("object")) {
        return Err("params: parameters are always an object".into());
    }
    Ok(ActionMeta { description, parallel, execution_group, params })
}

/// Checks the name of an action (M-10).
fn check_name(name: &str) -> Result<(), BrokenRule> {
    let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if name.is_empty() || !letters || name.starts_with('-') || name.ends_with('-') {
        return Err("a name has lower-case letters and digits, with dashes between".into());
    }
    if name.len() > crate::name::MAX_NAME_LENGTH {
        return Err(format!("a name has at most {} bytes", crate::name::MAX_NAME_LENGTH).into());
    }
    if name == "juju" || name.starts_with("juju-") {
        return Err("this name is reserved".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(yaml: &str) -> Result<BTreeMap<String, ActionMeta>, String> {
        parse(crate::yaml::parse(yaml).unwrap()).map_err(|broken| broken.to_string())
    }

    fn backup() -> ActionMeta {
        let text = "backup:\n  description: Save all\n  execution-group: disk\n  required: [to]\n  params:\n    \
                    to: {type: string}\n    level: {type: integer, default: 3, maximum: 9}\n";
        read(text).unwrap().remove("backup").unwrap()
    }

    fn given(value: Value) -> Parameters {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn what_is_no_key_of_ours_goes_to_the_schema() {
        let (backup, said) = (backup(), ActionConcurrency::default());
        assert_eq!((backup.description.as_str(), backup.group(&said)), ("Save all", Some("disk".to_owned())));
        assert_eq!(backup.params.get("required"), Some(&json!(["to"])));
        assert_eq!(backup.params.get("title"), Some(&json!("backup")));
        let plain = read("ping:\nbeside: {parallel: true}\n").unwrap();
        assert_eq!(plain["ping"].description, "No description");
        assert_eq!((plain["ping"].group(&said), plain["beside"].group(&said)), (Some(String::new()), None));
    }

    #[test]
    fn n04_defaults_are_inserted_and_the_whole_is_checked() {
        let backup = backup();
        assert_eq!(
            backup.complete(&given(json!({"to": "x", "more": true})), &mut ValidationBudget::default()),
            Ok(given(json!({"to": "x", "level": 3, "more": true})))
        );
        assert_eq!(
            backup
                .complete(&given(json!({"to": "x", "level": 10})), &mut ValidationBudget::default())
                .unwrap_err()
                .to_string(),
            "validation failed: (root).level : must be 9 at most, given 10"
        );
        assert_eq!(
            backup.complete(&Parameters::new(), &mut ValidationBudget::default()).unwrap_err().to_string(),
            "validation failed: (root) : \"to\" property is missing and required, given {\"level\":3}"
        );
        let large = given(json!({"to": "x".repeat(MAX_PARAMETER_BYTES)}));
        let error = backup.complete(&large, &mut ValidationBudget::default()).unwrap_err();
        assert!(error.to_string().contains("at most 65536 are allowed"), "{error}");
    }

    #[test]
    fn each_mistake_names_its_action() {
        for (text, message) in [
            (
                "Backup: {}\n",
                "action \"Backup\": a name has lower-case letters and digits, with dashes between",
            ),
            ("juju-run: {}\n", "action \"juju-run\": this name is reserved"),
            ("a: 1\n", "action \"a\": an object expected, not 1"),
            ("a: {parallel: 1}\n", "action \"a\": parallel: true or false expected, not 1"),
            ("a: {params: [x]}\n", "action \"a\": params: an object expected, not [\"x\"]"),
            ("a: {params: {x: {$ref: y}}}\n", "action \"a\": params.properties.x: \"$ref\" is not supported"),
            ("a: {type: string}\n", "action \"a\": params: parameters are always an object"),
        ] {
            assert_eq!(read(text).unwrap_err(), message);
        }
    }
}
