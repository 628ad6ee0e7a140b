//! A controller's certificate authority.

use std::{fmt, time::Duration};

use periapt_host_api::{AgentName, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType, SerialNumber, date_time_ymd,
};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::{
    certificate::{AGENT_URI, CONTROLLER_URI, CertificateError, chain, parsed, public_key},
    clock::seconds,
    key::{making, request},
    name::PublicName,
};

/// The validity of a server's certificate. It is renewed after half of it.
pub const SERVER_VALIDITY: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The time before its issue from when a certificate is valid, for clients whose clocks are behind.
const CLOCKS_DIFFER_BY: i64 = 60 * 60;

/// The latest time that a certificate can have: the last day of 9999, in seconds since 1970.
const LATEST: i64 = 253_402_214_400;

/// A certificate authority: the controller's own. Its debug output does not show the key.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority(..)")
    }
}

impl Authority {
    /// Makes an authority. Its certificate has no end: an operator who loses the key makes another authority.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate() -> Result<Self, CertificateError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(making)?;
        let mut params = of_authority();
        params.serial_number = Some(serial()?);
        let certificate = params.self_signed(&key).map_err(making)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// Reads an authority that was written as two PEM texts.
    ///
    /// # Errors
    /// One of them cannot be read, or they do not belong together.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        let key = KeyPair::from_pem(key).map_err(|error| CertificateError::Key(error.to_string()))?;
        let all = chain(certificate)?;
        let der = all.first().ok_or(CertificateError::NoCertificate)?;
        if public_key(&parsed(der)?)? != key.subject_public_key_info() {
            return Err(CertificateError::OtherKey);
        }
        Ok(Self { certificate: certificate.to_owned(), issuer: Issuer::new(of_authority(), key) })
    }

    /// Returns the authority's certificate as PEM text, which clients trust.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the authority's key as PEM text, which is secret.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Issues a certificate for a server with a new key. Returns both as PEM texts; the first has the authority's
    /// certificate, too, so that clients can know it by its digest.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn issue_server(
        &self,
        names: &[PublicName],
        now: Timestamp,
    ) -> Result<(String, String), CertificateError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(making)?;
        let mut params = issued(now, SERVER_VALIDITY)?;
        for name in names {
            params.subject_alt_names.push(match name.ip() {
                Some(address) => SanType::IpAddress(address),
                None => SanType::DnsName(name.to_string().as_str().try_into().map_err(making)?),
            });
        }
        params.distinguished_name = named("periapt controller");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = self.signed(&params, &key)?;
        Ok((certificate + &self.certificate, key.serialize_pem()))
    }

    /// Issues a certificate for an agent's request, as PEM text. Nothing but the key is taken from the request.
    ///
    /// # Errors
    /// The request cannot be read, is not signed by its key, or has a key of another kind.
    pub fn issue_agent(
        &self,
        pem: &str,
        agent: &AgentName,
        now: Timestamp,
        validity: Duration,
    ) -> Result<String, CertificateError> {
        let key = request(pem)?;
        let mut params = issued(now, validity)?;
        params.distinguished_name = named(agent.as_str());
        let uri = format!("{AGENT_URI}{agent}");
        params.subject_alt_names = vec![SanType::URI(uri.as_str().try_into().map_err(making)?)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.signed(&params, &key)
    }

    /// Issues a certificate by which one of several controllers is known to the others, with a new key. Returns both as
    /// PEM texts.
    ///
    /// # Errors
    /// The system has no randomness, or the name cannot stand in a certificate.
    pub fn issue_controller(
        &self,
        member: &str,
        now: Timestamp,
    ) -> Result<(String, String), CertificateError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(making)?;
        let mut params = issued(now, SERVER_VALIDITY)?;
        // The controller issues it by its own clock. If that is far ahead, the others tell it so, and refuse no connection.
        params.not_before = date_time_ymd(1970, 1, 1);
        params.distinguished_name = named(member);
        let uri = format!("{CONTROLLER_URI}{member}");
        params.subject_alt_names = vec![SanType::URI(uri.as_str().try_into().map_err(making)?)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Ok((self.signed(&params, &key)?, key.serialize_pem()))
    }

    fn signed(
        &self,
        params: &CertificateParams,
        key: &impl PublicKeyData,
    ) -> Result<String, CertificateError> {
        Ok(params.signed_by(key, &self.issuer).map_err(making)?.pem())
    }
}

/// Returns the parameters that the certificates of all authorities share.
fn of_authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    // RFC 5280 writes a certificate without an end so. Its beginning fits clocks that are not set yet.
    (params.not_before, params.not_after) = (date_time_ymd(1970, 1, 1), date_time_ymd(9999, 12, 31));
    params.distinguished_name = named("periapt authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// Returns the parameters that all issued certificates share.
fn issued(now: Timestamp, validity: Duration) -> Result<CertificateParams, CertificateError> {
    let now = seconds(now);
    let lasts = i64::try_from(validity.as_secs()).unwrap_or(i64::MAX);
    let date = |seconds: i64| {
        date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds.clamp(0, LATEST).unsigned_abs())
    };
    let mut params = CertificateParams::default();
    params.not_before = date(now.saturating_sub(CLOCKS_DIFFER_BY));
    params.not_after = date(now.saturating_add(lasts));
    params.serial_number = Some(serial()?);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// Returns a random serial number: an agent's certificates are for one key, and still differ.
fn serial() -> Result<SerialNumber, CertificateError> {
    // The first byte makes it a positive number without leading zeros.
    let mut bytes = [0x40; 16];
    let filled = bytes.get_mut(1..).map(|bytes| SystemRandom::new().fill(bytes));
    match filled {
        Some(Ok(())) => Ok(SerialNumber::from_slice(&bytes)),
        _ => Err(CertificateError::Making("the system has no randomness".to_owned())),
    }
}
