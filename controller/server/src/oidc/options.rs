//! The settings of logins at an issuer.

use std::{fmt, str::FromStr};

use super::fetch::HttpsUrl;

/// The issuer at which external users log in, and the controller as its client.
#[derive(Debug, Clone)]
pub struct OidcOptions {
    /// The issuer.
    pub issuer: IssuerUrl,
    /// The name by which the issuer knows the controller.
    pub client_id: String,
    /// The secret that proves the controller to the issuer; none for a public client.
    pub client_secret: Option<ClientSecret>,
    /// The scopes that the controller asks for.
    pub scopes: Vec<String>,
    /// The claim of the ID token that names the user.
    pub user_claim: String,
    /// The certificates of the authorities that issue the issuer's certificate, as PEM text; none: those that the host
    /// trusts.
    pub authorities: Option<String>,
}

impl OidcOptions {
    /// The scopes, unless others are given. The issuer adds the e-mail address and the name to its ID token.
    pub const SCOPES: &[&str] = &["openid", "email", "profile"];

    /// The claim that names the user, unless another one is given.
    pub const USER_CLAIM: &str = "email";
}

/// The URL of an issuer, as its ID tokens name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerUrl(String);

/// A text that is no URL of an issuer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no URL of an issuer: https://HOST[:PORT][/PATH] is expected, without a query")]
pub struct IssuerUrlError(String);

impl IssuerUrl {
    /// Returns the URL as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the address of the document that describes the issuer.
    pub(super) fn document(&self) -> String {
        format!("{}/.well-known/openid-configuration", self.0.trim_end_matches('/'))
    }

    /// Returns the issuer's host.
    pub(super) fn host(&self) -> &str {
        let rest = self.0.strip_prefix("https://").unwrap_or(&self.0);
        let authority = rest.split('/').next().unwrap_or(rest);
        match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => authority,
        }
    }
}

impl FromStr for IssuerUrl {
    type Err = IssuerUrlError;

    fn from_str(text: &str) -> Result<Self, IssuerUrlError> {
        match HttpsUrl::parse(text).is_some() && !text.contains(['?', '#', '@']) {
            true => Ok(Self(text.to_owned())),
            false => Err(IssuerUrlError(text.chars().take(200).collect())),
        }
    }
}

impl fmt::Display for IssuerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The secret of the controller as a client of the issuer. Debug output does not show it.
#[derive(Clone)]
pub struct ClientSecret(String);

impl ClientSecret {
    /// Creates the secret from the text of a file, without the white space around it; none from an empty one.
    pub fn new(text: &str) -> Option<Self> {
        Some(text.trim()).filter(|text| !text.is_empty()).map(|text| Self(text.to_owned()))
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSecret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_an_https_url_without_a_query() {
        for (good, host) in
            [("https://id.example", "id.example"), ("https://id.example:8443/realms/a/", "id.example")]
        {
            let url: IssuerUrl = good.parse().unwrap();
            assert_eq!((url.as_str(), url.host()), (good, host));
        }
        let realm: IssuerUrl = "https://id.example/realms/a/".parse().unwrap();
        assert_eq!(realm.document(), "https://id.example/realms/a/.well-known/openid-configuration");
        for bad in [
            "",
            "id.example",
            "http://id.example",
            "https://",
            "https://id.example?a=b",
            "https://u@id.example",
        ] {
            let error = bad.parse::<IssuerUrl>().unwrap_err().to_string();
            assert!(error.contains("https://HOST"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_secret_is_trimmed_and_never_shown() {
        let secret = ClientSecret::new("hush\n").unwrap();
        assert_eq!((secret.reveal(), format!("{secret:?}").as_str()), ("hush", "ClientSecret(..)"));
        assert!(ClientSecret::new(" \n").is_none());
    }
}
