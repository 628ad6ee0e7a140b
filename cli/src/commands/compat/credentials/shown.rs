//! Credentials as Juju prints them: in a list, and in detail.

use std::collections::BTreeMap;

use periapt_host_api::CredentialName;
use serde::Serialize;

use crate::output::{Table, Text};

/// `credentials`
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Listing {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) controller_credentials: BTreeMap<String, OfCloud>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) client_credentials: BTreeMap<String, OfCloud>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct OfCloud {
    pub(super) cloud_credentials: BTreeMap<String, ShownCredential>,
}

/// A credential in the list.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ShownCredential {
    pub(super) auth_type: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) details: BTreeMap<String, String>,
}

/// `show-credential`
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct InDetail {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    controller_credentials: BTreeMap<String, BTreeMap<String, Detail>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    client_credentials: BTreeMap<String, BTreeMap<String, Detail>>,
}

#[derive(Debug, Serialize)]
struct Detail {
    content: Content,
}

/// The auth type, then the attributes.
#[derive(Debug)]
struct Content(ShownCredential);

impl Serialize for Content {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let auth_type = ("auth-type", self.0.auth_type.as_str());
        let details = self.0.details.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        serializer.collect_map([auth_type].into_iter().chain(details))
    }
}

impl Listing {
    /// Keeps only the credentials of a name.
    pub(super) fn retain(&mut self, name: &CredentialName) {
        for places in [&mut self.controller_credentials, &mut self.client_credentials] {
            for of_cloud in places.values_mut() {
                of_cloud.cloud_credentials.retain(|shown, _| shown.as_str() == name.as_str());
            }
            places.retain(|_, of_cloud| !of_cloud.cloud_credentials.is_empty());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.controller_credentials.is_empty() && self.client_credentials.is_empty()
    }

    pub(super) fn in_detail(self) -> InDetail {
        InDetail {
            controller_credentials: details(self.controller_credentials),
            client_credentials: details(self.client_credentials),
        }
    }

    pub(super) fn table(&self) -> Text {
        let places = [("Controller", &self.controller_credentials), ("Client", &self.client_credentials)];
        let tables = places.into_iter().filter(|(_, clouds)| !clouds.is_empty()).map(|(place, clouds)| {
            let mut table = Table::new(["Cloud", "Credentials"]);
            for (cloud, credentials) in clouds {
                let names: Vec<_> = credentials.cloud_credentials.keys().cloned().collect();
                table.row([cloud.into(), names.join(", ").into()]);
            }
            Text::joined([format!("{place} Credentials:").into(), table.render()], "\n")
        });
        Text::joined(tables, "\n")
    }
}

fn details(places: BTreeMap<String, OfCloud>) -> BTreeMap<String, BTreeMap<String, Detail>> {
    let detail = |shown: ShownCredential| Detail { content: Content(shown) };
    let of_cloud = |of_cloud: OfCloud| {
        of_cloud.cloud_credentials.into_iter().map(|(name, shown)| (name, detail(shown))).collect()
    };
    places.into_iter().map(|(cloud, credentials)| (cloud, of_cloud(credentials))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing() -> Listing {
        let shown = |secret: Option<&str>| ShownCredential {
            auth_type: "access-key".into(),
            details: secret.map(|key| ("access-key".to_owned(), key.to_owned())).into_iter().collect(),
        };
        let of = |name: &str, shown: ShownCredential| {
            let cloud_credentials = BTreeMap::from([(name.to_owned(), shown)]);
            BTreeMap::from([("aws".to_owned(), OfCloud { cloud_credentials })])
        };
        Listing {
            controller_credentials: of("its", shown(None)),
            client_credentials: of("mine", shown(Some("k"))),
        }
    }

    #[test]
    fn credentials_have_jujus_shapes() {
        assert_eq!(
            serde_json::to_value(listing()).unwrap(),
            json!({
                "controller-credentials": {"aws": {"cloud-credentials": {"its": {"auth-type": "access-key"}}}},
                "client-credentials": {"aws": {"cloud-credentials": {
                    "mine": {"auth-type": "access-key", "details": {"access-key": "k"}},
                }}},
            })
        );
        assert_eq!(
            serde_json::to_value(listing().in_detail()).unwrap()["client-credentials"],
            json!({"aws": {"mine": {"content": {"auth-type": "access-key", "access-key": "k"}}}})
        );
        let drawn = anstream::adapter::strip_str(&listing().table()).to_string();
        assert_eq!(
            drawn,
            "Controller Credentials:\nCloud  Credentials\naws    its\n\n\
             Client Credentials:\nCloud  Credentials\naws    mine\n"
        );
    }
}
