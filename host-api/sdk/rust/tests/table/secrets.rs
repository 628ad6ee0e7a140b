//! Calls of secrets.

use periapt_sdk::{Event, Rotate, Secret, Unit};
use serde_json::{Value, json};

use crate::call::{journal_form, relation};

pub(crate) fn call(unit: &Unit, event: &Event, function: &str, arguments: &Value) -> Value {
    let text = |index: usize| arguments[index].as_str();
    let named = Secret::new(text(0).unwrap_or_default());
    let content = |content: periapt_sdk::SecretContent| -> Value {
        content.keys().map(|key| json!([key, content.text(key).unwrap()])).collect()
    };
    let values = |value: &Value| -> Vec<(String, String)> {
        serde_json::from_value(value.clone()).unwrap_or_default()
    };
    match function {
        "secrets.add" => {
            let mut new = if text(0) == Some("unit") { unit.own_secret() } else { unit.app_secret() };
            for (key, value) in values(&arguments[1]) {
                new = new.value(key, value);
            }
            for (key, said) in arguments[2].as_object().into_iter().flatten() {
                let said = said.as_str().unwrap();
                new = match key.as_str() {
                    "label" => new.label(said),
                    "description" => new.description(said),
                    "rotate" => new.rotate(rotate(said)),
                    _ => new.expire(said),
                };
            }
            journal_form(new.add().map(|secret| secret.uri().to_owned()))
        }
        "secrets.set" => {
            let mut change = named.change();
            for (key, value) in values(&arguments[1]) {
                change = change.value(key, value);
            }
            for (key, said) in arguments[2].as_object().into_iter().flatten() {
                let said = said.as_str().unwrap();
                change = match key.as_str() {
                    "label" => change.label(said),
                    "description" => change.description(said),
                    "rotate" => change.rotate(rotate(said)),
                    _ => change.expire(said),
                };
            }
            journal_form(change.apply())
        }
        "secrets.get" => journal_form(
            match (text(0), text(1), text(2)) {
                (Some(_), Some(label), _) => named.get_labelled(label),
                (Some(_), None, Some("peek")) => named.peek(),
                (Some(_), None, Some("refresh")) => named.refresh(),
                (Some(_), None, _) => named.get(),
                (None, label, _) => Secret::get_by_label(label.unwrap_or_default()),
            }
            .map(content),
        ),
        "secrets.info" => journal_form(named.details().map(|details| {
            let access: serde_json::Map<String, Value> =
                details.access.into_iter().map(|access| (access.reader, access.relation.into())).collect();
            json!({
                "id": details.uri.strip_prefix("secret:"), "revision": details.revision, "label": details.label,
                "owner": if details.owner == periapt_sdk::Owner::Unit { "unit" } else { "application" },
                "description": details.description, "rotation": "daily", "rotates": null,
                "expiry": details.expiry, "access": access,
            })
        })),
        "secrets.ids" => journal_form(
            unit.secrets().map(|all| all.iter().map(|secret| secret.uri().to_owned()).collect::<Vec<_>>()),
        ),
        "secrets.grant" => {
            let relation = relation(unit, event, u32::try_from(arguments[1].as_u64().unwrap()).unwrap());
            journal_form(match text(2) {
                None => named.grant(&relation),
                Some(unit) => named.grant_unit(&relation, unit),
            })
        }
        "secrets.revoke" => journal_form(named.revoke(text(1).unwrap())),
        "secrets.remove" => journal_form(match arguments[1].as_u64() {
            None => named.remove(),
            Some(revision) => named.remove_revision(u32::try_from(revision).unwrap()),
        }),
        other => panic!("no such function: {other}"),
    }
}

fn rotate(word: &str) -> Rotate {
    match word {
        "daily" => Rotate::Daily,
        "weekly" => Rotate::Weekly,
        other => panic!("no such policy: {other}"),
    }
}
