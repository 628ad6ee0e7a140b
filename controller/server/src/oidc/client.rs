//! The controller as a client of the issuer.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jsonwebtoken::jwk::Jwk;
use periapt_host_api::{ErrorCode, Refusal, Timestamp, excerpt};
use periapt_model::IssuerLogin;
use periapt_transport::{CertificateError, web_client_config};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    fetch::{FetchError, Fetched, HttpsClient, HttpsUrl},
    id_token::{Expected, IdTokenError, verify},
    metadata::{ClientAuthentication, Metadata, MetadataError},
    options::OidcOptions,
};

/// The grant of the device flow, as RFC 8628 names it.
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The longest text of a code or an address that clients are shown, in bytes.
const MAX_SHOWN: usize = 1_024;

/// The longest code that the controller polls with, in bytes. It is held until the login ends.
const MAX_DEVICE_CODE: usize = 4_096;

/// The pause between two polls of an issuer that names none, in seconds: RFC 8628's.
const INTERVAL: u64 = 5;

/// The longest pause between two polls, in seconds.
const LONGEST_INTERVAL: u64 = 60;

/// The longest time that a code is valid, in seconds.
const LONGEST_VALIDITY: u64 = 1_800;

/// An error of a login at the issuer.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoginError {
    #[error("{0}")]
    Fetch(#[from] FetchError),
    #[error("{0}")]
    Metadata(#[from] MetadataError),
    #[error("its answer to {request} cannot be read: {reason}")]
    Unreadable { request: &'static str, reason: String },
    #[error("it refuses {request}: {reason}")]
    Refused { request: &'static str, reason: String },
    #[error("its ID token is refused: {0}")]
    IdToken(#[from] IdTokenError),
    #[error("the login was denied at the issuer")]
    Denied,
    #[error("the code has expired before the login was approved")]
    Expired,
}

impl LoginError {
    /// Returns the refusal of a login at an issuer.
    pub(super) fn refusal(&self, issuer: &str) -> Refusal {
        let code = match self {
            Self::Denied | Self::IdToken(_) => ErrorCode::PermissionDenied,
            Self::Expired => ErrorCode::NotLoggedIn,
            Self::Fetch(_) | Self::Metadata(_) | Self::Unreadable { .. } | Self::Refused { .. } => {
                ErrorCode::Internal
            }
        };
        let text = match self {
            Self::Denied | Self::Expired => self.to_string(),
            other => excerpt::of_message(&format!("the issuer {issuer}: {other}")),
        };
        Refusal::new(code, text)
    }
}

/// A login that waits for the user's approval.
#[derive(Debug)]
pub(super) struct Authorization {
    device_code: String,
    pub(super) user_code: String,
    pub(super) verification_uri: String,
    pub(super) expires_in: u64,
    pub(super) interval: u64,
}

/// The result of one poll.
#[derive(Debug)]
pub(super) enum Polled {
    /// The user has not decided.
    Pending,
    /// As `Pending`, and the controller polls too often.
    SlowDown,
    /// The user has approved. The ID token is not checked yet.
    Approved { id_token: String },
}

/// The answer to the begin of a login.
#[derive(Debug, Deserialize)]
struct AuthorizationAnswer {
    device_code: String,
    user_code: String,
    #[serde(alias = "verification_url")]
    verification_uri: String,
    expires_in: u64,
    interval: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct TokenAnswer {
    id_token: Option<String>,
}

/// A refusal of OAuth.
#[derive(Debug, Deserialize)]
struct ErrorAnswer {
    error: String,
    error_description: Option<String>,
}

#[derive(Debug, Deserialize)]
struct KeysAnswer {
    keys: Vec<serde_json::Value>,
}

/// A client of an issuer.
#[derive(Debug)]
pub(super) struct IssuerClient {
    pub(super) options: OidcOptions,
    https: HttpsClient,
}

impl IssuerClient {
    pub(super) fn new(options: OidcOptions) -> Result<Self, CertificateError> {
        let https = HttpsClient(web_client_config(options.authorities.as_deref())?);
        Ok(Self { options, https })
    }

    /// Reads the issuer's description. It is read for each login: logins are rare, and descriptions change.
    pub(super) async fn metadata(&self) -> Result<Metadata, LoginError> {
        let address = self.options.issuer.document();
        let unreadable = |reason: String| LoginError::Metadata(MetadataError::Unreadable(reason));
        let address = HttpsUrl::parse(&address).ok_or_else(|| unreadable("no address".to_owned()))?;
        let answer = self.https.get(&address).await?;
        if answer.status != StatusCode::OK {
            return Err(unreadable(format!("status {}", answer.status.as_u16())));
        }
        Ok(Metadata::read(&self.options.issuer, &answer.body)?)
    }

    /// Begins a login.
    pub(super) async fn authorize(
        &self,
        metadata: &Metadata,
        nonce: &str,
    ) -> Result<Authorization, LoginError> {
        const REQUEST: &str = "the begin of a login";
        let form = [("scope", self.options.scopes.join(" ")), ("nonce", nonce.to_owned())];
        let answer = self.post(metadata, &metadata.device_authorization, &form).await?;
        if answer.status != StatusCode::OK {
            return Err(refused(REQUEST, &answer));
        }
        let answer: AuthorizationAnswer = parsed(REQUEST, &answer)?;
        let unreadable = |reason: String| LoginError::Unreadable { request: REQUEST, reason };
        let fits = |text: &str| {
            !text.is_empty() && text.len() <= MAX_SHOWN && !text.contains(|c: char| !c.is_ascii_graphic())
        };
        let AuthorizationAnswer { device_code, user_code, verification_uri, .. } = &answer;
        // A code may have spaces for people.
        if !fits(&user_code.replace(' ', ""))
            || !fits(verification_uri)
            || HttpsUrl::parse(verification_uri).is_none()
        {
            return Err(unreadable(
                "a code and an address that begins with https:// are expected".to_owned(),
            ));
        }
        if device_code.len() > MAX_DEVICE_CODE {
            return Err(unreadable(format!("its device code has more than {MAX_DEVICE_CODE} bytes")));
        }
        Ok(Authorization {
            device_code: answer.device_code,
            user_code: answer.user_code,
            verification_uri: answer.verification_uri,
            expires_in: answer.expires_in.min(LONGEST_VALIDITY),
            interval: answer.interval.unwrap_or(INTERVAL).clamp(1, LONGEST_INTERVAL),
        })
    }

    /// Asks for the result of a login.
    pub(super) async fn poll(
        &self,
        metadata: &Metadata,
        authorization: &Authorization,
    ) -> Result<Polled, LoginError> {
        const REQUEST: &str = "the question for a login's result";
        let form =
            [("grant_type", DEVICE_GRANT.to_owned()), ("device_code", authorization.device_code.clone())];
        let answer = self.post(metadata, &metadata.token, &form).await?;
        if answer.status == StatusCode::OK {
            let answer: TokenAnswer = parsed(REQUEST, &answer)?;
            let reason = || "it has no id_token: is openid among the scopes?".to_owned();
            let id_token = answer
                .id_token
                .ok_or_else(|| LoginError::Unreadable { request: REQUEST, reason: reason() })?;
            return Ok(Polled::Approved { id_token });
        }
        match parsed::<ErrorAnswer>(REQUEST, &answer)?.error.as_str() {
            "authorization_pending" => Ok(Polled::Pending),
            "slow_down" => Ok(Polled::SlowDown),
            "access_denied" => Err(LoginError::Denied),
            "expired_token" => Err(LoginError::Expired),
            _ => Err(refused(REQUEST, &answer)),
        }
    }

    /// Checks an ID token with the issuer's present keys.
    pub(super) async fn verify(
        &self,
        metadata: &Metadata,
        id_token: &str,
        nonce: &str,
        now: Timestamp,
    ) -> Result<IssuerLogin, LoginError> {
        const REQUEST: &str = "the question for its keys";
        let answer = self.https.get(&metadata.keys).await?;
        if answer.status != StatusCode::OK {
            return Err(refused(REQUEST, &answer));
        }
        let keys: KeysAnswer = parsed(REQUEST, &answer)?;
        // Keys of kinds that the library does not know are for others.
        let keys: Vec<Jwk> =
            keys.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).collect();
        let OidcOptions { issuer, client_id, user_claim, .. } = &self.options;
        Ok(verify(id_token, &keys, Expected { issuer, client_id, nonce, user_claim, now })?)
    }

    /// Sends a form as this client.
    async fn post(
        &self,
        metadata: &Metadata,
        url: &HttpsUrl,
        form: &[(&str, String)],
    ) -> Result<Fetched, LoginError> {
        let (body, headers) = self.authenticated(metadata, form)?;
        Ok(self.https.post(url, body, headers).await?)
    }

    /// Returns a form and headers that name this client and prove it.
    fn authenticated(
        &self,
        metadata: &Metadata,
        form: &[(&str, String)],
    ) -> Result<(String, HeaderMap), FetchError> {
        let OidcOptions { client_id, client_secret, .. } = &self.options;
        let (mut headers, mut body) = (HeaderMap::new(), form_urlencoded::Serializer::new(String::new()));
        body.extend_pairs(form).append_pair("client_id", client_id);
        match (client_secret, metadata.authentication) {
            (None, _) => {}
            (Some(secret), ClientAuthentication::Post) => {
                body.append_pair("client_secret", secret.reveal());
            }
            (Some(secret), ClientAuthentication::Basic) => {
                let encoded =
                    |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", encoded(client_id), encoded(secret.reveal()));
                let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
                let mut value = value.map_err(|error| FetchError::Protocol(error.to_string()))?;
                value.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, value);
            }
        }
        Ok((body.finish(), headers))
    }
}

fn parsed<T: DeserializeOwned>(request: &'static str, answer: &Fetched) -> Result<T, LoginError> {
    serde_json::from_slice(&answer.body).map_err(|error| {
        let reason = format!("status {}, {error}", answer.status.as_u16());
        LoginError::Unreadable { request, reason }
    })
}

/// Returns the error of a refused request, in the issuer's words if they can be read.
fn refused(request: &'static str, answer: &Fetched) -> LoginError {
    let reason = match serde_json::from_slice::<ErrorAnswer>(&answer.body) {
        Ok(ErrorAnswer { error, error_description: Some(description) }) => format!("{error} ({description})"),
        Ok(ErrorAnswer { error, error_description: None }) => error,
        Err(_) => format!("status {}", answer.status.as_u16()),
    };
    LoginError::Refused { request, reason }
}
