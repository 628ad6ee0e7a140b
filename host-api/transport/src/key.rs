//! Keys of agents, and requests for certificates.

use std::fmt;

use periapt_host_api::Digest;
use rcgen::{
    CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm,
};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use x509_cert::{
    der::{DecodePem as _, Encode as _},
    request::CertReq,
};

use crate::certificate::CertificateError;

/// An agent's private key. Its debug output does not show it.
pub struct AgentKey(pub(crate) KeyPair);

impl fmt::Debug for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentKey({})", self.digest())
    }
}

impl AgentKey {
    /// Makes a new key.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate() -> Result<Self, CertificateError> {
        KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map(Self).map_err(making)
    }

    /// Reads a key that [`Self::to_pem`] wrote.
    ///
    /// # Errors
    /// The text is no such key.
    pub fn from_pem(pem: &str) -> Result<Self, CertificateError> {
        let key = KeyPair::from_pem(pem).map_err(|error| CertificateError::Key(error.to_string()))?;
        match key.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            true => Ok(Self(key)),
            false => Err(CertificateError::Key("not of the curve P-256".to_owned())),
        }
    }

    /// Returns the key as PEM text, which is secret.
    pub fn to_pem(&self) -> String {
        self.0.serialize_pem()
    }

    /// Returns the SHA-256 digest of the public key.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.0.subject_public_key_info())
    }

    /// Returns a request for a certificate as PEM text, which proves that its sender has the key.
    ///
    /// # Errors
    /// The request cannot be signed.
    pub fn request(&self) -> Result<String, CertificateError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.serialize_request(&self.0).map_err(making)?.pem().map_err(making)
    }
}

/// The public key of a request for a certificate: a point of the curve P-256.
pub(crate) struct RequestedKey(Vec<u8>);

impl PublicKeyData for RequestedKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

/// Returns the digest of the public key of a request for a certificate, after a check of the request's signature.
///
/// # Errors
/// The request cannot be read, is not signed by its key, or has a key of another kind than [`AgentKey`].
pub fn requested_key(pem: &str) -> Result<Digest, CertificateError> {
    Ok(Digest::of(&request(pem)?.subject_public_key_info()))
}

/// Reads the key of a request, and checks that the request is signed by it.
pub(crate) fn request(pem: &str) -> Result<RequestedKey, CertificateError> {
    let refused = |reason: &str| CertificateError::Request(reason.to_owned());
    let request = CertReq::from_pem(pem).map_err(|_| refused("it cannot be read"))?;
    let signed = request.info.to_der().map_err(|_| refused("it cannot be read"))?;
    let key = request.info.public_key.subject_public_key.as_bytes();
    let (Some(key), Some(signature)) = (key, request.signature.as_bytes()) else {
        return Err(refused("its key or its signature is no whole number of bytes"));
    };
    let verified = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key).verify(&signed, signature);
    verified.map_err(|_| refused("it is not signed by its own key of the curve P-256"))?;
    Ok(RequestedKey(key.to_vec()))
}

pub(crate) fn making(error: rcgen::Error) -> CertificateError {
    CertificateError::Making(error.to_string())
}
