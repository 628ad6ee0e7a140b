//! The text that a new user registers with: the controller's address, its authority's certificate, and for a local user a
//! registration token.

use std::str::FromStr;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use periapt_host_api::{UserName, token::Token, user::IssuedRegistration};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    context::Controller,
    data::{ControllerEntry, ControllerName},
};

/// A registration, as one word that a person passes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Registration {
    /// The user.
    pub(crate) user: UserName,
    /// The name that the inviting client gives the controller.
    pub(crate) controller: ControllerName,
    /// The controller's URL.
    pub(crate) url: String,
    /// The URLs of all controllers of its store, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) addresses: Vec<String>,
    /// The certificate of the controller's authority, in PEM, by which the new user's client knows the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_cert: Option<String>,
    /// The controller's UUID.
    pub(crate) uuid: Uuid,
    /// The token of a local user; none for an external user, who logs in at the controller's issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<Token>,
}

/// A text that is no registration. The error does not repeat the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid registration: the text that `add-user` or `grant` printed is expected, whole")]
pub(crate) struct RegistrationError;

impl Registration {
    /// Returns the registration of a local user at a controller.
    pub(crate) fn of(controller: &Controller, issued: &IssuedRegistration) -> Self {
        Self { token: Some(issued.token.clone()), ..Self::external(controller, &issued.user) }
    }

    /// Returns the registration of an external user at a controller. It holds no secret.
    pub(crate) fn external(controller: &Controller, user: &UserName) -> Self {
        Self {
            user: user.clone(),
            controller: controller.name.clone(),
            url: controller.entry.url.clone(),
            addresses: controller.entry.addresses.clone(),
            ca_cert: controller.entry.ca_cert.clone(),
            uuid: controller.entry.uuid,
            token: None,
        }
    }

    /// Returns the registration as one word.
    pub(crate) fn to_text(&self) -> String {
        // All parts are texts, so they can be written.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Returns the entry of the controller in the client's file.
    pub(crate) fn entry(&self) -> ControllerEntry {
        ControllerEntry {
            url: self.url.clone(),
            addresses: self.addresses.clone(),
            ca_cert: self.ca_cert.clone(),
            uuid: self.uuid,
            current_model: None,
            local: None,
        }
    }
}

impl FromStr for Registration {
    type Err = RegistrationError;
    fn from_str(text: &str) -> Result<Self, RegistrationError> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| RegistrationError)?;
        serde_json::from_slice(&bytes).map_err(|_| RegistrationError)
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::token::TokenKind;

    use super::*;

    #[test]
    fn a_registration_is_one_word_that_is_read_back_as_written() {
        let registration = Registration {
            user: "jane".parse().unwrap(),
            controller: "home".parse().unwrap(),
            url: "https://192.0.2.7:17070".into(),
            addresses: vec!["https://192.0.2.7:17070".into(), "https://192.0.2.8:17070".into()],
            ca_cert: Some("-----BEGIN CERTIFICATE-----".into()),
            uuid: Uuid::from_u128(7),
            token: Some(Token::new(TokenKind::Registration, [7; 32])),
        };
        let text = registration.to_text();
        assert!(!text.contains(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_'), "{text}");
        assert_eq!(text.parse(), Ok(registration));
        let earlier = r#"{"user":"jane","controller":"home","url":"https://a:1","uuid":"00000000-0000-0000-0000-000000000007"}"#;
        let earlier: Registration = URL_SAFE_NO_PAD.encode(earlier).parse().unwrap();
        assert!(earlier.entry().addresses.is_empty());
        for bad in ["", "x", &text[1..], "bm8"] {
            assert_eq!(bad.parse::<Registration>(), Err(RegistrationError));
        }
    }
}
