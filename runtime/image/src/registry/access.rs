//! Access to a registry: what it asks for, and the answer to that.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::{
    Uri,
    header::{HeaderValue, WWW_AUTHENTICATE},
};
use serde::Deserialize;

use super::{
    ImageReference, PullError, RegistryCredentials,
    http::{Answer, Client},
};

/// The largest answer of a server of tokens, in bytes.
const MAX_TOKEN: u64 = 64 << 10;

/// The challenge of a registry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A name and a password.
    Basic,
    /// A token of another server.
    Bearer { realm: String, service: Option<String> },
}

/// The answer of a server of tokens. Registries know both names.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// Answers the challenge of a registry. Returns the header for the next request.
pub(super) async fn authorize(
    client: &Client,
    reference: &ImageReference,
    credentials: Option<&RegistryCredentials>,
    refusal: &Answer,
) -> Result<HeaderValue, PullError> {
    let host = reference.host().to_owned();
    let needed =
        || PullError::CredentialsNeeded { host: host.clone(), repository: reference.repository().to_owned() };
    let texts = refusal.head.headers.get_all(WWW_AUTHENTICATE);
    let challenges = texts.iter().filter_map(|text| challenge(text.to_str().ok()?));
    // A token is narrower than a password.
    let challenge = challenges.max_by_key(|challenge| *challenge != Challenge::Basic);
    let basic = credentials.map(basic).transpose()?;
    match challenge {
        Some(Challenge::Basic) => basic.ok_or_else(needed),
        Some(Challenge::Bearer { realm, service }) => {
            let url = token_url(&realm, service.as_deref(), reference.repository())
                .ok_or_else(|| answer(&host, "it asks for a token of something that is no URL"))?;
            client.check(&url)?;
            let granted = client.get(&url, &[], basic.as_ref()).await?;
            match (granted.status(), credentials) {
                (200, _) => {}
                (401 | 403, None) => return Err(needed()),
                (401 | 403, Some(credentials)) => return Err(refused(reference, credentials)),
                (429, _) => return Err(PullError::TooManyRequests(granted.host().to_owned())),
                (status, _) => {
                    return Err(answer(
                        granted.host(),
                        &format!("its server of tokens answers with {status}"),
                    ));
                }
            }
            let from = granted.host().to_owned();
            let content = granted.body(MAX_TOKEN).await?;
            let token: Token = serde_json::from_slice(&content)
                .map_err(|_| answer(&from, "its server of tokens sends none"))?;
            let token = token.token.or(token.access_token).filter(|token| !token.is_empty());
            let token = token.ok_or_else(|| answer(&from, "its server of tokens sends none"))?;
            secret(&format!("Bearer {token}")).ok_or_else(|| answer(&from, "its token is none"))
        }
        None => Err(answer(&host, "it asks for credentials in a form other than Basic and Bearer")),
    }
}

/// Returns the error of a user that a registry refuses.
pub(super) fn refused(reference: &ImageReference, credentials: &RegistryCredentials) -> PullError {
    PullError::CredentialsRefused {
        host: reference.host().to_owned(),
        username: crate::shown::shown(&credentials.username),
        repository: reference.repository().to_owned(),
    }
}

fn answer(host: &str, reason: &str) -> PullError {
    PullError::Answer { host: host.to_owned(), reason: reason.to_owned() }
}

fn basic(credentials: &RegistryCredentials) -> Result<HeaderValue, PullError> {
    let RegistryCredentials { username, password } = credentials;
    if username.contains(':') || username.contains(char::is_control) || password.contains(char::is_control) {
        return Err(PullError::Options(
            "the registry's user or password has letters that no header can have".into(),
        ));
    }
    secret(&format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))))
        .ok_or_else(|| PullError::Options("the registry's user or password cannot be sent".into()))
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn token_url(realm: &str, service: Option<&str>, repository: &str) -> Option<Uri> {
    let separator = if realm.contains('?') { '&' } else { '?' };
    let mut url = format!("{realm}{separator}scope=repository:{repository}:pull");
    if let Some(service) = service {
        url.push_str("&service=");
        for byte in service.bytes() {
            match byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
                true => url.push(char::from(byte)),
                false => url.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    url.parse().ok()
}

/// Reads a challenge: `Bearer realm="…",service="…"`.
fn challenge(text: &str) -> Option<Challenge> {
    let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service) = (None, None);
    for (key, value) in parameters(rest) {
        match key.to_ascii_lowercase().as_str() {
            "realm" => realm = Some(value),
            "service" => service = Some(value),
            _ => {}
        }
    }
    Some(Challenge::Bearer { realm: realm?, service })
}

/// Returns the parameters of a challenge. Values may be quoted.
fn parameters(mut text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    while let Some((key, rest)) = text.split_once('=') {
        let key = key.trim().trim_start_matches(',').trim();
        let rest = rest.trim_start();
        let (value, after) = match rest.strip_prefix('"') {
            None => rest
                .split_once(',')
                .map_or((rest.to_owned(), ""), |(value, after)| (value.trim().to_owned(), after)),
            Some(quoted) => {
                let (mut value, mut letters) = (String::new(), quoted.char_indices());
                let mut after = "";
                while let Some((at, letter)) = letters.next() {
                    match letter {
                        '"' => {
                            after = quoted.get(at + 1..).unwrap_or_default();
                            break;
                        }
                        '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
                        other => value.push(other),
                    }
                }
                (value, after)
            }
        };
        found.push((key, value));
        text = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer { realm: realm.into(), service: service.map(Into::into) })
        };
        for (text, expected) in [
            (
                r#"Bearer realm="https://a/t",service="s, x",scope="repository:a:pull""#,
                bearer("https://a/t", Some("s, x")),
            ),
            ("bearer service=s , realm=https://a/t", bearer("https://a/t", Some("s"))),
            (r#"Bearer realm="a\"b""#, bearer("a\"b", None)),
            (r#"Basic realm="x""#, Some(Challenge::Basic)),
            ("Basic", Some(Challenge::Basic)),
            ("Bearer", None),
            (r#"Bearer realm="#, bearer("", None)),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(challenge(text), expected, "{text}");
        }
    }
}
