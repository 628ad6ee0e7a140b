//! Clouds as Juju prints them.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    error::Result,
    output::{Format, Table, Text, to_json, to_yaml},
};

/// The place that stores a cloud's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptBy {
    Controller,
    Client,
}

/// A stored cloud with its place.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) place: KeptBy,
    pub(super) name: String,
    pub(super) cloud: Cloud,
}

/// A cloud's definition, with its keys in Juju's order. Other keys come last.
#[derive(Debug)]
pub(super) struct Cloud(Vec<(String, Value)>);

/// Juju's keys, in its order.
const KEYS: [&str; 16] = [
    "name",
    "summary",
    "defined",
    "type",
    "description",
    "auth-types",
    "endpoint",
    "identity-endpoint",
    "storage-endpoint",
    "default-region",
    "credential-count",
    "regions",
    "config",
    "region-config",
    "ca-credentials",
    "users",
];

impl KeptBy {
    /// Returns Juju's word for the place of the definition.
    pub(super) fn defines(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Client => "local",
        }
    }

    fn summary(self, cloud: &str, controller: &str) -> String {
        match self {
            Self::Controller => format!("Cloud \"{cloud}\" from controller \"{controller}\""),
            Self::Client => format!("Client cloud \"{cloud}\""),
        }
    }
}

impl Cloud {
    pub(super) fn new(defined: &str, definition: Map<String, Value>) -> Self {
        let mut cloud = Self(definition.into_iter().collect());
        cloud.set("defined", defined.into());
        cloud
    }

    /// Adds the number of stored credentials for it, if there are any.
    pub(super) fn with_credentials(mut self, count: usize) -> Self {
        if count > 0 {
            self.set("credential-count", count.into());
        }
        self
    }

    fn set(&mut self, key: &str, value: Value) {
        self.0.retain(|(name, _)| name != key);
        self.0.push((key.to_owned(), value));
        self.0.sort_by_key(|(name, _)| KEYS.iter().position(|key| key == name).unwrap_or(KEYS.len()));
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the number of regions, and the default one.
    fn regions(&self) -> (usize, String) {
        let regions = self.get("regions").and_then(Value::as_object);
        let first = regions.and_then(|regions| regions.keys().next().cloned()).unwrap_or_default();
        (regions.map_or(0, Map::len), first)
    }
}

impl Serialize for Cloud {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Formats one cloud for `show-cloud`: a list in JSON, because a controller and this client may each define it.
pub(super) fn one(format: Format, found: Vec<Known>, controller: &str) -> Result<Text> {
    let summary = |known: &Known| known.place.summary(&known.name, controller);
    let named = |known: Known| {
        let summary = summary(&known);
        let mut cloud = known.cloud;
        cloud.set("name", known.name.into());
        cloud.set("summary", summary.into());
        cloud
    };
    match format {
        Format::Json => to_json(&found.into_iter().map(named).collect::<Vec<_>>()),
        Format::Yaml => {
            let texts = found.into_iter().map(|known| Ok(to_yaml(&named(known))?.to_string()));
            Ok(Text::value(texts.collect::<Result<Vec<_>>>()?.join("---\n")))
        }
        Format::Tabular => {
            let texts =
                found.iter().map(|known| Ok(format!("{}:\n\n{}", summary(known), &*to_yaml(&known.cloud)?)));
            Ok(Text::value(texts.collect::<Result<Vec<_>>>()?.join("\n")))
        }
    }
}

/// Draws two tables: the controller's clouds, and this client's.
pub(super) fn table(controllers: Vec<&Known>, clients: Vec<&Known>) -> Text {
    let mut parts = Vec::new();
    if !controllers.is_empty() {
        let mut table = Table::new(["Cloud", "Regions", "Default", "Type"]).right(1);
        for Known { name, cloud, .. } in controllers {
            let (regions, first) = cloud.regions();
            table.row([name.into(), regions.to_string().into(), first.into(), cloud.text("type").into()]);
        }
        parts.push(Text::joined(["Clouds available on the controller:".into(), table.render()], "\n"));
    }
    if !clients.is_empty() {
        let heading = ["Cloud", "Regions", "Default", "Type", "Credentials", "Source", "Description"];
        let mut table = Table::new(heading).right(1).right(4);
        for Known { name, cloud, .. } in clients {
            let (regions, first) = cloud.regions();
            let credentials = cloud.get("credential-count").map_or_else(|| "0".to_owned(), Value::to_string);
            table.row([
                name.into(),
                regions.to_string().into(),
                first.into(),
                cloud.text("type").into(),
                credentials.into(),
                cloud.text("defined").into(),
                cloud.text("description").into(),
            ]);
        }
        parts.push(Text::joined(["Clouds available on the client:".into(), table.render()], "\n"));
    }
    Text::joined(parts, "\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn known(place: KeptBy) -> Known {
        let definition = json!({"regions": {"dev": {"endpoint": "https://a"}}, "type": "openstack", "x": 1});
        let cloud = Cloud::new(place.defines(), definition.as_object().cloned().unwrap());
        Known { place, name: "mine".into(), cloud: cloud.with_credentials(2) }
    }

    #[test]
    fn a_cloud_is_shown_with_jujus_fields_in_jujus_order() {
        let yaml = one(Format::Yaml, vec![known(KeptBy::Client)], "").unwrap();
        assert_eq!(
            yaml,
            "name: mine\nsummary: Client cloud \"mine\"\ndefined: local\ntype: openstack\ncredential-count: 2\n\
             regions:\n  dev:\n    endpoint: https://a\nx: 1\n"
        );
        let json =
            one(Format::Json, vec![known(KeptBy::Controller), known(KeptBy::Client)], "local").unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json[0]["summary"], "Cloud \"mine\" from controller \"local\"");
        assert_eq!((&json[1]["defined"], &json[1]["name"]), (&"local".into(), &"mine".into()));
        let text = one(Format::Tabular, vec![known(KeptBy::Client)], "").unwrap();
        assert!(text.starts_with("Client cloud \"mine\":\n\ndefined: local\n"), "{text}");
    }

    #[test]
    fn clouds_are_drawn_by_who_says_what_they_are() {
        let (of_controller, of_client) = (known(KeptBy::Controller), known(KeptBy::Client));
        let drawn = table(vec![&of_controller], vec![&of_client]);
        assert_eq!(
            anstream::adapter::strip_str(&drawn).to_string(),
            "Clouds available on the controller:\nCloud  Regions  Default  Type\nmine         1  dev      openstack\n\n\
             Clouds available on the client:\nCloud  Regions  Default  Type       Credentials  Source  Description\n\
             mine         1  dev      openstack            2  local\n"
        );
    }
}
