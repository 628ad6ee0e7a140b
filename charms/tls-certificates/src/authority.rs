//! The certificate authority: a key, its certificate, and the certificates that it signs. ECDSA on P-256, in pure
//! Rust.

use crate::request::Request;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::elliptic_curve::Generate;
use p256::pkcs8::{DecodePrivateKey, EncodePrivateKey, LineEnding};
use periapt_sdk::{Context, Result};
use std::time::{Duration, SystemTime};
use x509_cert::Certificate;
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::profile::cabf::tls::{CertificateType, Subscriber};
use x509_cert::builder::{self, Builder, CertificateBuilder};
use x509_cert::certificate::TbsCertificate;
use x509_cert::der::{DecodePem, EncodePem};
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage, KeyUsages, SubjectAltName, SubjectKeyIdentifier};
use x509_cert::ext::{Extension, ToExtension};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{SubjectPublicKeyInfoOwned, SubjectPublicKeyInfoRef};
use x509_cert::time::Validity;

/// The validity of an authority's own certificate: ten years, longer than that of any certificate that it signs.
const LIFETIME: Duration = Duration::from_secs(3_650 * 24 * 3_600);

/// The time by which a certificate's validity begins early, for hosts whose clocks are behind.
const SKEW: Duration = Duration::from_secs(300);

pub(crate) struct Authority {
    /// The key as PEM. Parsing it costs as much as a signature, and most hooks sign nothing.
    private_key: String,
    certificate: Certificate,
}

/// A key and its certificate, both as PEM.
pub(crate) struct Issued {
    pub(crate) private_key: String,
    pub(crate) certificate: String,
    /// The beginning of the serial number, by which people distinguish certificates.
    pub(crate) serial: String,
}

impl Authority {
    /// Generates an authority with a name of letters, digits and dashes.
    pub(crate) fn generate(name: &str) -> Result<Self> {
        let key = SigningKey::try_generate().context("no random bytes for a key")?;
        let profile = Root(common_name(name)?);
        let certificate = sign(profile, &key, &key, LIFETIME, None).context("making an authority")?;
        Ok(Self { private_key: pem_of_key(&key)?, certificate })
    }

    /// Creates the authority from its [`parts`](Self::parts).
    pub(crate) fn from_parts(private_key: &str, certificate: &str) -> Result<Self> {
        let certificate =
            Certificate::from_pem(certificate).context("reading the authority's certificate")?;
        Ok(Self { private_key: private_key.to_owned(), certificate })
    }

    pub(crate) fn parts(&self) -> Result<Issued> {
        let (private_key, certificate) = (self.private_key.clone(), self.certificate_pem()?);
        Ok(Issued { private_key, certificate, serial: self.short_serial() })
    }

    pub(crate) fn certificate_pem(&self) -> Result<String> {
        self.certificate.to_pem(LineEnding::LF).context("writing a certificate")
    }

    pub(crate) fn short_serial(&self) -> String {
        short_serial(&self.certificate)
    }

    /// Generates a key, and signs a certificate for a request.
    pub(crate) fn issue(&self, request: &Request, lifetime: Duration) -> Result<Issued> {
        let key = SigningKey::try_generate().context("no random bytes for a key")?;
        let names = request.general_names()?;
        let subject = common_name(request.common_name())?;
        let issuer = self.certificate.tbs_certificate().subject().clone();
        let kind =
            CertificateType::domain_validated(subject, names.clone()).context("naming a certificate")?;
        let profile = Subscriber { certificate_type: kind, issuer, client_auth: true };
        let certificate = sign(profile, &self.key()?, &key, lifetime, Some(SubjectAltName(names)));
        let certificate = certificate.context(format!("signing {}", request.common_name()))?;
        let serial = short_serial(&certificate);
        let certificate = certificate.to_pem(LineEnding::LF).context("writing a certificate")?;
        Ok(Issued { private_key: pem_of_key(&key)?, certificate, serial })
    }

    fn key(&self) -> Result<SigningKey> {
        SigningKey::from_pkcs8_pem(&self.private_key).context("reading the authority's key")
    }
}

/// The profile of an authority's own certificate.
struct Root(Name);

impl BuilderProfile for Root {
    fn get_issuer(&self, subject: &Name) -> Name {
        subject.clone()
    }

    fn get_subject(&self) -> Name {
        self.0.clone()
    }

    fn build_extensions(
        &self,
        key: SubjectPublicKeyInfoRef<'_>,
        _: SubjectPublicKeyInfoRef<'_>,
        to_sign: &TbsCertificate,
    ) -> builder::Result<Vec<Extension>> {
        let name = to_sign.subject();
        let mut extensions = Vec::new();
        // The authority signs certificates of servers, and no other authority.
        let constraints = BasicConstraints { ca: true, path_len_constraint: Some(0) };
        extensions.push(constraints.to_extension(name, &extensions)?);
        let usage = KeyUsage(KeyUsages::KeyCertSign | KeyUsages::CRLSign);
        extensions.push(usage.to_extension(name, &extensions)?);
        extensions.push(SubjectKeyIdentifier::try_from(key)?.to_extension(name, &extensions)?);
        Ok(extensions)
    }
}

/// Signs a certificate of `subject`'s public key with `signer`.
fn sign(
    profile: impl BuilderProfile,
    signer: &SigningKey,
    subject: &SigningKey,
    lifetime: Duration,
    names: Option<SubjectAltName>,
) -> Result<Certificate> {
    let mut serial = [0; 16];
    getrandom::fill(&mut serial).context("no random bytes for a serial number")?;
    // A serial number is positive, and does not begin with a zero, which would shorten it.
    serial[0] = serial[0] & 0x3f | 0x40;
    let now = SystemTime::now();
    let (begin, end) = (now.checked_sub(SKEW).unwrap_or(now), now.checked_add(lifetime));
    let end = end.context("the certificate would be valid for too long")?;
    let validity = Validity::new(begin.try_into()?, end.try_into()?);
    let key = SubjectPublicKeyInfoOwned::from_key(subject.verifying_key())?;
    let mut builder = CertificateBuilder::new(profile, SerialNumber::new(&serial)?, validity, key)?;
    if let Some(names) = names {
        builder.add_extension(&names)?;
    }
    Ok(builder.build::<_, DerSignature>(signer)?)
}

/// Returns a name of one part. The text has no character that would begin another part.
fn common_name(text: &str) -> Result<Name> {
    format!("CN={text}").parse().context(format!("the name {text}"))
}

fn short_serial(certificate: &Certificate) -> String {
    let bytes = certificate.tbs_certificate().serial_number().as_bytes();
    bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn pem_of_key(key: &SigningKey) -> Result<String> {
    let pem = key.to_pkcs8_pem(LineEnding::LF).context("writing a key")?;
    Ok(pem.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use p256::ecdsa::VerifyingKey;
    use p256::ecdsa::signature::Verifier;
    use x509_cert::der::Encode;

    const DAY: Duration = Duration::from_secs(24 * 3_600);

    fn issued(authority: &Authority) -> (Issued, Certificate) {
        let request = Request::new("blog.example", &["blog.example".to_owned(), "10.0.0.1".to_owned()]);
        let issued = authority.issue(&request.unwrap(), DAY).unwrap();
        let certificate = Certificate::from_pem(&issued.certificate).unwrap();
        (issued, certificate)
    }

    fn is_signed_by(certificate: &Certificate, authority: &Authority) -> bool {
        let signed = certificate.tbs_certificate().to_der().unwrap();
        let signature = DerSignature::from_bytes(certificate.signature().raw_bytes()).unwrap();
        authority.key().unwrap().verifying_key().verify(&signed, &signature).is_ok()
    }

    #[test]
    fn what_it_signs_is_signed_by_it_alone() {
        let (authority, other) = (Authority::generate("one").unwrap(), Authority::generate("one").unwrap());
        let (_, certificate) = issued(&authority);
        assert!(is_signed_by(&certificate, &authority) && !is_signed_by(&certificate, &other));
        assert!(is_signed_by(&authority.certificate, &authority));
        assert_ne!(authority.short_serial(), other.short_serial());
    }

    #[test]
    fn a_certificate_is_of_the_key_that_comes_with_it() {
        let (issued, certificate) = issued(&Authority::generate("one").unwrap());
        let key = SigningKey::from_pkcs8_pem(&issued.private_key).unwrap();
        let public = certificate.tbs_certificate().subject_public_key_info().subject_public_key.raw_bytes();
        assert_eq!(VerifyingKey::from_sec1_bytes(public).unwrap(), *key.verifying_key());
    }

    #[test]
    fn an_authority_is_read_as_it_was_written() {
        let authority = Authority::generate("one").unwrap();
        let parts = authority.parts().unwrap();
        let read = Authority::from_parts(&parts.private_key, &parts.certificate).unwrap();
        assert_eq!(read.certificate, authority.certificate);
        assert!(is_signed_by(&issued(&read).1, &authority));
        let damaged = Authority::from_parts("no key", &parts.certificate).unwrap();
        let error = damaged.issue(&Request::new("blog", &[]).unwrap(), DAY).err().unwrap().to_string();
        assert!(error.starts_with("reading the authority's key: "), "{error}");
    }

    #[test]
    fn a_certificate_names_its_subject_and_its_validity() {
        let authority = Authority::generate("one").unwrap();
        let (_, certificate) = issued(&authority);
        let signed = certificate.tbs_certificate();
        assert_eq!(signed.issuer().to_string(), "CN=one");
        assert_eq!(signed.subject().to_string(), "CN=blog.example");
        let (_, names) = signed.get_extension::<SubjectAltName>().unwrap().unwrap();
        assert_eq!(names.0.len(), 2);
        let (critical, constraints) = signed.get_extension::<BasicConstraints>().unwrap().unwrap();
        assert!(critical && !constraints.ca);
        let (begin, end) = (signed.validity().not_before, signed.validity().not_after);
        assert_eq!(end.to_unix_duration() - begin.to_unix_duration(), DAY + SKEW);
        let (_, constraints) =
            authority.certificate.tbs_certificate().get_extension::<BasicConstraints>().unwrap().unwrap();
        assert_eq!((constraints.ca, constraints.path_len_constraint), (true, Some(0)));
    }
}
