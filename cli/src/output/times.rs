//! Times in the form of Juju's `status`. Its API has RFC 3339, and scripts parse its command line's form.

use std::fmt;

use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::error::{Explain as _, Result};

/// The form of Juju's `since` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// For example `02 Jan 2026 15:04:05Z`.
    ForPeople,
    /// For example `2026-01-02 15:04:05Z`, as with `--utc`.
    Iso,
}

/// A value to print, with the order of its fields, which YAML shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Leaf(Value),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Times {
    /// Returns the form for an option `--utc`.
    pub(crate) fn of_utc(utc: bool) -> Self {
        if utc { Self::Iso } else { Self::ForPeople }
    }

    /// Returns a value in which each `since` and the controller's `timestamp` have Juju's form.
    pub(crate) fn written<T: Serialize>(self, value: &T) -> Result<Tree> {
        let text = serde_json::to_string(value).explain(|| "cannot write JSON".to_owned())?;
        let mut tree: Tree = serde_json::from_str(&text).explain(|| "cannot write JSON".to_owned())?;
        self.write(&mut tree);
        Ok(tree)
    }

    fn write(self, tree: &mut Tree) {
        match tree {
            Tree::Leaf(_) => {}
            Tree::List(items) => items.iter_mut().for_each(|item| self.write(item)),
            Tree::Map(fields) => {
                for (name, value) in fields {
                    match (name.as_str(), time(value)) {
                        ("since", Some(at)) => *value = text(at, self.form()),
                        ("timestamp", Some(at)) => *value = text(at, "%H:%M:%SZ"),
                        _ => self.write(value),
                    }
                }
            }
        }
    }

    fn form(self) -> &'static str {
        match self {
            Self::ForPeople => "%d %b %Y %H:%M:%SZ",
            Self::Iso => "%Y-%m-%d %H:%M:%SZ",
        }
    }
}

fn time(tree: &Tree) -> Option<Timestamp> {
    match tree {
        Tree::Leaf(Value::String(text)) => text.parse().ok(),
        _ => None,
    }
}

fn text(at: Timestamp, form: &str) -> Tree {
    Tree::Leaf(Value::String(at.strftime(form).to_string()))
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Leaf(value) => value.serialize(serializer),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> std::result::Result<Tree, E> {
        Ok(Tree::Leaf(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> std::result::Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(field) = fields.next_entry()? {
            map.push(field);
        }
        Ok(Tree::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::to_yaml;

    fn check(times: Times, json: &str, yaml: &str) {
        let tree: Tree = serde_json::from_str(json).unwrap();
        assert_eq!(to_yaml(&times.written(&tree).unwrap()).unwrap(), yaml);
    }

    #[test]
    fn times_have_jujus_form_and_fields_their_order() {
        let status = r#"{"z": {"since": "2026-01-02T03:04:05.678Z", "current": "active"}, "since": "a while ago",
            "list": [{"since": null, "number": -1.5}], "a": true, "timestamp": "2026-01-02T03:04:05Z"}"#;
        check(
            Times::ForPeople,
            status,
            "z:\n  since: 02 Jan 2026 03:04:05Z\n  current: active\nsince: a while ago\nlist:\n- since: null\n  \
             number: -1.5\na: true\ntimestamp: 03:04:05Z\n",
        );
        check(Times::Iso, r#"{"since": "2026-01-02T03:04:05Z"}"#, "since: \"2026-01-02 03:04:05Z\"\n");
    }
}
