//! The keys of a test's issuer.

use anyhow::{Context as _, anyhow};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde_json::{Value, json};

/// A key made for these tests alone: ring makes no RSA keys.
const RSA_KEY: &[u8] = include_bytes!("rsa.der");

/// The key that signs an ID token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IssuerKey {
    /// The issuer's RSA key, by RS256.
    Rsa,
    /// The issuer's key on P-256, by ES256.
    Ec,
    /// A key that is not the issuer's, under the name of the issuer's key on P-256.
    Stranger,
}

/// The keys of an issuer, and one of a stranger.
pub(super) struct Keys {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    stranger: EcdsaKeyPair,
}

impl Keys {
    pub(super) fn new() -> anyhow::Result<Self> {
        let rsa = RsaKeyPair::from_der(RSA_KEY).map_err(|error| anyhow!("the RSA key: {error}"))?;
        Ok(Self { rsa, ec: generated()?, stranger: generated()? })
    }

    /// Returns the public keys, as the issuer publishes them.
    pub(super) fn published(&self) -> anyhow::Result<Value> {
        let rsa: PublicKeyComponents<Vec<u8>> = self.rsa.public().into();
        let point = self.ec.public_key().as_ref().get(1..).context("an empty key")?;
        let (x, y) = point.split_at_checked(32).context("a short key")?;
        let (n, e) = (text(&rsa.n), text(&rsa.e));
        let rsa = json!({ "kty": "RSA", "kid": "rsa", "use": "sig", "alg": "RS256", "n": n, "e": e });
        let ec =
            json!({ "kty": "EC", "kid": "ec", "use": "sig", "crv": "P-256", "x": text(x), "y": text(y) });
        // A key that is for something else, as some issuers have.
        let other = json!({ "kty": "XYZ", "kid": "other", "use": "enc" });
        Ok(json!({ "keys": [other, rsa, ec] }))
    }

    /// Returns claims as a signed token.
    pub(super) fn token(&self, key: IssuerKey, claims: &Value) -> anyhow::Result<String> {
        let header = match key {
            IssuerKey::Rsa => json!({ "alg": "RS256", "kid": "rsa", "typ": "JWT" }),
            IssuerKey::Ec | IssuerKey::Stranger => json!({ "alg": "ES256", "kid": "ec", "typ": "JWT" }),
        };
        let message = format!("{}.{}", text(header.to_string()), text(claims.to_string()));
        let random = SystemRandom::new();
        let by =
            |key: &EcdsaKeyPair| key.sign(&random, message.as_bytes()).map(|made| made.as_ref().to_vec());
        let signature = match key {
            IssuerKey::Rsa => {
                let mut made = vec![0; self.rsa.public().modulus_len()];
                self.rsa.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut made).map(|()| made)
            }
            IssuerKey::Ec => by(&self.ec),
            IssuerKey::Stranger => by(&self.stranger),
        };
        let signature = signature.map_err(|_| anyhow!("the token cannot be signed"))?;
        Ok(format!("{message}.{}", text(signature)))
    }
}

fn generated() -> anyhow::Result<EcdsaKeyPair> {
    let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| anyhow!("no randomness"))?;
    EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).map_err(|error| anyhow!("a key: {error}"))
}

fn text(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
