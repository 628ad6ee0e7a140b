//! A server's certificate of an authority elsewhere, which an operator gives with its key.

use std::{fmt, sync::Arc, time::Duration};

use periapt_host_api::Timestamp;
use rustls::{
    CertificateError as Wrong, Error,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _, verify_server_name},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
    sign::CertifiedKey,
};
use x509_cert::der::{EncodePem as _, pem::LineEnding};

use crate::{
    certificate::{CertificateError, certified, parsed},
    client::roots,
    clock::{seconds, timestamp},
    failure::rounded,
    name::PublicName,
    provider::provider,
};

/// A server's certificate of an authority elsewhere, with those that lead to its authority, and its key. Its debug output
/// does not show the key.
#[derive(Clone)]
pub struct GivenCertificate {
    certified: Arc<CertifiedKey>,
    authority: String,
    until: Timestamp,
}

impl fmt::Debug for GivenCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GivenCertificate(until {})", self.until)
    }
}

/// A reason for which clients would refuse a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GivenCertificateError {
    /// It is not valid any more.
    #[error("the certificate expired {} ago; get another one from its authority", rounded(*.0))]
    Expired(Duration),
    /// It is not valid yet.
    #[error("the certificate becomes valid in {}: this machine's clock is wrong, or the certificate's", rounded(*.0))]
    NotYetValid(Duration),
    /// It does not have a name of the server.
    #[error(
        "the certificate is not for {called}, but for {names}: --public-name takes names of the certificate alone"
    )]
    OtherName {
        /// The server's name.
        called: String,
        /// The names of the certificate.
        names: String,
    },
    /// The last certificate of the file has not issued it, over those between.
    #[error(
        "the certificate was not issued by the last one of the file: write those of its authorities after it, up to the \
         one that clients trust"
    )]
    NoIssuer,
    /// Another reason.
    #[error("clients would refuse the certificate: {0}")]
    Unfit(String),
}

impl GivenCertificate {
    /// Reads a certificate, followed by those that lead to its authority, and its key. The last one is the authority that
    /// clients trust.
    ///
    /// # Errors
    /// One of them cannot be read, or they do not belong together.
    pub fn from_pem(chain: &str, key: &str) -> Result<Self, CertificateError> {
        let certified = certified(chain, key)?;
        let (Some(first), Some(last)) = (certified.cert.first(), certified.cert.last()) else {
            return Err(CertificateError::NoCertificate);
        };
        let authority = parsed(last)?.to_pem(LineEnding::LF).map_err(|_| CertificateError::Malformed)?;
        let until = parsed(first)?.tbs_certificate().validity().not_after.to_unix_duration().as_secs();
        let until = timestamp(i64::try_from(until).unwrap_or(i64::MAX));
        Ok(Self { certified: Arc::new(certified), authority, until })
    }

    /// Returns the certificate of the authority that clients trust, as PEM text.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns true if both have the same certificates.
    pub fn is_same(&self, other: &Self) -> bool {
        self.certified.cert == other.certified.cert
    }

    /// Returns the end of the certificate's validity.
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// Checks the certificate as clients do that call the server by these names.
    ///
    /// # Errors
    /// A client would refuse it.
    pub fn check(&self, names: &[PublicName], now: Timestamp) -> Result<(), GivenCertificateError> {
        let (first, others) =
            self.certified.cert.split_first().ok_or_else(|| unfit("it holds no certificate"))?;
        let last = others.last().unwrap_or(first);
        let roots = roots(vec![last.clone()]).map_err(unfit)?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(unfit)?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds(now).unsigned_abs()));
        for name in names {
            verifier.verify_server_cert(first, others, name.server_name(), &[], now).map_err(refused)?;
        }
        Ok(())
    }

    pub(crate) fn certified(&self) -> &Arc<CertifiedKey> {
        &self.certified
    }
}

/// Returns true if a certificate is for the name by which a client calls.
pub(crate) fn is_for(certified: &CertifiedKey, called: &str) -> bool {
    let first: Option<&CertificateDer<'_>> = certified.cert.first();
    let parsed = first.and_then(|der| ParsedCertificate::try_from(der).ok());
    let name = ServerName::try_from(called).ok();
    parsed.zip(name).is_some_and(|(parsed, name)| verify_server_name(&parsed, &name).is_ok())
}

fn unfit(reason: impl ToString) -> GivenCertificateError {
    GivenCertificateError::Unfit(reason.to_string())
}

fn refused(error: Error) -> GivenCertificateError {
    let apart = |one: UnixTime, other: UnixTime| Duration::from_secs(one.as_secs().abs_diff(other.as_secs()));
    match error {
        Error::InvalidCertificate(Wrong::ExpiredContext { time, not_after }) => {
            GivenCertificateError::Expired(apart(time, not_after))
        }
        Error::InvalidCertificate(Wrong::NotValidYetContext { time, not_before }) => {
            GivenCertificateError::NotYetValid(apart(time, not_before))
        }
        Error::InvalidCertificate(Wrong::NotValidForNameContext { expected, presented }) => {
            let (called, names) = (expected.to_str().into_owned(), presented.join(", "));
            GivenCertificateError::OtherName { called, names }
        }
        Error::InvalidCertificate(Wrong::UnknownIssuer | Wrong::BadSignature) => {
            GivenCertificateError::NoIssuer
        }
        Error::InvalidCertificate(other) => unfit(other),
        other => unfit(other),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256,
        date_time_ymd,
    };

    use super::*;

    /// A certificate with its key, which may issue others.
    struct Made {
        pem: String,
        key: String,
        issuer: Issuer<'static, KeyPair>,
    }

    fn now() -> Timestamp {
        "2026-06-01T00:00:00Z".parse().unwrap()
    }

    /// Returns a certificate that is valid for five days before and after now.
    fn made(name: &str, is_ca: IsCa, by: Option<&Made>) -> Made {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = is_ca;
        let at = |days: i64| {
            let seconds = seconds(now()) + days * 86_400;
            date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds.unsigned_abs())
        };
        (params.not_before, params.not_after) = (at(-5), at(5));
        let certificate = match by {
            Some(by) => params.signed_by(&key, &by.issuer).unwrap(),
            None => params.self_signed(&key).unwrap(),
        };
        Made { pem: certificate.pem(), key: key.serialize_pem(), issuer: Issuer::new(params, key) }
    }

    fn authority() -> IsCa {
        IsCa::Ca(BasicConstraints::Unconstrained)
    }

    fn check(chain: &[&Made], names: &[&str], after: i64) -> Result<(), String> {
        let pem: String = chain.iter().map(|made| made.pem.as_str()).collect();
        let names: Vec<PublicName> = names.iter().map(|name| name.parse().unwrap()).collect();
        let now = now().checked_add(hours(after)).unwrap();
        let given = GivenCertificate::from_pem(&pem, &chain[0].key).unwrap();
        given.check(&names, now).map_err(|error| error.to_string())
    }

    fn hours(count: i64) -> Duration {
        Duration::from_secs(count.unsigned_abs() * 3_600)
    }

    #[test]
    fn a_chain_to_its_authority_is_what_clients_accept() {
        let root = made("root", authority(), None);
        let between = made("between", authority(), Some(&root));
        let server = made("*.site.example", IsCa::NoCa, Some(&between));
        let names = ["a.site.example", "b.site.example"];
        check(&[&server, &between, &root], &names, 0).unwrap();
        check(&[&server, &between], &names, 0).unwrap();
        let own = made("a.example", IsCa::NoCa, None);
        check(&[&own], &["a.example"], 0).unwrap();
        let no_issuer = "the certificate was not issued by the last one of the file";
        for wrong in [&[&server][..], &[&server, &root], &[&server, &own]] {
            let error = check(wrong, &names, 0).unwrap_err();
            assert!(error.starts_with(no_issuer), "{error}");
        }
        assert!(is_for(GivenCertificate::from_pem(&own.pem, &own.key).unwrap().certified(), "a.example"));
        assert!(!is_for(GivenCertificate::from_pem(&own.pem, &own.key).unwrap().certified(), "b.example"));
    }

    #[test]
    fn what_clients_would_refuse_is_told_with_its_reason() {
        let root = made("root", authority(), None);
        let server = made("a.example", IsCa::NoCa, Some(&root));
        let error = check(&[&server, &root], &["a.example", "b.example"], 0).unwrap_err();
        assert!(error.starts_with("the certificate is not for b.example, but for"), "{error}");
        let error = check(&[&server, &root], &["a.example"], 7 * 24).unwrap_err();
        assert!(error.starts_with("the certificate expired 2 days ago"), "{error}");
        let pem = format!("{}{}", server.pem, root.pem);
        let given = GivenCertificate::from_pem(&pem, &server.key).unwrap();
        assert_eq!(given.until(), now().checked_add(hours(5 * 24)).unwrap());
        let early = now().checked_sub(hours(6 * 24)).unwrap();
        let error = given.check(&["a.example".parse().unwrap()], early).unwrap_err().to_string();
        assert!(error.starts_with("the certificate becomes valid in 1 day"), "{error}");
        let error = GivenCertificate::from_pem(&pem, &root.key).err().unwrap().to_string();
        assert_eq!(error, "the certificate was made for another key");
        let error = GivenCertificate::from_pem("", &root.key).err().unwrap().to_string();
        assert_eq!(error, "no certificate in PEM form");
        let error = GivenCertificate::from_pem(&pem, "").err().unwrap().to_string();
        assert!(error.starts_with("no private key in PEM form"), "{error}");
    }
}
