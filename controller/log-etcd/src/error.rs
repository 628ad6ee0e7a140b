//! The errors of opening a log in etcd.

use periapt_log::LogError;

/// The reason why a log in etcd was not opened. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// A certificate, a key or an authority cannot be read.
    #[error("the certificates for etcd cannot be used: {0}")]
    Tls(String),
    /// No endpoint answers.
    #[error("etcd cannot be reached: {0}; one of its servers at least must answer")]
    Unreachable(String),
    /// The handshake of TLS failed.
    #[error("no TLS connection with etcd: {0}")]
    Handshake(String),
    /// A member is too old.
    #[error("etcd at {endpoint} has version {version}; 3.5 or newer is needed")]
    TooOld {
        /// The endpoint.
        endpoint: String,
        /// Its version.
        version: String,
    },
    /// Members answer, but no majority of the cluster does.
    #[error("etcd has no leader: most of its members must run and reach each other ({0})")]
    NoQuorum(String),
    /// The database has reached its quota.
    #[error(
        "etcd's database is full (alarm NOSPACE at {0}): compact and defragment it, or raise --quota-backend-bytes, \
         then 'etcdctl alarm disarm'"
    )]
    Full(String),
    /// A member's database is damaged.
    #[error("etcd's database is damaged (alarm CORRUPT at {0}): replace that member")]
    Corrupt(String),
    /// The cluster wants to know its users.
    #[error(
        "etcd needs authentication ({0}): give a certificate whose common name is a user of etcd with the right to read \
         and write the log's prefix"
    )]
    Denied(String),
    /// There is something else below the prefix, or another form of log.
    #[error("{0}")]
    Foreign(String),
    /// No controllers have a log there, and none may be made.
    #[error("no controllers have a log at {0}")]
    Absent(String),
    /// Controllers have a log there, and none may be made.
    #[error(
        "controllers have a log below {0:?} already: take another prefix; if they are gone for good, \
         'etcdctl del --prefix {0}' deletes it"
    )]
    Present(String),
    /// Another error of the log.
    #[error(transparent)]
    Log(#[from] LogError),
}
