//! The conversion of charmcraft.yaml to metadata.yaml, config.yaml and actions.yaml, which `ops` reads, like
//! `charmcraft pack`.

use std::collections::BTreeMap;

use periapt_archive::Contents;
use periapt_host_api::yaml;
use serde_json::{Map, Value};

use crate::{CheckFinding, PythonError, Severity};

/// Keys of charmcraft.yaml for metadata.yaml, each with its name there.
const METADATA: [(&str, &str); 18] = [
    ("name", "name"),
    ("title", "display-name"),
    ("summary", "summary"),
    ("description", "description"),
    ("assumes", "assumes"),
    ("charm-user", "charm-user"),
    ("containers", "containers"),
    ("devices", "devices"),
    ("extra-bindings", "extra-bindings"),
    ("peers", "peers"),
    ("provides", "provides"),
    ("requires", "requires"),
    ("resources", "resources"),
    ("storage", "storage"),
    ("subordinate", "subordinate"),
    ("terms", "terms"),
    ("min-juju-version", "min-juju-version"),
    ("series", "series"),
];

/// Replaces charmcraft.yaml by the three files. A charm with a metadata.yaml stays unchanged: its charmcraft.yaml holds
/// only build settings.
pub(crate) fn split(contents: &mut Contents) -> Result<(), PythonError> {
    if contents.get("metadata.yaml").is_some() {
        return Ok(());
    }
    let Some(bytes) = contents.get("charmcraft.yaml") else { return Ok(()) };
    let whole: BTreeMap<String, Value> = yaml::parse(&String::from_utf8_lossy(bytes))?;
    let metadata: Map<String, Value> = METADATA
        .iter()
        .filter_map(|(key, named)| Some(((*named).to_owned(), whole.get(*key)?.clone())))
        .chain(links(whole.get("links")))
        .collect();
    let files = [
        ("metadata.yaml", Some(Value::Object(metadata))),
        ("config.yaml", whole.get("config").cloned()),
        ("actions.yaml", whole.get("actions").cloned()),
    ];
    for (name, value) in files {
        let Some(value) = value.filter(|value| !value.is_null()) else { continue };
        contents.insert(name, written(&value)?);
    }
    contents.remove("charmcraft.yaml");
    Ok(())
}

/// Returns a warning if a charm declares containers, because an agent runs no workloads unless it is told to.
pub(crate) fn workloads(contents: &Contents) -> Result<Option<CheckFinding>, PythonError> {
    let names = ["metadata.yaml", "charmcraft.yaml"];
    let Some((file, text)) = names.iter().find_map(|name| Some((*name, contents.get(name)?))) else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(text);
    let whole: BTreeMap<String, Value> = yaml::parse(&text)?;
    let containers = whole.get("containers").and_then(Value::as_object);
    let Some(names) = containers
        .filter(|containers| !containers.is_empty())
        .map(|containers| containers.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
    else {
        return Ok(None);
    };
    let line =
        (1..).zip(text.lines()).find(|(_, line)| line.starts_with("containers")).map_or(1, |(line, _)| line);
    Ok(Some(CheckFinding {
        file: file.to_owned(),
        line,
        severity: Severity::Warning,
        message: format!(
            "containers ({names}): an agent runs them if it has --workloads; elsewhere \
             Container.can_connect() is false"
        ),
    }))
}

/// Returns the entries of `links` under their names in metadata.yaml.
fn links(links: Option<&Value>) -> impl Iterator<Item = (String, Value)> {
    let named = [
        ("documentation", "docs"),
        ("issues", "issues"),
        ("source", "source"),
        ("website", "website"),
        ("contact", "maintainers"),
    ];
    named.into_iter().filter_map(move |(key, named)| Some((named.to_owned(), links?.get(key)?.clone())))
}

fn written(value: &Value) -> Result<Vec<u8>, PythonError> {
    let text = serde_saphyr::to_string(value)
        .map_err(|error| PythonError::Defect { what: "writing YAML", message: error.to_string() })?;
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use periapt_host_api::charm::{CharmFiles, CharmMeta};

    use super::*;

    const CHARMCRAFT: &str = "
name: c
type: charm
title: A charm
summary: s
description: d
base: ubuntu@24.04
parts: {charm: {plugin: charm}}
links: {documentation: 'https://docs', contact: [me]}
assumes: ['juju >= 3.6']
provides: {web: {interface: http}}
config: {options: {port: {type: int, default: 80}, 'yes': {type: string, default: 'no'}}}
actions: {go: {description: go}}
";

    fn split_of(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        let mut contents = Contents::default();
        for (name, text) in files {
            contents.insert(*name, text.as_bytes().to_vec());
        }
        split(&mut contents).unwrap();
        contents
            .iter()
            .map(|(name, text)| (name.to_owned(), String::from_utf8(text.to_vec()).unwrap()))
            .collect()
    }

    fn meta(files: &BTreeMap<String, String>) -> CharmMeta {
        let file = |name: &str| files.get(name).cloned();
        CharmMeta::parse(&CharmFiles {
            charmcraft: file("charmcraft.yaml"),
            metadata: file("metadata.yaml"),
            config: file("config.yaml"),
            actions: file("actions.yaml"),
        })
        .unwrap()
    }

    #[test]
    fn what_is_split_says_the_same_as_the_whole() {
        let files = split_of(&[("charmcraft.yaml", CHARMCRAFT)]);
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["actions.yaml", "config.yaml", "metadata.yaml"]);
        let whole = BTreeMap::from([("charmcraft.yaml".to_owned(), CHARMCRAFT.to_owned())]);
        assert_eq!(meta(&files), meta(&whole));
        let metadata: Value = yaml::parse(&files["metadata.yaml"]).unwrap();
        assert_eq!(
            (&metadata["display-name"], &metadata["docs"]),
            (&"A charm".into(), &"https://docs".into())
        );
        assert!(metadata.get("parts").is_none() && metadata.get("config").is_none(), "{metadata}");
    }

    #[test]
    fn a_charm_with_workloads_is_told_once_which_agents_run_them() {
        let told = |name: &str, text: &str| {
            let mut contents = Contents::default();
            contents.insert(name, text.as_bytes().to_vec());
            workloads(&contents).unwrap().map(|found| found.to_string())
        };
        let text = "name: c\ncontainers:\n  web: {resource: image}\n  db: {}\n";
        let expected = "containers (db, web): an agent runs them if it has --workloads; elsewhere \
                        Container.can_connect() is false";
        for name in ["metadata.yaml", "charmcraft.yaml"] {
            assert_eq!(told(name, text), Some(format!("{name}:2: {expected}")));
            assert_eq!(told(name, "name: c\ncontainers: {}\n"), None);
            assert_eq!(told(name, "name: c\n"), None);
        }
    }

    #[test]
    fn a_charm_in_the_old_form_stays_as_it_is() {
        let old = [
            ("charmcraft.yaml", "type: charm"),
            ("metadata.yaml", "name: c"),
            ("config.yaml", "options: {}"),
        ];
        let files = split_of(&old);
        assert_eq!(files, old.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
    }

    #[test]
    fn yaml_that_is_none_is_told_with_its_place() {
        let mut contents = Contents::default();
        contents.insert("charmcraft.yaml", b"name: [".to_vec());
        let error = split(&mut contents).unwrap_err().to_string();
        assert!(error.starts_with("charmcraft.yaml: line "), "{error}");
    }
}
