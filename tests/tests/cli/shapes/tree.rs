//! YAML with its fields in order.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// A YAML document. Scalars keep no content.
#[derive(Debug)]
pub(super) enum Tree {
    Map(Vec<(String, Tree)>),
    List(Vec<Tree>),
    Leaf,
}

impl Tree {
    /// Returns the node at a JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |tree, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            match tree {
                Self::Map(fields) => fields.iter().find(|(name, _)| *name == step).map(|(_, tree)| tree),
                Self::List(all) => all.get(step.parse::<usize>().ok()?),
                Self::Leaf => None,
            }
        })
    }

    /// Returns the names of a map's fields in order; none for other nodes.
    pub(super) fn fields(&self) -> Vec<&str> {
        match self {
            Self::Map(fields) => fields.iter().map(|(name, _)| name.as_str()).collect(),
            Self::List(_) | Self::Leaf => Vec::new(),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Tree::Map(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(one) = all.next_element()? {
            list.push(one);
        }
        Ok(Tree::List(list))
    }

    fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }
}

#[test]
fn a_pointer_leads_through_maps_and_lists_in_their_order() {
    let tree: Tree = periapt_host_api::yaml::parse("b: {z: 1, a/c: [x, {q: ~}]}\na: 1.5\n").unwrap();
    assert_eq!(tree.fields(), ["b", "a"]);
    assert_eq!(tree.at("/b").unwrap().fields(), ["z", "a/c"]);
    assert_eq!(tree.at("/b/a~1c/1").unwrap().fields(), ["q"]);
    assert!(tree.at("/b/q").is_none() && tree.at("/a/0").is_none());
}
