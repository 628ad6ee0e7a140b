//! The parts of a charm's metadata that a harness checks: the names of options, endpoints, storage, resources and
//! actions.

use std::collections::BTreeSet;

/// Names by their kind. `None` means that the document's style hides them (`provides: {db: mysql}`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    pub(crate) options: Names,
    pub(crate) endpoints: Names,
    /// The names of peer endpoints.
    pub(crate) peers: Names,
    pub(crate) storage: Names,
    pub(crate) resources: Names,
    pub(crate) actions: Names,
}

/// A set of names. `None` means unknown names.
pub(crate) type Names = Option<BTreeSet<String>>;

impl Declared {
    /// Reads a `charmcraft.yaml` of the usual style: each name on a line of its own.
    pub(crate) fn read(charmcraft: &str) -> Self {
        let endpoints = ["provides", "requires", "peers"].map(|role| names(charmcraft, &[role]));
        let all: Option<Vec<BTreeSet<String>>> = endpoints.into_iter().collect();
        Self {
            options: names(charmcraft, &["config", "options"]),
            endpoints: all.map(|all| all.into_iter().flatten().chain(["juju-info".to_owned()]).collect()),
            peers: names(charmcraft, &["peers"]),
            storage: names(charmcraft, &["storage"]),
            resources: names(charmcraft, &["resources"]),
            actions: names(charmcraft, &["actions"]),
        }
    }

    /// Returns true if a name is in a set, or if the set is unknown.
    pub(crate) fn has(names: &Names, name: &str) -> bool {
        names.as_ref().is_none_or(|names| names.contains(name))
    }
}

/// Returns the keys right below a path of keys.
fn names(text: &str, path: &[&str]) -> Names {
    let mut found = BTreeSet::new();
    // The keys above the current line, each with its indentation.
    let mut above: Vec<(usize, &str)> = Vec::new();
    for line in text.lines() {
        let rest = line.trim_start();
        if rest.is_empty() || rest.starts_with('#') {
            continue;
        }
        let indent = line.len() - rest.len();
        while above.last().is_some_and(|(other, _)| *other >= indent) {
            above.pop();
        }
        let Some((key, value)) = rest.split_once(':') else { continue };
        let key = key.trim_matches(['"', '\'']);
        let here = above.iter().map(|(_, key)| *key);
        if here.clone().eq(path.iter().copied()) {
            found.insert(key.to_owned());
        }
        if here.chain([key]).eq(path.iter().copied()) && value.trim_start().starts_with('{') {
            return None;
        }
        above.push((indent, key));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_where_each_has_a_line() {
        let declared = Declared::read(
            "name: x\ndescription: |\n  storage:\n    none: of it\nconfig:\n  options:\n    title:\n      type: string\n\
             \x20   size: {type: int}\nprovides:\n  web:\n    interface: http\nrequires:\n  # a comment\n  db: {interface: sql}\n\
             resources:\n  data: {type: file, filename: x}\nactions: {go: {}}\n",
        );
        let named =
            |names: &Names| names.as_ref().map(|names| names.iter().cloned().collect::<Vec<_>>().join(" "));
        assert_eq!(named(&declared.options).as_deref(), Some("size title"));
        assert_eq!(named(&declared.endpoints).as_deref(), Some("db juju-info web"));
        assert_eq!(named(&declared.storage).as_deref(), Some(""));
        assert_eq!(named(&declared.resources).as_deref(), Some("data"));
        assert_eq!(named(&declared.actions), None, "hidden in one line");
        assert!(Declared::has(&declared.actions, "anything") && !Declared::has(&declared.storage, "data"));
    }
}
