//! Failed handshakes, in plain words.

use std::{error::Error as _, io, time::Duration};

use rustls::{AlertDescription, CertificateError, Error, pki_types::UnixTime};

/// The reason for a failed handshake, as the client tells it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The server's certificate is of an authority that the client does not trust.
    #[error(
        "another authority than the one that this client trusts has issued its certificate: it is another controller, \
         its authority was made anew, or another program answers in its place"
    )]
    OtherAuthority,
    /// The server's certificate is not valid yet by the client's clock.
    #[error(
        "its certificate becomes valid in {}: this machine's clock, or the controller's, is wrong by as much",
        rounded(*.0)
    )]
    NotYetValid(Duration),
    /// The server's certificate has expired by the client's clock.
    #[error(
        "its certificate expired {} ago: this machine's clock, or the controller's, is wrong by as much",
        rounded(*.0)
    )]
    Expired(Duration),
    /// The server's certificate does not have the name by which the client calls it.
    #[error(
        "its certificate is not for {called}, but for {names}; --public-name of the controller adds a name"
    )]
    OtherName {
        /// The name in the client's URL.
        called: String,
        /// The names of the certificate.
        names: String,
    },
    /// The server does not accept the client's certificate.
    #[error("it does not accept this client's certificate: {0}")]
    Refused(String),
    /// The server does not speak TLS 1.3.
    #[error("no TLS 1.3: {0}")]
    Protocol(String),
}

impl HandshakeError {
    /// Returns the reason of an error of a connection, if the error is one of TLS.
    pub fn of(error: &io::Error) -> Option<Self> {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = error.get_ref().map(|inner| inner as _);
        while let Some(inner) = cause {
            if let Some(found) = inner.downcast_ref::<Error>() {
                return Some(Self::from(found));
            }
            // An error of input that wraps another is not the source of itself.
            cause = match inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                Some(wrapped) => Some(wrapped as _),
                None => inner.source(),
            };
        }
        error.source().and_then(|source| source.downcast_ref::<Error>()).map(Self::from)
    }
}

impl From<&Error> for HandshakeError {
    fn from(error: &Error) -> Self {
        let apart =
            |one: &UnixTime, other: &UnixTime| Duration::from_secs(one.as_secs().abs_diff(other.as_secs()));
        match error {
            Error::InvalidCertificate(wrong) => match wrong {
                CertificateError::NotValidYetContext { time, not_before } => {
                    Self::NotYetValid(apart(time, not_before))
                }
                CertificateError::ExpiredContext { time, not_after } => Self::Expired(apart(time, not_after)),
                CertificateError::NotValidForNameContext { expected, presented } => {
                    Self::OtherName { called: expected.to_str().into_owned(), names: presented.join(", ") }
                }
                CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::OtherAuthority,
                other => Self::Protocol(other.to_string()),
            },
            Error::AlertReceived(
                alert @ (AlertDescription::BadCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::DecryptError
                | AlertDescription::AccessDenied),
            ) => Self::Refused(format!("{alert:?}")),
            other => Self::Protocol(other.to_string()),
        }
    }
}

/// Formats a duration by its largest unit.
pub(crate) fn rounded(duration: Duration) -> String {
    let seconds = duration.as_secs();
    for (unit, length) in [("day", 86_400), ("hour", 3_600), ("minute", 60)] {
        if seconds >= length {
            let count = seconds / length;
            return format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
        }
    }
    format!("{seconds} s")
}
