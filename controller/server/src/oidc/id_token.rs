//! The check of an ID token (OpenID Connect Core 1.0, 3.1.3.7): signature, issuer, audience, time and nonce; and the user
//! that it names.

use jsonwebtoken::{
    DecodingKey, Validation, decode, decode_header,
    errors::{Error, ErrorKind},
    jwk::{Jwk, PublicKeyUse},
};
use periapt_host_api::{NameError, Timestamp, UserName, user::ExternalIdentity};
use periapt_model::IssuerLogin;
use serde_json::{Map, Value};

use super::{
    options::{IssuerUrl, OidcOptions},
    signatures::{ALGORITHMS, use_ring},
};

/// The difference between the issuer's clock and this host's that does not matter, in seconds.
const LEEWAY: i64 = 60;

/// The longest name of an account, in bytes: that of the specification.
const MAX_SUBJECT: usize = 255;

/// The most keys that are tried, if the token does not say which one signed it.
const MAX_KEYS: usize = 16;

/// The values that an ID token must have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a IssuerUrl,
    pub(super) client_id: &'a str,
    /// The text that the controller sent with the begin of the login.
    pub(super) nonce: &'a str,
    pub(super) user_claim: &'a str,
    pub(super) now: Timestamp,
}

/// The reason why an ID token is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum IdTokenError {
    #[error("it cannot be read: {0}")]
    Malformed(String),
    #[error("it is signed by {0}, which the controller does not take")]
    Algorithm(String),
    #[error("none of the issuer's keys has signed it")]
    Signature,
    #[error("another issuer made it")]
    OtherIssuer,
    #[error("it is for another client of the issuer")]
    OtherClient,
    #[error("it answers another login: its nonce is another one")]
    OtherNonce,
    #[error("it expired {0} s ago by the controller's clock")]
    Expired(i64),
    #[error(
        "it becomes valid in {0} s by the controller's clock: that clock, or the issuer's, is wrong by as much"
    )]
    NotYetValid(i64),
    #[error("it has no claim {0:?} that names the user: --oidc-scope and --oidc-user-claim decide about it")]
    NoUser(String),
    #[error("the issuer has not verified the user's e-mail address")]
    UnverifiedAddress,
    #[error("its user cannot be one of this controller: {0}")]
    User(NameError),
}

/// Checks an ID token with the issuer's keys, and returns the login that it proves.
pub(super) fn verify(token: &str, keys: &[Jwk], expected: Expected<'_>) -> Result<IssuerLogin, IdTokenError> {
    let claims = signed(token, keys, expected)?;
    let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
    let audiences = claims.get("aud").and_then(Value::as_array).map_or(1, Vec::len);
    match text("azp") {
        Some(party) if party != expected.client_id => return Err(IdTokenError::OtherClient),
        None if audiences > 1 => return Err(IdTokenError::OtherClient),
        _ => {}
    }
    // The grant for devices does not oblige an issuer to repeat the nonce.
    if text("nonce").is_some_and(|nonce| nonce != expected.nonce) {
        return Err(IdTokenError::OtherNonce);
    }
    check_time(&claims, expected.now)?;
    let subject = text("sub").filter(|subject| !subject.is_empty() && subject.len() <= MAX_SUBJECT);
    let subject = subject.ok_or_else(|| IdTokenError::Malformed("sub names no account".to_owned()))?;
    Ok(IssuerLogin {
        user: user(&claims, expected)?,
        identity: ExternalIdentity { issuer: expected.issuer.to_string(), subject: subject.to_owned() },
        display_name: text("name").map(str::to_owned),
    })
}

/// Returns the claims of a token that one of the keys has signed, of this issuer for this client.
fn signed(token: &str, keys: &[Jwk], expected: Expected<'_>) -> Result<Map<String, Value>, IdTokenError> {
    use_ring();
    let header = decode_header(token).map_err(|error| malformed(&error))?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(IdTokenError::Algorithm(format!("{:?}", header.alg)));
    }
    if let Some(extensions) = &header.crit {
        return Err(IdTokenError::Malformed(format!("it demands the extensions {extensions:?}")));
    }
    let mut validation = Validation::new(header.alg);
    validation.set_issuer(&[expected.issuer.as_str()]);
    validation.set_audience(&[expected.client_id]);
    validation.set_required_spec_claims(&["iss", "aud", "sub", "exp"]);
    // The controller's clock decides, below.
    validation.validate_exp = false;
    let fits = |key: &&Jwk| {
        let named = header.kid.is_none() || header.kid == key.common.key_id;
        named && matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature))
    };
    let mut last = IdTokenError::Signature;
    for key in keys.iter().filter(fits).take(MAX_KEYS) {
        let Ok(key) = DecodingKey::from_jwk(key) else { continue };
        match decode(token, &key, &validation) {
            Ok(decoded) => return Ok(decoded.claims),
            // The key is of another kind, or has not signed it.
            Err(error)
                if matches!(error.kind(), ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm) => {}
            Err(error) => {
                last = match error.kind() {
                    ErrorKind::InvalidIssuer => IdTokenError::OtherIssuer,
                    ErrorKind::InvalidAudience => IdTokenError::OtherClient,
                    _ => malformed(&error),
                }
            }
        }
    }
    Err(last)
}

fn malformed(error: &Error) -> IdTokenError {
    IdTokenError::Malformed(error.to_string())
}

/// Checks the times of a token by the controller's clock.
fn check_time(claims: &Map<String, Value>, now: Timestamp) -> Result<(), IdTokenError> {
    let now = now.as_second();
    let time = |claim: &str| match claims.get(claim) {
        None => Ok(None),
        // RFC 7519 allows fractions of seconds.
        Some(value) => match value.as_i64().or_else(|| value.as_f64().map(|seconds| seconds as i64)) {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(IdTokenError::Malformed(format!("{claim} is no time"))),
        },
    };
    let expires = time("exp")?.ok_or_else(|| IdTokenError::Malformed("it has no exp".to_owned()))?;
    let ago = now.saturating_sub(expires);
    if ago >= LEEWAY {
        return Err(IdTokenError::Expired(ago));
    }
    for claim in ["iat", "nbf"] {
        let early = time(claim)?.map_or(0, |begins| begins.saturating_sub(now));
        if early > LEEWAY {
            return Err(IdTokenError::NotYetValid(early));
        }
    }
    Ok(())
}

/// Returns the user that a token names: an e-mail address, or a name to which the issuer's host is the domain.
fn user(claims: &Map<String, Value>, expected: Expected<'_>) -> Result<UserName, IdTokenError> {
    let claim = expected.user_claim;
    let name = claims.get(claim).and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| IdTokenError::NoUser(claim.to_owned()))?.to_ascii_lowercase();
    if claim == OidcOptions::USER_CLAIM {
        // Some issuers write it as a text.
        let verified = claims.get("email_verified").is_some_and(|value| match value {
            Value::Bool(verified) => *verified,
            Value::String(verified) => verified == "true",
            _ => false,
        });
        if !verified {
            return Err(IdTokenError::UnverifiedAddress);
        }
    }
    let name = if name.contains('@') { name } else { format!("{name}@{}", expected.issuer.host()) };
    UserName::new(&name).map_err(IdTokenError::User)
}

#[cfg(test)]
mod tests;
