//! Verifiers of a server's certificate: what each of them judges for itself, and what they share.

use std::fmt::Debug;

use rustls::{
    DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};

use crate::provider::provider;

/// A judge of the certificate that a server shows.
pub(crate) trait CertificateJudge: Debug + Send + Sync {
    /// Returns an error for a certificate that is not accepted.
    fn judge(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error>;
}

/// A verifier by a judge of certificates. Signatures are verified by the provider's algorithms.
#[derive(Debug)]
pub(crate) struct JudgedVerifier<J>(pub(crate) J);

impl<J: CertificateJudge> ServerCertVerifier for JudgedVerifier<J> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0.judge(end_entity, intermediates, server_name, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let provider = provider();
        verify_tls12_signature(message, certificate, signature, &provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let provider = provider();
        verify_tls13_signature(message, certificate, signature, &provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
