use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _},
};
use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_000;

/// The key of an issuer.
enum SigningKey {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    fn p256() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self::P256(EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap())
    }

    fn ed25519() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::P256(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    fn jwk(&self, id: &str) -> Jwk {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let jwk = match self {
            Self::P256(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": text(x), "y": text(y), "kid": id, "use": "sig" })
            }
            Self::Ed25519(key) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": text(key.public_key().as_ref()), "kid": id })
            }
        };
        serde_json::from_value(jwk).unwrap()
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::P256(key) => key.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
        }
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", text(header), text(claims));
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(self.sign(message.as_bytes())))
    }
}

fn header(key: &SigningKey) -> Value {
    json!({ "alg": key.algorithm(), "kid": "one" })
}

fn claims() -> Value {
    json!({
        "iss": "https://id.example/realm",
        "sub": "248289761001",
        "aud": "periapt",
        "exp": NOW + 300,
        "iat": NOW,
        "nonce": "n-1",
        "email": "Jane.Doe@Example.com",
        "email_verified": true,
        "preferred_username": "jane",
        "name": "Jane Doe",
    })
}

fn checked(token: &str, keys: &[Jwk], user_claim: &str) -> Result<IssuerLogin, IdTokenError> {
    let issuer = "https://id.example/realm".parse().unwrap();
    let now = Timestamp::from_second(NOW).unwrap();
    verify(token, keys, Expected { issuer: &issuer, client_id: "periapt", nonce: "n-1", user_claim, now })
}

/// Checks a token with changed claims.
fn changed(change: impl FnOnce(&mut Value)) -> Result<IssuerLogin, IdTokenError> {
    let key = SigningKey::p256();
    let mut claims = claims();
    change(&mut claims);
    checked(&key.token(&header(&key), &claims), &[key.jwk("one")], "email")
}

#[test]
fn a_token_of_each_kind_of_key_proves_its_user() {
    for key in [SigningKey::p256(), SigningKey::ed25519()] {
        let token = key.token(&header(&key), &claims());
        let login = checked(&token, &[key.jwk("one")], "email").unwrap();
        assert_eq!(login.user.as_str(), "jane.doe@example.com");
        assert_eq!(login.identity.issuer, "https://id.example/realm");
        assert_eq!(
            (login.identity.subject.as_str(), login.display_name.as_deref()),
            ("248289761001", Some("Jane Doe"))
        );
        let login = checked(&token, &[key.jwk("one")], "preferred_username").unwrap();
        assert_eq!(login.user.as_str(), "jane@id.example");
    }
}

#[test]
fn a_token_is_taken_with_one_of_the_issuers_keys_alone() {
    let (key, other) = (SigningKey::p256(), SigningKey::p256());
    let token = key.token(&header(&key), &claims());
    let keys = [other.jwk("one"), SigningKey::ed25519().jwk("one"), key.jwk("one")];
    checked(&token, &keys, "email").unwrap();
    assert_eq!(checked(&token, &[other.jwk("one")], "email"), Err(IdTokenError::Signature));
    assert_eq!(checked(&token, &[key.jwk("two")], "email"), Err(IdTokenError::Signature));
    assert_eq!(checked(&token, &[], "email"), Err(IdTokenError::Signature));
    let unnamed = key.token(&json!({ "alg": "ES256" }), &claims());
    checked(&unnamed, &[other.jwk("one"), key.jwk("two")], "email").unwrap();
    let mut for_encryption = key.jwk("one");
    for_encryption.common.public_key_use = Some(PublicKeyUse::Encryption);
    assert_eq!(checked(&token, &[for_encryption], "email"), Err(IdTokenError::Signature));
    // The claims of one token with the signature of another.
    let mut claims = claims();
    claims["sub"] = json!("1");
    let forged = key.token(&header(&key), &claims);
    let (message, _) = forged.rsplit_once('.').unwrap();
    let (_, signature) = token.rsplit_once('.').unwrap();
    let forged = format!("{message}.{signature}");
    assert_eq!(checked(&forged, &[key.jwk("one")], "email"), Err(IdTokenError::Signature));
}

#[test]
fn unsigned_tokens_and_shared_secrets_are_refused() {
    let key = SigningKey::p256();
    let shared = key.token(&json!({ "alg": "HS256", "kid": "one" }), &claims());
    assert_eq!(checked(&shared, &[key.jwk("one")], "email"), Err(IdTokenError::Algorithm("HS256".into())));
    let extended = key.token(&json!({ "alg": "ES256", "kid": "one", "crit": ["x"] }), &claims());
    let unsigned = key.token(&json!({ "alg": "none", "kid": "one" }), &claims());
    let confused = key.token(&json!({ "alg": "RS256", "kid": "one" }), &claims());
    for bad in [unsigned.as_str(), &confused, &extended, "", "a.b", "a.b.c", "....", &"x".repeat(100_000)] {
        let error = checked(bad, &[key.jwk("one")], "email").unwrap_err();
        assert!(matches!(error, IdTokenError::Malformed(_) | IdTokenError::Signature), "{error:?}");
    }
}

#[test]
fn a_token_is_for_this_client_of_this_issuer_and_this_login() {
    changed(|_| {}).unwrap();
    changed(|claims| claims["aud"] = json!(["periapt"])).unwrap();
    changed(|claims| drop(claims.as_object_mut().unwrap().remove("nonce"))).unwrap();
    changed(|claims| {
        claims["aud"] = json!(["other", "periapt"]);
        claims["azp"] = json!("periapt");
    })
    .unwrap();
    let other_client = Err(IdTokenError::OtherClient);
    assert_eq!(changed(|claims| claims["aud"] = json!("other")), other_client);
    assert_eq!(changed(|claims| claims["aud"] = json!(["other", "periapt"])), other_client);
    assert_eq!(changed(|claims| claims["azp"] = json!("other")), other_client);
    let other = changed(|claims| claims["iss"] = json!("https://id.example"));
    assert_eq!(other, Err(IdTokenError::OtherIssuer));
    assert_eq!(changed(|claims| claims["nonce"] = json!("n-2")), Err(IdTokenError::OtherNonce));
    for claim in ["iss", "aud", "sub", "exp"] {
        let without = changed(|claims| drop(claims.as_object_mut().unwrap().remove(claim)));
        assert!(without.is_err(), "{claim}");
    }
}

#[test]
fn the_controllers_clock_decides_and_the_difference_is_told() {
    changed(|claims| claims["exp"] = json!(NOW - LEEWAY + 1)).unwrap();
    assert_eq!(changed(|claims| claims["exp"] = json!(NOW - 90)), Err(IdTokenError::Expired(90)));
    changed(|claims| claims["iat"] = json!(NOW as f64 + 30.5)).unwrap();
    assert_eq!(changed(|claims| claims["iat"] = json!(NOW + 3_600)), Err(IdTokenError::NotYetValid(3_600)));
    assert_eq!(changed(|claims| claims["nbf"] = json!(NOW + 90)), Err(IdTokenError::NotYetValid(90)));
    for bad in [json!("tomorrow"), json!(null), json!([])] {
        let error = changed(|claims| claims["exp"] = bad.clone()).unwrap_err();
        assert!(matches!(error, IdTokenError::Malformed(_)), "{bad}: {error:?}");
    }
}

#[test]
fn a_user_is_named_by_a_verified_address_or_a_name_of_the_issuer() {
    changed(|claims| claims["email_verified"] = json!("true")).unwrap();
    for unverified in [json!(false), json!("false"), json!(1), json!(null)] {
        let refused = changed(|claims| claims["email_verified"] = unverified.clone());
        assert_eq!(refused, Err(IdTokenError::UnverifiedAddress), "{unverified}");
    }
    let none = changed(|claims| drop(claims.as_object_mut().unwrap().remove("email")));
    assert_eq!(none, Err(IdTokenError::NoUser("email".into())));
    for bad in ["@example.com", "jane doe@example.com", "jane@a@b", "jane@\n"] {
        let refused = changed(|claims| claims["email"] = json!(bad));
        assert!(matches!(refused, Err(IdTokenError::User(_))), "{bad}: {refused:?}");
    }
    // Without a domain it is the issuer's, and never a local user.
    let named = changed(|claims| claims["email"] = json!("admin")).unwrap();
    assert_eq!(named.user.as_str(), "admin@id.example");
    let long = changed(|claims| claims["sub"] = json!("x".repeat(MAX_SUBJECT + 1)));
    assert!(matches!(long, Err(IdTokenError::Malformed(_))), "{long:?}");
}
