//! Comparisons of charms, as data.

use serde_json::{Value, json};

use super::*;
use crate::charm::CharmFiles;

const HEAD: &str = "name: blog\nsummary: s\ndescription: d\n";

fn charm(metadata: &str) -> CharmMeta {
    let files = CharmFiles { charmcraft: Some(format!("{HEAD}{metadata}")), ..CharmFiles::default() };
    CharmMeta::parse(&files).unwrap()
}

fn check(old: &str, new: &str, settings: OptionValues, expected: Value) {
    let difference = CharmDifference::between(&charm(old), &charm(new), &settings);
    assert_eq!(serde_json::to_value(&difference).unwrap(), expected, "{old} -> {new}");
    assert_eq!(difference.is_empty(), expected == json!({}));
    assert!(!difference.widens_grants());
}

#[test]
fn texts_for_people_and_hints_are_no_difference() {
    check(
        "requires: {db: mysql}\nstorage: {data: {type: filesystem}}\n\
         config: {options: {port: {type: int, default: 80, description: a}}}\nactions: {backup: {description: a}}",
        "title: T\nrequires: {db: {interface: mysql, optional: true}}\n\
         storage: {data: {type: filesystem, description: b}}\n\
         config: {options: {port: {type: int, default: 80, description: b}}}\nactions: {backup: {description: b}}",
        OptionValues::from([("port".to_owned(), OptionValue::Integer(81))]),
        json!({}),
    );
}

#[test]
fn endpoints_are_told_by_role_interface_limit_and_scope() {
    let endpoint = |role: &str, interface: &str, limit: Option<u32>, scope: &str| json!({"role": role, "interface": interface, "limit": limit, "scope": scope, "optional": false});
    check(
        "requires: {db: mysql, logs: syslog, same: same}\nprovides: {web: http}",
        "requires: {db: {interface: mysql, limit: 1}, web: http, same: same, \
         host: {interface: juju-info, scope: container}}\nsubordinate: true",
        OptionValues::new(),
        json!({"endpoints": {
            "db": {"changed": {
                "from": endpoint("requirer", "mysql", None, "global"),
                "to": endpoint("requirer", "mysql", Some(1), "global"),
            }},
            "host": {"added": endpoint("requirer", "juju-info", None, "container")},
            "logs": {"removed": endpoint("requirer", "syslog", None, "global")},
            "web": {"changed": {
                "from": endpoint("provider", "http", None, "global"),
                "to": endpoint("requirer", "http", None, "global"),
            }},
        }}),
    );
}

#[test]
fn settings_are_dropped_with_their_option_or_its_type_and_kept_otherwise() {
    // M-7
    let settings = [
        ("gone", OptionValue::Text("a".into())),
        ("retyped", OptionValue::Integer(81)),
        ("moved", OptionValue::Boolean(true)),
    ];
    check(
        "config: {options: {gone: {type: string}, retyped: {type: int, default: 80}, unset: {type: float}, \
         moved: {type: boolean, default: false}}}",
        "config: {options: {new: {type: string, default: x}, retyped: {type: string}, \
         moved: {type: boolean, default: true}}}",
        settings.map(|(name, value)| (name.to_owned(), value)).into(),
        json!({
            "options": {
                "gone": {"removed": {"type": "string"}},
                "moved": {"changed": {
                    "from": {"type": "boolean", "default": {"boolean": false}},
                    "to": {"type": "boolean", "default": {"boolean": true}},
                }},
                "new": {"added": {"type": "string", "default": {"text": "x"}}},
                "retyped": {"changed": {
                    "from": {"type": "int", "default": {"integer": 80}}, "to": {"type": "string"},
                }},
                "unset": {"removed": {"type": "float"}},
            },
            "dropped-settings": {"gone": {"text": "a"}, "retyped": {"integer": 81}},
        }),
    );
}

#[test]
fn storage_bindings_and_actions_come_and_go() {
    let storage = |max: Option<u32>| {
        json!({"description": "", "read-only": false, "count": {"min": 1, "max": max}, "minimum-size": 0,
               "location": null})
    };
    check(
        "storage: {data: {type: filesystem}, logs: {type: filesystem}}\nextra-bindings: {admin: }\n\
         actions: {backup: {}, same: {}}",
        "storage: {data: {type: filesystem, multiple: {range: 1+}}}\nextra-bindings: {public: }\n\
         actions: {restore: {}, same: {}}",
        OptionValues::new(),
        json!({
            "extra-bindings": {"added": ["public"], "removed": ["admin"]},
            "storage": {
                "data": {"changed": {"from": storage(Some(1)), "to": storage(None)}},
                "logs": {"removed": storage(Some(1))},
            },
            "actions": {"added": ["restore"], "removed": ["backup"]},
        }),
    );
}

#[test]
fn an_ability_more_widens_and_one_less_does_not() {
    let (old, mut new) = (charm(""), charm(""));
    new.grants.insert(Grant::OutboundHttp);
    let wider = CharmDifference::between(&old, &new, &OptionValues::new());
    assert!(wider.widens_grants() && !wider.is_empty());
    assert_eq!(
        serde_json::to_value(&wider).unwrap(),
        json!({"grants": {"added": ["outbound-http"], "removed": []}})
    );
    let narrower = CharmDifference::between(&new, &old, &OptionValues::new());
    assert!(!narrower.widens_grants() && !narrower.is_empty());
}
