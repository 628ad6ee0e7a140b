//! The signatures of ID tokens, checked by ring: the library for tokens has no cryptography of its own then.

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{Error, ErrorKind},
    signature::{self, Verifier},
};
use ring::signature::{self as ring_signature, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};

/// The algorithms of signatures that are taken. Those with a shared secret are not among them.
pub(super) const ALGORITHMS: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes ring the provider of the library. Another call changes nothing.
pub(super) fn use_ring() {
    // An error says that a provider is set, which is this one: nothing else in the process sets one.
    let _ = PROVIDER.install_default();
}

/// The controller signs no tokens.
fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    match key.family() == algorithm.family() {
        true => Ok(Box::new(RingVerifier { algorithm: *algorithm, key: key.clone() })),
        false => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

/// A verifier of one algorithm with one key.
struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let rsa = |parameters: &'static RsaParameters| match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            DecodingKeyKind::SecretOrDer(_) => Err(ring::error::Unspecified),
        };
        let point = |algorithm: &'static dyn ring_signature::VerificationAlgorithm| match self.key.kind() {
            DecodingKeyKind::SecretOrDer(key) => {
                UnparsedPublicKey::new(algorithm, key).verify(message, signature)
            }
            DecodingKeyKind::RsaModulusExponent { .. } => Err(ring::error::Unspecified),
        };
        let verified = match self.algorithm {
            Algorithm::RS256 => rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => rsa(&ring_signature::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => rsa(&ring_signature::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => rsa(&ring_signature::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => point(&ring_signature::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => point(&ring_signature::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => point(&ring_signature::ED25519),
            _ => Err(ring::error::Unspecified),
        };
        verified.map_err(|_| signature::Error::new())
    }
}
