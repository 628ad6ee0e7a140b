//! The description of an issuer (OpenID Connect Discovery 1.0).

use serde::Deserialize;

use super::{fetch::HttpsUrl, options::IssuerUrl};

/// The addresses of an issuer, and how the controller proves itself to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) device_authorization: HttpsUrl,
    pub(super) token: HttpsUrl,
    pub(super) keys: HttpsUrl,
    pub(super) authentication: ClientAuthentication,
}

/// The place of the client's secret in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientAuthentication {
    /// In a header (`client_secret_basic`).
    Basic,
    /// In the form (`client_secret_post`).
    Post,
}

/// A defect of an issuer's description.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MetadataError {
    #[error("its description cannot be read: {0}")]
    Unreadable(String),
    #[error("its description is that of another issuer, {0:?}; --oidc-issuer must be written exactly so")]
    OtherIssuer(String),
    #[error("it offers no logins of devices: its description has no device_authorization_endpoint")]
    NoDeviceLogin,
    #[error("its description has no {0} that begins with https://")]
    NoAddress(&'static str),
}

/// The document, as far as it is used.
#[derive(Debug, Deserialize)]
struct Document {
    issuer: String,
    device_authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    jwks_uri: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

impl Metadata {
    /// Reads the description of an issuer.
    pub(super) fn read(issuer: &IssuerUrl, text: &[u8]) -> Result<Self, MetadataError> {
        let document: Document =
            serde_json::from_slice(text).map_err(|error| MetadataError::Unreadable(error.to_string()))?;
        if document.issuer != issuer.as_str() {
            return Err(MetadataError::OtherIssuer(document.issuer.chars().take(200).collect()));
        }
        let address = |name, text: Option<String>| {
            text.as_deref().and_then(HttpsUrl::parse).ok_or(MetadataError::NoAddress(name))
        };
        let device = document.device_authorization_endpoint.ok_or(MetadataError::NoDeviceLogin)?;
        let methods = document.token_endpoint_auth_methods_supported;
        // Without a list an issuer takes the header.
        let basic =
            methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"));
        Ok(Self {
            device_authorization: address("device_authorization_endpoint", Some(device))?,
            token: address("token_endpoint", document.token_endpoint)?,
            keys: address("jwks_uri", document.jwks_uri)?,
            authentication: if basic { ClientAuthentication::Basic } else { ClientAuthentication::Post },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(changed: impl FnOnce(&mut Value)) -> Result<Metadata, MetadataError> {
        let mut document = json!({
            "issuer": "https://id.example",
            "device_authorization_endpoint": "https://id.example/device",
            "token_endpoint": "https://tokens.example/token",
            "jwks_uri": "https://id.example/keys",
        });
        changed(&mut document);
        Metadata::read(&"https://id.example".parse().unwrap(), document.to_string().as_bytes())
    }

    #[test]
    fn a_description_names_the_issuer_and_addresses_with_tls() {
        let read_all = read(|_| {}).unwrap();
        assert_eq!(read_all.authentication, ClientAuthentication::Basic);
        let post = read(|document| {
            document["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
        });
        assert_eq!(post.unwrap().authentication, ClientAuthentication::Post);
        let other = read(|document| document["issuer"] = json!("https://id.example/"));
        assert_eq!(other, Err(MetadataError::OtherIssuer("https://id.example/".into())));
        let none =
            read(|document| drop(document.as_object_mut().unwrap().remove("device_authorization_endpoint")));
        assert_eq!(none, Err(MetadataError::NoDeviceLogin));
        let plain = read(|document| document["token_endpoint"] = json!("http://id.example/token"));
        assert_eq!(plain, Err(MetadataError::NoAddress("token_endpoint")));
        let rubbish = Metadata::read(&"https://id.example".parse().unwrap(), b"<html>");
        assert!(matches!(rubbish, Err(MetadataError::Unreadable(_))), "{rubbish:?}");
    }
}
